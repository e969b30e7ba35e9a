"""The paper's synthetic problem asked with slates: linear utilities, Plackett-Luce rankings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels, LinearDuelsInstance
from duelist.history.slates import Slates
from duelist.preferences.plackett_luce import sample_ranking
from duelist.typing import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class LinearSlates:
    """The instances of `LinearDuels`, answered with rankings: the same theta* and arms for any number of choices.

    Args:
        dim: length of feature vectors.
        arms: number of distinct arms, at most 2^dim.
        fresh_arms: draw new arms every round.
        theta_norm: norm of theta*.

    Example:
        >>> instance = LinearSlates(dim=3, arms=4).instance(Streams(0, [0, 1]))
        >>> instance.theta.shape
        (2, 3)
    """

    dim: int = 10
    arms: int = 32
    fresh_arms: bool = False
    theta_norm: float = 1.0

    def __post_init__(self) -> None:
        self._duels()

    def _duels(self) -> LinearDuels:
        return LinearDuels(dim=self.dim, arms=self.arms, fresh_arms=self.fresh_arms, theta_norm=self.theta_norm)

    def instance(self, streams: Streams) -> LinearSlatesInstance:
        """One theta* and one set of arms per lane."""
        return LinearSlatesInstance(self._duels().instance(streams), streams)


class LinearSlatesInstance:
    """One instance per lane; `theta` (lanes, dim) is the truth."""

    def __init__(self, duels: LinearDuelsInstance, streams: Streams) -> None:
        self._duels, self._streams, self.theta = duels, streams, duels.theta

    def actions(self, round_: int) -> FiniteActions:
        """The arms of this round."""
        return self._duels.actions(round_)

    def rankings(self, round_: int, slates: Slates) -> IntArray:
        """(lanes, choices) places in the slate, best first, by the Plackett-Luce model."""
        utilities = np.einsum("ld,lkd->lk", self.theta, slates.features)
        return np.array([sample_ranking(u, self._streams.generator("ranking", i, round_)) for i, u in enumerate(utilities)])

    def regret(self, actions: FiniteActions, slates: Slates) -> FloatArray:
        """(lanes,) utility of the best arm minus the mean utility of the slate."""
        best = actions.best(self.theta[:, None]).value[:, 0]
        return np.asarray(best - np.einsum("ld,lkd->lk", self.theta, slates.features).mean(axis=1))
