"""The paper's synthetic problem: a random direction theta*, arms at corners of a cube, Bradley-Terry-Luce outcomes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from duelist.core.actions import ActionSet, FiniteActions
from duelist.core.checks import FloatArray, IntArray, finite_number, whole_number
from duelist.core.duels import Duels
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.base import Regret
from duelist.environments.cube_kernels import draw_corners
from duelist.environments.linear_truth import linear_outcomes, linear_regret


@dataclass(frozen=True, kw_only=True)
class LinearDuels:
    """Linear utilities and logistic duels, as in the paper's experiments.

    Args:
        dim: length of feature vectors; the paper uses 5, 10 and 15.
        arms: number of distinct arms, at most 2^dim.
        fresh_arms: draw new arms every round; False keeps one set for the whole run, as in the experiments.
        unit_norm: scale arms to norm 1, as the theory asks; False keeps corners of {-1, 1}^dim, as in the experiments.
        theta_norm: norm of theta*; the experiments use 1.

    Example:
        >>> from duelist.core.streams import Streams
        >>> instance = LinearDuels(dim=3, arms=4).instance(Streams(0, [0, 1]))
        >>> instance.actions(0).features.shape
        (2, 4, 3)
    """

    dim: int = 10
    arms: int = 32
    fresh_arms: bool = False
    unit_norm: bool = False
    theta_norm: float = 1.0

    def __post_init__(self) -> None:
        whole_number("dim", self.dim, at_least=1)
        whole_number("arms", self.arms, at_least=2)
        finite_number("theta_norm", self.theta_norm, above=0.0)
        if self.dim < 63 and self.arms > 2**self.dim:
            raise InvalidInputError(
                f"arms must be at most 2^dim = {2**self.dim}, the distinct corners of a cube in dimension {self.dim}; "
                f"got {self.arms}. Raise dim or lower arms."
            )

    def instance(self, streams: Streams) -> LinearDuelsInstance:
        """One theta* and one set of arms a lane."""
        directions = np.array([streams.generator("theta", lane).standard_normal(self.dim) for lane in range(len(streams))])
        theta = directions * (self.theta_norm / np.linalg.norm(directions, axis=1, keepdims=True))
        return LinearDuelsInstance(self, theta, streams)


class LinearDuelsInstance:
    """One instance of `LinearDuels` a lane; `theta` (lanes, dim) is the truth."""

    def __init__(self, recipe: LinearDuels, theta: FloatArray, streams: Streams) -> None:
        self.recipe, self.theta, self._streams = recipe, theta, streams

    def _draw_arms(self, round_: int) -> FiniteActions:
        recipe = self.recipe
        arms = np.empty((len(self._streams), recipe.arms, recipe.dim))
        draw_corners(arms, self._streams.keys("arms"), round_, 1 / math.sqrt(recipe.dim) if recipe.unit_norm else 1.0)
        return FiniteActions(arms)

    @cached_property
    def _fixed(self) -> FiniteActions:
        return self._draw_arms(0)

    def actions(self, round_: int) -> FiniteActions:
        """The arms of this round."""
        return self._draw_arms(round_) if self.recipe.fresh_arms else self._fixed

    def outcomes(self, round_: int, duels: Duels) -> IntArray:
        """Who wins, (lanes,): +1 the first, -1 the second, by the Bradley-Terry-Luce model."""
        return linear_outcomes(self.theta, self._streams, round_, duels)

    def regret(self, actions: ActionSet, duels: Duels) -> Regret:
        """What these duels cost, from the true utilities."""
        return linear_regret(self.theta, actions, duels)
