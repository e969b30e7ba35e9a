"""What a part of its own per arm saves, and costs, where features leave something out of what arms are worth.

    python benchmarks/own_parts.py --worlds 6 --trials 4 [--policies Foresight] [--first-world 500]

32 arms that stay, with 6 normal features each; utilities are linear in them, of variance 1, plus an own part of every arm of
standard deviation 0, 0.5 or 1. Logistic votes, 2500 rounds. A policy gets the features, or `features.append_own` of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import duelist
from duelist.environments import VoteDuels
from duelist.features import append_own
from duelist.typing import FloatArray

ARMS, FEATURES, ROUNDS = 32, 6, 2500
POLICIES: dict[str, Callable[[], Any]] = {
    "Foresight": duelist.Foresight,
    "MaxPairUCB": duelist.MaxPairUCB,
    "FGTS": duelist.FGTS,
    "FGTS.recommended": duelist.FGTS.recommended,
}


def world(seed: int, own: float) -> tuple[FloatArray, FloatArray]:
    """Features (arms, 6) and utilities (arms,)."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((ARMS, FEATURES))
    linear = features @ rng.standard_normal(FEATURES) / np.sqrt(FEATURES)
    return features, linear + own * rng.standard_normal(ARMS)


def environment(features: FloatArray, utilities: FloatArray) -> VoteDuels:
    """Votes as the utilities say, whatever the features: 1,000 on every pair, in their expected shares."""
    names = np.array([f"arm {k:02d}" for k in range(ARMS)])
    first, second = np.triu_indices(ARMS, 1)
    wins = 1000.0 / (1.0 + np.exp(utilities[second] - utilities[first]))
    votes = {
        "first": np.tile(names[first], 2),
        "second": np.tile(names[second], 2),
        "outcome": np.repeat([1, -1], len(first)),
        "weight": np.concatenate([wins, 1000.0 - wins]),
    }
    return VoteDuels(votes=votes, features=features, answers="votes")


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Features that leave something out, with and without a part of its own per arm."
    )
    parser.add_argument("--worlds", type=int, default=6)
    parser.add_argument("--first-world", type=int, default=500)
    parser.add_argument("--trials", type=int, default=4)
    parser.add_argument("--policies", nargs="+", choices=POLICIES, default=["Foresight"])
    options = parser.parse_args()
    print(f"{ROUNDS} rounds, {options.worlds} worlds from {options.first_world} on, {options.trials} trials each")
    print("| policy | own part of utility | features: mean, median, 95 % | with `append_own`, weight 0.5 | weight 1 |")
    print("|---|---|---|---|---|")
    for name in options.policies:
        for own in (1.0, 0.5, 0.0):
            cells = []
            for weight in (0.0, 0.5, 1.0):
                totals = []
                for seed in range(options.first_world, options.first_world + options.worlds):
                    features, utilities = world(seed, own)
                    shown = environment(append_own(features, weight) if weight else features, utilities)
                    run = duelist.simulate(POLICIES[name](), shown, rounds=ROUNDS, trials=options.trials, seed=500 + seed)
                    totals.append(run.final_regret)
                regret = np.concatenate(totals)
                cells.append(f"{regret.mean():.0f}, {np.median(regret):.0f}, {np.quantile(regret, 0.95):.0f}")
            print(f"| {name} | {own:g} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
