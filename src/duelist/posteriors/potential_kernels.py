"""Compiled potential of the linear posterior: value and gradient at one theta of one lane and chain."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.core.action_kernels import first_maximum, utilities_into
from duelist.core.checks import FloatArray, IntArray
from duelist.core.compiled import kernel
from duelist.preferences.logistic_kernels import add_loss_gradient, add_weighted_columns, slopes_alone


class LinearTerms(NamedTuple):
    """All terms of a linear posterior as flat arrays: what kernels read. See `duelist.posteriors.terms`."""

    precision: FloatArray  # (lanes,)
    radius: float
    contrasts: FloatArray  # (lanes, dim, capacity)
    totals: FloatArray  # (lanes, capacity)
    losses: FloatArray  # (lanes, capacity)
    n_rows: IntArray  # (lanes,)
    eta: FloatArray  # (lanes,)
    sets: FloatArray  # (lanes, n_sets, dim, n_arms)
    repeats: FloatArray  # (n_sets,)
    adversary: FloatArray  # (lanes, chains, dim)
    mu: FloatArray  # (lanes,)
    ball_reach: float
    spread: FloatArray  # (lanes, dim)
    shapes: FloatArray  # (lanes, n_shapes, dim, dim)
    shape_repeats: FloatArray  # (n_shapes,)
    # A second-order expansion that stands for contrasts that are not listed above; dim 0 for none.
    reference: FloatArray  # (lanes, dim)
    slope: FloatArray  # (lanes, dim)
    quadratic: FloatArray  # (lanes, dim, dim)


@kernel
def _set_to_prior(gradient: FloatArray, theta: FloatArray, precision: float) -> float:
    """Overwrite the gradient with the prior's, and return |theta|^2."""
    squared = 0.0
    for i in range(theta.shape[0]):
        squared += theta[i] * theta[i]
        gradient[i] = precision * theta[i]
    return squared


@kernel
def _add_ellipsoid(gradient: FloatArray, theta: FloatArray, shape: FloatArray, weight: float) -> float:
    """Return weight * |shape^T theta| and subtract its gradient, weight * shape v with v = shape^T theta of length 1."""
    dim = theta.shape[0]
    squared = 0.0
    for j in range(dim):
        pulled = 0.0
        for i in range(dim):
            pulled += shape[i, j] * theta[i]
        squared += pulled * pulled
    if squared == 0.0:
        return 0.0
    length = math.sqrt(squared)
    for j in range(dim):
        pulled = 0.0
        for i in range(dim):
            pulled += shape[i, j] * theta[i]
        for i in range(dim):
            gradient[i] -= weight * shape[i, j] * pulled / length
    return weight * length


@kernel
def add_feel_good(
    gradient: FloatArray, theta: FloatArray, lane: int, chain: int, terms: LinearTerms, utilities: FloatArray
) -> float:
    """Return the Feel-Good tilt's share of the potential and add its gradient."""
    mu = terms.mu[lane]
    value = 0.0
    for i in range(theta.shape[0]):
        value += mu * terms.adversary[lane, chain, i] * theta[i]
        gradient[i] += mu * terms.adversary[lane, chain, i]
    for s in range(terms.repeats.shape[0]):
        weight = mu * terms.repeats[s]
        utilities_into(utilities, terms.sets[lane, s], theta)
        best = first_maximum(utilities)
        value -= weight * utilities[best]
        for i in range(theta.shape[0]):
            gradient[i] -= weight * terms.sets[lane, s, i, best]
    if terms.ball_reach > 0.0:
        # Balls: the support function R |theta| of each, added up. At 0 it has a kink, and 0 is a subgradient.
        squared = 0.0
        for i in range(theta.shape[0]):
            squared += theta[i] * theta[i]
        if squared > 0.0:
            length = math.sqrt(squared)
            weight = mu * terms.ball_reach
            value -= weight * length
            for i in range(theta.shape[0]):
                gradient[i] -= weight * theta[i] / length
    for i in range(terms.spread.shape[1]):
        # Boxes: w_i |theta_i| an axis, with the same kink at 0.
        weight = mu * terms.spread[lane, i]
        value -= weight * abs(theta[i])
        if theta[i] != 0.0:
            gradient[i] -= math.copysign(weight, theta[i])
    for s in range(terms.shape_repeats.shape[0]):
        value -= _add_ellipsoid(gradient, theta, terms.shapes[lane, s], mu * terms.shape_repeats[s])
    return value


