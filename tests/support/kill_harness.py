"""A service in its own process, clients that load it, and SIGKILL at a random moment. Used by a test and by a benchmark."""

from __future__ import annotations

import contextlib
import csv
import http.client
import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duelist
from duelist.journal.base import Journal
from duelist.journal.sqlite import SQLiteJournal
from duelist.service.state import ServiceState

KEY = "a key for killing services 0123456789"
START = "from duelist.cli.main import main; main()"
_PATIENCE = 120.0
_LOST = (OSError, http.client.HTTPException)


def environment() -> dict[str, str]:
    """For a process that is to find this very duelist, in whatever folder it starts."""
    here = str(Path(duelist.__file__).parents[1])
    kept = {name: value for name, value in os.environ.items() if name != "DUELIST_ADMIN_KEY"}
    return {**kept, "PYTHONUNBUFFERED": "1", "PYTHONPATH": os.pathsep.join(filter(None, [here, kept.get("PYTHONPATH", "")]))}


@contextlib.contextmanager
def in_time(process: subprocess.Popen[str], waiting_for: str, patience: float = _PATIENCE) -> Iterator[None]:
    """Wait for a process inside of this, by reading from it or otherwise: one that takes too long is killed, and that fails."""
    late = threading.Event()

    def give_up() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(patience, give_up)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if late.is_set():
            raise AssertionError(f"waited {patience:.0f} s in vain for {waiting_for}")


