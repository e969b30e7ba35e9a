"""Measures Foresight live, where the leader must meet another arm: the regret of late rounds, over the least possible.

Two problems, items without features: 12 arms with utilities N(0, 0.8^2), the best 0.6 above the second, 2,000 votes, the last
500 of which are late; and 30 headlines with utilities N(0, 0.6^2), 1,500 votes, the last 300 late. Regret of a vote is the best
utility minus the mean of the two shown; the least possible, the floor, is that of the best against the second.

Run: python benchmarks/foresight_live.py [--policy Foresight] [--seeds 60]. Version 0.1.0 had 1.9 times the floor on the first
problem. It ends with status 1 beyond 1.1 times.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import duelist
from duelist.policies.registry import duel_policies
from duelist.typing import FloatArray

LIMIT = 1.1


class LiveProblem(NamedTuple):
    """Utilities by seed, votes, and how many of them are late."""

    utilities: Callable[[int], FloatArray]
    votes: int
    late: int


def clear_leader(seed: int) -> FloatArray:
    """(12,) utilities; the best is 0.6 above the second."""
    rng = np.random.default_rng(500 + seed)
    utilities = np.sort(rng.normal(0.0, 0.8, 12))
    utilities[-1] = utilities[-2] + 0.6
    return rng.permutation(utilities)


def headlines(seed: int) -> FloatArray:
    """(30,) utilities, of which several may be near the best."""
    return np.random.default_rng(800 + seed).normal(0.0, 0.6, 30)


PROBLEMS = {
    "12 arms, clear leader": LiveProblem(clear_leader, votes=2000, late=500),
    "30 headlines": LiveProblem(headlines, votes=1500, late=300),
}


def play(policy: Any, utilities: FloatArray, votes: int, seed: int) -> FloatArray:
    """(votes,) regret of every vote, asked one by one."""
    rng, arms = np.random.default_rng(seed), np.eye(len(utilities))
    agent = duelist.Agent(policy, dim=len(utilities), seed=seed)
    regret = np.empty(votes)
    for t in range(votes):
        duel = agent.choose(arms)
        one, other = utilities[[duel.first, duel.second]]
        regret[t] = utilities.max() - 0.5 * (one + other)
        agent.learn(duel, "first" if rng.random() < 1.0 / (1.0 + np.exp(other - one)) else "second")
    return regret


def floor_of(utilities: FloatArray) -> float:
    """Regret of the best against the second."""
    second, best = np.sort(utilities)[-2:]
    return float(best - second) / 2.0


def main() -> int:
    """Print the table; 1 beyond the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    policies = duel_policies()
    parser.add_argument("--policy", choices=policies, default="Foresight")
    parser.add_argument("--seeds", type=int, default=60)
    options = parser.parse_args()
    print(f"{'problem':22s} {'regret':>7s} +-  {'late, a vote':>13s} +-     {'floor':>6s} {'late / floor':>13s} +-")
    ratios = []
    for name, problem in PROBLEMS.items():
        truths = [problem.utilities(seed) for seed in range(options.seeds)]
        regret = np.array([play(policies[options.policy](), u, problem.votes, seed) for seed, u in enumerate(truths)])
        total, late = regret.sum(axis=1), regret[:, -problem.late :].mean(axis=1)
        floor, root = np.mean([floor_of(u) for u in truths]), np.sqrt(options.seeds)
        ratios.append(late.mean() / floor)
        print(
            f"{name:22s} {total.mean():7.0f} {total.std() / root:2.0f} {late.mean():13.3f} {late.std() / root:.3f} "
            f"{floor:7.3f} {ratios[-1]:13.2f} {late.std() / root / floor:.2f}",
            flush=True,
        )
    return int(ratios[0] > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
