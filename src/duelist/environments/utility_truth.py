"""Environments whose truth is a utility of any form: arms at random, logistic duels, regret from the true utilities."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from duelist.core.actions import ActionSet, FiniteActions
from duelist.core.checks import FloatArray, IntArray
from duelist.core.duels import Duels
from duelist.core.errors import InvalidInputError
from duelist.core.stream_kernels import uniforms
from duelist.core.streams import Streams
from duelist.environments.base import Regret
from duelist.preferences.logistic import win_probability


class UtilityInstance:
    """One set of arms a lane and the true utility of any features.

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
        chance = np.empty(len(self._streams))
        uniforms(chance, self._streams.keys("outcome"), round_)
        values = self.utility(duels.features)
        return np.where(chance < win_probability(values[:, 0] - values[:, 1]), 1, -1)

    def regret(self, actions: ActionSet, duels: Duels) -> Regret:
        """What these duels cost, from the true utilities."""
        if not isinstance(actions, FiniteActions):
            raise InvalidInputError(f"these environments have finite action sets; got {type(actions).__name__}.")
        gaps = self.utility(actions.features).max(axis=1, keepdims=True) - self.utility(duels.features)
        return Regret(gaps.mean(axis=1), gaps.min(axis=1), (win_probability(gaps) - 0.5).mean(axis=1))


def normal_arms(streams: Streams, n_arms: int, dim: int) -> FloatArray:
    """(lanes, n_arms, dim) standard normal arms, one set a lane."""
    return np.array([streams.generator("arms", lane).standard_normal((n_arms, dim)) for lane in range(len(streams))])


def with_unit_spread(
    utility: Callable[[FloatArray], FloatArray], arms: FloatArray, spread: float
) -> Callable[[FloatArray], FloatArray]:
    """The utility scaled so that over the arms of each lane its standard deviation is `spread`."""
    scale = spread / utility(arms).std(axis=1, keepdims=True)
    return lambda features: scale * utility(features)
