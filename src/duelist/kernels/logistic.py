"""The logistic likelihood of counted contrasts: loss, gradient, Hessian and fit.

exp and log1p are straight-line arithmetic here, so that a loop over contrasts runs several at a time.

A library call inside a loop keeps the compiler from using vector instructions; these two are written without calls and
without branches. On the ranges that the logistic likelihood needs they agree with NumPy to a few units in the last place.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from duelist.kernels.actions import utilities_into
from duelist.kernels.compile import entry, inlined, inner, maker
from duelist.kernels.linalg.factors import cholesky_into, lower_times, lower_transposed_times, solve_cholesky
from duelist.kernels.linalg.vectors import dot, total_of, two_dots
from duelist.typing import FloatArray, IntArray

_LOG2_E = 1.0 / math.log(2.0)
# ln 2 in two parts (Cody & Waite): k * _LN2_HIGH is exact for |k| < 2^20, so the reduced argument keeps all its digits.
_LN2_HIGH = 6.93147180369123816490e-01
_LN2_LOW = 1.90821492927058770002e-10
# Adding and taking away 1.5 * 2^52 rounds to a whole number, and leaves that number in the low bits of the sum.
_ROUNDER = 1.5 * 2.0**52
_EXPONENT_BIAS = 1023
_EXPONENT_SHIFT = 52
# e^-708 = 3e-308 is the last that is not subnormal. Beyond it the result stays there instead of falling to zero.
_LOWEST = -708.0
_SQRT2_MINUS_1 = math.sqrt(2.0) - 1.0
_LN2 = math.log(2.0)
# Taylor coefficients 1/k!: on |r| <= ln(2)/2 the rest after k = 13 is below 1e-17.
_E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10, _E11, _E12, _E13 = (1.0 / math.factorial(k) for k in range(2, 14))
# Coefficients of atanh(s) / s in s^2: on |s| <= 0.172 the rest after s^22 is below 1e-18.
_A1, _A2, _A3, _A4, _A5, _A6, _A7, _A8, _A9, _A10, _A11 = (1.0 / (2 * k + 1) for k in range(1, 12))


def _bits_of_float(_context: Any, _value: Any) -> Any:
    """The 64 bits of a float as a whole number."""

    def generate(_ctx: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.IntType(64))

    return types.int64(types.float64), generate


def _float_of_bits(_context: Any, _value: Any) -> Any:
    """The float with these 64 bits."""

    def generate(_ctx: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.bitcast(arguments[0], ir.DoubleType())

    return types.float64(types.int64), generate


_bits: Any = intrinsic(_bits_of_float)
_float: Any = intrinsic(_float_of_bits)


@inner
def exp_of_negative(x: float) -> float:
    """e^x for x <= 0, with e^-708 for anything below -708; NaN stays NaN."""
    x = _LOWEST if x < _LOWEST else x
    shifted = x * _LOG2_E + _ROUNDER
    k = shifted - _ROUNDER
    r = (x - k * _LN2_HIGH) - k * _LN2_LOW
    p = _E13 * r + _E12
    p = p * r + _E11
    p = p * r + _E10
    p = p * r + _E9
    p = p * r + _E8
    p = p * r + _E7
    p = p * r + _E6
    p = p * r + _E5
    p = p * r + _E4
    p = p * r + _E3
    p = p * r + _E2
    power_of_two: float = _float((_bits(shifted) + _EXPONENT_BIAS) << _EXPONENT_SHIFT)
    return (1.0 + (r + r * r * p)) * power_of_two


@inner
def log1p_of_fraction(e: float) -> float:
    """log(1 + e) for 0 <= e <= 1, as 2 atanh(s); from sqrt(2) - 1 on, ln 2 is split off to keep s small."""
    upper = e > _SQRT2_MINUS_1
    s = ((e - 1.0) if upper else e) / ((e + 3.0) if upper else (e + 2.0))
    w = s * s
    p = _A11 * w + _A10
    p = p * w + _A9
    p = p * w + _A8
    p = p * w + _A7
    p = p * w + _A6
    p = p * w + _A5
    p = p * w + _A4
    p = p * w + _A3
    p = p * w + _A2
    p = p * w + _A1
    return (_LN2 if upper else 0.0) + (2.0 * s + 2.0 * s * w * p)


_NEWTON_STEPS = 20  # within which it converges, or never
_GRADIENTS_PER_STEP = 3  # that a fit which follows the last one may spend, on average: steps that are taken back count too


class Likelihood(NamedTuple):
    """What the preference likelihood reads: see `duelist.history.statistics.Statistics`."""

    contrasts: FloatArray  # (lanes, dim, capacity)
    totals: FloatArray  # (lanes, capacity)
    losses: FloatArray  # (lanes, capacity)
    n_rows: IntArray  # (lanes,)
    eta: FloatArray  # (lanes,)


class LaneCounts(NamedTuple):
    """The likelihood of one lane: contrasts, of which the first n are in use, their n counts, and the weight of the loss."""

    contrasts: FloatArray  # (dim, capacity)
    totals: FloatArray  # (n,)
    losses: FloatArray  # (n,)
    weight: float


@inlined
def counts_of_lane(likelihood: Likelihood, lane: int) -> LaneCounts:
    """The rows in use of a lane."""
    n = likelihood.n_rows[lane]
    return LaneCounts(
        likelihood.contrasts[lane], likelihood.totals[lane, :n], likelihood.losses[lane, :n], likelihood.eta[lane]
    )


@inner
def lose_chance(u: float) -> float:
    """s(-u): the chance that the first arm loses at a logit of u, by the library's exponential."""
    e = math.exp(-abs(u))
    return (e if u > 0.0 else 1.0) / (1.0 + e)


