"""Which arms surely beat which: confidence bounds on every pair, counted per arm, at a cost of K per round.

With w wins of i over j in n duels, and t rounds so far,

    u_ij = w/n + sqrt(alpha log t / n)  >= 1/2    if and only if    w >= n/2  or  (w - n/2)^2 / n <= alpha log t,

so whether j surely beats i is a comparison of a number that only a duel of the two changes with a level that grows. For every
arm we keep how many it surely beats and surely loses to, and the smallest of those numbers above the level: only when the level
passes it, or after a duel, is the arm's row read again.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.core.stored_names import stored
from duelist.kernels.rules.matrix import PairOfDuel, update_sure_wins, upper_bounds, without_sure_winners
from duelist.policies.parts.known_arms import padded
from duelist.policies.parts.matrix_policy import DUELS, WINS, Field, MatrixState, Update
from duelist.typing import BoolArray, FloatArray, IntArray

NEVER_MET = 2.0  # the bound of RUCB's authors for a pair that never met: 1 + 1


@stored("sure-wins")
class SureWins(NamedTuple):
    """Sure wins and losses among all known arms.

    Attributes:
        won: (lanes, K) how many others each arm surely beats: the lower bound of its Copeland score, times K - 1.
        lost: (lanes, K) how many others surely beat it; K - 1 less this is the upper bound.
        due: (lanes, K) level at which the first of these stops being sure.
    """

    won: IntArray
    lost: IntArray
    due: FloatArray


def no_wins(lanes: int) -> SureWins:
    """No arms yet."""
    nothing = np.zeros((lanes, 0), dtype=np.int64)
    return SureWins(nothing, nothing, np.zeros((lanes, 0)))


def widen_wins(sure: SureWins, size: int) -> SureWins:
    """With more arms, which nobody has met."""
    return SureWins(padded(sure.won, size, 0), padded(sure.lost, size, 0), padded(sure.due, size, math.inf))


def level_at(alpha: float, rounds: int) -> float:
    """Alpha log t."""
    return alpha * math.log(rounds)


def evidence(wins: FloatArray, duels: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(w - n/2)^2 / n and w - n/2."""
    margin = wins - 0.5 * duels
    return margin * margin / np.maximum(duels, 1.0), margin


def update_wins(sure: SureWins, state: MatrixState, duel: Update, alpha: float) -> SureWins:
    """After a duel, at the level of the round to come."""
    assert state.counts is not None
    newer = SureWins(sure.won.copy(), sure.lost.copy(), sure.due.copy())
    pair = PairOfDuel(duel.first, duel.second, duel.before, duel.after)
    levels = level_at(alpha, state.learnt), level_at(alpha, state.learnt + 1)
    update_sure_wins((newer.won, newer.lost, newer.due), state.counts.room, pair, *levels)
    return newer


def sure_among(sure: SureWins, field: Field, alpha: float) -> tuple[IntArray, IntArray]:
    """(lanes, K) how many of the offered arms each arm surely beats, and surely loses to."""
    if field.everyone:
        return sure.won, sure.lost
    size, margin = evidence(field.cells[WINS], field.cells[DUELS])
    is_sure = (size > level_at(alpha, field.rounds)) & field.offered[:, None]
    won = np.count_nonzero(is_sure & (margin > 0.0), axis=2)
    return won, np.count_nonzero(is_sure, axis=2) - won


def surely_loses(wins: FloatArray, duels: FloatArray, level: float) -> BoolArray:
    """Whether the arm with these wins in these duels surely loses, u < 1/2."""
    size, margin = evidence(wins, duels)
    return np.asarray((size > level) & (margin < 0.0))


def bounds_against(arm: IntArray, field: Field, alpha: float) -> FloatArray:
    """(lanes, K) u_j,arm for the arms (lanes,): `NEVER_MET` of a pair that never met.

    That of an arm with itself is just below 1/2: it meets itself where all others surely lose, and not where one is its equal.
    """
    bounds = np.empty(field.offered.shape)
    upper_bounds(bounds, field.room, arm, level_at(alpha, field.rounds), NEVER_MET)
    return bounds


def undefeated_against(arm: IntArray, field: Field, alpha: float) -> BoolArray:
    """(lanes, K) the offered arms that do not surely beat the arms (lanes,)."""
    allowed = field.offered.copy()
    without_sure_winners(allowed, field.room, arm, level_at(alpha, field.rounds))
    return allowed
