"""What the problem families cost: processor time per lane and round of every policy, and what all instances will take.

A few hundred rounds of every cell are played with the family's own horizon, on a few trials per setting. Where arms are fresh
every round a round costs more the more came before, so the whole run is played on one trial per setting.

All settings play the design instances and at most three of a policy the final ones, which is what is counted.

    python benchmarks/families_cost.py [--line-up policies] [--only tiny ...]
"""

from __future__ import annotations

import argparse
import contextlib
import time
from dataclasses import replace

from duelist.experiments.families.problems import LINE_UP, STAGES, family_names, family_spec
from duelist.experiments.sweep.blocks import Block, Cell, first_cells, play, split_cell
from duelist.experiments.sweep.spec import Spec

ROUNDS, LANES = 300, 24
JUDGED = 3  # settings of a policy on the final instances: the chosen one, the best over all families, the default


class EnoughPlayedError(Exception):
    """The rounds that were to be timed are over."""


def cost(spec: Spec, cell: Cell, most_rounds: int = ROUNDS, lanes: int = LANES) -> float:
    """Processor seconds per lane of a whole run, of which `most_rounds` are played with about so many lanes."""
    fresh = bool(cell.environment.get("fresh_arms", False))
    rounds = spec.rounds if fresh else min(spec.rounds, most_rounds)
    trials = 1 if fresh else max(2, lanes // len(cell.points))
    block = split_cell(spec, replace(cell, trials=tuple(range(trials))))[0]
    marks: list[float] = []

    def tick(_amount: int) -> None:
        marks.append(time.process_time())
        if len(marks) == rounds:
            raise EnoughPlayedError

    with contextlib.suppress(EnoughPlayedError):
        play(Block(block.data), tick)
    # The first rounds compile and are not like the others; with fixed arms the second half stands for all later ones.
    start = 1 if fresh else rounds // 2
    each = (marks[-1] - marks[start]) / (rounds - 1 - start) / block.lanes
    return each * spec.rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--line-up", default=LINE_UP)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--stages", nargs="*", default=list(STAGES))
    options = parser.parse_args()
    total = 0.0
    print("| family | policy | settings | us per lane and round | minutes |\n|---|---|---|---|---|")
    for name in options.only or family_names():
        stages = [family_spec(name, stage, line_up=options.line_up) for stage in options.stages]
        trials = sum(spec.trials for spec in stages)
        family = 0.0
        for cell in first_cells(stages[0]):
            seconds = cost(stages[0], cell)
            runs = sum(
                spec.trials * (min(len(cell.points), JUDGED) if stage == "final" else len(cell.points))
                for stage, spec in zip(options.stages, stages, strict=True)
            )
            minutes = seconds * runs / 60
            family += minutes
            label = stages[0].policies[cell.policy].label
            each = 1e6 * seconds / stages[0].rounds
            print(f"| {name} | {label} | {len(cell.points)} | {each:.0f} | {minutes:.2f} |", flush=True)
        print(f"| {name} | all, {trials} instances | | | {family:.1f} |", flush=True)
        total += family
    print(f"| all | | | | {total:.0f} |")


if __name__ == "__main__":
    main()
