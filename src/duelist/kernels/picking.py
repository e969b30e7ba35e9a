"""Compiled choices: the best arm, the best pair, the few smallest values, and a stable order.

Nothing here favours a row: scores that differ by rounding are ties, and random priorities decide between them.
"""

from __future__ import annotations

import math

from duelist.kernels.compile import inner
from duelist.typing import FloatArray, IntArray

# Scores closer than this, relative to their size, are ties: rounding must not decide between equal pairs.
TIE = 1e-11
_FEW = 32  # insertion is the fastest way to sort up to so many


@inner
def pick_arm(scores: FloatArray, priority: FloatArray) -> int:
    """The arm of the largest score; among ties the largest priority, then the lowest row. -inf is never picked."""
    n = scores.shape[0]
    best = -math.inf
    for k in range(n):
        best = max(best, scores[k])
    slack = TIE * (1.0 + abs(best))
    winner = -1
    for k in range(n):
        if scores[k] >= best - slack and (winner < 0 or priority[k] > priority[winner]):
            winner = k
    return winner


@inner
def best_from(row: FloatArray, i: int) -> float:
    """The largest of row[i:], the scores of the pairs (i, j >= i)."""
    best = -math.inf
    for j in range(i, row.shape[0]):
        best = max(best, row[j])
    return best


@inner
def tie_floor(best: float) -> float:
    """Scores from here on are as good as the best."""
    return best - TIE * (1.0 + abs(best))


@inner
def favoured_partner(row: FloatArray, i: int, floor: float, priority: FloatArray, highest: float) -> tuple[int, float]:
    """The j >= i whose row[j] reaches the floor, of the largest sum of priorities; -1 if none is above `highest`."""
    partner = -1
    for j in range(i, row.shape[0]):
        if row[j] >= floor and priority[i] + priority[j] > highest:
            partner, highest = j, priority[i] + priority[j]
    return partner, highest


@inner
def order_pair(one: int, other: int, utilities: FloatArray, priority: FloatArray) -> tuple[int, int]:
    """The arm with the higher utility first, among equals the one with the higher priority: rows do not matter."""
    gap = utilities[other] - utilities[one]
    if gap > TIE * (1.0 + abs(utilities[one])) or (
        gap >= -TIE * (1.0 + abs(utilities[one])) and priority[other] > priority[one]
    ):
        return other, one
    return one, other


@inner
def pick_pair(scores: FloatArray, utilities: FloatArray, priority: FloatArray) -> tuple[int, int]:
    """The pair (i <= j) of the largest scores[i, j]; among ties the largest sum of priorities; see `order_pair`."""
    n = scores.shape[0]
    best = -math.inf
    for i in range(n):
        best = max(best, best_from(scores[i], i))
    floor = tie_floor(best)
    one, other, highest = -1, -1, -math.inf
    for i in range(n):
        partner, highest = favoured_partner(scores[i], i, floor, priority, highest)
        if partner >= 0:
            one, other = i, partner
    return order_pair(one, other, utilities, priority)


@inner
def smallest_into(order: IntArray, values: FloatArray, most: int) -> int:
    """Fill the front of `order` with the rows of the smallest values, ascending, equal ones by row; returns how many.

    At most `most` are found. One pass over the values, in which almost all of them cost one comparison.
    """
    found = 0
    for k in range(values.shape[0]):
        if found == most:
            if not values[k] < values[order[found - 1]]:
                continue
            found -= 1
        place = found
        while place > 0 and values[order[place - 1]] > values[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k
        found += 1
    return found


@inner
def _insert_run(order: IntArray, values: FloatArray, begin: int, end: int) -> None:
    """Sort the rows begin to end by insertion."""
    for k in range(begin, end):
        place = k
        while place > begin and values[order[place - 1]] > values[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k


@inner
def _merge_runs(out: IntArray, order: IntArray, values: FloatArray, begin: int, middle: int, end: int) -> None:
    """Merge two neighbouring sorted runs; of equal values the left one comes first."""
    left, right = begin, middle
    for place in range(begin, end):
        if left < middle and (right >= end or values[order[left]] <= values[order[right]]):
            out[place] = order[left]
            left += 1
        else:
            out[place] = order[right]
            right += 1


@inner
def sort_into(order: IntArray, values: FloatArray, n: int, spare: IntArray) -> None:
    """Fill order (n,) so that values[order] ascends, equal ones by row. `spare` (n,) is working memory.

    Runs of a few dozen are sorted by insertion, and merged: n log n comparisons, and none but insertion for few values.
    """
    for begin in range(0, n, _FEW):
        _insert_run(order, values, begin, min(begin + _FEW, n))
    length = _FEW
    while length < n:
        for begin in range(0, n, 2 * length):
            middle = min(begin + length, n)
            _merge_runs(spare, order, values, begin, middle, min(begin + 2 * length, n))
        for k in range(n):
            order[k] = spare[k]
        length *= 2