class ServiceProcess:
    """`duelist serve` in a process of its own."""

    def __init__(self, data: str, *, snapshot_every: int = 150) -> None:
        arguments = ["serve", "--data", data, "--port", "0", "--rate", "1e6", "--burst", "1000000"]
        arguments += ["--snapshot-every", str(snapshot_every)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**environment(), "DUELIST_ADMIN_KEY": KEY},
        )
        self.said: list[str] = []
        self.host, self.port = "", 0

    def wait_until_listening(self, patience: float = _PATIENCE) -> None:
        """Read what it prints until it answers."""
        with in_time(self.process, "the service to start", patience):
            self.host, self.port = listening(self.process, self.said)
        end = time.monotonic() + patience
        while True:
            with contextlib.suppress(*_LOST):
                status, _ = self.call("GET", "/healthz")
                if status == 200:
                    return
            assert time.monotonic() < end, "the service does not answer"
            time.sleep(0.01)

    def call(
        self, method: str, path: str, body: Any = None, connection: http.client.HTTPConnection | None = None
    ) -> tuple[int, Any]:
        """One request. Raises what http.client raises when the service dies meanwhile."""
        own = connection or http.client.HTTPConnection(self.host, self.port, timeout=_PATIENCE)
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        try:
            own.request(method, path, None if body is None else json.dumps(body), headers)
            answer = own.getresponse()
            text = answer.read()
        finally:
            if connection is None:
                own.close()
        is_json = answer.headers.get("content-type", "").startswith("application/json")
        return answer.status, json.loads(text) if is_json else text.decode()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """A check that fails must not leave a service behind."""
        if self.process.poll() is None:
            self.kill()

    def kill(self) -> None:
        """SIGKILL: no handler runs, nothing is flushed."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=_PATIENCE)
        assert self.process.stdout is not None
        self.process.stdout.close()

    def stop(self) -> None:
        """Ask it to stop, and wait."""
        self.said.extend(stop_process(self.process).splitlines())


def listening(process: subprocess.Popen[str], said: list[str]) -> tuple[str, int]:
    """Host and port of a service, once it says that it listens. What it says before is added to `said`."""
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line.rstrip())
        found = re.search(r"Listening on http://([\d.]+):(\d+)", line)
        if found:
            return found[1], int(found[2])
    raise AssertionError("the service did not start:\n" + "\n".join(said))


def stop_process(process: subprocess.Popen[str], sign: signal.Signals = signal.SIGTERM) -> str:
    """Ask a service to stop, wait until it has, and return what it said meanwhile."""
    assert process.stdout is not None
    process.send_signal(sign)
    with in_time(process, "an orderly stop"):
        rest = process.stdout.read()
        process.wait()
    process.stdout.close()
    return rest


@dataclass
class Memory:
    """What clients were told, and what they do not know because the answer never came."""

    asks: dict[str, tuple[str, str]] = field(default_factory=dict)  # acknowledged: ask -> (left, right)
    answers: dict[str, str] = field(default_factory=dict)  # acknowledged: ask -> outcome
    unsure_asks: set[str] = field(default_factory=set)  # request ids whose answer was lost
    unsure_answers: dict[str, str] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


def load(
    service: ServiceProcess, arena: str, memory: Memory, *, clients: int, seed: int, stop: threading.Event
) -> list[threading.Thread]:
    """Start clients that ask and tell until the service dies or `stop` is set."""

    def client(number: int) -> None:
        choose = random.Random(f"{seed} {number}")
        with contextlib.closing(http.client.HTTPConnection(service.host, service.port, timeout=_PATIENCE)) as connection:
            talk(number, choose, connection)

    def talk(number: int, choose: random.Random, connection: http.client.HTTPConnection) -> None:
        path = f"/api/v1/arenas/{arena}/asks"
        count = 0
        while not stop.is_set():
            count += 1
            request = f"{seed}.{number}.{count}"
            try:
                status, ask = service.call("POST", path, {"request_id": request}, connection)
            except _LOST:
                with memory.lock:
                    memory.unsure_asks.add(request)
                return
            assert status == 201, ask
            with memory.lock:
                memory.asks[ask["id"]] = (ask["left"]["item"], ask["right"]["item"])
            if choose.random() < 0.05:
                continue  # some people never answer
            outcome = choose.choice(["left", "left", "right", "tie"])
            body = {"outcome": outcome, "voter": f"v{number}"} if choose.random() < 0.5 else {"outcome": outcome}
            try:
                status, told = service.call("PUT", f"{path}/{ask['id']}/answer", body, connection)
            except _LOST:
                with memory.lock:
                    memory.unsure_answers[ask["id"]] = outcome
                return
            assert status == 200, told
            with memory.lock:
                memory.answers[ask["id"]] = outcome

    threads = [threading.Thread(target=client, args=(n,), daemon=True) for n in range(clients)]
    for thread in threads:
        thread.start()
    return threads


def wait_for_answers(memory: Memory, count: int) -> None:
    """Wait until that many answers were acknowledged."""
    end = time.monotonic() + _PATIENCE
    while len(memory.answers) < count:
        assert time.monotonic() < end, f"{len(memory.answers)} of {count} answers after {_PATIENCE:.0f} s"
        time.sleep(0.005)


def join_all(threads: list[threading.Thread]) -> None:
    """Wait for the clients to end."""
    for thread in threads:
        thread.join(timeout=_PATIENCE)
        assert not thread.is_alive(), "a client waits for an answer that does not come"


def check_against_service(service: ServiceProcess, arena: str, memory: Memory) -> None:
    """Nothing acknowledged is missing, changed or doubled; what was not acknowledged is there once or not at all."""
    status, text = service.call("GET", f"/api/v1/arenas/{arena}/votes")
    assert status == 200, text
    rows = list(csv.DictReader(io.StringIO(text)))
    seen = Counter(row["ask"] for row in rows)
    doubled = [ask for ask, times in seen.items() if times > 1]
    assert not doubled, f"doubled asks: {doubled}"
    by_id = {row["ask"]: row for row in rows}
    missing = [ask for ask in memory.asks if ask not in by_id]
    assert not missing, f"acknowledged asks missing: {missing}"
    for ask, (left, right) in memory.asks.items():
        assert (by_id[ask]["left"], by_id[ask]["right"]) == (left, right), f"ask {ask} changed"
    wrong = {
        ask: (outcome, by_id[ask]["outcome"]) for ask, outcome in memory.answers.items() if by_id[ask]["outcome"] != outcome
    }
    assert not wrong, f"acknowledged answers missing or changed: {wrong}"
    for ask, row in by_id.items():
        if row["outcome"] and ask not in memory.answers:
            assert memory.unsure_answers.get(ask) == row["outcome"], f"ask {ask} has an answer that nobody gave"


def settle_doubts(service: ServiceProcess, arena: str, memory: Memory) -> None:
    """Send again what was not acknowledged, as a careful client does: it then counts once, whether or not it had arrived."""
    path = f"/api/v1/arenas/{arena}/asks"
    for request in sorted(memory.unsure_asks):
        first = service.call("POST", path, {"request_id": request})
        second = service.call("POST", path, {"request_id": request})
        assert first == second
        memory.asks[first[1]["id"]] = (first[1]["left"]["item"], first[1]["right"]["item"])
    for ask, outcome in memory.unsure_answers.items():
        status, told = service.call("PUT", f"{path}/{ask}/answer", {"outcome": outcome})
        assert status == 200, told
        memory.answers[ask] = outcome
    memory.unsure_asks.clear()
    memory.unsure_answers.clear()


def check_fold(journal: Journal) -> int:
    """Snapshot and tail give the same state as replaying everything, bit for bit. Returns the number of events.

    Snapshots were written by the live process, so this also compares its memory with the replay.
    """
    snapshot = journal.latest_snapshot()
    whole, resumed = ServiceState(), ServiceState.from_bytes(snapshot.data) if snapshot else ServiceState()
    events = 0
    for record in journal.read():
        whole.apply(record)
        events = record.position
        if snapshot and record.position == snapshot.position:
            assert whole.to_bytes() == snapshot.data, f"the snapshot at {snapshot.position} is not the fold up to there"
        if snapshot is None or record.position > snapshot.position:
            resumed.apply(record)
    assert resumed.to_bytes() == whole.to_bytes(), "snapshot and tail are not the fold over everything"
    return events


def create_arena(service: ServiceProcess, arena: str, items: int = 6) -> None:
    """An arena for the clients."""
    body = {"id": arena, "name": arena, "items": [{"name": f"item {n}"} for n in range(items)], "undo_seconds": 0.2}
    status, answer = service.call("POST", "/api/v1/arenas", body)
    assert status == 201, answer


def kill_once(data: Path, memory: Memory, *, arena: str, seed: int, clients: int = 8) -> bool:
    """Start the service, check what it knows, load it, kill it at a random moment. Returns whether it got to listen."""
    choose = random.Random(seed)
    with ServiceProcess(str(data)) as service:
        if choose.random() < 0.1:
            time.sleep(choose.uniform(0.0, 1.5))  # sometimes while it is still starting
            service.kill()
            return False
        service.wait_until_listening()
        if service.call("GET", f"/api/v1/arenas/{arena}")[0] == 404:
            assert not memory.asks
            create_arena(service, arena)
        check_against_service(service, arena, memory)
        settle_doubts(service, arena, memory)
        stop = threading.Event()
        threads = load(service, arena, memory, clients=clients, seed=seed, stop=stop)
        time.sleep(choose.uniform(0.05, 0.8))
        service.kill()
        join_all(threads)
        return True


def last_check(data: Path, memory: Memory, *, arena: str) -> tuple[int, list[str]]:
    """Start once more, check everything, stop in an orderly way, compare folds. Returns (events, what the starts said)."""
    with ServiceProcess(str(data)) as service:
        service.wait_until_listening()
        check_against_service(service, arena, memory)
        settle_doubts(service, arena, memory)
        check_against_service(service, arena, memory)
        service.stop()
    with SQLiteJournal(data) as journal:
        events = check_fold(journal)
    return events, service.said
