"""Compiled rule of EUBO: the pair with the highest expected maximum of two normal utilities."""

from __future__ import annotations

import math

import numpy as np

from duelist.kernels.actions import best_from, favoured_partner, order_pair, tie_floor
from duelist.kernels.compile import entry, inner
from duelist.kernels.rules.pairs import Bounds, Candidates, measure_arms, widths_from
from duelist.typing import FloatArray, IntArray

_AT_ZERO = 1.0 / math.sqrt(2.0 * math.pi)  # of phi(t) - t Phi(-t), which falls in t


@inner
def expected_best_row(
    row: FloatArray, i: int, utilities: FloatArray, whitened: FloatArray, floor: float, different: bool
) -> None:
    """Fill row (n_arms,) with E max(u_i, u_j) of the pairs (i, j); below the floor an upper bound is enough."""
    widths_from(row, whitened, i)
    for j in range(row.shape[0]):
        s, top = row[j], max(utilities[i], utilities[j])
        row[j] = top + _AT_ZERO * s
        if s > 0.0 and row[j] >= floor:
            t = abs(utilities[i] - utilities[j]) / s
            row[j] = top + s * max(0.0, _AT_ZERO * math.exp(-0.5 * t * t) - 0.5 * t * math.erfc(t * math.sqrt(0.5)))
    if different:
        row[i] = -math.inf


@entry
def expected_best_lanes(first: IntArray, second: IntArray, candidates: Candidates, bounds: Bounds, different: bool) -> None:
    """Fill the pair with the highest expected best of every lane. Scores are worked out row by row and not kept."""
    lanes, dim, n_arms = candidates.columns.shape
    whitened, utilities = np.empty((dim, n_arms)), np.empty(n_arms)
    row, tops = np.empty(n_arms), np.empty(n_arms)
    for lane in range(lanes):
        priority = candidates.priority[lane]
        measure_arms(utilities, whitened, candidates.columns[lane], bounds.theta[lane], bounds.whitener[lane])
        leader = 0
        for k in range(n_arms):
            if utilities[k] > utilities[leader]:
                leader = k
        # The best pair of the arm with the highest mean is a high floor, so that few of the others are worked out.
        expected_best_row(row, leader, utilities, whitened, -math.inf, different)
        best = best_from(row, 0)
        for i in range(n_arms):
            expected_best_row(row, i, utilities, whitened, tie_floor(best), different)
            tops[i] = best_from(row, i)
            best = max(best, tops[i])
        floor = tie_floor(best)
        one, other, highest = -1, -1, -math.inf
        for i in range(n_arms):
            if tops[i] >= floor:
                expected_best_row(row, i, utilities, whitened, floor, different)
                partner, highest = favoured_partner(row, i, floor, priority, highest)
                if partner >= 0:
                    one, other = i, partner
        first[lane], second[lane] = order_pair(one, other, utilities, priority)