@inner
def loss_and_slopes(logits: FloatArray, totals: FloatArray, losses: FloatArray, slopes: FloatArray) -> float:
    """Total loss; `slopes` (n,) is filled with the derivative of each contrast's loss in its logit, `logits` with the loss."""
    for p in range(logits.shape[0]):
        u = logits[p]
        e = exp_of_negative(-abs(u))
        # s(-u): the chance that the first arm loses.
        lose = (e if u > 0.0 else 1.0) / (1.0 + e)
        slopes[p] = losses[p] - totals[p] * lose
        logits[p] = totals[p] * (log1p_of_fraction(e) + (0.0 if u > 0.0 else -u)) + losses[p] * u
    return total_of(logits)


@inner
def slopes_alone(logits: FloatArray, totals: FloatArray, losses: FloatArray, slopes: FloatArray) -> None:
    """The slopes of `loss_and_slopes` without the loss, at half the cost: all that an unadjusted sampler needs."""
    for p in range(logits.shape[0]):
        u = logits[p]
        e = exp_of_negative(-abs(u))
        slopes[p] = losses[p] - totals[p] * ((e if u > 0.0 else 1.0) / (1.0 + e))


@inner
def add_weighted_columns(gradient: FloatArray, contrasts: FloatArray, slopes: FloatArray, weight: float) -> None:
    """Gradient += weight * contrasts[:, :n] @ slopes, n the length of slopes."""
    dim, n = gradient.shape[0], slopes.shape[0]
    # Two rows per pass: the slopes are read half as often.
    for i in range(0, dim - 1, 2):
        one, two = two_dots(slopes, contrasts[i], contrasts[i + 1], n)
        gradient[i] += weight * one
        gradient[i + 1] += weight * two
    if dim % 2:
        gradient[dim - 1] += weight * dot(slopes, contrasts[dim - 1], n)


@inlined
def add_loss_gradient(
    gradient: FloatArray, theta: FloatArray, counts: LaneCounts, logits: FloatArray, slopes: FloatArray
) -> float:
    """Return weight * loss at theta and add its gradient; logits and slopes are scratch (n,)."""
    utilities_into(logits, counts.contrasts, theta)
    total = loss_and_slopes(logits, counts.totals, counts.losses, slopes)
    add_weighted_columns(gradient, counts.contrasts, slopes, counts.weight)
    return counts.weight * total


