"""What an environment is: a recipe for instances. An instance holds the truth of a block of lanes, one trial per lane.

Write an instance as a class that inherits from `Instance`. Three methods are its own; the others say more about it, and have
answers that mean "unknown" or "at once". A class that does not inherit plays too, as long as it has the three.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.typing import FloatArray, IntArray

NEVER = -1  # the delay of an answer that does not come
_NO_OTHERS: Mapping[str, FloatArray] = MappingProxyType({})


class _Three(NamedTuple):
    average: FloatArray
    weak: FloatArray
    yue: FloatArray


class Regret(_Three):
    """What a duel cost in one round, each (lanes,). Only `average` is needed. It unpacks into the first three.

    Attributes:
        average: mean cost of the two arms; where arms have utilities r(a*) - (r(a1) + r(a2)) / 2, the paper's.
        weak: the cost of the better of the two: what a user pays who takes that one; NaN if not given.
        yue: mean of P(a* beats a_j) - 1/2 over both arms, the regret of Yue et al. (2012); NaN if not given.
        others: further kinds by name, such as "copeland".
    """

    others: Mapping[str, FloatArray]

    def __new__(
        cls,
        average: FloatArray,
        weak: FloatArray | None = None,
        yue: FloatArray | None = None,
        others: Mapping[str, FloatArray] = _NO_OTHERS,
    ) -> Self:
        """A regret of the kinds that are known."""
        given = (np.full(np.shape(average), np.nan) if column is None else column for column in (weak, yue))
        regret = super().__new__(cls, average, *given)
        regret.others = others
        return regret

    def kinds(self) -> dict[str, FloatArray]:
        """Every kind by name: "average", "weak", "yue" and the others.

        Example:
            >>> list(Regret(np.zeros(2), others={"borda": np.zeros(2)}).kinds())
            ['average', 'weak', 'yue', 'borda']
        """
        return {**self._asdict(), **self.others}


class Instance(Protocol):
    """The truth of a block of lanes. Every number depends on (seed, trial, round) only.

    One that also has `rankings(round_, slates) -> (lanes, choices)`, places in the slate, best first, plays policies that show
    slates; its `regret` is then given slates in place of duels.
    """

    def actions(self, round_: int) -> ActionSet:
        """What may be compared in this round."""

    def outcomes(self, round_: int, duels: Duels) -> IntArray:
        """Who wins, (lanes,): +1 the first, -1 the second, 0 neither: a tie."""

    def regret(self, actions: ActionSet, duels: Duels) -> Regret:
        """What these duels cost. Where the truth moves: in the round that was asked about last."""

    def show(self, round_: int, duels: Duels) -> Duels:  # noqa: ARG002 - most show what was chosen
        """The duels as they are seen, answered and learnt from, with other features where a sample of a candidate is seen.

        A trajectory is a sample of the plan that it follows, for instance. Regret is of what was chosen.
        """
        return duels

    def win_probability(self, round_: int, duels: Duels) -> FloatArray:  # noqa: ARG002 - what an instance that cannot tell answers
        """(lanes,) probability that the outcome is +1; NaN if unknown."""
        return np.full(len(duels.first), np.nan)

    def tie_probability(self, round_: int, duels: Duels) -> FloatArray:  # noqa: ARG002 - most have no ties
        """(lanes,) probability that the outcome is 0."""
        return np.zeros(len(duels.first))

    def delay(self, round_: int, duels: Duels) -> IntArray:  # noqa: ARG002 - most answer at once
        """(lanes,) rounds until the answer comes: 0 before the next choice, 1 before the one after, `NEVER` for never.

        The same in all lanes, unless the recipe says `lanes_apart = True`: lanes are then played one by one.
        """
        return np.zeros(len(duels.first), dtype=np.int64)


def decide(instance: Instance, round_: int, duels: Duels, streams: Streams) -> IntArray:
    """(lanes,) outcomes by the instance's own probabilities: +1 below that of winning, 0 up to that of a tie, -1 above."""
    chance = streams.uniforms("outcome", round_)
    win = instance.win_probability(round_, duels)
    return np.where(chance < win, 1, np.where(chance < win + instance.tie_probability(round_, duels), 0, -1))


def show_duels(instance: Any, round_: int, duels: Duels) -> Duels:
    """The duels as they are seen; those that were chosen where the instance, perhaps one from elsewhere, does not say."""
    show = getattr(instance, "show", None)
    return duels if show is None else show(round_, duels)


class Environment(Protocol):
    """A recipe for instances.

    A recipe may have a `lanes_apart`: True where answers come at another time in every lane.
    """

    @property
    def dim(self) -> int:
        """Length of a feature vector."""

    def instance(self, streams: Streams) -> Instance:
        """One instance per lane, drawn from the lane's streams."""


def plays_lanes_apart(environment: Any) -> bool:
    """Whether the lanes of this environment must be played one by one."""
    return bool(getattr(environment, "lanes_apart", False))
