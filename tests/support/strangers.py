"""What a stranger brings: a file with a policy and an environment, and a file that both import. Outside the package."""

from __future__ import annotations

from pathlib import Path

HELPER = '''"""Shared by both."""

SCALE = 2.0


def spread(dim):
    return SCALE / dim**0.5
'''

BROUGHT = '''"""Greedy duels, and a circle to play them on."""

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from duelist.actions import FiniteActions
from duelist.core import PerLane, per_lane, stored
from duelist.history import duels_between
from duelist.policies import Policy, best_other

from helper_of_a_stranger import spread

SIGN = 1.0


@stored("stranger-state")
class GreedyState(NamedTuple):
    theta: np.ndarray
    asked: int


@dataclass(frozen=True, kw_only=True)
class Greedy(Policy[GreedyState]):
    """The best arm against the second best.

    Args:
        rate: size of a gradient step.
        sizes: of nothing; a value that all lanes share.
    """

    rate: PerLane = 0.5
    sizes: tuple[int, ...] = (3, 2)

    def start(self, problem, streams):
        assert self.sizes == (3, 2)
        return GreedyState(np.zeros((problem.lanes, problem.dim)), 0)

    def choose(self, state, actions, streams):
        utilities = SIGN * actions.utilities(state.theta) + 1e-6 * actions.random_priority(streams, "greedy", state.asked)
        first = utilities.argmax(axis=1)
        return duels_between(actions, first, best_other(utilities, first)), state._replace(asked=state.asked + 1)

    def learn(self, state, actions, duels, outcomes):
        rate = per_lane("rate", self.rate, len(outcomes))
        gap = np.einsum("ld,ld->l", state.theta, duels.contrast)
        slope = 0.5 * (1 + outcomes) - 1 / (1 + np.exp(-gap))
        return state._replace(theta=state.theta + (rate * slope)[:, None] * duels.contrast)


@dataclass(frozen=True, kw_only=True)
class Circle:
    """Arms on a circle.

    Args:
        arms: how many.
        table: a file whose first number is the length of theta.
    """

    arms: int = 6
    table: str = ""
    dim: int = 2

    def instance(self, streams):
        return CircleInstance(self, streams)


class CircleInstance:
    def __init__(self, recipe, streams):
        length = float(Path(recipe.table).read_text().split(",")[0]) if recipe.table else 3.0
        angles = 2 * np.pi * np.arange(recipe.arms) / recipe.arms
        points = spread(2) * np.stack([np.cos(angles), np.sin(angles)], axis=1)
        self._actions = FiniteActions(np.broadcast_to(points, (len(streams), *points.shape)))
        turn = 2 * np.pi * streams.uniforms("turn", 0)
        self.theta, self.streams = length * np.stack([np.cos(turn), np.sin(turn)], axis=1), streams

    def actions(self, round_):
        return self._actions

    def outcomes(self, round_, duels):
        chance = 1 / (1 + np.exp(-np.einsum("ld,ld->l", self.theta, duels.contrast)))
        return np.where(self.streams.uniforms("vote", round_) < chance, 1, -1)

    def regret(self, actions, duels):
        from duelist.environments.base import Regret

        best = actions.best(self.theta[:, None]).value[:, 0]
        gaps = best[:, None] - np.einsum("ld,ljd->lj", self.theta, duels.features)
        return Regret(gaps.mean(axis=1), gaps.min(axis=1), np.zeros(len(best)))
'''


def bring(folder: Path, *, sign: float = 1.0, scale: float = 2.0) -> Path:
    """Write the stranger's files, or edit them, and return the one with the classes."""
    folder.mkdir(exist_ok=True)
    (folder / "helper_of_a_stranger.py").write_text(HELPER.replace("SCALE = 2.0", f"SCALE = {scale}"), encoding="utf-8")
    path = folder / "brought_by_a_stranger.py"
    path.write_text(BROUGHT.replace("SIGN = 1.0", f"SIGN = {sign}"), encoding="utf-8")
    return path