# From this many entries on it is worth a pass over the contrasts to see whether most of them are zero, as where an item is a
# unit vector: the products then cost what is there and not dim^2.
_MANY_ENTRIES = 1 << 19
_FULL = 8  # a contrast with more than dim / 8 entries is full


@maker
def _add_sparse_gram(matrix: FloatArray, contrasts: FloatArray, weights: FloatArray) -> bool:
    """`add_weighted_gram` by the entries that are not zero; False, with nothing done, where most are not."""
    dim, n = matrix.shape[0], weights.shape[0]
    ends = np.zeros(n + 1, dtype=np.int64)
    for i in range(dim):
        for p in range(n):
            ends[p + 1] += contrasts[i, p] != 0.0
    for p in range(n):
        ends[p + 1] += ends[p]
    if ends[n] * _FULL > n * dim:
        return False
    rows = np.empty(ends[n], dtype=np.int64)
    following = ends[:n].copy()
    for i in range(dim):
        for p in range(n):
            if contrasts[i, p] != 0.0:
                rows[following[p]] = i
                following[p] += 1
    for p in range(n):
        for a in range(ends[p], ends[p + 1]):
            i = rows[a]
            scaled = weights[p] * contrasts[i, p]
            for b in range(ends[p], a + 1):
                j = rows[b]
                entry = scaled * contrasts[j, p]
                matrix[i, j] += entry
                if j < i:
                    matrix[j, i] += entry
    return True


@inlined
def add_weighted_gram(matrix: FloatArray, contrasts: FloatArray, weights: FloatArray, scaled: FloatArray) -> None:
    """Add sum_p weights[p] z_p z_p^T to both triangles of `matrix` (dim, dim); `scaled` (n,) is scratch."""
    n = weights.shape[0]
    if n * matrix.shape[0] >= _MANY_ENTRIES and _add_sparse_gram(matrix, contrasts, weights):
        return
    for i in range(matrix.shape[0]):
        for p in range(n):
            scaled[p] = weights[p] * contrasts[i, p]
        for j in range(i + 1):
            entry = dot(scaled, contrasts[j], n)
            matrix[i, j] += entry
            if j < i:
                matrix[j, i] += entry


@inlined
def add_loss_hessian(
    hessian: FloatArray, theta: FloatArray, counts: LaneCounts, logits: FloatArray, scaled: FloatArray
) -> None:
    """Add weight * (Hessian of the loss at theta) to both triangles of `hessian` (dim, dim)."""
    n = counts.totals.shape[0]
    utilities_into(logits, counts.contrasts, theta)
    for p in range(n):
        e = exp_of_negative(-abs(logits[p]))
        logits[p] = counts.weight * counts.totals[p] * e / ((1.0 + e) * (1.0 + e))
    add_weighted_gram(hessian, counts.contrasts, logits, scaled)


@inlined
def fit_lane(
    theta: FloatArray, hessian: FloatArray, counts: LaneCounts, ridge: float, tolerance: float, max_iterations: int
) -> int:
    """Minimise ridge/2 |theta|^2 + weight * loss by Newton's method with a backtracking line search, from `theta`.

    The objective is strictly convex for ridge > 0, and every step lowers it, so separable data end at the finite minimiser
    instead of running away. Returns the number of iterations, negative if the tolerance on the Newton decrement was not met.
    `hessian` is filled with the curvature of the whole objective at the returned theta (before the last step, if negative).
    """
    dim, n = counts.contrasts.shape[0], counts.totals.shape[0]
    gradient, direction, trial = np.empty(dim), np.empty(dim), np.empty(dim)
    logits, scratch = np.empty(n), np.empty(n)
    factor = np.empty((dim, dim))
    for iteration in range(1, max_iterations + 1):
        value = 0.0
        for i in range(dim):
            gradient[i] = ridge * theta[i]
            value += 0.5 * ridge * theta[i] * theta[i]
        value += add_loss_gradient(gradient, theta, counts, logits, scratch)
        for i in range(dim):
            direction[i] = gradient[i]
            for j in range(dim):
                hessian[i, j] = ridge if i == j else 0.0
        add_loss_hessian(hessian, theta, counts, logits, scratch)
        if not cholesky_into(factor, hessian):
            return -iteration
        solve_cholesky(factor, direction)
        decrement = 0.0
        for i in range(dim):
            decrement += gradient[i] * direction[i]
        if decrement < tolerance:
            return iteration
        step = 1.0
        while step > 1e-10:
            candidate = 0.0
            for i in range(dim):
                trial[i] = theta[i] - step * direction[i]
                candidate += 0.5 * ridge * trial[i] * trial[i]
            utilities_into(logits, counts.contrasts, trial)
            candidate += counts.weight * loss_and_slopes(logits, counts.totals, counts.losses, scratch)
            # The slack covers rounding: near the minimum the true decrease is below the last digit of the value.
            if candidate <= value - 1e-4 * step * decrement + 1e-12 * abs(value):
                break
            step *= 0.5
        for i in range(dim):
            theta[i] -= step * direction[i]
    return -max_iterations


