"""Compiled value of information: what playing a pair is worth over the rounds that are left.

With posterior mean utilities u (n,), curvature H and a pair z = x_i - x_j, playing it m more times would move all means along

    b = X H^-1 z * sqrt(m w / (1 + m w v)),   w = s'(u_i - u_j),   v = z^T H^-1 z,

so that the best arm afterwards is worth E max_k (u_k + b_k Z), Z standard normal: an integral over the upper envelope of n
lines, exact in closed form. Over a mixture of posteriors (`duelist.policies.prior_scale`) gains are averaged.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.core.action_kernels import utilities_into
from duelist.core.checks import FloatArray, IntArray
from duelist.core.compiled import kernel, part
from duelist.policies.ucb_kernels import TIE, pick_arm, whiten_arms

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
    mean: FloatArray,
    utilities: FloatArray,
    whitened: FloatArray,
    weights: FloatArray,
    priority: FloatArray,
    leader: int,
    reach: float,
    most: int,
) -> int:
    """Fill `chosen` with the arms that may be best, the leader first, most promising first; returns how many.

    An arm may be best if its mean (n_arms,) comes within `reach` posterior deviations of the leader's, the deviation being that
    of the mixture with utilities (ridges, n_arms) and whitened arms (ridges, dim, n_arms); at most `most` are kept.
    """
    n_ridges, dim, n_arms = whitened.shape
    for k in range(n_arms):
        gap, variance = mean[leader] - mean[k], 0.0
        for g in range(n_ridges):
            if weights[g] > 0.0:
                squared = (utilities[g, leader] - utilities[g, k] - gap) ** 2
                for i in range(dim):
                    difference = whitened[g, i, k] - whitened[g, i, leader]
                    squared += difference * difference
                variance += weights[g] * squared
        # Standardised distance to the leader: 0 for the leader itself, small for promising arms.
        # Equal ones go by priority, not by row.
        scores[k] = gap / math.sqrt(variance) + TIE * priority[k] if variance > 0.0 else math.inf
    scores[leader] = -1.0
    sort_into(order, scores, n_arms)
    n = 0
    for position in range(min(most, n_arms)):
        if scores[order[position]] <= reach:
            chosen[n] = order[position]
            n += 1
    return n


@part
def average_utilities(
    mean: FloatArray,
    utilities: FloatArray,
    whitened: FloatArray,
    columns: FloatArray,
    theta: FloatArray,
    whitener: FloatArray,
    weights: FloatArray,
) -> None:
    """Fill utilities (ridges, n_arms) and whitened (ridges, dim, n_arms) of the ridges that count, and their mean (n_arms,)."""
    mean[:] = 0.0
    for g in range(weights.shape[0]):
        if weights[g] > 0.0:
            utilities_into(utilities[g], columns, theta[g])
            whiten_arms(whitened[g], columns, whitener[g])
            for k in range(mean.shape[0]):
                mean[k] += weights[g] * utilities[g, k]


@part
def covariances_into(covariance: FloatArray, whitened: FloatArray, weights: FloatArray, chosen: IntArray, n: int) -> None:
    """Fill covariance (ridges, n, n) of the chosen arms' utilities under every ridge that counts."""
    for g in range(weights.shape[0]):
        if weights[g] > 0.0:
            for k in range(n):
                for j in range(k + 1):
                    inner = 0.0
                    for i in range(whitened.shape[1]):
                        inner += whitened[g, i, chosen[k]] * whitened[g, i, chosen[j]]
                    covariance[g, k, j], covariance[g, j, k] = inner, inner


@part
def gains_into(
    gains: FloatArray,
    batches: FloatArray,
    heights: FloatArray,
    covariance: FloatArray,
    weights: FloatArray,
    i: int,
    j: int,
    n: int,
    slopes: FloatArray,
    order: IntArray,
    stack: IntArray,
    cuts: FloatArray,
) -> None:
    """Fill gains (batches,) with what each number of plays of the pair (i, j) adds to the best mean, averaged over ridges."""
    gains[:] = 0.0
    for g in range(weights.shape[0]):
        if weights[g] > 0.0:
            for k in range(n):
                slopes[k] = covariance[g, k, i] - covariance[g, k, j]
            sort_into(order, slopes, n)
            spread = slopes[i] - slopes[j]
            e = math.exp(-abs(heights[g, i] - heights[g, j]))
            information = e / ((1.0 + e) * (1.0 + e))
            for b in range(batches.shape[0]):
                plays = batches[b] * information
                scale = math.sqrt(plays / (1.0 + plays * spread))
                gains[b] += weights[g] * envelope_gain(heights[g], slopes, order, n, scale, stack, cuts)


class Elsewhere(NamedTuple):
    """Working memory for the gain on other arms."""

    utilities: FloatArray  # (ridges, m)
    whitened: FloatArray  # (ridges, dim, m)
    mean: FloatArray  # (m,)
    slopes: FloatArray  # (m,)
    order: IntArray  # (m,)
    stack: IntArray  # (m,)
    cuts: FloatArray  # (m,)


@part
def room_for(n_ridges: int, dim: int, m: int) -> Elsewhere:
    """Working memory for m other arms."""
    return Elsewhere(
        np.empty((n_ridges, m)),
        np.empty((n_ridges, dim, m)),
        np.empty(m),
        np.empty(m),
        np.empty(m, np.int64),
        np.empty(m, np.int64),
        np.empty(m),
    )


