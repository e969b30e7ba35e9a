"""Gaussian approximations over all lanes: the mode and its curvature, draws, second-order expansions, one-pass updates."""

from __future__ import annotations

import math

import numpy as np

from duelist.kernels.actions import first_maximum, utilities_into
from duelist.kernels.compile import entry, inner, maker
from duelist.kernels.linalg.factors import cholesky_into, invert_lower, lower_times, lower_transposed_times, solve_cholesky
from duelist.kernels.logistic import Likelihood, add_loss_gradient, add_loss_hessian, counts_of_lane, fit_lane, lose_chance
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
    extra_precision: float,
    flags: IntArray,
) -> None:
    """Find the mode of every lane from `mode`, and whiten its curvature."""
    dim = mode.shape[1]
    hessian, factor = np.empty((dim, dim)), np.empty((dim, dim))
    for lane in range(mode.shape[0]):
        counts = counts_of_lane(likelihood, lane)
        flags[lane] = fit_lane(mode[lane], hessian, counts, precision[lane] + extra_precision, TOLERANCE, MAX_ITERATIONS)
        if cholesky_into(factor, hessian):
            invert_lower(whitener[lane], factor)
        else:
            flags[lane] = 0


@inner
def _solve_logit(start: float, spread: float, total: float, lost: float) -> float:
    """The root of u - start = spread (total s(-u) - lost): bracketed, so Newton's method cannot leave."""
    low, high = start - spread * lost, start + spread * (total - lost)
    u = min(max(start, low), high)
    for _ in range(100):
        lose = lose_chance(u)
        value = u - start - spread * (total * lose - lost)
        if value > 0.0:
            high = u
        else:
            low = u
        following = u - value / (1.0 + spread * total * lose * (1.0 - lose))
        if not low <= following <= high:
            following = 0.5 * (low + high)
        if abs(following - u) <= 1e-12 * (1.0 + abs(u)):
            return following
        u = following
    return u


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
    u = _solve_logit(start, eta * spread, likelihood.totals[lane, p], likelihood.losses[lane, p])
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
