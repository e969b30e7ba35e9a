"""Regret of the six baselines on the paper's problem, at every radius of the paper's grid and of a finer one.

A policy plays all its radii and instances as one run, one lane each, so that every radius meets the same instances with the
same noise. Lanes go to a CSV file; the table shows the best radius of each grid, judged by the mean, and the spread.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import duelist
from duelist.typing import FloatArray

PAPER_GRID = (0.01, 0.1, 1.0, 10.0)
FINER_GRID = (2.0, 3.0, 5.0, 7.0)
DIMS = (5, 10, 15)
POLICIES: dict[str, Any] = {
    "MaxInP": duelist.MaxInP(),
    "CoLSTIM": duelist.CoLSTIM(),
    "MaxPairUCB": duelist.MaxPairUCB(),
    "MaxPairUCB, local": duelist.MaxPairUCB(width="local"),
    "VACDB": duelist.VACDB(),
    "StaD": duelist.StaD(),
    "SupCoLSTIM": duelist.SupCoLSTIM(),
}
# What the best mean may be at most, for d = 5, 10, 15. The layered policies must beat uniform play.
BOUNDS = {
    "MaxInP": (180.0, 260.0, 400.0),
    "CoLSTIM": (210.0, 290.0, 400.0),
    "MaxPairUCB": (260.0, 320.0, 360.0),
    "MaxPairUCB, local": (190.0, 250.0, 380.0),
}


@dataclass(frozen=True)
class Lane:
    """One policy, dimension, radius and instance: final average regret, fits that failed, and duels that taught each layer."""

    policy: str
    dim: int
    radius: float
    trial: int
    regret: float
    unconverged: float
    explored: tuple[float, ...]
    exploited: float


def play(name: str, dim: int, *, rounds: int, trials: int) -> list[Lane]:
    """All radii of one policy in one dimension, as one run."""
    radii = np.repeat(PAPER_GRID + FINER_GRID, trials)
    policy = replace(POLICIES[name], radius=tuple(radii))
    numbers = list(range(trials)) * len(PAPER_GRID + FINER_GRID)
    run = duelist.simulate(policy, duelist.LinearDuels(dim=dim, arms=32), rounds=rounds, trials=numbers, seed=0)
    layers = [run.info[key] for key in run.info if key.startswith("explored_layer_")]
    exploited = run.info.get("exploited", np.zeros(len(numbers)))
    return [
        Lane(
            name,
            dim,
            float(radii[i]),
            numbers[i],
            float(run.final_regret[i]),
            float(run.info["unconverged_fits"][i]),
            tuple(float(layer[i]) for layer in layers),
            float(exploited[i]),
        )
        for i in range(len(numbers))
    ]


def best_radius(lanes: Sequence[Lane], grid: Sequence[float]) -> tuple[float, FloatArray]:
    """The radius with the smallest mean regret, and the regret of its lanes."""
    regrets = {radius: np.array([lane.regret for lane in lanes if lane.radius == radius]) for radius in grid}
    radius = min(regrets, key=lambda r: float(regrets[r].mean()))
    return radius, regrets[radius]


def layer_use(lanes: Sequence[Lane], radius: float) -> str:
    """Mean duels that taught each layer, from the first to the last that was used; then those that taught nothing."""
    used = [lane for lane in lanes if lane.radius == radius]
    if not used[0].explored:
        return ""
    explored = np.mean([lane.explored for lane in used], axis=0)
    last = int(np.flatnonzero(explored)[-1]) + 1
    return " ".join(f"{count:.0f}" for count in explored[:last]) + f" | {np.mean([lane.exploited for lane in used]):.0f}"


def figures(values: FloatArray) -> str:
    """Mean, median and the 5% and 95% quantiles."""
    low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
    return f"{values.mean():.0f} ({middle:.0f}; {low:.0f}-{high:.0f})"


def write_csv(path: Path, lanes: Sequence[Lane]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["policy", "dim", "radius", "trial", "final_regret", "unconverged_fits", "exploited", "explored"])
        for lane in lanes:
            explored = " ".join(f"{count:.0f}" for count in lane.explored)
            writer.writerow(
                [lane.policy, lane.dim, lane.radius, lane.trial, lane.regret, lane.unconverged, lane.exploited, explored]
            )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2500)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--policy", choices=list(POLICIES), action="append", help="only this one; may be repeated")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"), help="folder for baselines_regret.csv")
    options = parser.parse_args()
    console = Console(width=150)
    table = Table(title=f"Final average regret, T={options.rounds}, K=32, {options.trials} instances", title_justify="left")
    for heading in ("policy", "d", "paper's grid: mean (median; 5%-95%)", "both grids", "at most", "met"):
        table.add_column(heading, no_wrap=True)
    table.add_column("failed fits", justify="right")
    table.add_column("mean duels that taught layer 1, 2, ... | that taught nothing")
    everything: list[Lane] = []
    all_met = True
    for dim in DIMS:
        environment = duelist.LinearDuels(dim=dim, arms=32)
        floor = duelist.simulate(duelist.Uniform(), environment, rounds=options.rounds, trials=options.trials, seed=0)
        uniform = float(floor.final_regret.mean())
        table.add_row("Uniform", str(dim), "", figures(floor.final_regret), "", "", "", "")
        for name in options.policy or POLICIES:
            lanes = play(name, dim, rounds=options.rounds, trials=options.trials)
            everything += lanes
            paper_radius, paper = best_radius(lanes, PAPER_GRID)
            radius, best = best_radius(lanes, PAPER_GRID + FINER_GRID)
            bound = BOUNDS[name][DIMS.index(dim)] if name in BOUNDS else uniform
            unconverged = sum(lane.unconverged for lane in lanes)
            met = float(best.mean()) <= bound and unconverged == 0 and all(np.isfinite([lane.regret for lane in lanes]))
            all_met &= met
            table.add_row(
                name,
                str(dim),
                f"{figures(paper)} at {paper_radius:g}",
                f"{figures(best)} at {radius:g}",
                f"{bound:.0f}",
                "yes" if met else "NO",
                f"{unconverged:.0f}",
                layer_use(lanes, radius),
            )
        table.add_section()
    console.print(table)
    path = options.out / "baselines_regret.csv"
    write_csv(path, everything)
    console.print(f"Every lane is in {path}")
    return 0 if all_met else 1


if __name__ == "__main__":
    sys.exit(main())