@inner
def solve_logit(start: float, spread: float, total: float, lost: float) -> float:
    """The root of u - start = spread (total s(-u) - lost), by Newton's method, which cannot leave its bracket.

    Where the spread is large it may jump from one end to the other and back for ever; then halving takes over.
    """
    low, high = start - spread * lost, start + spread * (total - lost)
    u = min(max(start, low), high)
    for iteration in range(100):
        lose = lose_chance(u)
        value = u - start - spread * (total * lose - lost)
        if value > 0.0:
            high = u
        else:
            low = u
        following = u - value / (1.0 + spread * total * lose * (1.0 - lose))
        if iteration >= _NEWTON_STEPS or not low <= following <= high:
            following = 0.5 * (low + high)
        if abs(following - u) <= 1e-12 * (1.0 + abs(u)):
            return following
        u = following
    return u


class Secants(NamedTuple):
    """What a fit that follows the last one knows of the curvature.

    Attributes:
        whitener: (dim, dim) inverse Cholesky factor of a curvature of before, without the newest contrast.
        white: (dim,) scratch.
        pulled: (dim,) that curvature's inverse times the newest contrast.
        spread: <pulled, newest>, the variance along the newest contrast.
        weight: (1,) by how much the newest contrast changes the inverse (Sherman & Morrison).
        moves: (steps, dim) how theta has moved.
        changes: (steps, dim) how the gradient has changed with it.
        shares: (steps,) 1 / <move, change>.
        alphas: (steps,) scratch.
    """

    whitener: FloatArray
    white: FloatArray
    pulled: FloatArray
    spread: float
    weight: FloatArray
    moves: FloatArray
    changes: FloatArray
    shares: FloatArray
    alphas: FloatArray


@maker
def new_secants(whitener: FloatArray, newest: FloatArray, most: int) -> Secants:
    """Nothing but the curvature of before and the newest contrast (dim,), which `first_direction` weighs."""
    dim = newest.shape[0]
    white, pulled = np.empty(dim), np.empty(dim)
    lower_times(white, whitener, newest)
    lower_transposed_times(pulled, whitener, white)
    spread, moves, changes = dot(white, white, dim), np.empty((most, dim)), np.empty((most, dim))
    return Secants(whitener, white, pulled, spread, np.empty(1), moves, changes, np.empty(most), np.empty(most))


@inner
def first_direction(direction: FloatArray, gradient: FloatArray, known: Secants, theta: FloatArray, newest: FloatArray) -> None:
    """Fill direction (dim,) with the first step: to the mode of the Gaussian of before times the newest duel's likelihood.

    Without that duel theta is a minimum, so the gradient is the duel's alone, and the step has its direction but not Newton's
    length: where the outcome is a surprise, the curvature at theta is far too small.
    """
    dim = theta.shape[0]
    start = dot(theta, newest, dim)
    lost = dot(known.pulled, gradient, dim) / known.spread + lose_chance(start)
    u = solve_logit(start, known.spread, 1.0, min(max(lost, 0.0), 1.0))
    for i in range(dim):
        direction[i] = known.pulled[i] * (start - u) / known.spread
    lose = lose_chance(u)
    weight = lose * (1.0 - lose)
    known.weight[0] = weight / (1.0 + weight * known.spread)


