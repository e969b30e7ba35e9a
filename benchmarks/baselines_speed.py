"""Speed of the baselines as ratios within one run: to a plain loop, to each other, and of late rounds to early ones.

Everything is measured on the machine at hand. Processor times are judged first: they leave out whatever else the machine was
doing and give no credit for the second core. Wall times are what a user waits for, and mean something on an idle machine only.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import duelist
from duelist.policies import EUBO, FGTSVA, IDS, RCDB, SFGTS, KLPolicy, TopTwoTS
from duelist.policies.base import Policy

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.fgts_speed import Figure
from benchmarks.growth import measure_growth
from benchmarks.plain_maxpairucb import check_yardstick, plain_runs_apart

DIM, ARMS, HORIZON, TRIALS, PLAIN_TRIALS = 10, 32, 2500, 30, 4
# The grid on which most lanes still learn at the end; lanes of small radii settle early and cost less.
RADII = (2.0, 3.0, 5.0, 7.0)
LAYERED: dict[str, Any] = {"VACDB": duelist.VACDB(), "StaD": duelist.StaD(), "SupCoLSTIM": duelist.SupCoLSTIM()}
OTHERS: dict[str, Any] = {
    "MaxInP": duelist.MaxInP(),
    "MaxPairUCB, local": duelist.MaxPairUCB(width="local"),
    "CoLSTIM": duelist.CoLSTIM(),
}

# Every contextual rule on linear utilities, as it comes; MaxPairUCB is the yardstick.
RULES: dict[str, Any] = {
    "CoLSTIM": duelist.CoLSTIM(),
    "EUBO": EUBO(),
    "FGTS": duelist.FGTS(),
    "FGTS, alpha 0": duelist.FGTS(alpha=0.0),
    "FGTS, laplace": duelist.FGTS(sampler="laplace"),
    "FGTSVA": FGTSVA(),
    "Foresight": duelist.Foresight(),
    "IDS": IDS(),
    "KLPolicy": KLPolicy(),
    "MaxInP": duelist.MaxInP(),
    "RCDB": RCDB(),
    "SFGTS": SFGTS(),
    "StaD": duelist.StaD(),
    "SupCoLSTIM": duelist.SupCoLSTIM(),
    "TopTwoTS": TopTwoTS(),
    "VACDB": duelist.VACDB(),
    "VACDB, variance": duelist.VACDB(radius="variance", scale=1e-4),
}
PASSES = 3


class Cost(NamedTuple):
    """Seconds of one 2500-round run."""

    cpu: float
    wall: float


def cost_of(policy: Any) -> Cost:
    """What a run costs when 30 trials at four radii are played together."""
    environment = duelist.LinearDuels(dim=DIM, arms=ARMS)
    duelist.simulate(policy, environment, rounds=2, trials=2, progress=False)  # compiled and warm
    everywhere = replace(policy, radius=tuple(np.repeat(RADII, TRIALS)))
    lanes = list(range(TRIALS)) * len(RADII)
    started = time.process_time()
    run = duelist.simulate(everywhere, environment, rounds=HORIZON, trials=lanes, seed=0, progress=False)
    return Cost((time.process_time() - started) / len(lanes), run.seconds / len(lanes))


def measure_speed() -> list[Figure]:
    """MaxPairUCB, a run, against a run of the plain loop; and the others against MaxPairUCB."""
    check_yardstick()
    # A run's cost depends on how long it goes on learning, so the plain loop plays every radius on several instances too.
    plain = plain_runs_apart(dim=DIM, arms=ARMS, rounds=HORIZON, radii=RADII, trials=PLAIN_TRIALS)
    plain_cpu, plain_wall = (float(np.mean([run[i] for run in plain])) for i in (1, 0))
    pair = cost_of(duelist.MaxPairUCB())
    lanes = f"{len(RADII) * TRIALS} lanes"
    figures = [
        Figure(
            f"MaxPairUCB, {lanes}: {clock} a run / plain loop",
            ours / theirs,
            1 / 60,
            "",
            f"{1000 * ours:.0f} ms / {theirs:.2f} s, means of 120 and {len(plain)} runs",
        )
        for clock, ours, theirs in (
            ("processor time", pair.cpu, plain_cpu),
            ("wall time", pair.wall, plain_wall),
        )
    ]
    for name, policy in (LAYERED | OTHERS).items():
        cost = cost_of(policy)
        figures.append(
            Figure(f"{name}: processor time / MaxPairUCB", cost.cpu / pair.cpu, 3.0, "", f"{1000 * cost.cpu:.0f} ms per run")
        )
    return figures


def measure_rules() -> list[Figure]:
    """Every rule at its defaults against MaxPairUCB at its own: 30 lanes in one block, one thread.

    Rules take turns, several times, and the least time of each counts: what else the machine does only adds to it.
    """
    environment = duelist.LinearDuels(dim=DIM, arms=ARMS)
    rules: dict[str, Any] = {"MaxPairUCB": duelist.MaxPairUCB(), **RULES}
    least = dict.fromkeys(rules, float("inf"))
    for policy in rules.values():
        duelist.simulate(policy, environment, rounds=60, trials=TRIALS, progress=False, workers=1)  # compiled and warm
    for _ in range(PASSES):
        for name, policy in rules.items():
            started = time.process_time()
            duelist.simulate(policy, environment, rounds=HORIZON, trials=TRIALS, seed=0, progress=False, workers=1)
            least[name] = min(least[name], time.process_time() - started)
    return [
        Figure(
            f"{name}, {TRIALS} lanes at the defaults: processor time / MaxPairUCB",
            least[name] / least["MaxPairUCB"],
            2.0,
            "",
            f"{1e6 * least[name] / HORIZON / TRIALS:.1f} microseconds per lane and round",
        )
        for name in rules
    ]


def measure_rounds() -> list[Figure]:
    """Late rounds against early ones: fixed arms, and fresh arms every round."""
    figures = []
    policies: dict[str, Policy[Any]] = {"MaxPairUCB": duelist.MaxPairUCB(), "MaxInP": duelist.MaxInP(), "StaD": duelist.StaD()}
    for name, policy in policies.items():
        fixed = measure_growth(policy, late=20_000, window=600)
        figures.append(
            Figure(
                f"{name}, fixed arms: round at t=20,000 / at t=1,000",
                fixed.late / fixed.early,
                1.3,
                "",
                f"medians, one lane: {1e6 * fixed.early:.0f} and {1e6 * fixed.late:.0f} microseconds",
            )
        )
    fresh = measure_growth(duelist.MaxPairUCB(), late=4_000, window=300, fresh_arms=True)
    slope = 1e6 * (fresh.late - fresh.early) / 3_000
    figures.append(
        Figure(
            "MaxPairUCB, fresh arms: a round grows each round by",
            slope,
            1.0,
            "us",
            f"medians at t=1,000 and 4,000: {1e6 * fresh.early:.0f} and {1e6 * fresh.late:.0f} microseconds",
        )
    )
    return figures


PARTS: dict[str, Callable[[], list[Figure]]] = {"speed": measure_speed, "rules": measure_rules, "rounds": measure_rounds}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"), help="folder for baselines_speed.json")
    parser.add_argument("--only", choices=PARTS, help="one part of the table; all of them by default")
    arguments = parser.parse_args()
    folder: Path = arguments.out
    console = Console(width=140)
    figures = [figure for name, measure in PARTS.items() if arguments.only in (None, name) for figure in measure()]
    table = Table(title="Baselines: d=10, K=32, T=2500", title_justify="left")
    table.add_column("what")
    for heading in ("measured", "at most", "met"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("detail")
    for figure in figures:
        measured, bound = (f"{number:.3g} {figure.unit}".strip() for number in (figure.value, figure.at_most))
        table.add_row(figure.what, measured, bound, "yes" if figure.met else "NO", figure.detail)
    console.print(table)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "baselines_speed.json"
    document = {
        "duelist": duelist.__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": os.cpu_count(),
        "figures": [{**asdict(figure), "met": figure.met} for figure in figures],
    }
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    console.print(f"Written to {path}")
    return 0 if all(figure.met for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
