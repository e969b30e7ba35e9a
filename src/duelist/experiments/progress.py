"""Progress on standard error: bars that appear on a terminal only, and only for work that takes a moment."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # rich takes a tenth of a second to import, and most runs show nothing
    from rich.console import Console
    from rich.progress import ProgressColumn, TaskID

Progress = Callable[[int], None]

_UPDATES = 300  # reports per bar: a lane-round can take microseconds, far less than drawing a bar
_PATIENCE = 1.0  # seconds before a bar appears: shorter work needs none


@contextmanager
def locked_progress(tick: Progress) -> Iterator[Progress]:
    """Report to the caller's own function, one call at a time."""
    lock = threading.Lock()

    def report(amount: int) -> None:
        with lock:
            tick(amount)

    yield report


def throttle(report: Progress, total: int) -> Progress:
    """Return a function that adds up amounts and passes them on: the first at once, then a few hundred times in all.

    It may be called from several threads; `report` is called by one at a time.
    """
    lock = threading.Lock()
    pending, started = 0, False

    def tick(amount: int) -> None:
        nonlocal pending, started
        with lock:
            pending += amount
            if not started or pending * _UPDATES >= total:
                report(pending)
                pending, started = 0, True

    return tick


@contextmanager
def progress_bar(label: str, total: int, *, show: bool | None, unit: str = "rounds") -> Iterator[Progress]:
    """A bar on standard error: always (True), never (False), or on a terminal once the work takes a moment (None)."""
    if show is False or (show is None and not sys.stderr.isatty()):
        yield lambda _amount: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        *time_columns(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(label, total=total)
    started = time.perf_counter()

    def report(amount: int) -> None:
        bar.advance(task, amount)
        if not bar.live.is_started and time.perf_counter() - started > _PATIENCE:
            bar.start()

    try:
        yield throttle(report, total)
    finally:
        bar.stop()


def time_columns() -> list[ProgressColumn]:
    """Columns that read "0:00:41 elapsed, 0:00:32 left"."""
    from rich.progress import TextColumn, TimeElapsedColumn, TimeRemainingColumn

    return [TimeElapsedColumn(), TextColumn("elapsed,"), TimeRemainingColumn(), TextColumn("left")]


class SweepDisplay:
    """Progress of a sweep: what runs, how far, and how long it will take. This one shows nothing."""

    def add(self, key: str, title: str, steps: int) -> Progress:  # noqa: ARG002 - the display that shows nothing
        """Announce a waiting block; returns the function to call with the number of lane-rounds just played."""
        return lambda _amount: None

    def finish(self, key: str) -> None:
        """Report a block as done or failed."""

    def expect(self, tests: int) -> None:
        """Say how many tuned policies are still to be tested: their blocks are not known before, and the total grows."""


@contextmanager
def sweep_display(label: str, *, show: bool | None) -> Iterator[SweepDisplay]:
    """A live display on standard error: always (True), never (False), or on a terminal (None)."""
    if show is False or (show is None and not sys.stderr.isatty()):
        yield SweepDisplay()
        return
    with LiveSweepDisplay(label) as display:
        yield display


class LiveSweepDisplay(SweepDisplay):
    """One line for the whole sweep, and one for every block that is running."""

    def __init__(self, label: str, console: Console | None = None) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as Bars

        self._bars = Bars(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TaskProgressColumn(),
            *time_columns(),
            console=console or Console(stderr=True),
            transient=True,
            speed_estimate_period=120.0,  # blocks of different policies differ in speed: look back over several
        )
        self._label, self._total, self._done = label, 0, 0
        self._blocks = self._finished = self._tests = 0
        self._all = self._bars.add_task(label, total=None)
        self._running: dict[str, TaskID] = {}
        self._lock = threading.Lock()

    def __enter__(self) -> LiveSweepDisplay:
        self._bars.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._bars.stop()

    def add(self, key: str, title: str, steps: int) -> Progress:
        """Announce a waiting block; its line appears when it starts."""
        with self._lock:
            self._blocks += 1
            self._total += steps
            self._describe()

        def report(amount: int) -> None:
            with self._lock:
                if key not in self._running:
                    self._running[key] = self._bars.add_task(f"  {title}", total=steps)
                self._bars.advance(self._running[key], amount)
                self._bars.advance(self._all, amount)

        return throttle(report, steps)

    def finish(self, key: str) -> None:
        """Remove the block's line."""
        with self._lock:
            self._finished += 1
            if key in self._running:
                self._bars.remove_task(self._running.pop(key))
            self._describe()

    def expect(self, tests: int) -> None:
        """Say how many tests are to come."""
        with self._lock:
            self._tests = tests
            self._describe()

    def _describe(self) -> None:
        to_come = f", then {self._tests} tests" if self._tests else ""
        text = f"{self._label}: {self._finished} of {self._blocks} blocks{to_come}"
        self._bars.update(self._all, description=text, total=self._total)
