"""One live round of FGTS beside other libraries: microseconds for choose + learn at K = 32, d = 10, and growth with t.

Run: python benchmarks/live_speed.py [--rounds 10000] [--repeats 3] [--out table.md]

Other libraries are measured where they are installed: vowpalwabbit, bayesianbandits, mabwiser, duelpy (which needs
numpy < 1.24, so an environment of its own). Ratios are to Vowpal Wabbit's squarecb in the same process.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from rich.console import Console

from duelist.cli.bench import CLOCKS, LEARNERS, measure_fastest, speed_table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--dim", type=int, default=10)
    parser.add_argument("--arms", type=int, default=32)
    parser.add_argument("--only", nargs="*", default=list(LEARNERS), choices=list(LEARNERS))
    parser.add_argument("--out", type=Path, default=None, help="also write the table here, as Markdown")
    parser.add_argument("--clock", choices=list(CLOCKS), default="wall")
    options = parser.parse_args()
    milestones = (*(t for t in (100, 500, 2500, 10_000, 50_000) if t < options.rounds), options.rounds)
    speeds = {
        name: measure_fastest(
            name,
            dim=options.dim,
            arms=options.arms,
            milestones=milestones,
            repeats=options.repeats,
            clock=options.clock,
        )
        for name in options.only
    }
    Console().print(speed_table(speeds, milestones, dim=options.dim, arms=options.arms, clock=options.clock))
    if options.out is not None:
        heads = ["learner", "median us", *(f"t = {t}" for t in milestones)]
        rows = [[name, *(f"{value:.0f}" for value in (s.median, *s.at))] for name, s in speeds.items() if not s.problem]
        lines = [heads, ["---"] * len(heads), *rows]
        options.out.write_text("\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n")


if __name__ == "__main__":
    main()
