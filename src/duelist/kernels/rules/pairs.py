"""Compiled parts that the confidence-bound policies share: fits, pair widths, and picking a pair without favouring rows.

`pair_geometry` and `best_pairs` are for rules that are written in NumPy: the first says what the arms look like, the second
picks a pair from scores. `maxinp_lanes`, `max_pair_lanes` and `colstim_lanes` are whole rules, fused into one pass.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.kernels.actions import TIE, best_from, favoured_partner, order_pair, pick_arm, pick_pair, tie_floor, utilities_into
from duelist.kernels.compile import entry, inner, maker
from duelist.kernels.linalg.factors import cholesky_into, extend_whitener, invert_lower
from duelist.kernels.linalg.vectors import dot
from duelist.kernels.logistic import LaneCounts, fit_lane, follow_lane, lose_chance
from duelist.typing import BoolArray, FloatArray, IntArray

TOLERANCE = 1e-10  # of the Newton decrement: far below what moves a choice
MAX_ITERATIONS = 50
# A fit that follows the last one takes one step more than its tolerance asks for: theta is right to 1e-6 and better.
_FOLLOW_TOLERANCE = 1e-12
_ARMS_AT_A_TIME = 1024  # their features fit the processor's cache
_FOLLOW_STEPS = 48  # a new curvature costs dim times as much as a step, and more


class Candidates(NamedTuple):
    """The arms of a round.

    Attributes:
        columns: (lanes, dim, n_arms) features, arms last.
        priority: (lanes, n_arms) random numbers that break ties by an arm's content and not by its row.
    """

    columns: FloatArray
    priority: FloatArray


class Bounds(NamedTuple):
    """Estimate and confidence of every lane; a layered policy has an axis of layers after that of lanes.

    Attributes:
        theta: (lanes, dim) the estimate.
        whitener: (lanes, dim, dim) inverse Cholesky factor of the matrix behind the widths.
        radius: (lanes,) confidence radius; of a layered policy (lanes, layers).
    """

    theta: FloatArray
    whitener: FloatArray
    radius: FloatArray


class Fit(NamedTuple):
    """What a fit changes: theta (lanes, ..., dim), whitener and gram (lanes, ..., dim, dim), unconverged (lanes,)."""

    theta: FloatArray
    whitener: FloatArray
    gram: FloatArray
    unconverged: FloatArray


class Ridges(NamedTuple):
    """What keeps things finite, (lanes,) each: the ridge of the fit, and that of the matrix behind the widths."""

    fit: FloatArray
    widths: FloatArray


class DuelCounts(NamedTuple):
    """What a fit reads, per group of duels (a lane, or a layer of a lane).

    Attributes:
        contrasts: (groups, dim, capacity) distinct contrasts.
        totals: (groups, capacity) how often each was shown.
        losses: (groups, capacity) how often its first arm lost.
        n_rows: (groups,) contrasts in use.
    """

    contrasts: FloatArray
    totals: FloatArray
    losses: FloatArray
    n_rows: IntArray


@maker
def follow_fit(theta: FloatArray, shape: FloatArray, z: FloatArray, rows: LaneCounts, ridge: float) -> bool:
    """Fit after one more duel, of contrast z (dim,), by steps with the curvature of before; False if that is too old.

    shape (dim, dim), the inverse Cholesky factor of the curvature, takes in the contrast; the others keep their weights.
    """
    dim = theta.shape[0]
    if not follow_lane(theta, shape, z, rows, ridge, _FOLLOW_TOLERANCE, _FOLLOW_STEPS):
        return False
    scaled, white, total = np.empty(dim), np.empty(dim), np.empty(dim)
    lose = lose_chance(dot(theta, z, dim))
    root = math.sqrt(lose * (1.0 - lose))
    for i in range(dim):
        scaled[i] = root * z[i]
    extend_whitener(shape, scaled, white, total)
    return True


@entry
def follow_lanes(fit: Fit, shape: FloatArray, contrast: FloatArray, counts: DuelCounts, ridges: Ridges) -> None:
    """`refit_lanes` with global widths, for large dimensions: dim^2 operations per contrast, beside gradients of the fit.

    shape (lanes, dim, dim) is the inverse Cholesky factor of the fit's curvature at some theta of before, extended by every
    contrast since. Where it has become too old to follow the fit, all is worked out anew.
    """
    lanes, dim = fit.theta.shape
    hessian, factor = np.empty((dim, dim)), np.empty((dim, dim))
    white, total = np.empty(dim), np.empty(dim)
    for lane in range(lanes):
        z, theta = contrast[lane], fit.theta[lane]
        if dot(z, z, dim) == 0.0:
            continue
        for i in range(dim):
            for j in range(dim):
                fit.gram[lane, i, j] += z[i] * z[j]
        n = counts.n_rows[lane]
        rows = LaneCounts(counts.contrasts[lane], counts.totals[lane, :n], counts.losses[lane, :n], 1.0)
        if follow_fit(theta, shape[lane], z, rows, ridges.fit[lane]):
            extend_whitener(fit.whitener[lane], z, white, total)
            continue
        if fit_lane(theta, hessian, rows, ridges.fit[lane], TOLERANCE, MAX_ITERATIONS) < 0:
            fit.unconverged[lane] += 1.0
        if cholesky_into(factor, hessian):
            invert_lower(shape[lane], factor)
        if cholesky_into(factor, fit.gram[lane]):
            invert_lower(fit.whitener[lane], factor)


@entry
def extend_widths(fit: Fit, contrast: FloatArray) -> None:
    """Take one contrast per lane into M and its whitener, in dim^2 operations."""
    lanes, dim = contrast.shape
    white, total = np.empty(dim), np.empty(dim)
    for lane in range(lanes):
        z = contrast[lane]
        for i in range(dim):
            for j in range(dim):
                fit.gram[lane, i, j] += z[i] * z[j]
        extend_whitener(fit.whitener[lane], z, white, total)


@entry
def refit_lanes(fit: Fit, contrast: FloatArray, counts: DuelCounts, ridges: Ridges, local: bool) -> None:
    """Take in one contrast per lane: M += z z^T, fit theta again from where it was, whiten M (or the local curvature).

    An arm against itself (z = 0) says nothing: everything stays as it is.
    """
    lanes, dim = fit.theta.shape
    hessian, factor, weight = np.empty((dim, dim)), np.empty((dim, dim)), 1.0
    for lane in range(lanes):
        z = contrast[lane]
        size = 0.0
        for i in range(dim):
            size += abs(z[i])
        if size == 0.0:
            continue
        for i in range(dim):
            for j in range(dim):
                fit.gram[lane, i, j] += z[i] * z[j]
        n = counts.n_rows[lane]
        rows = LaneCounts(counts.contrasts[lane], counts.totals[lane, :n], counts.losses[lane, :n], weight)
        iterations = fit_lane(fit.theta[lane], hessian, rows, ridges.fit[lane], TOLERANCE, MAX_ITERATIONS)
        if iterations < 0:
            fit.unconverged[lane] += 1.0
        for i in range(dim):
            # The curvature has the ridge of the fit on its diagonal; the widths have their own.
            hessian[i, i] += ridges.widths[lane] - ridges.fit[lane]
        if cholesky_into(factor, hessian if local else fit.gram[lane]):
            invert_lower(fit.whitener[lane], factor)


@inner
def whiten_arms(whitened: FloatArray, columns: FloatArray, whitener: FloatArray) -> None:
    """Fill whitened (dim, n_arms) with whitener @ columns, so that |w_i - w_j| is the width of the pair (i, j)."""
    dim, n_arms = columns.shape
    for begin in range(0, n_arms, _ARMS_AT_A_TIME):
        end = min(begin + _ARMS_AT_A_TIME, n_arms)
        for i in range(dim):
            out, first = whitened[i, begin:end], columns[0, begin:end]
            for k in range(out.shape[0]):
                out[k] = whitener[i, 0] * first[k]
            for j in range(1, i + 1):
                row = columns[j, begin:end]
                for k in range(out.shape[0]):
                    out[k] += whitener[i, j] * row[k]


@inner
def widths_from(out: FloatArray, whitened: FloatArray, arm: int) -> None:
    """Fill out (n_arms,) with the width of the pair (arm, k) for every k."""
    dim, n_arms = whitened.shape
    for k in range(n_arms):
        out[k] = 0.0
    for i in range(dim):
        centre = whitened[i, arm]
        for k in range(n_arms):
            difference = whitened[i, k] - centre
            out[k] += difference * difference
    for k in range(n_arms):
        out[k] = math.sqrt(out[k])


@inner
def challenger(
    scores: FloatArray,
    leader: int,
    utilities: FloatArray,
    whitened: FloatArray,
    radius: float,
    priority: FloatArray,
    different: bool,
) -> int:
    """The arm with the largest <theta, x_k - x_leader> + radius |x_k - x_leader|; the leader itself only if not `different`."""
    widths_from(scores, whitened, leader)
    for k in range(scores.shape[0]):
        scores[k] = utilities[k] - utilities[leader] + radius * scores[k]
    if different:
        scores[leader] = -math.inf
    return pick_arm(scores, priority)


@inner
def measure_arms(
    utilities: FloatArray, whitened: FloatArray, columns: FloatArray, theta: FloatArray, whitener: FloatArray
) -> None:
    """Fill the utilities (n_arms,) and the whitened features (dim, n_arms) of one lane's arms, columns (dim, n_arms)."""
    utilities_into(utilities, columns, theta)
    whiten_arms(whitened, columns, whitener)


