"""The hard instance of the lower bound: so little separates the arms that T duels barely tell them apart."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from duelist.actions.ball import BallActions
from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.linear_truth import LinearTruth
from duelist.theory.linear_bounds import hard_gap
from duelist.typing import FloatArray

ACTIONS = ("ball", "corners")
_LARGEST_CUBE = 12  # 4096 corners


@dataclass(frozen=True, kw_only=True)
class HardDuels:
    """theta* uniform in {-D, D}^d with D = sqrt(d / (2 T)) / 6, duels between points of the unit ball.

    Averaged over theta*, every rule has expected regret of at least d sqrt(T) / (24 sqrt(2)) after T rounds, T >= d; see
    `duelist.theory.lower_bound`. That is proved for the ball. The best point of the ball is always a corner of the cube
    { -1/sqrt(d), 1/sqrt(d) }^d, so a rule that plays corners is a rule for the ball that happens to use no other points,
    and the bound holds for it too: that is what policies which need a finite set can be tested on.

    Args:
        dim: d.
        horizon: T, the number of rounds the instance is made hard for. Play it for exactly that many.
        actions: "ball" for the unit ball, "corners" for the 2^d corners of the cube inscribed in it (dim at most 12).

    Example:
        >>> from duelist.core import Streams
        >>> instance = HardDuels(dim=2, horizon=100).instance(Streams(0, [0]))
        >>> np.abs(instance.theta).round(6)
        array([[0.016667, 0.016667]])
    """

    dim: int
    horizon: int
    actions: Literal["ball", "corners"] = "ball"

    def __post_init__(self) -> None:
        whole_number("dim", self.dim, at_least=1)
        whole_number("horizon", self.horizon, at_least=1)
        one_of("actions", self.actions, ACTIONS)
        if self.actions == "corners" and self.dim > _LARGEST_CUBE:
            raise InvalidInputError(
                f'actions="corners" needs dim at most {_LARGEST_CUBE}, for 2^dim corners are listed one by one; got '
                f'{self.dim}. Use actions="ball".'
            )

    def instance(self, streams: Streams) -> HardDuelsInstance:
        """One theta* per lane."""
        signs = [streams.generator("theta", lane).choice([-1.0, 1.0], size=self.dim) for lane in range(len(streams))]
        return HardDuelsInstance(self, hard_gap(self.dim, self.horizon) * np.array(signs), streams)


class HardDuelsInstance(LinearTruth):
    """One instance of `HardDuels` per lane; `theta` (lanes, dim) is the truth."""

    def __init__(self, recipe: HardDuels, theta: FloatArray, streams: Streams) -> None:
        super().__init__(theta, streams)
        self.recipe = recipe

    @cached_property
    def _actions(self) -> ActionSet:
        dim, lanes = self.recipe.dim, len(self._streams)
        if self.recipe.actions == "ball":
            return BallActions(lanes, dim)
        corners = np.array(list(itertools.product([-1.0, 1.0], repeat=dim))) / math.sqrt(dim)
        return FiniteActions(np.broadcast_to(corners, (lanes, *corners.shape)))

    def actions(self, round_: int) -> ActionSet:  # noqa: ARG002 - an instance's signature
        """The same set every round."""
        return self._actions
