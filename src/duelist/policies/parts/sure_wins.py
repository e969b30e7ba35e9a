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
    level = level_at(alpha, state.learnt + 1)
    lanes = np.arange(len(duel.first))
    won, lost, due = sure.won.copy(), sure.lost.copy(), sure.due.copy()
    was_won, was_lost, _ = _status(duel.before, level_at(alpha, state.learnt))
    is_won, is_lost, size = _status(duel.after, level)
    for side, arm in enumerate((duel.first, duel.second)):
        won[lanes, arm] += is_won[side].astype(np.int64) - was_won[side]
        lost[lanes, arm] += is_lost[side].astype(np.int64) - was_lost[side]
        # It may be too low, where the pair was the next to stop being sure: then the row is read once too often.
        due[lanes, arm] = np.minimum(due[lanes, arm], np.where(is_won[side] | is_lost[side], size[side], math.inf))
    where = np.nonzero(due <= level)
    if len(where[0]):
        wins, duels = state.counts.cells[: DUELS + 1, where[0], where[1]]
        sizes, margins = evidence(wins, duels)
        is_sure = sizes > level
        won[where] = np.count_nonzero(is_sure & (margins > 0.0), axis=1)
        lost[where] = np.count_nonzero(is_sure & (margins < 0.0), axis=1)
        due[where] = np.where(is_sure, sizes, math.inf).min(axis=1)
    return SureWins(won, lost, due)


def _status(cells: FloatArray, level: float) -> tuple[BoolArray, BoolArray, FloatArray]:
    """Whether the arm of each side (2, lanes) surely wins and surely loses, and how strong the evidence is."""
    size, margin = evidence(cells[WINS], cells[DUELS])
    is_sure = size > level
    return np.asarray(is_sure & (margin > 0.0)), np.asarray(is_sure & (margin < 0.0)), size


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
    wins, duels = field.rows_of(arm)[: DUELS + 1]
    met = np.maximum(duels, 1.0)
    bounds = (duels - wins) / met + np.sqrt(level_at(alpha, field.rounds) / met)
    bounds[duels == 0.0] = NEVER_MET
    bounds[field.lanes, arm] = np.nextafter(0.5, 0.0)
    return np.asarray(bounds)
