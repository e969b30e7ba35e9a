"""Which ridge a confidence-bound baseline should start from: final regret of MaxInP over a grid, on instances of their own.

The ridge is chosen here and not on the instances of `baselines_regret.py`, so that its table is not tuned on itself.
"""

from __future__ import annotations

import argparse

import numpy as np

import duelist

RIDGES = (0.001, 0.03, 0.1, 0.3, 1.0, 2.0, 3.0)
SEED = 1  # the regret table uses seed 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--radius", type=float, default=5.0)
    options = parser.parse_args()
    policy = duelist.MaxInP(radius=options.radius, ridge=tuple(np.repeat(RIDGES, options.trials)))
    environment = duelist.LinearDuels(dim=10, arms=32)
    trials = list(range(options.trials)) * len(RIDGES)
    run = duelist.simulate(policy, environment, rounds=2500, trials=trials, seed=SEED, progress=False)
    print(f"MaxInP, radius {options.radius:g}, d=10, K=32, T=2500, {options.trials} instances of seed {SEED}")
    print("ridge    mean  median   95 %  failed fits")
    regrets = run.final_regret.reshape(len(RIDGES), -1)
    failed = run.info["unconverged_fits"].reshape(len(RIDGES), -1).sum(axis=1)
    for ridge, regret, fits in zip(RIDGES, regrets, failed, strict=True):
        print(f"{ridge:<7g}{regret.mean():6.0f}{np.median(regret):8.0f}{np.quantile(regret, 0.95):7.0f}{fits:13.0f}")


if __name__ == "__main__":
    main()