@entry
def _pair_geometry(
    utilities: FloatArray, widths: FloatArray, columns: FloatArray, theta: FloatArray, whitener: FloatArray
) -> None:
    lanes, dim, n_arms = columns.shape
    whitened = np.empty((dim, n_arms))
    for lane in range(lanes):
        measure_arms(utilities[lane], whitened, columns[lane], theta[lane], whitener[lane])
        for i in range(n_arms):
            widths_from(widths[lane, i], whitened, i)


def pair_geometry(columns: FloatArray, theta: FloatArray, whitener: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What a rule for pairs needs to know about the arms.

    Args:
        columns: (lanes, dim, n_arms) features, arms last: `FiniteActions.columns`.
        theta: (lanes, dim) the estimate.
        whitener: (lanes, dim, dim) inverse of the lower Cholesky factor of the matrix M behind the widths.

    Returns:
        Utilities (lanes, n_arms), and widths (lanes, n_arms, n_arms): |x_i - x_j| in the norm of M^-1.
    """
    lanes, _, n_arms = columns.shape
    utilities, widths = np.empty((lanes, n_arms)), np.empty((lanes, n_arms, n_arms))
    _pair_geometry(utilities, widths, columns, theta, whitener)
    return utilities, widths


@entry
def _best_pairs(first: IntArray, second: IntArray, scores: FloatArray, utilities: FloatArray, priority: FloatArray) -> None:
    for lane in range(first.shape[0]):
        first[lane], second[lane] = pick_pair(scores[lane], utilities[lane], priority[lane])


def best_pairs(scores: FloatArray, utilities: FloatArray, priority: FloatArray) -> tuple[IntArray, IntArray]:
    """The pair with the largest score in every lane, without favouring rows.

    Args:
        scores: (lanes, n_arms, n_arms), symmetric; -inf for a pair that must not play. A lane needs one pair that may.
        utilities: (lanes, n_arms); the arm of the higher utility comes first.
        priority: (lanes, n_arms) breaks ties: `FiniteActions.random_priority`.

    Returns:
        Rows of the first and of the second arm, each (lanes,).
    """
    first, second = np.empty(len(scores), dtype=np.int64), np.empty(len(scores), dtype=np.int64)
    _best_pairs(first, second, scores, utilities, priority)
    return first, second


@inner
def may_be_best(row: FloatArray, i: int, utilities: FloatArray, radius: float) -> bool:
    """Whether no arm is surely better than i, given the widths row (n_arms,) of its pairs."""
    promising = True
    for j in range(row.shape[0]):
        # The arm with the highest estimate passes with equality against itself; the slack is for rounding.
        if utilities[i] - utilities[j] + radius * row[j] < -TIE * (1.0 + abs(utilities[j])):
            promising = False
            break
    return promising


@inner
def leave_out(row: FloatArray, i: int, kept: BoolArray, different: bool) -> None:
    """Set row[j] to -inf for the pairs (i, j >= i) that must not play."""
    for j in range(i, row.shape[0]):
        if not (kept[i] and kept[j]) or (different and i == j):
            row[j] = -math.inf


@entry
def maxinp_lanes(first: IntArray, second: IntArray, candidates: Candidates, bounds: Bounds, different: bool) -> None:
    """Fill the most informative promising pair of every lane.

    Widths are worked out row by row and not kept: those of all pairs of 50,000 arms would be 20 GB.
    """
    lanes, dim, n_arms = candidates.columns.shape
    whitened, utilities, row = np.empty((dim, n_arms)), np.empty(n_arms), np.empty(n_arms)
    tops, kept = np.empty(n_arms), np.empty(n_arms, dtype=np.bool_)
    for lane in range(lanes):
        priority, radius = candidates.priority[lane], bounds.radius[lane]
        measure_arms(utilities, whitened, candidates.columns[lane], bounds.theta[lane], bounds.whitener[lane])
        n_kept, best = 0, -math.inf
        # Backwards: a pair (i, j >= i) is scored when row i is at hand, and by then it is known whether j is kept.
        for i in range(n_arms - 1, -1, -1):
            widths_from(row, whitened, i)
            kept[i] = may_be_best(row, i, utilities, radius)
            n_kept += kept[i]
            leave_out(row, i, kept, different)
            tops[i] = best_from(row, i)
            best = max(best, tops[i])
        if n_kept == 1 and different:
            # One promising arm is left and it must meet another: the strongest optimistic challenger.
            for i in range(n_arms):
                if kept[i]:
                    first[lane] = i
            second[lane] = challenger(row, first[lane], utilities, whitened, radius, priority, different)
            continue
        floor = tie_floor(best)
        one, other, highest = -1, -1, -math.inf
        for i in range(n_arms):
            if tops[i] >= floor:
                widths_from(row, whitened, i)
                leave_out(row, i, kept, different)
                partner, highest = favoured_partner(row, i, floor, priority, highest)
                if partner >= 0:
                    one, other = i, partner
        first[lane], second[lane] = order_pair(one, other, utilities, priority)


@entry
def colstim_lanes(
    first: IntArray, second: IntArray, candidates: Candidates, bounds: Bounds, noise: FloatArray, different: bool
) -> None:
    """Fill the perturbed leader and its challenger, given noise (lanes, n_arms)."""
    lanes, dim, n_arms = candidates.columns.shape
    whitened, utilities, scores = np.empty((dim, n_arms)), np.empty(n_arms), np.empty(n_arms)
    for lane in range(lanes):
        priority, radius = candidates.priority[lane], bounds.radius[lane]
        measure_arms(utilities, whitened, candidates.columns[lane], bounds.theta[lane], bounds.whitener[lane])
        for k in range(n_arms):
            scores[k] = 0.0
        for i in range(dim):
            for k in range(n_arms):
                scores[k] += whitened[i, k] * whitened[i, k]
        for k in range(n_arms):
            scores[k] = utilities[k] + noise[lane, k] * math.sqrt(scores[k])
        first[lane] = pick_arm(scores, priority)
        second[lane] = challenger(scores, first[lane], utilities, whitened, radius, priority, different)


@inner
def optimistic_row(
    row: FloatArray, i: int, utilities: FloatArray, whitened: FloatArray, radius: float, different: bool
) -> None:
    """Fill row (n_arms,) with the optimistic sums of the pairs (i, j)."""
    widths_from(row, whitened, i)
    for j in range(row.shape[0]):
        row[j] = utilities[i] + utilities[j] + radius * row[j]
    if different:
        row[i] = -math.inf


@entry
def max_pair_lanes(first: IntArray, second: IntArray, candidates: Candidates, bounds: Bounds, different: bool) -> None:
    """Fill the best pair of every lane. Scores are worked out row by row and not kept."""
    lanes, dim, n_arms = candidates.columns.shape
    whitened, utilities = np.empty((dim, n_arms)), np.empty(n_arms)
    row, tops = np.empty(n_arms), np.empty(n_arms)
    for lane in range(lanes):
        priority, radius = candidates.priority[lane], bounds.radius[lane]
        measure_arms(utilities, whitened, candidates.columns[lane], bounds.theta[lane], bounds.whitener[lane])
        best = -math.inf
        for i in range(n_arms):
            optimistic_row(row, i, utilities, whitened, radius, different)
            tops[i] = best_from(row, i)
            best = max(best, tops[i])
        floor = tie_floor(best)
        one, other, highest = -1, -1, -math.inf
        for i in range(n_arms):
            if tops[i] >= floor:
                optimistic_row(row, i, utilities, whitened, radius, different)
                partner, highest = favoured_partner(row, i, floor, priority, highest)
                if partner >= 0:
                    one, other = i, partner
        first[lane], second[lane] = order_pair(one, other, utilities, priority)


_STEPS = 200
_TOLERANCE = 1e-9  # an ascent that gains less than this, relative to the width, has arrived
_ROOT_STEPS = 60  # halvings: the root to sixteen digits of its bracket


@maker
def project_on_cone(out: FloatArray, vector: FloatArray, axes: FloatArray, bends: FloatArray) -> None:
    """The projection of `vector` on the cone { x : x^T W x <= 0, x_1 >= 0 }, W = axes diag(bends) axes^T with bends[0] < 0.

    `vector` must have a positive component along axes[:, 0]. With coordinates g in the eigenbasis the projection is
    g_i / (1 + s bends_i), at the s in [0, -1/bends_0) where it lies on the surface of the cone; there the sum below decreases.
    """
    dim = vector.shape[0]
    g = np.empty(dim)
    for k in range(dim):
        g[k] = 0.0
        for i in range(dim):
            g[k] += axes[i, k] * vector[i]
    low, high = 0.0, -1.0 / bends[0]
    surface = 0.0
    for k in range(dim):
        surface += bends[k] * g[k] * g[k]
    if surface > 0.0:
        for _ in range(_ROOT_STEPS):
            middle = 0.5 * (low + high)
            if middle in (low, high):
                break
            surface = 0.0
            for k in range(dim):
                entry = g[k] / (1.0 + middle * bends[k])
                surface += bends[k] * entry * entry
            if surface > 0.0:
                low = middle
            else:
                high = middle
        # The upper end is where the point is inside the cone; at -1/bends_0 itself it would be at infinity.
        scale = min(high, -(1.0 - 1e-15) / bends[0])
        for k in range(dim):
            g[k] /= 1.0 + scale * bends[k]
    for i in range(dim):
        out[i] = 0.0
        for k in range(dim):
            out[i] += axes[i, k] * g[k]


@maker
def _farther(
    out: FloatArray, point: FloatArray, pull: FloatArray, axes: FloatArray, bends: FloatArray, radius: float, work: FloatArray
) -> None:
    """The point of the cap that maximises <pull + c point, .>, with the smallest c >= 0 that makes this a projection."""
    dim = point.shape[0]
    along, inner, height, lift = 0.0, 0.0, 0.0, 0.0
    for i in range(dim):
        inner += pull[i] * point[i]
        height += axes[i, 0] * point[i]
        lift += axes[i, 0] * pull[i]
        along += pull[i] * pull[i]
    # A tenth of |pull| / R on top keeps both inner products well above 0.
    slack = 0.1 * math.sqrt(along) / radius
    c = max(0.0, slack - inner / (radius * radius), slack - lift / height)
    for i in range(dim):
        work[i] = pull[i] + c * point[i]
    project_on_cone(out, work, axes, bends)
    length = 0.0
    for i in range(dim):
        length += out[i] * out[i]
    length = math.sqrt(length)
    for i in range(dim):
        out[i] *= radius / length


@entry
def widest_in_cap(
    pair: FloatArray, inverse: FloatArray, axes: FloatArray, bends: FloatArray, radius: float, work: FloatArray
) -> float:
    """Ascend from the pair (2, dim) in place and return its squared width. `work` is (4, dim)."""
    dim = pair.shape[1]
    width = -1.0
    for _ in range(_STEPS):
        now = 0.0
        for i in range(dim):
            work[0, i] = 0.0
            for j in range(dim):
                work[0, i] += inverse[i, j] * (pair[0, j] - pair[1, j])
            now += work[0, i] * (pair[0, i] - pair[1, i])
            work[1, i] = -work[0, i]
        if now <= width * (1.0 + _TOLERANCE):
            break
        width = now
        _farther(work[2], pair[0], work[0], axes, bends, radius, work[3])
        _farther(pair[1], pair[1].copy(), work[1], axes, bends, radius, work[3])
        pair[0] = work[2]
    return width