@inner
def next_direction(
    direction: FloatArray, gradient: FloatArray, known: Secants, n: int, theta: FloatArray, newest: FloatArray
) -> None:
    """Fill direction (dim,) with the inverse curvature times the gradient, by BFGS from n steps; overwrites the gradient."""
    if n == 0:
        first_direction(direction, gradient, known, theta, newest)
        return
    dim, white = gradient.shape[0], known.white
    for k in range(n - 1, -1, -1):
        known.alphas[k] = known.shares[k] * dot(known.moves[k], gradient, dim)
        for i in range(dim):
            gradient[i] -= known.alphas[k] * known.changes[k, i]
    lower_times(white, known.whitener, gradient)
    lower_transposed_times(direction, known.whitener, white)
    along = known.weight[0] * dot(known.pulled, gradient, dim)
    for i in range(dim):
        direction[i] -= along * known.pulled[i]
    for k in range(n):
        beta = known.alphas[k] - known.shares[k] * dot(known.changes[k], direction, dim)
        for i in range(dim):
            direction[i] += beta * known.moves[k, i]


@inlined
def follow_lane(
    theta: FloatArray, whitener: FloatArray, newest: FloatArray, counts: LaneCounts, ridge: float, tolerance: float, most: int
) -> bool:
    """Minimise as `fit_lane` does, from a curvature of before; False, and theta somewhere, if that takes too many steps.

    whitener (dim, dim) is the inverse Cholesky factor of a curvature near theta without the newest contrast (dim,), which is
    added here. What else it is wrong about, the change of the gradient from step to step tells (BFGS), so a step costs a
    gradient and dim^2 operations. The last step is taken too: theta is closer than the tolerance on the decrement.
    """
    dim, n = counts.contrasts.shape[0], counts.totals.shape[0]
    gradient, direction = np.empty(dim), np.empty(dim)
    logits, scratch = np.empty(n), np.empty(n)
    known = new_secants(whitener, newest, most)
    highest, step = math.inf, 0
    for _ in range(_GRADIENTS_PER_STEP * most):
        for i in range(dim):
            gradient[i] = ridge * theta[i]
        utilities_into(logits, counts.contrasts, theta)
        slopes_alone(logits, counts.totals, counts.losses, scratch)
        add_weighted_columns(gradient, counts.contrasts, scratch, counts.weight)
        for i in range(dim):
            known.changes[step, i] = -gradient[i]  # until the next gradient is added
            if step > 0:
                known.changes[step - 1, i] += gradient[i]
        if step > 0:
            known.shares[step - 1] = 1.0 / dot(known.moves[step - 1], known.changes[step - 1], dim)
        next_direction(direction, gradient, known, step, theta, newest)
        decrement = -dot(known.changes[step], direction, dim)
        if not 0.0 <= decrement < math.inf:
            return False
        if decrement >= highest:
            # A step may overshoot a little. One that went far too far is taken back by half.
            for i in range(dim):
                known.changes[step - 1, i] += known.changes[step, i]
                known.moves[step - 1, i] *= 0.5
                theta[i] -= known.moves[step - 1, i]
            continue
        for i in range(dim):
            known.moves[step, i] = -direction[i]
            theta[i] -= direction[i]
        if decrement < tolerance:
            return True
        highest, step = 4.0 * decrement, step + 1
        if step == most:
            return False
    return False


@entry
def fit_lanes(
    theta: FloatArray,
    hessian: FloatArray,
    likelihood: Likelihood,
    ridge: FloatArray,
    tolerance: float,
    max_iterations: int,
    iterations: IntArray,
) -> None:
    """Fit every lane from its theta (lanes, dim); see `fit_lane`."""
    for lane in range(theta.shape[0]):
        counts = counts_of_lane(likelihood, lane)
        iterations[lane] = fit_lane(theta[lane], hessian[lane], counts, ridge[lane], tolerance, max_iterations)
