"""Compiled potential of the linear posterior: value and gradient at one theta of one lane and chain."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.kernels.actions import first_maximum, utilities_into
from duelist.kernels.compile import entry, inner, maker
from duelist.kernels.logistic import Likelihood, add_weighted_columns, loss_and_slopes, slopes_alone
from duelist.typing import FloatArray


class Tilt(NamedTuple):
    """What the Feel-Good tilt reads: the action sets of past rounds, as far as they have a closed form.

    Finite sets are listed. The support functions of balls add up to `ball_reach` * |theta|, those of boxes to
    <spread, |theta|>, and those of ellipsoids are listed by shape. `adversary` sums the features of the arm that the *other*
    draw chose.
    """

    sets: FloatArray  # (lanes, n_sets, dim, n_arms)
    repeats: FloatArray  # (n_sets,)
    adversary: FloatArray  # (lanes, chains, dim)
    mu: FloatArray  # (lanes,)
    ball_reach: float
    spread: FloatArray  # (lanes, dim), or (lanes, 0) for no boxes
    shapes: FloatArray  # (lanes, n_shapes, dim, dim)
    shape_repeats: FloatArray  # (n_shapes,)


class QuadraticTerm(NamedTuple):
    """A second-order expansion that stands for contrasts that are not listed; dim 0 while all are."""

    reference: FloatArray  # (lanes, dim)
    slope: FloatArray  # (lanes, dim)
    hessian: FloatArray  # (lanes, dim, dim)


class LinearTerms(NamedTuple):
    """All terms of a linear posterior as flat arrays: what kernels read. See `duelist.posteriors.linear`.

    A kernel is compiled once for posteriors with a tilt and once for those without, where it is half as much to compile. So a
    posterior must not gain its tilt from one round to the next: one that has nothing to say yet is there, with weight 0.
    """

    precision: FloatArray  # (lanes,)
    radius: float
    likelihood: Likelihood
    tilt: Tilt | None
    quadratic: QuadraticTerm


@inner
def _set_to_prior(gradient: FloatArray, theta: FloatArray, precision: float) -> float:
    """Overwrite the gradient with the prior's, and return |theta|^2."""
    squared = 0.0
    for i in range(theta.shape[0]):
        squared += theta[i] * theta[i]
        gradient[i] = precision * theta[i]
    return squared


@inner
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


@inner
def tilts(lane: int, tilt: Tilt | None) -> bool:
    """Whether there is a Feel-Good tilt in this lane."""
    if tilt is None:
        return False
    return bool(tilt.mu[lane] > 0.0)


@inner
def add_feel_good(
    gradient: FloatArray, theta: FloatArray, lane: int, chain: int, tilt: Tilt | None, scratch: FloatArray
) -> float:
    """Return the Feel-Good tilt's share of the potential and add its gradient; `scratch` (n,) is at least as long as sets."""
    if tilt is None:
        return 0.0
    mu = tilt.mu[lane]
    if not mu > 0.0:
        return 0.0
    utilities = scratch[: tilt.sets.shape[3]]
    value = 0.0
    for i in range(theta.shape[0]):
        value += mu * tilt.adversary[lane, chain, i] * theta[i]
        gradient[i] += mu * tilt.adversary[lane, chain, i]
    for s in range(tilt.repeats.shape[0]):
        weight = mu * tilt.repeats[s]
        utilities_into(utilities, tilt.sets[lane, s], theta)
        best = first_maximum(utilities)
        value -= weight * utilities[best]
        for i in range(theta.shape[0]):
            gradient[i] -= weight * tilt.sets[lane, s, i, best]
    squared = 0.0
    for i in range(theta.shape[0]):
        squared += theta[i] * theta[i]
    if tilt.ball_reach > 0.0 and squared > 0.0:
        # Balls: the support function R |theta| of each, added up. At 0 it has a kink, and 0 is a subgradient.
        length = math.sqrt(squared)
        weight = mu * tilt.ball_reach
        value -= weight * length
        for i in range(theta.shape[0]):
            gradient[i] -= weight * theta[i] / length
    for i in range(tilt.spread.shape[1]):
        # Boxes: w_i |theta_i| an axis, with the same kink at 0.
        weight = mu * tilt.spread[lane, i]
        value -= weight * abs(theta[i])
        if theta[i] != 0.0:
            gradient[i] -= math.copysign(weight, theta[i])
    for s in range(tilt.shape_repeats.shape[0]):
        value -= _add_ellipsoid(gradient, theta, tilt.shapes[lane, s], mu * tilt.shape_repeats[s])
    return value


