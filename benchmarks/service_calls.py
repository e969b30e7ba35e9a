"""Counts the Python calls into duelist that one ask and one vote over HTTP need, and the calls that go up.

A service runs in this process, behind its ASGI interface, on a journal in memory: a default arena (FGTS, 6 items), and a voter
without a name. Counted are the fifth ask and the fifth vote, over all threads. A call counts if its code is in a file of
`duelist`; going on in a coroutine after an `await` is not a call. An *upward* call goes from a lower room into a higher one, by
the layers in `pyproject.toml`. All upward calls of one frame are one crossing: the replica gives the command its turn once.

Run: python benchmarks/service_calls.py [--list]. It ends with status 1 beyond the limits.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import threading
import tomllib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import duelist
from duelist.journal.memory import MemoryJournal
from duelist.service import Store, create_app, first_key

SECRET = "an admin key for counting calls"
LIMITS = {"ask": 126, "vote": 81}  # an ask varies by a few with the timing of threads
CROSSINGS = 1
_PACKAGE = str(Path(duelist.__file__).parent)
_PROJECT = Path(__file__).parents[1] / "pyproject.toml"


@dataclass
class Count:
    """The calls of one request.

    Attributes:
        calls: "file function" -> times.
        upward: "file function -> file function" -> times.
        crossings: frames that called up.
    """

    calls: Counter[str] = field(default_factory=Counter)
    upward: Counter[str] = field(default_factory=Counter)
    crossings: list[FrameType] = field(default_factory=list)


class Profiler:
    """Counts while it is switched on."""

    def __init__(self) -> None:
        self.count: Count | None = None
        self._levels = levels()
        self._seen: dict[int, FrameType] = {}  # kept, so that no other frame gets the same id
        self._lock = threading.Lock()

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        """A profile function of `sys.setprofile`."""
        if event != "call" or self.count is None or not frame.f_code.co_filename.startswith(_PACKAGE):
            return
        with self._lock:
            if id(frame) in self._seen:
                return  # a coroutine that goes on
            self._seen[id(frame)] = frame
            self.count.calls[name_of(frame)] += 1
            caller = frame.f_back
            if caller is None or not caller.f_code.co_filename.startswith(_PACKAGE):
                return
            if self._level(frame) > self._level(caller):
                self.count.upward[f"{name_of(caller)} -> {name_of(frame)}"] += 1
                if not any(caller is known for known in self.count.crossings):
                    self.count.crossings.append(caller)

    def _level(self, frame: FrameType) -> int:
        room = Path(frame.f_code.co_filename).relative_to(_PACKAGE).parts[0].removesuffix(".py")
        return self._levels.get(room, len(self._levels))  # the root is above all rooms

    def start(self) -> None:
        """Forget what was counted, and count."""
        self._seen.clear()
        self.count = Count()

    def stop(self) -> Count:
        """What was counted since."""
        count, self.count = self.count, None
        if count is None:
            raise RuntimeError("nothing was started")
        return count


def levels() -> dict[str, int]:
    """The level of every room, the lowest 0."""
    contracts = tomllib.loads(_PROJECT.read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {room.strip(): level for level, layer in enumerate(reversed(layers)) for room in layer.split("|")}


def name_of(frame: FrameType) -> str:
    """File and function of a frame."""
    return f"{Path(frame.f_code.co_filename).relative_to(_PACKAGE)} {frame.f_code.co_qualname}"


async def send(app: Any, method: str, path: str, body: object) -> Any:
    """Send a request to an ASGI application and return the JSON it answers."""
    raw = json.dumps(body).encode()
    headers = [(b"authorization", f"Bearer {SECRET}".encode()), (b"content-type", b"application/json")]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": headers,
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }
    answered = bytearray()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": raw, "more_body": False}

    async def take(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start" and message["status"] >= 400:
            raise RuntimeError(f"{method} {path} was refused: {message}")
        answered.extend(message.get("body", b""))

    await app(scope, receive, take)
    return json.loads(bytes(answered))


async def measure(profiler: Profiler) -> dict[str, Count]:
    """The calls of the fifth ask and the fifth vote."""
    store = Store(MemoryJournal())  # its writer thread starts here, with the profiler
    first_key(store, SECRET)
    app = create_app(store)
    items = [{"name": f"Item {n}"} for n in range(6)]
    arena = (await send(app, "POST", "/api/v1/arenas", {"name": "Counted", "items": items}))["id"]
    counts: dict[str, Count] = {}
    for _ in range(5):
        profiler.start()
        asked = await send(app, "POST", f"/api/v1/arenas/{arena}/asks", {})
        counts["ask"] = profiler.stop()
        profiler.start()
        await send(app, "PUT", f"/api/v1/arenas/{arena}/asks/{asked['id']}/answer", {"outcome": "left"})
        counts["vote"] = profiler.stop()
    store.close()
    return counts


def count_calls() -> dict[str, Count]:
    """The calls of an ask and of a vote, in steady state."""
    profiler = Profiler()
    threading.setprofile(profiler)
    sys.setprofile(profiler)
    try:
        return asyncio.run(measure(profiler))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def main() -> int:
    """Print the table; 1 beyond the limits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="Print every function that was called.")
    arguments = parser.parse_args()
    counts = count_calls()
    print("| request | calls | limit | files | crossings up | limit |\n|---|---|---|---|---|---|")
    for name, count in counts.items():
        files = len({call.split()[0] for call in count.calls})
        print(f"| {name} | {count.calls.total()} | {LIMITS[name]} | {files} | {len(count.crossings)} | {CROSSINGS} |")
    for name, count in counts.items():
        print(f"\nUpward calls of one {name}:")
        for call, times in count.upward.items():
            print(f"  {times} {call}")
        if arguments.list:
            print(f"\nCalls of one {name}:")
            for call, times in count.calls.items():
                print(f"  {times} {call}")
    within = all(count.calls.total() <= LIMITS[name] and len(count.crossings) <= CROSSINGS for name, count in counts.items())
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main())
