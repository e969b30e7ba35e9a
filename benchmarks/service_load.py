"""How fast a service is: durable votes a second with many clients at once, and the latency of asks at a steady rate.

The service runs in a process of its own on an SQLite file with full synchronisation; the clients are one more process, so two
cores are busy. A vote counts when its answer, sent after the commit, has arrived.

Run: python benchmarks/service_load.py [--clients 64] [--seconds 10] [--arms 32] [--dim 32] [--past 10000] [--rate 50]
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import platform
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.kill_harness import KEY, ServiceProcess


class Connection:
    """A bare HTTP/1.1 client over one connection: the load generator must cost less than the service that it measures."""

    def __init__(self, host: str, port: int) -> None:
        self._host, self._port = host, port

    async def open(self) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection(self._host, self._port)

    async def call(self, method: str, path: str, body: bytes = b"{}") -> tuple[int, bytes]:
        """Send a request and return the status and the body of the answer."""
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n"
        self._writer.write(head.encode() + f"Content-Length: {len(body)}\r\n\r\n".encode() + body)
        header = await self._reader.readuntil(b"\r\n\r\n")
        status = int(header[9:12])
        place = header.lower().index(b"content-length:") + 15
        length = int(header[place : header.index(b"\r\n", place)])
        return status, await self._reader.readexactly(length)

    @property
    def stale(self) -> bool:
        """Whether the service has hung up: it does so with connections that were idle for some seconds."""
        return self._reader.at_eof()

    def close(self) -> None:
        """Let go."""
        self._writer.close()


def percentiles(seconds: list[float]) -> tuple[float, float, float]:
    """Median, 99th percentile and maximum, in milliseconds."""
    values = np.array(seconds) * 1000
    return float(np.median(values)), float(np.percentile(values, 99)), float(values.max())


async def ask_many(service: ServiceProcess, arena: str, count: int, clients: int) -> list[str]:
    """Ask for that many pairs and return their ids."""
    ids: list[str] = []

    async def client(share: int) -> None:
        connection = Connection(service.host, service.port)
        await connection.open()
        for _ in range(share):
            status, text = await connection.call("POST", f"/api/v1/arenas/{arena}/asks")
            assert status == 201, text
            ids.append(json.loads(text)["id"])
        connection.close()

    await asyncio.gather(*(client(count // clients + (n < count % clients)) for n in range(clients)))
    return ids


async def votes(service: ServiceProcess, arena: str, *, clients: int, seconds: float) -> tuple[int, list[float], float]:
    """Vote on pairs that wait, as fast as it goes: (votes, latencies, seconds)."""
    waiting: list[str] = []
    latencies: list[float] = []
    done = 0
    spent = 0.0
    while spent < seconds:
        # Pairs are asked for between the stretches that count, so that only votes are measured.
        waiting = await ask_many(service, arena, 4000, clients)
        connections = [Connection(service.host, service.port) for _ in range(clients)]
        for connection in connections:
            await connection.open()

        async def client(connection: Connection, number: int, waiting: list[str] = waiting) -> int:
            count = 0
            while waiting:
                ask = waiting.pop()
                body = b'{"outcome":"left"}' if (len(waiting) + number) % 2 else b'{"outcome":"right"}'
                begun = time.perf_counter()
                status, text = await connection.call("PUT", f"/api/v1/arenas/{arena}/asks/{ask}/answer", body)
                latencies.append(time.perf_counter() - begun)
                assert status == 200, text
                count += 1
            return count

        begun = time.perf_counter()
        done += sum(await asyncio.gather(*(client(c, n) for n, c in enumerate(connections))))
        spent += time.perf_counter() - begun
        for connection in connections:
            connection.close()
    return done, latencies, spent


async def both(
    service: ServiceProcess, arena: str, *, clients: int, seconds: float
) -> tuple[int, list[float], list[float], float]:
    """Ask and tell in turn, as a page does: (votes, ask latencies, vote latencies, seconds)."""
    asking: list[float] = []
    telling: list[float] = []
    end = time.perf_counter() + seconds

    async def client() -> None:
        connection = Connection(service.host, service.port)
        await connection.open()
        while time.perf_counter() < end:
            begun = time.perf_counter()
            status, text = await connection.call("POST", f"/api/v1/arenas/{arena}/asks")
            asking.append(time.perf_counter() - begun)
            assert status == 201, text
            ask = json.loads(text)["id"]
            begun = time.perf_counter()
            status, text = await connection.call("PUT", f"/api/v1/arenas/{arena}/asks/{ask}/answer", b'{"outcome":"left"}')
            telling.append(time.perf_counter() - begun)
            assert status == 200, text
        connection.close()

    begun = time.perf_counter()
    await asyncio.gather(*(client() for _ in range(clients)))
    return len(telling), asking, telling, time.perf_counter() - begun


async def steady(service: ServiceProcess, arena: str, *, rate: float, seconds: float) -> list[float]:
    """Ask at a steady rate whether or not the last answer came; latency counts from the moment the request was due."""
    latencies: list[float] = []
    free: list[Connection] = []
    start = time.perf_counter() + 0.1

    async def one(due: float) -> None:
        await asyncio.sleep(max(0.0, due - time.perf_counter()))
        connection = free.pop() if free else None
        while connection is not None and connection.stale:
            connection.close()
            connection = free.pop() if free else None
        if connection is None:
            connection = Connection(service.host, service.port)
            await connection.open()
        status, text = await connection.call("POST", f"/api/v1/arenas/{arena}/asks")
        latencies.append(time.perf_counter() - due)
        assert status == 201, text
        free.append(connection)

    await asyncio.gather(*(one(start + n / rate) for n in range(int(rate * seconds))))
    for connection in free:
        connection.close()
    return latencies


def create(service: ServiceProcess, arena: str, *, arms: int, dim: int, past: int) -> None:
    """An arena of that size with past votes."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(arms, dim)) / np.sqrt(dim)
    theta = rng.normal(size=dim) * 2
    items = [{"name": f"i{n}", "id": f"i{n}", "features": features[n].tolist()} for n in range(arms)]
    body = {"id": arena, "name": arena, "features": "given", "dim": dim, "items": items}
    status, answer = service.call("POST", "/api/v1/arenas", body)
    assert status == 201, answer
    rows = []
    for _ in range(past):
        first, second = rng.choice(arms, size=2, replace=False)
        wins = rng.random() < 1 / (1 + np.exp(-(features[first] - features[second]) @ theta))
        rows.append({"first": f"i{first}", "second": f"i{second}", "outcome": "first" if wins else "second"})
    for part in range(0, past, 10_000):
        status, answer = service.call(
            "POST", f"/api/v1/arenas/{arena}/imports", {"batch": f"b{part}", "votes": rows[part : part + 10_000]}
        )
        assert status == 201, answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--arms", type=int, default=32)
    parser.add_argument("--dim", type=int, default=32)
    parser.add_argument("--past", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--data", default="", help="where to put the file; a real disk, not memory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.data or None) as folder, contextlib.ExitStack() as kept:
        begun = time.perf_counter()
        service = kept.enter_context(ServiceProcess(f"{folder}/votes.db", snapshot_every=5000))
        service.wait_until_listening()
        start = time.perf_counter() - begun
        items = [{"name": f"item {n}"} for n in range(8)]
        assert service.call("POST", "/api/v1/arenas", {"id": "small", "name": "small", "items": items})[0] == 201
        create(service, "large", arms=options.arms, dim=options.dim, past=options.past)
        asyncio.run(both(service, "small", clients=4, seconds=1.0))  # kernels loaded, caches warm
        asyncio.run(steady(service, "large", rate=20, seconds=1.0))
        rows = []
        count, latencies, spent = asyncio.run(votes(service, "small", clients=options.clients, seconds=options.seconds))
        rows.append(("vote", options.clients, count / spent, *percentiles(latencies)))
        count, asking, telling, spent = asyncio.run(both(service, "small", clients=options.clients, seconds=options.seconds))
        rows.append(("ask, then vote: ask", options.clients, count / spent, *percentiles(asking)))
        rows.append(("ask, then vote: vote", options.clients, count / spent, *percentiles(telling)))
        latencies = asyncio.run(steady(service, "large", rate=options.rate, seconds=2 * options.seconds))
        name = f"ask, K = {options.arms}, d = {options.dim}, {options.past} past votes"
        rows.append((name, 0, options.rate, *percentiles(latencies)))
        service.stop()
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.system()}; started in {start:.1f} s\n")
    print("| request | clients at once | a second | median, ms | p99, ms | max, ms |\n|---|---|---|---|---|---|")
    for name, clients, rate, median, p99, most in rows:
        print(f"| {name} | {clients or 'as they come'} | {rate:.0f} | {median:.1f} | {p99:.1f} | {most:.1f} |")


if __name__ == "__main__":
    main()
