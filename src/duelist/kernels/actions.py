"""Compiled search for the best arm of a finite set."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from duelist.kernels.compile import entry, inner
from duelist.kernels.philox import fill_normals, first_block, only_substream, philox, to_unit
from duelist.typing import FloatArray, IntArray, Keys

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


@inner
def utilities_into(out: FloatArray, columns: FloatArray, theta: FloatArray) -> None:
    """Utility of every arm, out (n_arms,), from columns (dim, n_arms): a sum of scaled rows, so it vectorises over arms."""
    dim = theta.shape[0]
    for k in range(out.shape[0]):
        out[k] = theta[0] * columns[0, k]
    # Four rows a pass: `out` is read and written a quarter as often, which is what this loop spends its time on.
    i = 1
    while i + 3 < dim:
        t0, t1, t2, t3 = theta[i], theta[i + 1], theta[i + 2], theta[i + 3]
        for k in range(out.shape[0]):
            out[k] += t0 * columns[i, k] + t1 * columns[i + 1, k] + t2 * columns[i + 2, k] + t3 * columns[i + 3, k]
        i += 4
    while i < dim:
        for k in range(out.shape[0]):
            out[k] += theta[i] * columns[i, k]
        i += 1


@inner
def first_maximum(values: FloatArray) -> int:
    """Index of the largest value, the lowest among equals."""
    winner = 0
    for k in range(1, values.shape[0]):
        if values[k] > values[winner]:
            winner = k
    return winner


@entry
def finite_best(columns: FloatArray, theta: FloatArray, value: FloatArray, row: IntArray, features: FloatArray) -> None:
    """Fill value, row and features of the best arm for theta (lanes, draws, dim)."""
    lanes, draws, dim = theta.shape
    utilities = np.empty(columns.shape[2])
    for lane in range(lanes):
        for draw in range(draws):
            utilities_into(utilities, columns[lane], theta[lane, draw])
            winner = first_maximum(utilities)
            row[lane, draw] = winner
            value[lane, draw] = utilities[winner]
            for i in range(dim):
                features[lane, draw, i] = columns[lane, i, winner]


@entry
def block_best(context: FloatArray, theta: FloatArray, n_arms: int, value: FloatArray, row: IntArray) -> None:
    """Fill value and row of the best arm for theta (lanes, draws, dim), block k of it with the context (lanes, n)."""
    lanes, draws, _ = theta.shape
    n = context.shape[1]
    utilities = np.empty(n_arms)
    for lane in range(lanes):
        for draw in range(draws):
            for k in range(n_arms):
                utilities[k] = 0.0
                for i in range(n):
                    utilities[k] += context[lane, i] * theta[lane, draw, k * n + i]
            winner = first_maximum(utilities)
            row[lane, draw] = winner
            value[lane, draw] = utilities[winner]


@inner
def _mix(print_: np.uint64, bits: np.uint64) -> np.uint64:
    """The finaliser of splitmix64: every input bit reaches every output bit."""
    mixed = (print_ ^ bits) + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


@entry
def fingerprint_blocks(prints: npt.NDArray[np.uint64], bits: npt.NDArray[np.uint64]) -> None:
    """What `fingerprint_arms` gives for arms (lanes, n_arms) that have bits (lanes, n) in a block of their own and zeros."""
    lanes, n_arms = prints.shape
    n = bits.shape[1]
    for lane in range(lanes):
        for k in range(n_arms):
            prints[lane, k] = np.uint64(n_arms * n)
        for j in range(n_arms * n):
            for k in range(n_arms):
                prints[lane, k] = _mix(prints[lane, k], bits[lane, j % n] if j // n == k else np.uint64(0))


@entry
def fingerprint_arms(prints: npt.NDArray[np.uint64], bits: npt.NDArray[np.uint64]) -> None:
    """Mix the bits (lanes, dim, n_arms) of every arm's features into one number, prints (lanes, n_arms)."""
    lanes, dim, n_arms = bits.shape
    for lane in range(lanes):
        for k in range(n_arms):
            prints[lane, k] = np.uint64(dim)
        for i in range(dim):
            for k in range(n_arms):
                prints[lane, k] = _mix(prints[lane, k], bits[lane, i, k])


@inner
def _scale_to(vector: FloatArray, norm: float) -> None:
    """Give `vector` (dim,) this norm."""
    squares = 0.0
    for i in range(vector.shape[0]):
        squares += vector[i] * vector[i]
    factor = norm / math.sqrt(squares)
    for i in range(vector.shape[0]):
        vector[i] *= factor


@entry
def draw_on_sphere(arms: FloatArray, keys: Keys, round_: int, norm: float) -> None:
    """Fill arms (lanes, n_arms, dim) with uniform directions of this norm."""
    lanes, n_arms, _dim = arms.shape
    for lane in range(lanes):
        for k in range(n_arms):
            fill_normals(arms[lane, k], keys[lane], 1, round_, k)
            _scale_to(arms[lane, k], norm)


@entry
def draw_clusters(arms: FloatArray, keys: Keys, round_: int, norm: float, n_centres: int, spread: float) -> None:
    """Fill arms (lanes, n_arms, dim) with directions close to one of n_centres uniform ones, in turn, all of this norm.

    An arm is its unit centre plus spread / sqrt(dim) times a standard normal vector, brought back to the sphere: to first
    order in it, `spread` is the distance to the centre as a share of the norm.
    """
    lanes, n_arms, dim = arms.shape
    centres = np.empty((n_centres, dim))
    step = spread / math.sqrt(dim)
    for lane in range(lanes):
        for c in range(n_centres):
            fill_normals(centres[c], keys[lane], 1, round_, n_arms + c)
            _scale_to(centres[c], 1.0)
        for k in range(n_arms):
            fill_normals(arms[lane, k], keys[lane], 1, round_, k)
            for i in range(dim):
                arms[lane, k, i] = centres[k % n_centres, i] + step * arms[lane, k, i]
            _scale_to(arms[lane, k], norm)


@entry
def draw_axes(arms: FloatArray, keys: Keys, round_: int, norm: float) -> None:
    """Fill arms (lanes, n_arms, dim) with norm * e_i for distinct axes i in random order; n_arms at most dim."""
    lanes, n_arms, dim = arms.shape
    order = np.empty(dim, dtype=np.int64)
    for lane in range(lanes):
        for i in range(dim):
            order[i] = i
        for k in range(n_arms):
            word, _w1, _w2, _w3 = philox(keys[lane], 1, round_, k)
            chosen = k + int(to_unit(word) * (dim - k))
            order[k], order[chosen] = order[chosen], order[k]
            for i in range(dim):
                arms[lane, k, i] = 0.0
            arms[lane, k, order[k]] = norm


_ONE = np.uint64(1)


@entry
def draw_corners(arms: FloatArray, keys: Keys, round_: int, scale: float) -> None:
    """Fill arms (lanes, n_arms, dim) with distinct uniform corners of {-scale, scale}^dim, drawn again where they repeat."""
    lanes, n_arms, dim = arms.shape
    for lane in range(lanes):
        block = first_block()
        for k in range(n_arms):
            repeated = True
            while repeated:
                for i in range(dim):
                    if i % 64 == 0:
                        word, _w1, _w2, _w3 = philox(keys[lane], block, round_, only_substream())
                        block += 1
                    arms[lane, k, i] = scale if (word >> np.uint64(i % 64)) & _ONE else -scale
                repeated = False
                for other in range(k):
                    same = True
                    for i in range(dim):
                        if arms[lane, other, i] != arms[lane, k, i]:
                            same = False
                            break
                    if same:
                        repeated = True
                        break
