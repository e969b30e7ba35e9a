"""Learn a taste with an ideal point: nearer is better, which no linear utility can say.

Run it with `python examples/nonlinear.py` after `pip install 'duelist[jax]'`; it takes about a minute.
"""

from __future__ import annotations

import sys
from typing import Any

import duelist
from duelist.environments import QuadraticDuels
from duelist.policies import NonlinearFGTS, Policy
from duelist.rewards import Quadratic


def main(rounds: int = 600, trials: int = 8) -> dict[str, float]:
    """Mean final regret of linear and of quadratic FGTS on the same instances."""
    env = QuadraticDuels(dim=3, arms=32)
    policies: dict[str, Policy[Any]] = {
        "linear": duelist.FGTS(),
        "quadratic": NonlinearFGTS(reward=Quadratic(), announce=print),
    }
    means = {}
    for name, policy in policies.items():
        run = duelist.simulate(policy, env, rounds=rounds, trials=trials, seed=0, workers=1, progress=False)
        means[name] = float(run.final_regret.mean())
        print(f"{name:>10}: mean regret after {rounds} rounds {means[name]:.0f}")
    return means


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
