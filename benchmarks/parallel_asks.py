"""Measures what asking many people at once costs: regret, and how many different pairs they get.

Every policy that plays duels answers 600 votes about 16 arms of dimension 6, asked one by one and asked twenty at a time, of
which all are answered before the next twenty. Regret of a vote is the best utility minus the mean of the two shown. Pairs are
counted as different in every twenty votes, whichever way they were asked.

Run: python benchmarks/parallel_asks.py [--policies Foresight MaxInP] [--seeds 20]. It ends with status 1 where twenty at a time
have more than 1.15 times the regret, or fewer than 0.7 times the different pairs, of one by one.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np

import duelist
from duelist.policies.registry import duel_policies
from duelist.typing import FloatArray

ARMS, DIM, VOTES, OPEN = 16, 6, 600, 20
REGRET, DISTINCT = 1.15, 0.7


def play(policy: Any, seed: int, at_once: int, votes: int = VOTES) -> tuple[float, float]:
    """Regret of all votes, and the mean number of different pairs in twenty, with so many asks open at once."""
    rng = np.random.default_rng([seed, 7])
    features = rng.standard_normal((ARMS, DIM)) / np.sqrt(DIM)
    utilities: FloatArray = features @ rng.standard_normal(DIM)
    agent = duelist.Agent(policy, dim=DIM, seed=seed)
    regret, pairs = 0.0, []
    for _ in range(votes // at_once):
        for duel in [agent.choose(features) for _ in range(at_once)]:
            one, other = utilities[[duel.first, duel.second]]
            regret += utilities.max() - 0.5 * (one + other)
            pairs.append(tuple(sorted(duel.rows)))
            agent.learn(duel, "first" if rng.random() < 1.0 / (1.0 + np.exp(other - one)) else "second")
    blocks = [pairs[start : start + OPEN] for start in range(0, len(pairs), OPEN)]
    return float(regret), float(np.mean([len(set(block)) for block in blocks]))


def main() -> int:
    """Print the table; 1 where a policy misses a limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    policies = duel_policies()
    parser.add_argument("--policies", nargs="+", choices=policies, default=list(policies))
    parser.add_argument("--seeds", type=int, default=20)
    chosen = parser.parse_args()
    print(f"{'policy':14s} {'regret, 1':>10s} {'20':>6s} {'ratio':>6s} +-    {'pairs, 1':>9s} {'20':>5s} {'ratio':>6s}")
    missed = False
    for name in chosen.policies:
        policy = policies[name]()
        single, many = (np.array([play(policy, seed, n) for seed in range(chosen.seeds)]) for n in (1, OPEN))
        ratio, distinct = many.mean(axis=0) / single.mean(axis=0)
        # Both ways meet the same problems, so the differences of seeds cancel.
        error = (many[:, 0] - ratio * single[:, 0]).std() / np.sqrt(chosen.seeds) / single[:, 0].mean()
        missed |= ratio > REGRET or distinct < DISTINCT
        print(
            f"{name:14s} {single[:, 0].mean():10.0f} {many[:, 0].mean():6.0f} {ratio:6.2f} {error:.2f}  "
            f"{single[:, 1].mean():9.1f} {many[:, 1].mean():5.1f} {distinct:6.2f}",
            flush=True,
        )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
