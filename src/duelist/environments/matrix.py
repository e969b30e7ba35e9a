"""Duels by a matrix of preferences: P(i beats j) for every two of K arms, with or without a best one.

Arms have features all the same, unit vectors unless others are given, so that policies which learn linear utilities play too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, Self

import numpy as np
import numpy.typing as npt

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import finite_array, finite_number, one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.base import Instance, Regret, decide
from duelist.environments.tables import Table, read_array
from duelist.history.duels import Duels
from duelist.preferences.logistic import win_probability
from duelist.typing import FloatArray, IntArray

KINDS = ("condorcet", "copeland", "borda")
NEAR = 0.1  # of "near-tie": what the strength of the best arm has over the second
LEAD, MARGIN = 0.05, 0.4  # of the cycle: by how much its winner beats the others, and they each other
_ROUNDING = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class MatrixDuels:
    """K arms, and the probability that each beats each.

    The costs of an arm i, from which regret is made as the mean over the two arms of a duel:

        condorcet   P(c beats i) - 1/2, c the arm that beats all others; NaN where there is none
        copeland    the best share of others beaten minus that of i; a tie of P = 1/2 is half a win
        borda       the best mean probability of beating another arm minus that of i

    `Run.regrets` has all three; `regret` says which one is `average`, and whose winner `yue` is against.

    Args:
        matrix: (K, K) P(i beats j), with P(j beats i) = 1 - P(i beats j); or the path of a file. Or a name, for a matrix that
            every trial draws: "bradley-terry", strengths N(0, 1); "near-tie", the same with the best strength only 0.1
            above the second; "cycle", that of `MatrixDuels.cycle` in a random order of the arms; "random", every pair uniform
            on (0, 1), mostly without an arm that beats all others.
        arms: K of a matrix that is drawn.
        features: (K, dim) of the arms, or a path; None for unit vectors.
        regret: "condorcet", "copeland" or "borda".

    Example:
        >>> env = MatrixDuels(matrix=[[0.5, 0.6, 0.7], [0.4, 0.5, 0.8], [0.3, 0.2, 0.5]])
        >>> instance = env.instance(Streams(0, [0]))
        >>> instance.costs["condorcet"].round(3).tolist(), instance.costs["copeland"].tolist()
        ([[0.0, 0.1, 0.2]], [[0.0, 0.5, 1.0]])
    """

    matrix: Table | Literal["bradley-terry", "near-tie", "cycle", "random"] = "bradley-terry"
    arms: int = 10
    features: Table | None = None
    regret: Literal["condorcet", "copeland", "borda"] = "condorcet"

    def __post_init__(self) -> None:
        whole_number("arms", self.arms, at_least=2)
        one_of("regret", self.regret, KINDS)
        if self.features is not None and len(self._features) != self.n_arms:
            raise InvalidInputError(
                f"features must have one row per arm, {self.n_arms}; got {len(self._features)}. None stands for unit vectors."
            )

    @classmethod
    def bradley_terry(
        cls, strengths: npt.ArrayLike, *, regret: Literal["condorcet", "copeland", "borda"] = "condorcet"
    ) -> Self:
        """P(i beats j) = s(strength_i - strength_j), s the logistic function.

        Example:
            >>> MatrixDuels.bradley_terry([1.0, 0.0]).given.round(3).tolist()
            [[0.5, 0.731], [0.269, 0.5]]
        """
        return cls(matrix=_from_strengths(finite_array("strengths", strengths, "(K,)", 1)), regret=regret)

    @classmethod
    def cycle(
        cls,
        arms: int,
        *,
        lead: float = LEAD,
        margin: float = MARGIN,
        regret: Literal["condorcet", "copeland", "borda"] = "condorcet",
    ) -> Self:
        """Arm 0 beats every other with 1/2 + lead; the others beat each other with 1/2 + margin, round a circle.

        No utilities describe it: each of the others beats the next ones on the circle and loses to those before it.

        Example:
            >>> MatrixDuels.cycle(4).given[1].round(3).tolist()
            [0.45, 0.5, 0.9, 0.1]
        """
        whole_number("arms", arms, at_least=2)
        for name, value in (("lead", lead), ("margin", margin)):
            finite_number(name, value, at_least=0.0, at_most=0.5)
        return cls(matrix=_cycle(arms, lead, margin), regret=regret)

    @classmethod
    def random(cls, arms: int, *, seed: int, regret: Literal["condorcet", "copeland", "borda"] = "copeland") -> Self:
        """Every pair uniform on (0, 1), the same matrix in every trial. Few of these have an arm that beats all others."""
        whole_number("arms", arms, at_least=2)
        return cls(matrix=_from_uniforms(np.random.default_rng(whole_number("seed", seed)), arms), regret=regret)

    @cached_property
    def given(self) -> FloatArray | None:
        """(K, K) the matrix, where it is the same in every trial."""
        if isinstance(self.matrix, str) and self.matrix in _DRAWN:
            return None
        matrix = read_array("matrix", self.matrix, "(K, K)", 2)
        if matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
            raise InvalidInputError(f"matrix must be (K, K) with K >= 2; got {matrix.shape}. Row i has P(i beats j).")
        off = ~np.eye(len(matrix), dtype=bool)
        wrong = np.argwhere(off & ((matrix < 0.0) | (matrix > 1.0) | (np.abs(matrix + matrix.T - 1.0) > _ROUNDING)))
        if len(wrong):
            i, j = wrong[0]
            raise InvalidInputError(
                f"matrix must have P(i beats j) from 0 to 1 with P(j beats i) = 1 - P(i beats j); got {matrix[i, j]:g} for "
                f"({i}, {j}) and {matrix[j, i]:g} for ({j}, {i}). For counts of wins, divide by the duels of each pair."
            )
        return np.where(off, matrix, 0.5)

    @property
    def n_arms(self) -> int:
        """K."""
        return self.arms if self.given is None else len(self.given)

    @cached_property
    def _features(self) -> FloatArray:
        return np.eye(self.n_arms) if self.features is None else read_array("features", self.features, "(K, dim)", 2)

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return int(self._features.shape[1])

    def instance(self, streams: Streams) -> MatrixInstance:
        """One matrix per lane."""
        lanes = len(streams)
        if self.given is not None:
            win = np.broadcast_to(self.given, (lanes, *self.given.shape))
        else:
            draw = _DRAWN[str(self.matrix)]
            win = np.array([draw(streams.generator("theta", lane), self.arms) for lane in range(lanes)])
        return MatrixInstance(win, self._features, streams, self.regret)


class PairTruth(Instance):
    """Arms that are the same in every round, and the probabilities of every pair of them.

    Args:
        win: (lanes, K, K) probability that the row's arm wins.
        tie: (lanes, K, K) probability of a tie; None for no ties.
        features: (K, dim) of the arms.
        streams: of the lanes; outcomes come from the stream "outcome".
    """

    def __init__(self, win: FloatArray, tie: FloatArray | None, features: FloatArray, streams: Streams) -> None:
        self.win, self.tie, self._streams = win, tie, streams
        self._lanes = np.arange(len(streams))
        self._actions = FiniteActions(np.broadcast_to(features, (len(streams), *features.shape)))

    def actions(self, round_: int) -> FiniteActions:  # noqa: ARG002 - an instance's signature
        """The same arms in every round."""
        return self._actions

    def win_probability(self, round_: int, duels: Duels) -> FloatArray:  # noqa: ARG002 - the same in every round
        """(lanes,) of the pair."""
        return np.asarray(self.win[self._lanes, duels.first, duels.second])

    def tie_probability(self, round_: int, duels: Duels) -> FloatArray:
        """(lanes,) of the pair."""
        if self.tie is None:
            return super().tie_probability(round_, duels)
        return np.asarray(self.tie[self._lanes, duels.first, duels.second])

    def outcomes(self, round_: int, duels: Duels) -> IntArray:
        """Who wins, (lanes,): one uniform number per lane and round decides, whatever the pair."""
        return decide(self, round_, duels, self._streams)


class MatrixInstance(PairTruth):
    """One matrix per lane.

    Attributes:
        costs: (lanes, K) cost of every arm, by kind.
        winner: (lanes,) row of the best arm by the kind that `average` is; the lowest of several.
    """

    def __init__(self, win: FloatArray, features: FloatArray, streams: Streams, kind: str) -> None:
        super().__init__(win, None, features, streams)
        self.costs = arm_costs(win)
        self._kind = kind
        without = np.flatnonzero(np.isnan(self.costs[kind]).any(axis=1))
        if len(without):
            raise InvalidInputError(
                f'regret="{kind}" needs an arm that beats every other; in {len(without)} of {len(win)} trial(s) there is none. '
                f'Use regret="copeland" or regret="borda".'
            )
        self.winner = self.costs[kind].argmin(axis=1)

    def regret(self, actions: ActionSet, duels: Duels) -> Regret:  # noqa: ARG002 - an instance's signature
        """What these duels cost, in every kind."""
        lanes = self._lanes
        pairs = {kind: np.stack([cost[lanes, duels.first], cost[lanes, duels.second]]) for kind, cost in self.costs.items()}
        against_winner = np.stack([self.win[lanes, self.winner, duels.first], self.win[lanes, self.winner, duels.second]])
        mine = pairs[self._kind]
        return Regret(
            mine.mean(axis=0),
            mine.min(axis=0),
            against_winner.mean(axis=0) - 0.5,
            {kind: pair.mean(axis=0) for kind, pair in pairs.items()},
        )


def arm_costs(win: FloatArray) -> dict[str, FloatArray]:
    """(lanes, K) cost of every arm by kind, of win (lanes, K, K); see `MatrixDuels`."""
    arms = win.shape[1]
    others = ~np.eye(arms, dtype=bool)
    beaten = np.where(others, (win > 0.5) + 0.5 * (win == 0.5), 0.0).sum(axis=2) / (arms - 1)
    mean_win = np.where(others, win, 0.0).sum(axis=2) / (arms - 1)
    wins_all = np.asarray(((win > 0.5) | ~others).all(axis=2))
    winner = wins_all.argmax(axis=1)
    condorcet = win[np.arange(len(win)), winner] - 0.5
    return {
        "condorcet": np.where(wins_all.any(axis=1, keepdims=True), condorcet, np.nan),
        "copeland": beaten.max(axis=1, keepdims=True) - beaten,
        "borda": mean_win.max(axis=1, keepdims=True) - mean_win,
    }


def _from_strengths(strengths: FloatArray) -> FloatArray:
    return win_probability(strengths[:, None] - strengths)


def _cycle(arms: int, lead: float, margin: float) -> FloatArray:
    matrix = np.full((arms, arms), 0.5)
    matrix[0, 1:], matrix[1:, 0] = 0.5 + lead, 0.5 - lead
    size = arms - 1
    ahead = (np.arange(size)[None] - np.arange(size)[:, None]) % size
    # On a circle of an even number of arms, the opposite one is as far either way: those two are equal.
    matrix[1:, 1:] += margin * np.sign(size - 2 * ahead) * (ahead > 0)
    return matrix


def _from_uniforms(rng: np.random.Generator, arms: int) -> FloatArray:
    upper = np.triu(rng.random((arms, arms)), 1)
    return np.asarray(upper + np.tril(1.0 - upper.T, -1) + 0.5 * np.eye(arms))


def _near_tie(rng: np.random.Generator, arms: int) -> FloatArray:
    strengths = rng.standard_normal(arms)
    second, best = np.argsort(strengths)[-2:]
    strengths[best] = strengths[second] + NEAR
    return _from_strengths(strengths)


def _shuffled_cycle(rng: np.random.Generator, arms: int) -> FloatArray:
    order = rng.permutation(arms)
    return _cycle(arms, LEAD, MARGIN)[np.ix_(order, order)]


_DRAWN: dict[str, Callable[[np.random.Generator, int], FloatArray]] = {
    "bradley-terry": lambda rng, arms: _from_strengths(rng.standard_normal(arms)),
    "near-tie": _near_tie,
    "cycle": _shuffled_cycle,
    "random": _from_uniforms,
}
