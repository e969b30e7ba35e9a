"""Continuous action sets: FGTS on a ball, a box, an ellipsoid, a polytope, a product and a custom set.

    python examples/continuous.py docs/figures

Plays the ball of the paper's theory at d = 10, fits how its regret grows, and compares the sets in three dimensions. Under a
minute; the same numbers every time.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import duelist
from duelist.actions import BallActions, CustomActions, EllipsoidActions, ProductActions
from duelist.environments import ContinuousDuels
from duelist.experiments import compare, growth_exponent
from duelist.plotting import regret_figure, save_figure
from duelist.policies import Policy


def two_best(theta: np.ndarray) -> np.ndarray:
    """A custom set: choose two of three things. The two largest entries maximise <theta, phi>."""
    chosen = np.zeros(3)
    chosen[np.argsort(-theta)[:2]] = 1.0
    return chosen


SETS = {
    "ball": ContinuousDuels(dim=3, actions="ball", theta_norm=3.0),
    "sphere": ContinuousDuels(dim=3, actions="sphere", theta_norm=3.0),
    "box": ContinuousDuels(dim=3, actions="box", theta_norm=3.0),
    "ellipsoid": ContinuousDuels(
        dim=3, actions=lambda lanes: EllipsoidActions(np.diag([1.0, 2.0, 0.5]), lanes=lanes), theta_norm=3.0
    ),
    "polytope": ContinuousDuels(
        dim=3,  # three shares that add up to at most 1
        actions=lambda lanes: duelist.PolytopeActions(np.r_[-np.eye(3), np.ones((1, 3))], [0.0, 0.0, 0.0, 1.0], lanes),
        theta_norm=3.0,
    ),
    "product": ContinuousDuels(
        dim=3,  # one dial from -1 to 1, and a direction in the plane
        actions=lambda lanes: ProductActions([duelist.BoxActions([-1.0], [1.0], lanes), BallActions(lanes, 2)]),
        theta_norm=3.0,
    ),
    "one's own": ContinuousDuels(
        dim=3, actions=lambda lanes: CustomActions(two_best, dim=3, name="two of three", lanes=lanes), theta_norm=3.0
    ),
}


def main(folder: Path, *, rounds: int = 2500, trials: int = 10, small_rounds: int = 300) -> None:
    """Play, print what happened, and draw the regret on the ball."""
    folder.mkdir(parents=True, exist_ok=True)
    ball = ContinuousDuels(dim=10, theta_norm=3.0)
    policies: dict[str, Policy[Any]] = {"FGTS": duelist.FGTS(), "FGTS, alpha=0": duelist.FGTS(alpha=0.0)}
    comparison = compare(policies, ball, rounds=rounds, trials=trials, seed=0)
    save_figure(regret_figure(comparison), folder / "continuous-ball")
    for name, run in comparison.runs.items():
        print(
            f"ball, d = 10: {name:14} regret {run.final_regret.mean():6.0f}, growing as T^{growth_exponent(run).estimate:.2f}"
        )
    for name, env in SETS.items():
        run = duelist.simulate(duelist.FGTS(), env, rounds=small_rounds, trials=4, seed=0)
        cost = np.diff(run.regret.mean(axis=0))
        half = len(cost) // 10 + 1
        print(f"{name:10} a round costs {cost[:half].mean():.3f} at first and {cost[-half:].mean():.3f} at last")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures"))