@inner
def _add_quadratic(gradient: FloatArray, theta: FloatArray, lane: int, term: QuadraticTerm) -> float:
    """Return <slope, theta - reference> + 1/2 <theta - reference, hessian (theta - reference)> and add its gradient."""
    dim = term.hessian.shape[1]
    value = 0.0
    for i in range(dim):
        entry = 0.0
        for j in range(dim):
            entry += term.hessian[lane, i, j] * (theta[j] - term.reference[lane, j])
        value += (theta[i] - term.reference[lane, i]) * (term.slope[lane, i] + 0.5 * entry)
        gradient[i] += term.slope[lane, i] + entry
    return value


@inner
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
    likelihood = terms.likelihood
    n = likelihood.n_rows[lane]
    if n > 0:
        # Written out: handing the arrays on as one tuple costs a sampler six percent.
        logits, slopes = scratch[0, :n], scratch[1, :n]
        utilities_into(logits, likelihood.contrasts[lane], theta)
        loss = loss_and_slopes(logits, likelihood.totals[lane, :n], likelihood.losses[lane, :n], slopes)
        add_weighted_columns(gradient, likelihood.contrasts[lane], slopes, likelihood.eta[lane])
        value += likelihood.eta[lane] * loss
    value += _add_quadratic(gradient, theta, lane, terms.quadratic)
    value += add_feel_good(gradient, theta, lane, chain, terms.tilt, scratch[0])
    return value


@inner
def gradient_alone(
    gradient: FloatArray, theta: FloatArray, lane: int, chain: int, terms: LinearTerms, scratch: FloatArray
) -> None:
    """The gradient of `value_and_gradient` without the value, for samplers that accept every step; the ball is ignored."""
    _set_to_prior(gradient, theta, terms.precision[lane])
    likelihood = terms.likelihood
    n = likelihood.n_rows[lane]
    if n > 0:
        logits, slopes = scratch[0, :n], scratch[1, :n]
        utilities_into(logits, likelihood.contrasts[lane], theta)
        slopes_alone(logits, likelihood.totals[lane, :n], likelihood.losses[lane, :n], slopes)
        add_weighted_columns(gradient, likelihood.contrasts[lane], slopes, likelihood.eta[lane])
    _add_quadratic(gradient, theta, lane, terms.quadratic)
    add_feel_good(gradient, theta, lane, chain, terms.tilt, scratch[0])


@entry
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


@inner
def most_arms(tilt: Tilt | None) -> int:
    """Arms of the largest set that the tilt maximises over."""
    if tilt is None:
        return 0
    arms: int = tilt.sets.shape[3]
    return arms


@maker
def scratch_for(terms: LinearTerms) -> FloatArray:
    """Working memory large enough for any lane."""
    rows, arms = terms.likelihood.contrasts.shape[2], most_arms(terms.tilt)
    return np.empty((2, rows if rows > arms else arms))  # `max` takes longer to compile


@entry
def evaluate(theta: FloatArray, terms: LinearTerms, values: FloatArray, gradients: FloatArray) -> None:
    """Potential and gradient at theta (lanes, chains, dim), for use outside the samplers."""
    scratch = scratch_for(terms)
    for lane in range(theta.shape[0]):
        for chain in range(theta.shape[1]):
            values[lane, chain] = value_and_gradient(gradients[lane, chain], theta[lane, chain], lane, chain, terms, scratch)