@kernel
def _add_expansion(gradient: FloatArray, theta: FloatArray, lane: int, terms: LinearTerms) -> float:
    """Return <slope, theta - reference> + 1/2 <theta - reference, quadratic (theta - reference)> and add its gradient."""
    dim = theta.shape[0]
    value = 0.0
    for i in range(dim):
        entry = 0.0
        for j in range(dim):
            entry += terms.quadratic[lane, i, j] * (theta[j] - terms.reference[lane, j])
        value += (theta[i] - terms.reference[lane, i]) * (terms.slope[lane, i] + 0.5 * entry)
        gradient[i] += terms.slope[lane, i] + entry
    return value


@kernel
def value_and_gradient(
    gradient: FloatArray, theta: FloatArray, lane: int, chain: int, terms: LinearTerms, scratch: FloatArray
) -> float:
    """Potential at theta (dim,); `gradient` (dim,) is overwritten. Infinite, with no gradient, outside the ball.

    `scratch` is (2, n) with n at least the number of contrasts and of arms.
    """
    squared = _set_to_prior(gradient, theta, terms.precision[lane])
    if squared > terms.radius * terms.radius:
        return math.inf
    value: float = 0.5 * terms.precision[lane] * squared
    n = terms.n_rows[lane]
    if n > 0:
        value += add_loss_gradient(
            gradient,
            theta,
            terms.contrasts[lane],
            terms.totals[lane, :n],
            terms.losses[lane, :n],
            terms.eta[lane],
            scratch[0, :n],
            scratch[1, :n],
        )
    if terms.quadratic.shape[1] > 0:
        value += _add_expansion(gradient, theta, lane, terms)
    if terms.mu[lane] > 0.0:
        value += add_feel_good(gradient, theta, lane, chain, terms, scratch[0, : terms.sets.shape[3]])
    return value


@kernel
def gradient_alone(
    gradient: FloatArray, theta: FloatArray, lane: int, chain: int, terms: LinearTerms, scratch: FloatArray
) -> None:
    """The gradient of `value_and_gradient` without the value, for samplers that accept every step; the ball is ignored."""
    _set_to_prior(gradient, theta, terms.precision[lane])
    n = terms.n_rows[lane]
    if n > 0:
        logits, slopes = scratch[0, :n], scratch[1, :n]
        utilities_into(logits, terms.contrasts[lane], theta)
        slopes_alone(logits, terms.totals[lane, :n], terms.losses[lane, :n], slopes)
        add_weighted_columns(gradient, terms.contrasts[lane], slopes, terms.eta[lane])
    if terms.quadratic.shape[1] > 0:
        _add_expansion(gradient, theta, lane, terms)
    if terms.mu[lane] > 0.0:
        add_feel_good(gradient, theta, lane, chain, terms, scratch[0, : terms.sets.shape[3]])


@kernel
def pull_into_ball(theta: FloatArray, radius: float) -> bool:
    """Project theta onto the ball if it is outside; False if it is not finite."""
    squared = 0.0
    for i in range(theta.shape[0]):
        squared += theta[i] * theta[i]
    if not math.isfinite(squared):
        return False
    if squared > radius * radius:
        # A hair inside, so that rounding cannot leave it outside.
        shrink = radius / math.sqrt(squared) * (1.0 - 1e-12)
        for i in range(theta.shape[0]):
            theta[i] *= shrink
    return True


@kernel
def scratch_for(terms: LinearTerms) -> FloatArray:
    """Working memory large enough for any lane."""
    return np.empty((2, max(terms.contrasts.shape[2], terms.sets.shape[3], 1)))


@kernel
def evaluate(theta: FloatArray, terms: LinearTerms, values: FloatArray, gradients: FloatArray) -> None:
    """Potential and gradient at theta (lanes, chains, dim), for use outside the samplers."""
    scratch = scratch_for(terms)
    for lane in range(theta.shape[0]):
        for chain in range(theta.shape[1]):
            values[lane, chain] = value_and_gradient(gradients[lane, chain], theta[lane, chain], lane, chain, terms, scratch)
