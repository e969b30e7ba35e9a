"""A progress bar that appears only where a person is watching and there is something to wait for."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int], None]

_PATIENCE = 1.0  # seconds before a bar appears: shorter work needs none


@contextmanager
def no_progress(tick: Progress) -> Iterator[Progress]:
    """Report to the caller's own function, one call at a time."""
    lock = threading.Lock()

    def locked(amount: int) -> None:
        with lock:
            tick(amount)

    yield locked


@contextmanager
def progress_bar(label: str, total: int, *, show: bool | None) -> Iterator[Progress]:
    """A bar on standard error: always (True), never (False), or on a terminal once the work takes a moment (None)."""
    if show is False or (show is None and not sys.stderr.isatty()):
        yield lambda _amount: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("rounds"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(label, total=total)
    started = time.perf_counter()
    pending = 0
    lock = threading.Lock()

    def tick(amount: int) -> None:
        nonlocal pending
        with lock:
            pending += amount
            # A lane-round can take microseconds: tell the display a few hundred times in all, not every time.
            if pending * 300 >= total:
                bar.advance(task, pending)
                pending = 0
                if not bar.live.is_started and time.perf_counter() - started > _PATIENCE:
                    bar.start()

    try:
        yield tick
    finally:
        bar.stop()


class SweepDisplay:
    """What runs, how far, and how long it will take: one line for the whole sweep, one for every running block."""

    def add(self, key: str, title: str, steps: int) -> Progress:  # noqa: ARG002 - a display without a person watching
        """A block is waiting; returns the function that hears of its lane-rounds."""
        return lambda _amount: None

    def finish(self, key: str) -> None:
        """A block is done, or has failed."""


@contextmanager
def sweep_display(label: str, *, show: bool | None) -> Iterator[SweepDisplay]:
    """A live display on standard error: always (True), never (False), or on a terminal (None)."""
    if show is False or (show is None and not sys.stderr.isatty()):
        yield SweepDisplay()
        return
    from duelist.experiments.live_display import LiveSweepDisplay

    with LiveSweepDisplay(label) as display:
        yield display
