"""What slates and ties are worth: ways of asking and of taking ties, on the same instances with the same noise.

    python benchmarks/slates.py asking         # the table of docs/listwise.md on rankings: some minutes on two cores
    python benchmarks/slates.py ties           # those on ties: some ten minutes
    python benchmarks/slates.py ties --rounds 50 --trials 4

Votes with ties follow Davidson's model: a tie has odds nu against the geometric mean of the two odds. There every policy is the
same Thompson sampling (prior, sampler, Feel-Good weight), and what differs is what it takes a tie to say; FGTS has its own.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from scipy import stats

import duelist
from duelist.environments import Environment, Tied
from duelist.experiments import Run
from duelist.policies import ListwiseFGTS
from duelist.preferences import Davidson, LearntDavidson


def ways_of_asking() -> dict[str, Any]:
    """The policies, the first of which the others are compared with."""
    return {
        "the better of two": ListwiseFGTS(choices=2),
        "the best of four": ListwiseFGTS(choices=4),
        "a ranking of three": ListwiseFGTS(choices=3, feedback="ranking"),
        "a ranking of four": ListwiseFGTS(choices=4, feedback="ranking"),
    }


def ways_of_taking_ties(nu: float) -> dict[str, Any]:
    """The policies: what a tie says to each."""
    return {
        "ties as half wins": ListwiseFGTS(choices=2),
        "nu known": ListwiseFGTS(choices=2, ties=Davidson(nu)),
        "nu learnt": ListwiseFGTS(choices=2, ties=LearntDavidson()),
        "nu wrong (1/8 of it)": ListwiseFGTS(choices=2, ties=Davidson(nu / 8)),
        "FGTS": duelist.FGTS(),
    }


def print_table(runs: dict[str, Run], heading: str) -> None:
    """Mean final regrets, and by how much each is below the first."""
    first, *_ = runs.values()
    print(f"| {heading} | mean final regret | less than the first, 95 % interval | nu at the end |")
    print("|---|---|---|---|")
    for name, run in runs.items():
        gain = first.final_regret - run.final_regret
        half = stats.t.ppf(0.975, len(gain) - 1) * gain.std(ddof=1) / np.sqrt(len(gain))
        interval = f"{gain.mean():.1f} ({gain.mean() - half:.1f} to {gain.mean() + half:.1f})" if gain.any() else ""
        learnt = f"{np.median(run.info['tie_nu']):.2g}" if "tie_nu" in run.info else ""
        print(f"| {name} | {run.final_regret.mean():.1f} | {interval} | {learnt} |", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["asking", "ties"])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--trials", type=int, default=60)
    chosen = parser.parse_args()
    settings: dict[str, Any] = {"rounds": chosen.rounds, "trials": chosen.trials, "seed": 0, "progress": False}
    if chosen.what == "asking":
        env: Environment = duelist.LinearDuels(dim=5, arms=16)
        print_table(duelist.compare(ways_of_asking(), env, **settings).runs, "asked for")
        return
    for nu in (0.5, 2.0, 8.0):
        runs = duelist.compare(ways_of_taking_ties(nu), Tied(base=duelist.LinearDuels(dim=5, arms=16), nu=nu), **settings).runs
        share = float(np.mean([(run.outcomes == 0).mean() for run in runs.values()]))
        print(f"\nnu = {nu:g}: {share:.0%} of the votes are ties")
        print_table(runs, "what a tie says")


if __name__ == "__main__":
    main()
