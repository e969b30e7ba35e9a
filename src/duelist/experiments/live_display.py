"""The live display of a sweep: what runs, how far, how long it has taken and how much is left."""

from __future__ import annotations

import threading
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from duelist.experiments.progress import Progress as Tick
from duelist.experiments.progress import SweepDisplay

_UPDATES = 100  # a block tells the display that often: a lane-round can take microseconds


class LiveSweepDisplay(SweepDisplay):
    """One line for the whole sweep, and one for every block that is running."""

    def __init__(self, label: str, console: Console | None = None) -> None:
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console or Console(stderr=True),
            transient=True,
            speed_estimate_period=120.0,  # blocks of different policies differ in speed: look back over several
        )
        self._label, self._total, self._done = label, 0, 0
        self._blocks = self._finished = 0
        self._all = self._bars.add_task(label, total=None)
        self._running: dict[str, TaskID] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> LiveSweepDisplay:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bars.stop()

    def add(self, key: str, title: str, steps: int) -> Tick:
        """A block is waiting; its line appears when it starts."""
        with self._lock:
            self._blocks += 1
            self._total += steps
            self._describe()
        pending = 0

        def tick(amount: int) -> None:
            nonlocal pending
            pending += amount
            if key in self._running and pending * _UPDATES < steps:
                return
            with self._lock:
                if key not in self._running:
                    self._running[key] = self._bars.add_task(f"  {title}", total=steps)
                self._bars.advance(self._running[key], pending)
                self._bars.advance(self._all, pending)
                pending = 0

        return tick

    def finish(self, key: str) -> None:
        """Take the block's line away."""
        with self._lock:
            self._finished += 1
            if key in self._running:
                self._bars.remove_task(self._running.pop(key))
            self._describe()

    def _describe(self) -> None:
        text = f"{self._label}: {self._finished} of {self._blocks} blocks"
        self._bars.update(self._all, description=text, total=self._total)
