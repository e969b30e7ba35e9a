"""What a person sees of a comparison: live progress, one line a policy, and the result table."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from duelist.experiments.compare import Comparison

_UPDATES = 300  # a bar: a lane-round can take microseconds, and nobody reads faster than this
_PATIENCE = 1.5  # seconds without a first round before we say what takes so long


class _Speed(ProgressColumn):
    """Rounds a second, or why nothing moves yet."""

    def render(self, task: Task) -> Text:
        if task.completed:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f} rounds/s" if speed else "", style="dim")
        waiting = task.started and (task.elapsed or 0.0) > _PATIENCE
        return Text("compiling, the first time only" if waiting else "", style="dim")


class ProgressDisplay:
    """One bar a policy on standard error; where nobody is watching, one line as each is done."""

    def __init__(self, names: list[str], total: int, *, quiet: bool) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._total = total
        self._live = self._console.is_terminal
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f}%"),
            TimeElapsedColumn(),
            _Speed(),
            console=self._console,
            disable=not self._live,
        )
        self._tasks = {name: self._bars.add_task(escape(name), total=total, start=False) for name in names}

    def __enter__(self) -> ProgressDisplay:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    @contextmanager
    def playing(self, name: str) -> Iterator[Callable[[int], None]]:
        """A function to call with the number of lane-rounds just played by this policy."""
        task: TaskID = self._tasks[name]
        self._bars.start_task(task)
        pending = 0
        lock = threading.Lock()

        def tick(amount: int) -> None:
            nonlocal pending
            with lock:
                pending += amount
                if pending * _UPDATES >= self._total:
                    self._bars.advance(task, pending)
                    pending = 0

        yield tick
        self._bars.update(task, completed=self._total)
        if not self._live:
            self._console.print(f"{escape(name)} done", highlight=False)


def result_table(comparison: Comparison, *, rounds: int, trials: int) -> Table:
    """Final regret of every policy, best mean first."""
    table = Table(
        title=f"Cumulative regret after {rounds:,} rounds, {trials} trial(s)",
        caption="weak: regret of the better of the two arms. Tails are heavy: read median and quantiles with the mean.",
        title_justify="left",
        caption_justify="left",
        box=SIMPLE_HEAD,
    )
    table.add_column("policy", style="bold", overflow="fold")
    headings = {"mean": "mean", "sd": "sd", "median": "median", "q05": "5 %", "q95": "95 %", "weak": "weak"}
    for heading in (*headings.values(), "time"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in comparison.table():
        regrets = (f"{row[column]:,.0f}" for column in headings)
        table.add_row(escape(str(row["policy"])), *regrets, f"{row['seconds']:.1f} s")
    return table
