"""Compiled steps of rules for K arms without features: draws among arms, and sure wins.

Tables of pairs come as (layers, lanes, room, room) with room for at least K arms; layer 0 has wins and layer 1 duels.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.kernels.compile import entry, inner
from duelist.kernels.philox import first_block, only_substream, philox, to_unit
from duelist.typing import BoolArray, FloatArray, IntArray, Keys

TSALLIS_TOLERANCE, TSALLIS_STEPS = 1e-10, 60


class PlaceOrder(NamedTuple):
    """How equal arms are told apart: order (lanes, K) of places by content, and the stream that names a random number."""

    order: IntArray
    keys: Keys  # (lanes, 2)
    round_: int


class PairOfDuel(NamedTuple):
    """The two arms of a duel by place, (lanes,), and the cells (layers, 2, lanes) of the pair before and after it."""

    first: IntArray
    second: IntArray
    before: FloatArray
    after: FloatArray


@inner
def _drawn(number: int, key: Keys, round_: int) -> int:
    """One of 0 ... number - 1, each equally likely."""
    w0, _w1, _w2, _w3 = philox(key, first_block(), round_, only_substream())
    wanted = int(to_unit(w0) * number)
    return wanted if wanted < number else number - 1


@entry
def draw_places(out: IntArray, mask: BoolArray, ties: PlaceOrder) -> None:
    """One place of the mask (lanes, K) per lane at random, in the order of contents; 0 where the mask is empty."""
    lanes, arms = mask.shape
    for lane in range(lanes):
        number, place = 0, 0
        for k in range(arms):
            number += mask[lane, k]
        if number > 0:
            # The random number is drawn where there is a choice: it is named by the round, so others do not shift.
            left = _drawn(number, ties.keys[lane], ties.round_) if number > 1 else 0
            for k in range(arms):
                place = ties.order[lane, k]
                if mask[lane, place]:
                    if left == 0:
                        break
                    left -= 1
        out[lane] = place


@entry
def best_places(out: IntArray, scores: FloatArray, ties: PlaceOrder) -> None:
    """The place of the largest score (lanes, K) per lane, one at random among equals."""
    lanes, arms = scores.shape
    for lane in range(lanes):
        best, number, place = -math.inf, 0, 0
        for k in range(arms):
            score = scores[lane, k]
            if score > best:
                best, number, place = score, 1, k
            elif score == best:
                number += 1
        if number > 1:
            left = _drawn(number, ties.keys[lane], ties.round_)
            for k in range(arms):
                place = ties.order[lane, k]
                if scores[lane, place] == best:
                    if left == 0:
                        break
                    left -= 1
        out[lane] = place


@entry
def first_places(out: IntArray, mask: BoolArray, order: IntArray) -> None:
    """The place of the mask (lanes, K) per lane that is first in the order of contents; the first of all where it is empty."""
    lanes, arms = mask.shape
    for lane in range(lanes):
        out[lane] = order[lane, 0]
        for k in range(arms):
            if mask[lane, order[lane, k]]:
                out[lane] = order[lane, k]
                break


@inner
def _evidence(wins: float, duels: float) -> float:
    """(w - n/2)^2 / n."""
    margin = wins - 0.5 * duels
    return margin * margin / (duels if duels > 1.0 else 1.0)


@inner
def _side(wins: float, duels: float, level: float) -> int:
    """1 for a sure win, -1 for a sure loss, 0 where it is open."""
    if _evidence(wins, duels) <= level:
        return 0
    return 1 if wins > 0.5 * duels else -1


@inner
def _count_row(sure: tuple[IntArray, IntArray, FloatArray], cells: FloatArray, lane: int, arm: int, level: float) -> None:
    """Read the row of an arm: whom it surely beats, who surely beats it, and when the first of these stops being sure."""
    won, lost, due = sure
    wins, losses, least = 0, 0, math.inf
    for k in range(won.shape[1]):
        size = _evidence(cells[0, lane, arm, k], cells[1, lane, arm, k])
        if size > level:
            if cells[0, lane, arm, k] > 0.5 * cells[1, lane, arm, k]:
                wins += 1
            else:
                losses += 1
            if size < least:
                least = size
    won[lane, arm], lost[lane, arm], due[lane, arm] = wins, losses, least


@entry
def update_sure_wins(
    sure: tuple[IntArray, IntArray, FloatArray], cells: FloatArray, duel: PairOfDuel, level_before: float, level: float
) -> None:
    """Bring won, lost and due (lanes, K) up to the level of the round to come, after one duel per lane; in place.

    Rows are read again where the level has passed `due`.
    """
    won, lost, due = sure
    lanes, arms = won.shape
    for lane in range(lanes):
        for side in range(2):
            arm = duel.first[lane] if side == 0 else duel.second[lane]
            was = _side(duel.before[0, side, lane], duel.before[1, side, lane], level_before)
            wins, duels = duel.after[0, side, lane], duel.after[1, side, lane]
            now = _side(wins, duels, level)
            won[lane, arm] += (now == 1) - (was == 1)
            lost[lane, arm] += (now == -1) - (was == -1)
            # It may be too low, where the pair was the next to stop being sure: then the row is read once too often.
            if now != 0 and _evidence(wins, duels) < due[lane, arm]:
                due[lane, arm] = _evidence(wins, duels)
        for arm in range(arms):
            if due[lane, arm] <= level:
                _count_row(sure, cells, lane, arm, level)


@entry
def upper_bounds(out: FloatArray, cells: FloatArray, arms: IntArray, level: float, never_met: float) -> None:
    """Bounds (n - w)/n + sqrt(level / n) on how often each of K arms beats that of its lane, out (lanes, K)."""
    for lane in range(out.shape[0]):
        arm = arms[lane]
        for k in range(out.shape[1]):
            wins, duels = cells[0, lane, arm, k], cells[1, lane, arm, k]
            if duels == 0.0:
                out[lane, k] = never_met
            else:
                met = duels if duels > 1.0 else 1.0
                out[lane, k] = (duels - wins) / met + math.sqrt(level / met)
        out[lane, arm] = np.nextafter(0.5, 0.0)


@entry
def without_sure_winners(out: BoolArray, cells: FloatArray, arms: IntArray, level: float) -> None:
    """Take out of the mask (lanes, K) the arms that surely beat that of their lane."""
    for lane in range(out.shape[0]):
        for k in range(out.shape[1]):
            if out[lane, k] and _side(cells[0, lane, arms[lane], k], cells[1, lane, arms[lane], k], level) == -1:
                out[lane, k] = False


@entry
def tsallis_rows(weights: FloatArray, shifts: FloatArray, losses: FloatArray, rate: float) -> None:
    """Fill weights (n, K) of Tsallis-INF at losses (n, K), and move shifts (n,) to where each row's add up to 1.

    The sum of p - 1 is convex and grows with x, so from the right of its root Newton's method goes down to it, and one step
    from the left leads to the right of it.
    """
    rows, arms = losses.shape
    factor = 4.0 / (rate * rate)
    for row in range(rows):
        least = math.inf
        for k in range(arms):
            least = min(least, losses[row, k])
        right = least - 2.0 / rate  # the largest p is at most 1
        x = min(shifts[row], right)
        for _ in range(TSALLIS_STEPS):
            total, slope = 0.0, 0.0
            for k in range(arms):
                away = 1.0 / (losses[row, k] - x)
                weight = factor * away * away
                weights[row, k] = weight
                total += weight
                slope += 2.0 * weight * away
            if abs(total - 1.0) <= TSALLIS_TOLERANCE:
                break
            x = min(x - (total - 1.0) / slope, right)
        shifts[row] = x
