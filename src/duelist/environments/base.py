"""What an environment is: a recipe for instances. An instance holds the truth of a block of lanes, one trial per lane."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from duelist.actions.finite import ActionSet
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.typing import FloatArray, IntArray


class Regret(NamedTuple):
    """What a duel cost in one round, three ways, each (lanes,).

    Attributes:
        average: r(a*) - (r(a1) + r(a2)) / 2, the paper's regret.
        weak: r(a*) - max(r(a1), r(a2)): what a user pays who takes the better of the two.
        yue: mean of P(a* beats a_j) - 1/2 over both arms, the regret of Yue et al. (2012).
    """

    average: FloatArray
    weak: FloatArray
    yue: FloatArray


class Instance(Protocol):
    """The truth of a block of lanes. Every number depends on (seed, trial, round) only.

    One that also has `rankings(round_, slates) -> (lanes, choices)`, places in the slate, best first, plays policies that show
    slates; its `regret` is then given slates in place of duels.
    """

    def actions(self, round_: int) -> ActionSet:
        """What may be compared in this round."""

    def outcomes(self, round_: int, duels: Duels) -> IntArray:
        """Who wins, (lanes,): +1 the first, -1 the second."""

    def regret(self, actions: ActionSet, duels: Duels) -> Regret:
        """What these duels cost."""


class Environment(Protocol):
    """A recipe for instances."""

    @property
    def dim(self) -> int:
        """Length of a feature vector."""

    def instance(self, streams: Streams) -> Instance:
        """One instance per lane, drawn from the lane's streams."""
