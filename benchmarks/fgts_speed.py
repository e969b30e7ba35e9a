"""Speed, growth, memory and start-up of FGTS, as ratios within one run. Run it with `make bench`.

Everything is measured on the machine at hand, so only ratios and bounds are judged; the absolute times are for the reader.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

import duelist

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.growth import measure_growth
from benchmarks.memory import KINDS, ROUNDS, peak_megabytes
from benchmarks.plain_numpy import check_yardstick, plain_fgts_apart
from benchmarks.start_up import measure_start_up

DIM, ARMS, HORIZON, STEPS, TRIALS = 10, 32, 2500, 20, 30


@dataclass(frozen=True)
class Figure:
    """One measured number, what it may be at most, and how it came about."""

    what: str
    value: float
    at_most: float
    unit: str
    detail: str

    @property
    def met(self) -> bool:
        """Whether the bound holds."""
        return self.value <= self.at_most


def measure_speed() -> list[Figure]:
    """The paper's recipe and the default, per trial of 30, against one trial of the plain loop.

    Processor time is judged first: it leaves out whatever else the machine was doing, and gives no credit for the second core.
    Wall time is what a user waits for, and means something on an idle machine only.
    """
    environment = duelist.LinearDuels(dim=DIM, arms=ARMS)
    recipe = duelist.FGTS(sampler=duelist.Langevin(steps=STEPS))
    check_yardstick()
    plain = plain_fgts_apart(dim=DIM, arms=ARMS, rounds=HORIZON, steps=STEPS)
    figures = []
    for what, policy in (("paper recipe, 20 steps per round", recipe), ("default FGTS (MALA)", duelist.FGTS())):
        duelist.simulate(policy, environment, rounds=2, trials=2, progress=False)
        cpu_started = time.process_time()
        run = duelist.simulate(policy, environment, rounds=HORIZON, trials=TRIALS, seed=0, progress=False)
        cpu, wall = (time.process_time() - cpu_started) / TRIALS, run.seconds / TRIALS
        regret = f"; regret {run.final_regret.mean():.0f}, mean of {TRIALS}; plain loop {plain.regret:.0f}, one trial"
        figures += [
            Figure(
                f"{what}: processor time per trial / plain loop",
                cpu / plain.cpu_seconds,
                1 / 12,
                "",
                f"{cpu:.3f} s / {plain.cpu_seconds:.1f} s{regret}",
            ),
            Figure(
                f"{what}: wall time per trial / plain loop",
                wall / plain.seconds,
                1 / 12,
                "",
                f"{wall:.3f} s / {plain.seconds:.1f} s",
            ),
        ]
    return figures


def measure_rest() -> list[Figure]:
    """Growth of a round's cost, memory of a million rounds, and start-up."""
    growth = measure_growth()
    figures = [
        Figure(
            "round at t=100,000 / round at t=1,000",
            growth.late / growth.early,
            1.3,
            "",
            f"medians of choose + learn, one lane: {1e6 * growth.early:.0f} and {1e6 * growth.late:.0f} microseconds",
        )
    ]
    figures += [
        Figure(f"peak memory of {ROUNDS:,} rounds, d=20, {kind}", peak_megabytes(kind), 500, "MB", "whole process")
        for kind in KINDS
    ]
    start = measure_start_up()
    figures += [
        Figure("import duelist", start.import_, 0.5, "s", "beyond starting Python"),
        Figure("files compiled again by a second run", start.recompiled, 0, "", ""),
        Figure(
            "second run / first run, two rounds",
            start.second_run / start.first_run,
            0.5,
            "",
            f"first {start.first_run:.1f} s with compiling, second {start.second_run:.2f} s",
        ),
    ]
    return figures


def table_of(figures: list[Figure]) -> Table:
    """The measures as a table."""
    table = Table(title="FGTS: speed, growth, memory, start-up", title_justify="left")
    table.add_column("what")
    for heading in ("measured", "at most", "met"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("detail")
    for figure in figures:
        measured, bound = (f"{number:.3g} {figure.unit}".strip() for number in (figure.value, figure.at_most))
        table.add_row(figure.what, measured, bound, "yes" if figure.met else "NO", figure.detail)
    return table


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"), help="folder for fgts_speed.json")
    folder: Path = parser.parse_args().out
    console = Console()
    cores, load = os.cpu_count() or 1, os.getloadavg()[0]
    if load > cores / 2:
        console.print(
            f"The machine is busy (load {load:.1f} on {cores} cores): trust processor time and memory, not wall time."
        )
    with console.status("Measuring: two to four minutes"):
        figures = [*measure_speed(), *measure_rest()]
    console.print(table_of(figures))
    folder.mkdir(parents=True, exist_ok=True)
    document = {
        "duelist": duelist.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": cores,
        "load_before": load,
        "figures": [{**asdict(figure), "met": figure.met} for figure in figures],
    }
    path = folder / "fgts_speed.json"
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    console.print(f"Written to {path}")
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
