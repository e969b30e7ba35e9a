"""Ask for the best of two, for the best of four, and for a ranking of four: what each answer is worth.

Run it with `python examples/listwise.py`; it takes about a minute.
"""

from __future__ import annotations

import sys

import duelist
from duelist.policies import ListwiseFGTS


def main(rounds: int = 250, trials: int = 20) -> dict[str, float]:
    """Mean final regret of each way of asking, on the same instances."""
    env = duelist.LinearDuels(dim=5, arms=16)
    ways = {
        "the better of two": ListwiseFGTS(choices=2),
        "the best of four": ListwiseFGTS(choices=4),
        "a ranking of four": ListwiseFGTS(choices=4, feedback="ranking"),
    }
    means = {}
    for name, run in duelist.compare(ways, env, rounds=rounds, trials=trials, seed=0).runs.items():
        means[name] = float(run.final_regret.mean())
        print(f"{name}: mean regret after {rounds} rounds {means[name]:.0f}")
    return means


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
