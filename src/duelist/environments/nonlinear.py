"""Problems that no linear reward describes: a quadratic truth, and a two-layer network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import finite_number, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.base import Instance, Regret
from duelist.history.duels import Duels
from duelist.history.slates import Slates
from duelist.preferences.logistic import win_probability
from duelist.preferences.plackett_luce import sample_rankings
from duelist.rewards.models import TwoLayerNetwork, utilities
from duelist.typing import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class QuadraticDuels:
    """Utility -(phi - c)^T C (phi - c): the nearer to an ideal point c the better, over fixed standard normal arms.

    The best arm lies inside the cloud of arms, where no linear utility has its maximum. C = G^T G / dim has a standard normal
    G, so that some directions matter more than others.

    Args:
        dim: length of feature vectors.
        arms: number of arms.
        offset: length scale of the ideal point, c ~ N(0, offset^2 I).
        spread: standard deviation of the utility over the arms of a lane; it sets how clear outcomes are.

    Example:
        >>> instance = QuadraticDuels(dim=2, arms=5).instance(Streams(0, [0]))
        >>> instance.actions(0).features.shape
        (1, 5, 2)
    """

    dim: int = 3
    arms: int = 32
    offset: float = 0.5
    spread: float = 2.0

    def __post_init__(self) -> None:
        whole_number("dim", self.dim, at_least=1)
        whole_number("arms", self.arms, at_least=2)
        finite_number("offset", self.offset, at_least=0.0)
        finite_number("spread", self.spread, above=0.0)

    def instance(self, streams: Streams) -> UtilityInstance:
        """One truth and one set of arms per lane."""
        dim = self.dim
        drawn = _normals(streams, dim * (dim + 1))
        centres, factors = self.offset * drawn[:, :dim], drawn[:, dim:].reshape(-1, dim, dim) / np.sqrt(dim)
        arms = normal_arms(streams, self.arms, dim)

        def utility(features: FloatArray) -> FloatArray:
            moved = np.einsum("lij,lnj->lni", factors, features - centres[:, None])
            return np.asarray(-(moved**2).sum(axis=2))

        return UtilityInstance(arms, with_unit_spread(utility, arms, self.spread), streams)


@dataclass(frozen=True, kw_only=True)
class NetworkDuels:
    """Utility of a random two-layer network over fixed standard normal arms.

    Args:
        dim: length of feature vectors.
        arms: number of arms.
        hidden: width of the network.
        spread: standard deviation of the utility over the arms of a lane.

    Example:
        >>> instance = NetworkDuels(dim=2, arms=5, hidden=4).instance(Streams(0, [0]))
        >>> round(float(instance.utility(instance.actions(0).features).std()), 6)
        2.0
    """

    dim: int = 4
    arms: int = 32
    hidden: int = 8
    spread: float = 2.0

    def __post_init__(self) -> None:
        whole_number("dim", self.dim, at_least=1)
        whole_number("arms", self.arms, at_least=2)
        whole_number("hidden", self.hidden, at_least=1)
        finite_number("spread", self.spread, above=0.0)

    def instance(self, streams: Streams) -> UtilityInstance:
        """One network and one set of arms per lane."""
        reward = TwoLayerNetwork(hidden=self.hidden)
        theta = _normals(streams, reward.parameters(self.dim))
        arms = normal_arms(streams, self.arms, self.dim)
        truth = with_unit_spread(lambda features: utilities(reward, theta, features), arms, self.spread)
        return UtilityInstance(arms, truth, streams)


def _normals(streams: Streams, size: int) -> FloatArray:
    return np.array([streams.generator("theta", lane).standard_normal(size) for lane in range(len(streams))])


class UtilityInstance(Instance):
    """One set of arms per lane and the true utility of any features.

    Args:
        arms: (lanes, n_arms, dim), the same in every round.
        utility: from features (lanes, n, dim) to utilities (lanes, n).
        streams: the lanes' streams; outcomes come from the stream "outcome".
    """

    def __init__(self, arms: FloatArray, utility: Callable[[FloatArray], FloatArray], streams: Streams) -> None:
        self.utility, self._streams = utility, streams
        self._actions = FiniteActions(arms)

    def actions(self, round_: int) -> FiniteActions:  # noqa: ARG002 - the same in every round
        """The arms."""
        return self._actions

    def outcomes(self, round_: int, duels: Duels) -> IntArray:
        """Who wins, (lanes,): +1 the first, -1 the second, by the Bradley-Terry-Luce model."""
        return np.where(self._streams.uniforms("outcome", round_) < self.win_probability(round_, duels), 1, -1)

    def win_probability(self, round_: int, duels: Duels) -> FloatArray:  # noqa: ARG002 - the same in every round
        """(lanes,) probability that the first wins."""
        values = self.utility(duels.features)
        return win_probability(values[:, 0] - values[:, 1])

    def rankings(self, round_: int, slates: Slates) -> IntArray:
        """(lanes, choices) places in the slate, best first, by the Plackett-Luce model."""
        return sample_rankings(self.utility(slates.features), self._streams, round_)

    def regret(self, actions: ActionSet, duels: Duels | Slates) -> Regret:
        """What these duels or slates cost, from the true utilities."""
        if not isinstance(actions, FiniteActions):
            raise InvalidInputError(f"these environments have finite action sets; got {type(actions).__name__}.")
        gaps = self.utility(actions.features).max(axis=1, keepdims=True) - self.utility(duels.features)
        return Regret(gaps.mean(axis=1), gaps.min(axis=1), (win_probability(gaps) - 0.5).mean(axis=1))


def normal_arms(streams: Streams, n_arms: int, dim: int) -> FloatArray:
    """(lanes, n_arms, dim) standard normal arms, one set per lane."""
    return np.array([streams.generator("arms", lane).standard_normal((n_arms, dim)) for lane in range(len(streams))])


def with_unit_spread(
    utility: Callable[[FloatArray], FloatArray], arms: FloatArray, spread: float
) -> Callable[[FloatArray], FloatArray]:
    """The utility scaled so that over the arms of each lane its standard deviation is `spread`."""
    scale = spread / utility(arms).std(axis=1, keepdims=True)
    return lambda features: scale * utility(features)
