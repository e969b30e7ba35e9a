"""Compiled Bradley-Terry-Luce likelihood over compact statistics.

For a contrast z shown n times and lost l times, with u = <theta, z>,

    (n - l) log(1 + e^-u) + l log(1 + e^u) = n log(1 + e^-u) + l u,

so one exponential a contrast gives the loss, its slope l - n s(-u) and its curvature n s(u) s(-u), s the sigmoid.
Everything is written in e^-|u|, which cannot overflow.

Contrasts are (dim, capacity) with one a column; only the first n columns are read, n being the length of the other arrays.
Handing over whole rows instead of cutting them keeps memory contiguous in the compiler's eyes, which is what lets it use
vector instructions.
"""

from __future__ import annotations

import numpy as np

from duelist.core.action_kernels import utilities_into
from duelist.core.checks import FloatArray, IntArray
from duelist.core.compiled import fragment, kernel, part
from duelist.core.linear_kernels import cholesky_into, dot, solve_cholesky, total_of, two_dots
from duelist.preferences.elementary_kernels import exp_of_negative, log1p_of_fraction


@part
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


@part
def slopes_alone(logits: FloatArray, totals: FloatArray, losses: FloatArray, slopes: FloatArray) -> None:
    """The slopes of `loss_and_slopes` without the loss, at half the cost: all that an unadjusted sampler needs."""
    for p in range(logits.shape[0]):
        u = logits[p]
        e = exp_of_negative(-abs(u))
        slopes[p] = losses[p] - totals[p] * ((e if u > 0.0 else 1.0) / (1.0 + e))


@part
def add_weighted_columns(gradient: FloatArray, contrasts: FloatArray, slopes: FloatArray, weight: float) -> None:
    """Gradient += weight * contrasts[:, :n] @ slopes, n the length of slopes."""
    dim, n = gradient.shape[0], slopes.shape[0]
    # Two rows a pass: the slopes are read half as often.
    for i in range(0, dim - 1, 2):
        one, two = two_dots(slopes, contrasts[i], contrasts[i + 1], n)
        gradient[i] += weight * one
        gradient[i + 1] += weight * two
    if dim % 2:
        gradient[dim - 1] += weight * dot(slopes, contrasts[dim - 1], n)


@fragment
def add_loss_gradient(
    gradient: FloatArray,
    theta: FloatArray,
    contrasts: FloatArray,
    totals: FloatArray,
    losses: FloatArray,
    weight: float,
    logits: FloatArray,
    slopes: FloatArray,
) -> float:
    """Return weight * loss at theta and add its gradient; logits and slopes are scratch (n,)."""
    utilities_into(logits, contrasts, theta)
    total = loss_and_slopes(logits, totals, losses, slopes)
    add_weighted_columns(gradient, contrasts, slopes, weight)
    return weight * total


@fragment
def add_weighted_gram(matrix: FloatArray, contrasts: FloatArray, weights: FloatArray, scaled: FloatArray) -> None:
    """Add sum_p weights[p] z_p z_p^T to both triangles of `matrix` (dim, dim); `scaled` (n,) is scratch."""
    n = weights.shape[0]
    for i in range(matrix.shape[0]):
        for p in range(n):
            scaled[p] = weights[p] * contrasts[i, p]
        for j in range(i + 1):
            entry = dot(scaled, contrasts[j], n)
            matrix[i, j] += entry
            if j < i:
                matrix[j, i] += entry


@fragment
def add_loss_hessian(
    hessian: FloatArray,
    theta: FloatArray,
    contrasts: FloatArray,
    totals: FloatArray,
    weight: float,
    logits: FloatArray,
    scaled: FloatArray,
) -> None:
    """Add weight * (Hessian of the loss at theta) to both triangles of `hessian` (dim, dim)."""
    n = totals.shape[0]
    utilities_into(logits, contrasts, theta)
    for p in range(n):
        e = exp_of_negative(-abs(logits[p]))
        logits[p] = weight * totals[p] * e / ((1.0 + e) * (1.0 + e))
    add_weighted_gram(hessian, contrasts, logits, scaled)


@fragment
def fit_lane(
    theta: FloatArray,
    hessian: FloatArray,
    contrasts: FloatArray,
    totals: FloatArray,
    losses: FloatArray,
    weight: float,
    ridge: float,
    tolerance: float,
    max_iterations: int,
) -> int:
    """Minimise ridge/2 |theta|^2 + weight * loss by Newton's method with a backtracking line search, from `theta`.

    The objective is strictly convex for ridge > 0, and every step lowers it, so separable data end at the finite minimiser
    instead of running away. Returns the number of iterations, negative if the tolerance on the Newton decrement was not met.
    `hessian` is filled with the curvature of the whole objective at the returned theta (before the last step, if negative).
    """
    dim, n = contrasts.shape[0], totals.shape[0]
    gradient, direction, trial = np.empty(dim), np.empty(dim), np.empty(dim)
    logits, scratch = np.empty(n), np.empty(n)
    factor = np.empty((dim, dim))
    for iteration in range(1, max_iterations + 1):
        value = 0.0
        for i in range(dim):
            gradient[i] = ridge * theta[i]
            value += 0.5 * ridge * theta[i] * theta[i]
        value += add_loss_gradient(gradient, theta, contrasts, totals, losses, weight, logits, scratch)
        for i in range(dim):
            direction[i] = gradient[i]
            for j in range(dim):
                hessian[i, j] = ridge if i == j else 0.0
        add_loss_hessian(hessian, theta, contrasts, totals, weight, logits, scratch)
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
            utilities_into(logits, contrasts, trial)
            candidate += weight * loss_and_slopes(logits, totals, losses, scratch)
            # The slack covers rounding: near the minimum the true decrease is below the last digit of the value.
            if candidate <= value - 1e-4 * step * decrement + 1e-12 * abs(value):
                break
            step *= 0.5
        for i in range(dim):
            theta[i] -= step * direction[i]
    return -max_iterations


@kernel
def fit_lanes(
    theta: FloatArray,
    hessian: FloatArray,
    contrasts: FloatArray,
    totals: FloatArray,
    losses: FloatArray,
    n_rows: IntArray,
    weight: FloatArray,
    ridge: FloatArray,
    tolerance: float,
    max_iterations: int,
    iterations: IntArray,
) -> None:
    """Fit every lane from its theta (lanes, dim); see `fit_lane`."""
    for lane in range(theta.shape[0]):
        n = n_rows[lane]
        iterations[lane] = fit_lane(
            theta[lane],
            hessian[lane],
            contrasts[lane],
            totals[lane, :n],
            losses[lane, :n],
            weight[lane],
            ridge[lane],
            tolerance,
            max_iterations,
        )
