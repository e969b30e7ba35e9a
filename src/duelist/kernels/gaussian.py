"""Gaussian approximations over all lanes: the mode and its curvature, draws, second-order expansions, one-pass updates."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.kernels.actions import first_maximum, utilities_into
from duelist.kernels.compile import entry, inner, maker
from duelist.kernels.linalg.factors import (
    cholesky_into,
    extend_whitener,
    invert_lower,
    lower_times,
    lower_transposed_times,
    solve_cholesky,
)
from duelist.kernels.linalg.vectors import dot
from duelist.kernels.logistic import (
    Likelihood,
    add_loss_gradient,
    add_loss_hessian,
    counts_of_lane,
    fit_lane,
    lose_chance,
    solve_logit,
)
from duelist.kernels.philox import RandomSource, fill_normals, first_block
from duelist.kernels.potential import LinearTerms, Tilt, add_feel_good, pull_into_ball, scratch_for
from duelist.typing import FloatArray, IntArray


@entry
def expand_lanes(slope: FloatArray, hessian: FloatArray, reference: FloatArray, likelihood: Likelihood) -> None:
    """Slope and Hessian of all contrasts at the reference, in place of what is there."""
    slope[:] = 0.0
    hessian[:] = 0.0
    capacity = likelihood.contrasts.shape[2]
    logits, scratch = np.empty(capacity), np.empty(capacity)
    for lane in range(reference.shape[0]):
        n = likelihood.n_rows[lane]
        if n > 0:
            counts = counts_of_lane(likelihood, lane)
            add_loss_gradient(slope[lane], reference[lane], counts, logits[:n], scratch[:n])
            add_loss_hessian(hessian[lane], reference[lane], counts, logits[:n], scratch[:n])


@inner
def _add_duels(
    slope: FloatArray,
    hessian: FloatArray,
    reference: FloatArray,
    lane: int,
    p: int,
    total: float,
    lost: float,
    likelihood: Likelihood,
) -> None:
    """Add `total` duels of contrast p, `lost` of them lost, to the slope (dim,) and Hessian (dim, dim) of a lane."""
    dim = reference.shape[0]
    u = 0.0
    for i in range(dim):
        u += likelihood.contrasts[lane, i, p] * reference[i]
    lose = lose_chance(u)
    slope_p = likelihood.eta[lane] * (lost - total * lose)
    curvature_p = likelihood.eta[lane] * total * lose * (1.0 - lose)
    for i in range(dim):
        z = likelihood.contrasts[lane, i, p]
        slope[i] += slope_p * z
        for j in range(dim):
            hessian[i, j] += curvature_p * z * likelihood.contrasts[lane, j, p]


@entry
def extend_lanes(
    slope: FloatArray, hessian: FloatArray, reference: FloatArray, likelihood: Likelihood, n_rows: IntArray
) -> None:
    """Add the contrasts from n_rows (lanes,) on, with all their duels."""
    for lane in range(reference.shape[0]):
        for p in range(n_rows[lane], likelihood.n_rows[lane]):
            total, lost = likelihood.totals[lane, p], likelihood.losses[lane, p]
            _add_duels(slope[lane], hessian[lane], reference[lane], lane, p, total, lost, likelihood)


@entry
def extend_by_newest(
    slope: FloatArray, hessian: FloatArray, reference: FloatArray, likelihood: Likelihood, rows: IntArray, lost: FloatArray
) -> None:
    """Add one duel per lane, of contrast rows (lanes,); none where the row is -1."""
    for lane in range(reference.shape[0]):
        if rows[lane] >= 0:
            _add_duels(slope[lane], hessian[lane], reference[lane], lane, rows[lane], 1.0, lost[lane], likelihood)


class Belief(NamedTuple):
    """A Gaussian that follows duels as they come, and the expansion of the likelihood that it belongs to, if there is one."""

    mode: FloatArray  # (lanes, dim)
    whitener: FloatArray  # (lanes, dim, dim)
    precision: FloatArray  # (lanes,) of the prior
    reference: FloatArray  # (lanes, dim), as slope and hessian: see `duelist.samplers.expansion`
    slope: FloatArray
    hessian: FloatArray  # (lanes, dim, dim), or (lanes, 0, 0) while there is no expansion


class Pass(NamedTuple):
    """An expansion around a new reference, for which the contrasts are read a few at a time; `rows` counts those read."""

    reference: FloatArray  # (lanes, dim)
    slope: FloatArray  # (lanes, dim)
    hessian: FloatArray  # (lanes, dim, dim) the lower triangle, or (lanes, 0, 0) while there is no pass
    rows: IntArray  # (lanes,)


@inner
def _add_rank_one(matrix: FloatArray, vector: FloatArray, weight: float, whole: bool) -> None:
    """Add weight vector vector^T to a matrix, or to its lower triangle alone."""
    dim = vector.shape[0]
    for i in range(dim):
        share = weight * vector[i]
        for j in range(dim if whole else i + 1):
            matrix[i, j] += share * vector[j]


@inner
def _take_in(belief: Belief, lane: int, z: FloatArray, lost: float, eta: float, work: FloatArray) -> None:
    """Move the Gaussian by one duel of contrast z (dim,); work is (3, dim).

    With an expansion, its slope and curvature grow by those of the duel at the reference, and the whitener with them. Without,
    the Gaussian moves to the mode of itself times the duel's likelihood, and gets the curvature there.
    """
    dim = z.shape[0]
    whitener, scaled = belief.whitener[lane], work[0]
    if belief.hessian.shape[1]:
        lose = lose_chance(dot(z, belief.reference[lane], dim))
        weight = eta * lose * (1.0 - lose)
        for i in range(dim):
            belief.slope[lane, i] += eta * (lost - lose) * z[i]
        _add_rank_one(belief.hessian[lane], z, weight, True)
    else:
        lower_times(scaled, whitener, z)
        spread = dot(scaled, scaled, dim)
        if not spread > 0.0:  # an arm against itself says nothing
            return
        lower_transposed_times(work[1], whitener, scaled)
        start = dot(z, belief.mode[lane], dim)
        u = solve_logit(start, eta * spread, 1.0, lost)
        for i in range(dim):
            belief.mode[lane, i] += work[1, i] * (u - start) / spread
        lose = lose_chance(u)
        weight = eta * lose * (1.0 - lose)
    for i in range(dim):
        scaled[i] = math.sqrt(weight) * z[i]
    extend_whitener(whitener, scaled, work[1], work[2])


@maker
def _read_some(coming: Pass, lane: int, end: int, likelihood: Likelihood) -> None:
    """Count contrasts up to `end` in a pass: all of them together, for each would go through the whole matrix."""
    dim, begin = coming.reference.shape[1], coming.rows[lane]
    n = end - begin
    block, weighted = np.empty((dim, n)), np.empty(n)
    slopes, weights = np.empty(n), np.empty(n)
    slopes[:] = 0.0
    for i in range(dim):
        for p in range(n):
            block[i, p] = likelihood.contrasts[lane, i, begin + p]
            slopes[p] += block[i, p] * coming.reference[lane, i]
    for p in range(n):
        lose, total = lose_chance(slopes[p]), likelihood.totals[lane, begin + p]
        slopes[p] = likelihood.eta[lane] * (likelihood.losses[lane, begin + p] - total * lose)
        weights[p] = likelihood.eta[lane] * total * lose * (1.0 - lose)
    for i in range(dim):
        coming.slope[lane, i] += dot(block[i], slopes, n)
        for p in range(n):
            weighted[p] = weights[p] * block[i, p]
        for j in range(i + 1):
            coming.hessian[lane, i, j] += dot(weighted, block[j], n)
    coming.rows[lane] = end


@inner
def _mode_of_expansion(belief: Belief, lane: int, work: FloatArray) -> None:
    """Set the mode to the minimum of the expansion and the prior; the whitener must be that of both."""
    dim = belief.mode.shape[1]
    for i in range(dim):
        work[0, i] = belief.slope[lane, i] + belief.precision[lane] * belief.reference[lane, i]
    lower_times(work[1], belief.whitener[lane], work[0])
    lower_transposed_times(work[0], belief.whitener[lane], work[1])
    for i in range(dim):
        belief.mode[lane, i] = belief.reference[lane, i] - work[0, i]


@entry
def follow_duels(
    belief: Belief, coming: Pass, likelihood: Likelihood, rows: IntArray, lost: FloatArray, rows_to_read: int
) -> None:
    """Take in duels of contrasts rows (lanes, n), and read some more contrasts for the pass; a row of -1 says nothing."""
    lanes, dim = belief.mode.shape
    z, work = np.empty(dim), np.empty((3, dim))
    for lane in range(lanes):
        eta = likelihood.eta[lane]
        for k in range(rows.shape[1]):
            p = rows[lane, k]
            if p < 0:
                continue
            for i in range(dim):
                z[i] = likelihood.contrasts[lane, i, p]
            _take_in(belief, lane, z, lost[lane, k], eta, work)
            if coming.hessian.shape[1] and p < coming.rows[lane]:  # the pass has been there
                lose = lose_chance(dot(z, coming.reference[lane], dim))
                for i in range(dim):
                    coming.slope[lane, i] += eta * (lost[lane, k] - lose) * z[i]
                _add_rank_one(coming.hessian[lane], z, eta * lose * (1.0 - lose), False)
        if coming.hessian.shape[1]:
            end = min(coming.rows[lane] + rows_to_read, likelihood.n_rows[lane])
            if end > coming.rows[lane]:
                _read_some(coming, lane, end, likelihood)
        if belief.hessian.shape[1]:
            _mode_of_expansion(belief, lane, work)


@entry
def factor_expansions(factor: FloatArray, hessian: FloatArray, precision: FloatArray) -> int:
    """Fill factor (lanes, dim, dim) with those of expansions and the prior; of a Hessian the lower triangle is read.

    Returns -1, or the first lane whose curvature has no Cholesky factor.
    """
    lanes, dim, _ = hessian.shape
    matrix = np.empty((dim, dim))
    for lane in range(lanes):
        for i in range(dim):
            for j in range(i + 1):
                matrix[i, j] = hessian[lane, i, j]
            matrix[i, i] += precision[lane]
        if not cholesky_into(factor[lane], matrix):
            return lane
    return -1


@entry
def whiten_expansions(belief: Belief, factor: FloatArray, likelihood: Likelihood, rows: IntArray) -> None:
    """Whiteners and modes of expansions of which the lower triangle is known; the upper one is filled.

    factor (lanes, dim, dim) is without the duels of contrasts rows (lanes, n), which the expansions have; -1 says nothing.
    """
    lanes, dim = belief.mode.shape
    z, work = np.empty(dim), np.empty((3, dim))
    for lane in range(lanes):
        for i in range(dim):
            for j in range(i + 1):
                belief.hessian[lane, j, i] = belief.hessian[lane, i, j]
        invert_lower(belief.whitener[lane], factor[lane])
        for k in range(rows.shape[1]):
            p = rows[lane, k]
            if p < 0:
                continue
            for i in range(dim):
                z[i] = likelihood.contrasts[lane, i, p]
            lose = lose_chance(dot(z, belief.reference[lane], dim))
            root = math.sqrt(likelihood.eta[lane] * lose * (1.0 - lose))
            for i in range(dim):
                z[i] *= root
            extend_whitener(belief.whitener[lane], z, work[1], work[2])
        _mode_of_expansion(belief, lane, work)


@entry
def gaussian_lanes(
    position: FloatArray,
    mode: FloatArray,
    whitener: FloatArray,
    source: RandomSource,
    tries: int,
    terms: LinearTerms,
    pulled: IntArray,
) -> int:
    """Fill `position` (lanes, chains, dim) with draws from the Gaussian at the mode, shifted by the Feel-Good slope.

    `pulled` (lanes,) counts draws that were outside the ball `tries` times and were pulled onto it. Returns -1, or the first
    lane whose draws are not finite.
    """
    lanes, chains, dim = position.shape
    utilities = scratch_for(terms)[0]
    slope, whitened, shift, noise = np.empty(dim), np.empty(dim), np.empty(dim), np.empty(dim)
    for lane in range(lanes):
        for chain in range(chains):
            slope[:] = 0.0
            add_feel_good(slope, mode[lane], lane, chain, terms.tilt, utilities)
            lower_times(whitened, whitener[lane], slope)
            block = first_block()
            inside = False
            for _ in range(tries):
                block, _uniform = fill_normals(noise, source.keys[lane], block, source.round_, source.first_substream + chain)
                for i in range(dim):
                    noise[i] -= whitened[i]
                lower_transposed_times(shift, whitener[lane], noise)
                squared = 0.0
                for i in range(dim):
                    position[lane, chain, i] = mode[lane, i] + shift[i]
                    squared += position[lane, chain, i] ** 2
                if squared <= terms.radius * terms.radius:
                    inside = True
                    break
            if not inside:
                pulled[lane] += 1
                if not pull_into_ball(position[lane, chain], terms.radius):
                    return lane
    return -1


TOLERANCE = 1e-6  # on the Newton decrement: the mode to a thousandth of a posterior sd
MAX_ITERATIONS = 100


@entry
def curvature_lanes(
    mode: FloatArray,
    whitener: FloatArray,
    precision: FloatArray,
    likelihood: Likelihood,
    flags: IntArray,
) -> None:
    """Find the mode of every lane from `mode`, and whiten its curvature."""
    dim = mode.shape[1]
    hessian, factor = np.empty((dim, dim)), np.empty((dim, dim))
    for lane in range(mode.shape[0]):
        counts = counts_of_lane(likelihood, lane)
        flags[lane] = fit_lane(mode[lane], hessian, counts, precision[lane], TOLERANCE, MAX_ITERATIONS)
        if cholesky_into(factor, hessian):
            invert_lower(whitener[lane], factor)
        else:
            flags[lane] = 0


@maker
def _add_best_slopes(slope: FloatArray, mean: FloatArray, lane: int, tilt: Tilt | None) -> None:
    """Add the slope of the Feel-Good maximum at the mean."""
    if tilt is None:
        return
    utilities = np.empty(tilt.sets.shape[3])
    for s in range(tilt.repeats.shape[0]):
        utilities_into(utilities, tilt.sets[lane, s], mean)
        best = first_maximum(utilities)
        for i in range(mean.shape[0]):
            slope[i] += tilt.repeats[s] * tilt.sets[lane, s, i, best]
    length = math.sqrt((mean * mean).sum())
    if tilt.ball_reach > 0.0 and length > 0.0:
        for i in range(mean.shape[0]):
            slope[i] += tilt.ball_reach * mean[i] / length


@maker
def _absorb_contrast(
    mean: FloatArray, precision: FloatArray, factor: FloatArray, lane: int, p: int, likelihood: Likelihood
) -> bool:
    """Move the Gaussian to the mode of itself x one contrast's likelihood, and add the curvature there."""
    dim = mean.shape[0]
    if not cholesky_into(factor, precision):
        return False
    direction = np.empty(dim)
    start = 0.0
    for i in range(dim):
        direction[i] = likelihood.contrasts[lane, i, p]
        start += direction[i] * mean[i]
    solve_cholesky(factor, direction)
    spread = 0.0
    for i in range(dim):
        spread += direction[i] * likelihood.contrasts[lane, i, p]
    if not spread > 0.0:  # an arm against itself says nothing
        return math.isfinite(spread)
    eta = likelihood.eta[lane]
    u = solve_logit(start, eta * spread, likelihood.totals[lane, p], likelihood.losses[lane, p])
    e = math.exp(-abs(u))
    weight = eta * likelihood.totals[lane, p] * e / ((1.0 + e) * (1.0 + e))
    for i in range(dim):
        mean[i] += direction[i] * (u - start) / spread
        for j in range(dim):
            precision[i, j] += weight * likelihood.contrasts[lane, i, p] * likelihood.contrasts[lane, j, p]
    return True


