"""What follows from a linear truth theta (lanes, dim), whatever the arms: who wins, and what a duel costs."""

from __future__ import annotations

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.base import Instance, Regret
from duelist.history.duels import Duels
from duelist.history.slates import Slates
from duelist.preferences.links import WinLaw
from duelist.preferences.logistic import win_probability
from duelist.preferences.plackett_luce import sample_rankings
from duelist.typing import FloatArray, IntArray


def random_directions(streams: Streams, dim: int, norm: float) -> FloatArray:
    """(lanes, dim) uniform on the sphere of this radius, from the stream "theta"."""
    directions = np.array([streams.generator("theta", lane).standard_normal(dim) for lane in range(len(streams))])
    return np.asarray(directions * (norm / np.linalg.norm(directions, axis=1, keepdims=True)))


def draw_models(table: FloatArray, streams: Streams) -> FloatArray:
    """(lanes, dim) rows of a table (N, dim), uniformly, from the stream "theta"."""
    return table[[streams.generator("theta", lane).integers(len(table)) for lane in range(len(streams))]]


class LinearTruth(Instance):
    """Outcomes and regret of linear utilities; an environment adds the arms.

    Args:
        theta: (lanes, dim) the truth.
        streams: of the lanes; outcomes come from the stream "outcome".
        law: probability that the first wins, given the difference of utilities: Bradley-Terry-Luce unless another is given.
    """

    def __init__(self, theta: FloatArray, streams: Streams, law: WinLaw = win_probability) -> None:
        self.theta, self._streams, self._law = theta, streams, law

    def outcomes(self, round_: int, duels: Duels) -> IntArray:
        """Who wins, (lanes,): +1 the first, -1 the second.

        One uniform number per lane and round decides, whatever the policy and the law.
        """
        chance = self._streams.uniforms("outcome", round_)
        return np.where(chance < self.win_probability(round_, duels), 1, -1)

    def win_probability(self, round_: int, duels: Duels) -> FloatArray:  # noqa: ARG002 - the same in every round
        """(lanes,) probability that the first wins, by the law."""
        return self._law(np.einsum("ld,ld->l", self.theta, duels.contrast))

    def rankings(self, round_: int, slates: Slates) -> IntArray:
        """(lanes, choices) places in the slate, best first, by the Plackett-Luce model, whose law of pairs is the logistic."""
        if self._law is not win_probability:
            raise InvalidInputError(
                "slates are answered by the Plackett-Luce model, which is the logistic law without flips; got another law. "
                'Use link="logistic" and flips=0, or a policy for pairs.'
            )
        return sample_rankings(np.einsum("ld,lkd->lk", self.theta, slates.features), self._streams, round_)

    def regret(self, actions: ActionSet, duels: Duels | Slates) -> Regret:
        """What these duels or slates cost, from the true utilities; `yue` counts with the true law, flips included."""
        best = actions.best(self.theta[:, None]).value[:, 0]
        gaps = best[:, None] - np.einsum("ld,ljd->lj", self.theta, duels.features)
        shown = gaps.shape[1]  # sums over it and not means: the same digits in half the time
        return Regret(gaps.sum(axis=1) / shown, gaps.min(axis=1), (self._law(gaps) - 0.5).sum(axis=1) / shown)
