"""Compiled value of information: what playing a pair is worth over the rounds that are left.

With posterior mean utilities u (n,), curvature H and a pair z = x_i - x_j, playing it m more times would move all means along

    b = X H^-1 z * sqrt(m w / (1 + m w v)),   w = s'(u_i - u_j),   v = z^T H^-1 z,

so that the best arm afterwards is worth E max_k (u_k + b_k Z), Z standard normal: an integral over the upper envelope of n
lines, exact in closed form.
"""

from __future__ import annotations

import math

import numpy as np

from duelist.core.action_kernels import utilities_into
from duelist.core.checks import FloatArray, IntArray
from duelist.core.compiled import kernel, part
from duelist.policies.ucb_kernels import TIE, challenger, pick_arm, whiten_arms

_PHI_0 = 1.0 / math.sqrt(2.0 * math.pi)
_ROOT_HALF = math.sqrt(0.5)


@part
def expected_excess(x: float) -> float:
    """E max(0, Z - x) of a standard normal Z, phi(x) - x Q(x)."""
    return _PHI_0 * math.exp(-0.5 * x * x) - 0.5 * x * math.erfc(x * _ROOT_HALF)


@part
def sort_into(order: IntArray, values: FloatArray, n: int) -> None:
    """Fill order (n,) so that values[order] ascends; insertion, for a few dozen."""
    for k in range(n):
        place = k
        while place > 0 and values[order[place - 1]] > values[k]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = k


@part
def envelope_gain(
    heights: FloatArray, slopes: FloatArray, order: IntArray, n: int, scale: float, stack: IntArray, cuts: FloatArray
) -> float:
    """E max_k (heights_k + scale slopes_k Z) - max_k heights_k, with `order` sorting the slopes.

    The upper envelope is built from left to right; each corner at z contributes its change of slope times E max(0, Z - |z|).
    """
    top = 0
    for position in range(n):
        k = order[position]
        cut = -math.inf
        while top > 0:
            last = stack[top - 1]
            rise = scale * (slopes[k] - slopes[last])
            if rise > 0.0:
                cut = (heights[last] - heights[k]) / rise
                if cut > cuts[top - 1]:
                    break
            elif heights[k] <= heights[last]:
                # A parallel line below adds nothing: mark it as never on top.
                cut = math.inf
                break
            top -= 1
            cut = -math.inf
        if cut < math.inf:
            stack[top] = k
            cuts[top] = cut
            top += 1
    gain = 0.0
    for corner in range(1, top):
        rise = scale * (slopes[stack[corner]] - slopes[stack[corner - 1]])
        gain += rise * expected_excess(abs(cuts[corner]))
    return gain


@part
def gather_candidates(
    chosen: IntArray,
    scores: FloatArray,
    order: IntArray,
    utilities: FloatArray,
    whitened: FloatArray,
    leader: int,
    reach: float,
    most: int,
) -> int:
    """Fill `chosen` with the arms that may be best, the leader among them, most promising first; returns how many.

    An arm may be best if its utility comes within `reach` posterior deviations of the leader's; at most `most` are kept.
    """
    dim, n_arms = whitened.shape
    for k in range(n_arms):
        squared = 0.0
        for i in range(dim):
            difference = whitened[i, k] - whitened[i, leader]
            squared += difference * difference
        # Standardised distance to the leader: 0 for the leader itself, small for promising arms.
        gap = utilities[leader] - utilities[k]
        scores[k] = gap / math.sqrt(squared) if squared > 0.0 else math.inf
    scores[leader] = -1.0
    sort_into(order, scores, n_arms)
    n = 0
    for position in range(min(most, n_arms)):
        if scores[order[position]] <= reach:
            chosen[n] = order[position]
            n += 1
    return n


@kernel
def foresight_lanes(
    first: IntArray,
    second: IntArray,
    explored: FloatArray,
    columns: FloatArray,
    priority: FloatArray,
    theta: FloatArray,
    whitener: FloatArray,
    remaining: float,
    optimism: FloatArray,
    reach: float,
    most: int,
    batches: FloatArray,
    different: bool,
) -> None:
    """Fill the pair of the highest net value a round, or the leader against itself where none is worth its cost."""
    lanes, dim, n_arms = columns.shape
    whitened, utilities, scores = np.empty((dim, n_arms)), np.empty(n_arms), np.empty(n_arms)
    chosen, order, stack = np.empty(n_arms, np.int64), np.empty(n_arms, np.int64), np.empty(n_arms, np.int64)
    heights, slopes, cuts = np.empty(n_arms), np.empty(n_arms), np.empty(n_arms)
    for lane in range(lanes):
        utilities_into(utilities, columns[lane], theta[lane])
        whiten_arms(whitened, columns[lane], whitener[lane])
        leader = pick_arm(utilities, priority[lane])
        n = gather_candidates(chosen, scores, order, utilities, whitened, leader, reach, most)
        for k in range(n):
            heights[k] = utilities[chosen[k]]
        best, best_priority, one, other = 0.0, -1.0, leader, leader
        for i in range(n):
            for j in range(i):
                for k in range(n):
                    slope = 0.0
                    for axis in range(dim):
                        slope += whitened[axis, chosen[k]] * (whitened[axis, chosen[i]] - whitened[axis, chosen[j]])
                    slopes[k] = slope
                sort_into(order, slopes, n)
                spread = slopes[i] - slopes[j]
                e = math.exp(-abs(heights[i] - heights[j]))
                information = e / ((1.0 + e) * (1.0 + e))
                cost = utilities[leader] - 0.5 * (heights[i] + heights[j])
                tie_break = priority[lane, chosen[i]] + priority[lane, chosen[j]]
                for m in batches:
                    if m >= remaining:
                        break
                    scale = math.sqrt(m * information / (1.0 + m * information * spread))
                    gain = envelope_gain(heights, slopes, order, n, scale, stack, cuts)
                    worth = optimism[lane] * gain * (remaining - m) / m - cost
                    slack = TIE * (1.0 + abs(best))
                    if worth > best + slack or (worth > best - slack and worth > 0.0 and tie_break > best_priority):
                        best, best_priority, one, other = worth, tie_break, chosen[i], chosen[j]
        explored[lane] += one != other
        if different and one == other:
            other = challenger(scores, leader, utilities, whitened, 1.0, priority[lane], True)
        gap = utilities[other] - utilities[one]
        if gap > TIE or (gap > -TIE and priority[lane, other] > priority[lane, one]):
            one, other = other, one
        first[lane], second[lane] = one, other
