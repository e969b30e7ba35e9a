"""Linear duels over a continuous action set: a random direction theta*, and points of a ball, a box or any other set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from duelist.actions.ball import BallActions, SphereActions
from duelist.actions.box import BoxActions
from duelist.actions.finite import ActionSet
from duelist.core.checks import finite_number, one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.linear_truth import LinearTruth, random_directions
from duelist.typing import FloatArray

ActionFactory = Callable[[int], ActionSet]
NAMED = ("ball", "sphere", "box")


@dataclass(frozen=True, kw_only=True)
class ContinuousDuels:
    """Linear utilities and logistic duels between points of a set that is the same every round.

    theta* is uniform on the sphere of radius `theta_norm`, one per lane.

    Args:
        dim: length of feature vectors.
        actions: "ball" and "sphere" of radius 1, "box" for [-1, 1]^dim; or a function that makes the action set of that many
            lanes, such as `lambda lanes: PolytopeActions(A, b, lanes)`.
        theta_norm: norm of theta*.

    Example:
        >>> import duelist
        >>> env = ContinuousDuels(dim=2, actions="box", theta_norm=3.0)
        >>> run = duelist.simulate(duelist.FGTS(), env, rounds=200, trials=2, seed=0)
        >>> bool(run.final_regret.mean() < 200)
        True
    """

    dim: int = 10
    actions: Literal["ball", "sphere", "box"] | ActionFactory = "ball"
    theta_norm: float = 1.0

    def __post_init__(self) -> None:
        whole_number("dim", self.dim, at_least=1)
        finite_number("theta_norm", self.theta_norm, above=0.0)
        if not callable(self.actions):
            one_of("actions", self.actions, NAMED)

    def action_set(self, lanes: int) -> ActionSet:
        """The set of every round."""
        if self.actions == "ball":
            return BallActions(lanes, self.dim)
        if self.actions == "sphere":
            return SphereActions(lanes, self.dim)
        if self.actions == "box":
            return BoxActions(-np.ones(self.dim), np.ones(self.dim), lanes)
        made = self.actions(lanes)
        if (made.lanes, made.dim) != (lanes, self.dim):
            raise InvalidInputError(
                f"actions(lanes) must make a set of that many lanes and of dimension {self.dim}; asked for {lanes} lane(s) it "
                f"made {made.lanes} of dimension {made.dim}. Pass lanes on to the set."
            )
        return made

    def instance(self, streams: Streams) -> ContinuousDuelsInstance:
        """One theta* per lane."""
        return ContinuousDuelsInstance(self, random_directions(streams, self.dim, self.theta_norm), streams)


class ContinuousDuelsInstance(LinearTruth):
    """One instance of `ContinuousDuels` per lane; `theta` (lanes, dim) is the truth."""

    def __init__(self, recipe: ContinuousDuels, theta: FloatArray, streams: Streams) -> None:
        super().__init__(theta, streams)
        self.recipe = recipe

    @cached_property
    def _actions(self) -> ActionSet:
        return self.recipe.action_set(len(self._streams))

    def actions(self, round_: int) -> ActionSet:  # noqa: ARG002 - an instance's signature
        """The same set every round."""
        return self._actions
