"""Many users who fall into clusters: all of a cluster want the same, nobody says who belongs where, and one asks per round."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.actions.users import UserActions, users_of
from duelist.core.checks import finite_number, one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.base import Regret
from duelist.environments.linear import LinearDuels
from duelist.environments.linear_truth import LinearTruth
from duelist.history.duels import Duels
from duelist.history.slates import Slates
from duelist.typing import FloatArray, IntArray

LAWS = ("uniform", "skewed")


@dataclass(frozen=True, kw_only=True)
class UserDuels:
    """Linear utilities with a theta* per cluster of users. Every round has new arms and one user, whom the action set names.

    Args:
        dim: length of feature vectors.
        arms: arms per round.
        users: how many there are.
        clusters: how many different theta* there are, uniform directions; as many as users where no two want the same. Users
            are dealt out evenly.
        theta_norm: norm of every theta*.
        likeness: mean cosine between the theta* of two clusters, from 0 for none to below 1: what all users have in common.
        asks: who asks: "uniform", everybody as often; "skewed", the n-th user with probability proportional to 1/n.
        geometry: how arms lie, as in `LinearDuels`.
        fresh_arms: draw new arms every round; False keeps one set for the whole run.

    Example:
        >>> instance = UserDuels(dim=3, arms=4, users=6, clusters=2).instance(Streams(0, [0, 1]))
        >>> instance.thetas.shape, instance.clusters[0].tolist(), instance.actions(0).users.shape
        ((2, 2, 3), [0, 1, 0, 1, 0, 1], (2,))
    """

    dim: int = 10
    arms: int = 20
    users: int = 20
    clusters: int = 4
    theta_norm: float = 1.0
    likeness: float = 0.0
    asks: str = "uniform"
    geometry: str = "cube"
    fresh_arms: bool = True

    def __post_init__(self) -> None:
        whole_number("users", self.users, at_least=1)
        if whole_number("clusters", self.clusters, at_least=1) > self.users:
            raise InvalidInputError(f"clusters must be at most users = {self.users}; got {self.clusters}. None may be empty.")
        finite_number("theta_norm", self.theta_norm, above=0.0)
        if finite_number("likeness", self.likeness, at_least=0.0) >= 1.0:
            raise InvalidInputError(
                f"likeness must be below 1; got {self.likeness:g}. Use clusters=1 for users who are all alike."
            )
        one_of("asks", self.asks, LAWS)
        _ = self.linear  # which checks the rest

    @property
    def linear(self) -> LinearDuels:
        """The problem without its users."""
        return LinearDuels(dim=self.dim, arms=self.arms, geometry=self.geometry, fresh_arms=self.fresh_arms)  # type: ignore[arg-type]

    def instance(self, streams: Streams) -> UserDuelsInstance:
        """One theta* per cluster and lane."""
        size = (1 + self.clusters, self.dim)
        drawn = np.array([streams.generator("theta", lane).standard_normal(size) for lane in range(len(streams))])
        drawn /= np.linalg.norm(drawn, axis=2, keepdims=True)
        mixed = math.sqrt(self.likeness) * drawn[:, :1] + math.sqrt(1.0 - self.likeness) * drawn[:, 1:]
        return UserDuelsInstance(self, mixed * (self.theta_norm / np.linalg.norm(mixed, axis=2, keepdims=True)), streams)


class UserDuelsInstance(LinearTruth):
    """One instance of `UserDuels` per lane.

    Attributes:
        thetas: (lanes, clusters, dim) the truth.
        clusters: (lanes, users) where every user belongs.
        theta: (lanes, dim) that of the users of the round that was asked about last.
    """

    def __init__(self, recipe: UserDuels, thetas: FloatArray, streams: Streams) -> None:
        super().__init__(thetas[:, 0], streams)
        self.recipe, self.thetas = recipe, thetas
        self.clusters = np.broadcast_to(np.arange(recipe.users) % recipe.clusters, (len(streams), recipe.users))
        self._arms = recipe.linear.instance(streams)
        shares = 1.0 / np.arange(1.0, recipe.users + 1.0) if recipe.asks == "skewed" else np.ones(recipe.users)
        self._until = np.cumsum(shares / shares.sum())

    def users(self, round_: int) -> IntArray:
        """(lanes,) who asks."""
        drawn = np.searchsorted(self._until, self._streams.uniforms("user", round_), side="right")
        return np.minimum(drawn, self.recipe.users - 1).astype(np.int64)

    def actions(self, round_: int) -> UserActions:
        """The arms of this round, and who asks."""
        users = self.users(round_)
        self._turn(users)
        return UserActions(self._arms.actions(round_).features, users)

    def win_probability(self, round_: int, duels: Duels) -> FloatArray:
        """(lanes,) by the utilities of the user who asks."""
        self._turn(self.users(round_))
        return super().win_probability(round_, duels)

    def rankings(self, round_: int, slates: Slates) -> IntArray:
        """(lanes, choices) places in the slate, best first, by the user who asks."""
        self._turn(self.users(round_))
        return super().rankings(round_, slates)

    def regret(self, actions: ActionSet, duels: Duels | Slates) -> Regret:
        """What these duels or slates cost the users whom the action set names."""
        self._turn(users_of(actions))
        return super().regret(actions, duels)

    def _turn(self, users: IntArray) -> None:
        lanes = np.arange(len(users))
        self.theta = self.thetas[lanes, self.clusters[lanes, users]]