@entry
def absorb_lanes(mean: FloatArray, precision: FloatArray, whitener: FloatArray, slope: FloatArray, terms: LinearTerms) -> int:
    """Let every listed contrast and action set into the running Gaussians. Returns -1, or the first lane that fails."""
    lanes, dim = mean.shape
    factor = np.empty((dim, dim))
    for lane in range(lanes):
        for p in range(terms.likelihood.n_rows[lane]):
            if not _absorb_contrast(mean[lane], precision[lane], factor, lane, p, terms.likelihood):
                return lane
        _add_best_slopes(slope[lane], mean[lane], lane, terms.tilt)
        if not cholesky_into(factor, precision[lane]) or not math.isfinite(mean[lane].sum()):
            return lane
        invert_lower(whitener[lane], factor)
    return -1


@entry
def step_to_modes(mode: FloatArray, whitener: FloatArray, precision: FloatArray, likelihood: Likelihood) -> None:
    """Move mode (lanes, dim) by a Newton step with the curvature that is known, whose inverse Cholesky factor is `whitener`."""
    lanes, dim = mode.shape
    capacity = likelihood.contrasts.shape[2]
    logits, scratch = np.empty(capacity), np.empty(capacity)
    gradient, slope, move = np.empty(dim), np.empty(dim), np.empty(dim)
    for lane in range(lanes):
        n = likelihood.n_rows[lane]
        for i in range(dim):
            gradient[i] = precision[lane] * mode[lane, i]
        if n > 0:
            add_loss_gradient(gradient, mode[lane], counts_of_lane(likelihood, lane), logits[:n], scratch[:n])
        lower_times(slope, whitener[lane], gradient)
        lower_transposed_times(move, whitener[lane], slope)
        for i in range(dim):
            mode[lane, i] -= move[i]


