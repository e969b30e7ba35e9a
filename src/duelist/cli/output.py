"""The output of `duelist run`: live progress, the result table, and the files of results and settings."""

from __future__ import annotations

import csv
import importlib.metadata
import io
import json
import os
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from duelist.core.errors import InvalidInputError
from duelist.core.files import write_whole
from duelist.experiments.comparison import Comparison
from duelist.experiments.progress import throttle
from duelist.experiments.records import curve_columns, join_columns, plain_value
from duelist.policies.codec import parameter_fields
from duelist.version import __version__

_PATIENCE = 1.5  # seconds without a first round before the bar says why


class _Speed(ProgressColumn):
    """Rounds per second, or why there are none yet."""

    def render(self, task: Task) -> Text:
        if task.completed:
            speed = task.finished_speed or task.speed
            return Text(f"{speed:,.0f} rounds/s" if speed else "", style="dim")
        waiting = task.started and (task.elapsed or 0.0) > _PATIENCE
        return Text("compiling, the first time only" if waiting else "", style="dim")


class ProgressDisplay:
    """One bar per policy on standard error; without a terminal, one line when each policy is done."""

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
    def track(self, name: str) -> Iterator[Callable[[int], None]]:
        """Show a policy as playing; yields the function to call with the number of lane-rounds just played."""
        task: TaskID = self._tasks[name]
        self._bars.start_task(task)
        yield throttle(lambda amount: self._bars.advance(task, amount), self._total)
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
        table.add_row(escape(str(row["label"])), *regrets, f"{row['seconds']:.1f} s")
    return table


RESULTS = "results.csv"
CURVES = "curves.csv"
SETTINGS = "run.json"
_CURVE_POINTS = 100  # rounds of a curve: what a figure shows, in a file of some megabytes at most
_LIBRARIES = ("numpy", "scipy", "numba")


def plain_parameters(value: Any) -> dict[str, Any]:
    """Return the parameters of a frozen dataclass: plain values as they are, objects as the text that makes them."""
    return {field.name: plain_value(getattr(value, field.name)) for field in parameter_fields(value)}


def write_results(folder: Path, comparison: Comparison) -> Path:
    """Write `results.csv`: final regrets of every policy and trial, one column per parameter; blank where a policy has none.

    Times are in `run.json`: this file is the same whenever and wherever it is made.
    """
    columns = {name: values for name, values in comparison.columns().items() if name != "seconds"}
    return _write_csv(folder / RESULTS, columns)


def write_curves(folder: Path, comparison: Comparison) -> Path:
    """Write `curves.csv`: regret over rounds, tidy and thinned, from which the figure can be drawn again."""
    rounds = int(next(iter(comparison.runs.values())).rounds[-1])
    thin = max(rounds // _CURVE_POINTS, 1)
    columns = join_columns([curve_columns(label, run, thin) for label, run in comparison.runs.items()])
    columns["regret"] = [f"{value:.7g}" for value in columns["regret"]]
    return _write_csv(folder / CURVES, columns)


def _write_csv(path: Path, columns: dict[str, list[Any]]) -> Path:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return _replace(path, text.getvalue())


def write_settings(folder: Path, comparison: Comparison, *, asked: list[str], complete: bool) -> Path:
    """Write `run.json`: what was run, with what, and how long it took."""
    first = next(iter(comparison.runs.values()))
    document = {
        "complete": complete,
        "asked": asked,
        "environment": {"name": type(first.environment).__name__, **plain_parameters(first.environment)},
        "rounds": int(first.rounds[-1]),
        "trials": len(first.trials),
        "seed": first.seed,
        "policies": {
            name: {
                "policy": type(run.policy).__name__,
                "parameters": plain_parameters(run.policy),
                "seconds": run.seconds,
                "compile_seconds": run.compile_seconds,
            }
            for name, run in comparison.runs.items()
        },
        "versions": {
            "duelist": __version__,
            "python": platform.python_version(),
            **{library: importlib.metadata.version(library) for library in _LIBRARIES},
        },
        "platform": platform.platform(),
        "cores": os.cpu_count(),
    }
    return _replace(folder / SETTINGS, json.dumps(document, indent=2) + "\n")


def _replace(path: Path, text: str) -> Path:
    write_whole(path, text.encode())
    return path


def make_folder(folder: Path) -> None:
    """Make the folder of --out, before anything is computed."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"--out must be a folder that can be written to; got {str(folder)!r} ({error.strerror}). Name another."
        ) from error