@part
def gain_elsewhere(
    before: FloatArray,
    theta: FloatArray,
    whitener: FloatArray,
    weights: FloatArray,
    utilities: FloatArray,
    whitened: FloatArray,
    one: int,
    other: int,
    plays: float,
    room: Elsewhere,
) -> float:
    """What so many plays of a pair add to the best mean of other arms, `before` (dim, m), averaged over ridges.

    utilities (ridges, n_arms) and whitened (ridges, dim, n_arms) are those of the pair's own set.
    """
    average_utilities(room.mean, room.utilities, room.whitened, before, theta, whitener, weights)
    dim, m = before.shape
    total = 0.0
    for g in range(weights.shape[0]):
        if weights[g] > 0.0:
            spread = 0.0
            room.slopes[:] = 0.0
            for i in range(dim):
                difference = whitened[g, i, one] - whitened[g, i, other]
                spread += difference * difference
                for k in range(m):
                    room.slopes[k] += room.whitened[g, i, k] * difference
            sort_into(room.order, room.slopes, m)
            e = math.exp(-abs(utilities[g, one] - utilities[g, other]))
            informative = plays * e / ((1.0 + e) * (1.0 + e))
            scale = math.sqrt(informative / (1.0 + informative * spread))
            total += weights[g] * envelope_gain(room.utilities[g], room.slopes, room.order, m, scale, room.stack, room.cuts)
    return total


@kernel
def foresight_lanes(
    first: IntArray,
    second: IntArray,
    settled: IntArray,
    columns: FloatArray,
    priority: FloatArray,
    before: FloatArray,
    gained: FloatArray,
    theta: FloatArray,
    whitener: FloatArray,
    weights: FloatArray,
    remaining: float,
    optimism: FloatArray,
    reach: float,
    most: int,
    batches: FloatArray,
    different: bool,
) -> None:
    """Fill the pair of the highest net value a round, or the leader against itself where none is worth its cost.

    settled (lanes,) holds the leader of a lane that need not be looked at again, or -1; it is set where nothing was worth its
    cost. batches are numbers of plays, all below `remaining`. gained (lanes, 3) is filled with the gain a play of the pair, on
    these arms and on others, `before` (lanes, dim, m), and 1; with zeros for a leader against itself, or if m is 0.
    """
    lanes, dim, n_arms = columns.shape
    n_ridges, room = theta.shape[1], min(most, n_arms)
    whitened, utilities, mean = np.empty((n_ridges, dim, n_arms)), np.empty((n_ridges, n_arms)), np.empty(n_arms)
    scores, order, chosen = np.empty(n_arms), np.empty(n_arms, np.int64), np.empty(n_arms, np.int64)
    covariance, heights = np.empty((n_ridges, room, room)), np.empty((n_ridges, room))
    gains, slopes, by_slope = np.empty(batches.shape[0]), np.empty(room), np.empty(room, np.int64)
    stack, cuts = np.empty(room, np.int64), np.empty(room)
    elsewhere = room_for(n_ridges, dim, before.shape[2])
    gained[:] = 0.0
    for lane in range(lanes):
        if settled[lane] >= 0:
            first[lane], second[lane] = settled[lane], settled[lane]
            continue
        mixture = weights[lane]
        average_utilities(mean, utilities, whitened, columns[lane], theta[lane], whitener[lane], mixture)
        leader = pick_arm(mean, priority[lane])
        n = gather_candidates(chosen, scores, order, mean, utilities, whitened, mixture, priority[lane], leader, reach, most)
        covariances_into(covariance, whitened, mixture, chosen, n)
        for k in range(n):
            heights[:, k] = utilities[:, chosen[k]]
        best, best_priority, one, other = 0.0, -1.0, leader, leader
        best_gain, best_plays = 0.0, 1.0
        for i in range(n):
            for j in range(i):
                gains_into(gains, batches, heights, covariance, mixture, i, j, n, slopes, by_slope, stack, cuts)
                cost = mean[leader] - 0.5 * (mean[chosen[i]] + mean[chosen[j]])
                worth, gain, plays = -math.inf, 0.0, 1.0
                for b in range(batches.shape[0]):
                    value = optimism[lane] * gains[b] * (remaining - batches[b]) / batches[b] - cost
                    if value > worth:
                        worth, gain, plays = value, gains[b], batches[b]
                tie_break = priority[lane, chosen[i]] + priority[lane, chosen[j]]
                slack = TIE * (1.0 + abs(best))
                if worth > best + slack or (worth > best - slack and worth > 0.0 and tie_break > best_priority):
                    best, best_priority, one, other = worth, tie_break, chosen[i], chosen[j]
                    best_gain, best_plays = gain, plays
        settled[lane] = leader if one == other else -1
        if before.shape[2] > 0 and one != other:
            gain = gain_elsewhere(
                before[lane], theta[lane], whitener[lane], mixture, utilities, whitened, one, other, best_plays, elsewhere
            )
            gained[lane, 0], gained[lane, 1], gained[lane, 2] = best_gain / best_plays, gain / best_plays, 1.0
        if different and one == other:
            other = order[1]  # the most promising challenger; the leader comes first
        gap = mean[other] - mean[one]
        if gap > TIE or (gap > -TIE and priority[lane, other] > priority[lane, one]):
            one, other = other, one
        first[lane], second[lane] = one, other