@entry
def count_liked(counts: IntArray, mean: FloatArray, factor: FloatArray, noise: FloatArray, first: int, second: int) -> None:
    """In how many draws two arms are at the top, when the utilities of all are mean + factor @ noise.

    Args:
        counts: (4,) filled: draws in which `first` is best, `second` is best, `second` is right behind `first`, and the
            reverse.
        mean: (n_arms,).
        factor: (n_arms, rank).
        noise: (rank, draws).
        first: row of an arm.
        second: row of another.
    """
    draws = noise.shape[1]
    value, best, behind = np.empty(draws), np.full(draws, -1), np.full(draws, -1)
    top, runner = np.full(draws, -math.inf), np.full(draws, -math.inf)
    for k in range(mean.shape[0]):
        for d in range(draws):
            value[d] = mean[k]
        for r in range(noise.shape[0]):
            for d in range(draws):
                value[d] += factor[k, r] * noise[r, d]
        for d in range(draws):
            is_best, is_behind = value[d] > top[d], value[d] > runner[d]
            behind[d] = best[d] if is_best else (k if is_behind else behind[d])
            runner[d] = top[d] if is_best else (value[d] if is_behind else runner[d])
            best[d] = k if is_best else best[d]
            top[d] = value[d] if is_best else top[d]
    counts[:] = 0
    for d in range(draws):
        counts[0] += best[d] == first
        counts[1] += best[d] == second
        counts[2] += best[d] == first and behind[d] == second
        counts[3] += best[d] == second and behind[d] == first
