"""Compiled sums over answered slates: Plackett-Luce losses, ties, and the Feel-Good maximum."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from duelist.kernels.compile import entry, inner
from duelist.typing import FloatArray, IntArray

NO_TIES, DAVIDSON, RAO_KUPPER, BOTH_BAD, LEARNT_DAVIDSON = range(5)


@inner
def _softplus(u: float) -> float:
    return max(u, 0.0) + math.log1p(math.exp(-abs(u)))


@inner
def _sigmoid(u: float) -> float:
    return 1.0 / (1.0 + math.exp(-u)) if u >= 0.0 else math.exp(u) / (1.0 + math.exp(u))


@inner
def _stage_loss(utilities: FloatArray, begin: int, size: int, slopes: FloatArray) -> Any:
    """-log P that the candidate at `begin` wins among those from there to `size`; its gradient is added to slopes (size,)."""
    top = utilities[begin]
    for k in range(begin + 1, size):
        top = max(top, utilities[k])
    total = 0.0
    for k in range(begin, size):
        total += math.exp(utilities[k] - top)
    for k in range(begin, size):
        slopes[k] += math.exp(utilities[k] - top) / total
    slopes[begin] -= 1.0
    return top + math.log(total) - utilities[begin]


@inner
def ranked_loss(utilities: FloatArray, size: int, placed: int, slopes: FloatArray) -> float:
    """-log P of utilities (size,) being in this order, the first `placed` of them ranked; slopes (size,) get its gradient.

    An answer that ranks none is a tie, and counts as a win of each, of weight 1 / size.
    """
    slopes[:] = 0.0
    loss = 0.0
    for m in range(min(max(placed, 1), size - 1)):
        loss += _stage_loss(utilities, m, size, slopes)
    if placed == 0:
        mean = 0.0
        for k in range(size):
            mean += utilities[k] / size
            slopes[k] -= 1.0 / size
        loss += utilities[0] - mean
        slopes[0] += 1.0
    return loss


@inner
def davidson_loss(utilities: FloatArray, size: int, placed: int, log_nu: float, slopes: FloatArray) -> Any:
    """`ranked_loss` where a tie is an answer of its own: among e^{u_1} ... e^{u_size} it has nu times their geometric mean.

    Returns:
        The loss, and its derivative in log nu.
    """
    slopes[:] = 0.0
    mean = 0.0
    for k in range(size):
        mean += utilities[k] / size
    tie = mean + log_nu
    top = tie
    for k in range(size):
        top = max(top, utilities[k])
    total = math.exp(tie - top)
    for k in range(size):
        total += math.exp(utilities[k] - top)
    tied = math.exp(tie - top) / total
    in_tie = tied - (1.0 if placed == 0 else 0.0)
    loss = top + math.log(total) - (tie if placed == 0 else utilities[0])
    for k in range(size):
        slopes[k] = math.exp(utilities[k] - top) / total + in_tie / size
    if placed > 0:
        slopes[0] -= 1.0
    for m in range(1, min(placed, size - 1)):
        loss += _stage_loss(utilities, m, size, slopes)
    return loss, in_tie


@inner
def third_answer_loss(utilities: FloatArray, placed: int, model: int, parameter: float, slopes: FloatArray) -> Any:
    """-log P of a duel with a third answer: the first of utilities (2,) won if placed > 0, else it was the third."""
    if model == RAO_KUPPER:
        u = utilities[0] - utilities[1]
        threshold = math.log(parameter)
        loss, slope = _softplus(threshold - u), -_sigmoid(threshold - u)
        if placed == 0:
            loss += _softplus(threshold + u) - math.log(parameter * parameter - 1.0)
            slope += _sigmoid(threshold + u)
        slopes[0], slopes[1] = slope, -slope
        return loss
    a, b, c = utilities[0], utilities[1], parameter
    top = max(a, b, c)
    x, y, z = math.exp(a - top), math.exp(b - top), math.exp(c - top)
    total = x + y + z
    slopes[0], slopes[1] = x / total - (1.0 if placed > 0 else 0.0), y / total
    return top + math.log(total) - (a if placed > 0 else c)


class SlateTerms(NamedTuple):
    """All terms of a posterior over answered slates as flat arrays. See `duelist.posteriors.slates`."""

    features: FloatArray  # (lanes, capacity, choices, dim) in the order of the answer
    placed: IntArray  # (lanes, capacity)
    sizes: IntArray  # (capacity,)
    rounds: int
    model: int  # of ties, or NO_TIES
    parameter: float  # of that model; the prior mean of log nu where that is learnt
    tie_precision: float  # of the prior of log nu
    sets: FloatArray  # (lanes, n_sets, n_arms, dim)
    repeats: FloatArray  # (n_sets,)
    adversary: FloatArray  # (lanes, choices, dim)
    eta: FloatArray  # (lanes,)
    mu: FloatArray  # (lanes,)
    precision: float
    radius: float


@inner
def _add_tilt(theta: FloatArray, gradient: FloatArray, lane: int, chain: int, terms: SlateTerms) -> float:
    """Feel-Good tilt of one draw and lane; its gradient is added to `gradient`, whose first entries are those of theta."""
    sets, adversary, mu = terms.sets[lane], terms.adversary[lane, chain], terms.mu[lane]
    dim = sets.shape[2]
    value = 0.0
    for n in range(terms.repeats.shape[0]):
        best, place = -math.inf, 0
        for k in range(sets.shape[1]):
            utility = 0.0
            for i in range(dim):
                utility += theta[i] * sets[n, k, i]
            if utility > best:
                best, place = utility, k
        value -= mu * terms.repeats[n] * best
        for i in range(dim):
            gradient[i] -= mu * terms.repeats[n] * sets[n, place, i]
    for i in range(dim):
        value += mu * theta[i] * adversary[i]
        gradient[i] += mu * adversary[i]
    return value


@inner
def _add_answer(
    at: FloatArray, gradient: FloatArray, lane: int, t: int, terms: SlateTerms, utilities: FloatArray, slopes: FloatArray
) -> Any:
    """The loss of one answer at one draw, times eta; its gradient is added to `gradient`."""
    features, placed, size = terms.features[lane, t], terms.placed[lane, t], terms.sizes[t]
    model, eta = terms.model, terms.eta[lane]
    dim = features.shape[1]
    for k in range(size):
        utility = 0.0
        for i in range(dim):
            utility += at[i] * features[k, i]
        utilities[k] = utility
    if model == NO_TIES:
        loss = ranked_loss(utilities, size, placed, slopes)
    elif model == DAVIDSON:
        loss, _ = davidson_loss(utilities, size, placed, math.log(terms.parameter), slopes)
    elif model == LEARNT_DAVIDSON:
        loss, in_tie = davidson_loss(utilities, size, placed, at[dim], slopes)
        gradient[dim] += eta * in_tie
    else:
        loss = third_answer_loss(utilities, placed, model, terms.parameter, slopes)
    for k in range(size):
        weight = eta * slopes[k]
        for i in range(dim):
            gradient[i] += weight * features[k, i]
    return eta * loss


@entry
def slate_potential(theta: FloatArray, terms: SlateTerms, values: FloatArray, gradients: FloatArray) -> None:
    """Fill values (lanes, chains) and gradients of the shape of theta (lanes, chains, width): dim, or one more for log nu."""
    lanes, chains, _ = theta.shape
    q, dim = terms.features.shape[2:]
    precision, radius = terms.precision, terms.radius
    utilities, slopes = np.empty(q), np.empty(q)
    for lane in range(lanes):
        for chain in range(chains):
            at, gradient = theta[lane, chain], gradients[lane, chain]
            square = 0.0
            for i in range(dim):
                square += at[i] * at[i]
                gradient[i] = precision * at[i]
            value = 0.5 * precision * square
            if terms.model == LEARNT_DAVIDSON:
                gradient[dim] = terms.tie_precision * (at[dim] - terms.parameter)
                value += 0.5 * gradient[dim] * (at[dim] - terms.parameter)
            for t in range(terms.rounds):
                value += _add_answer(at, gradient, lane, t, terms, utilities, slopes)
            if terms.mu[lane] > 0.0:
                value += _add_tilt(at, gradient, lane, chain, terms)
            values[lane, chain] = value if square <= radius * radius else math.inf


@inner
def _stage(theta: FloatArray, lane: int, t: int, begin: int, terms: SlateTerms, rows: FloatArray, weights: FloatArray) -> Any:
    """Fill rows (q + 1, width) and utilities (q + 1,) of the candidates of one stage, from `begin` to the returned end."""
    features, size = terms.features[lane, t], terms.sizes[t]
    dim = features.shape[1]
    for k in range(begin, size):
        weights[k] = 0.0
        rows[k] = 0.0
        for i in range(dim):
            rows[k, i] = features[k, i]
            weights[k] += theta[i] * rows[k, i]
    if terms.model != LEARNT_DAVIDSON or begin > 0:
        return size
    weights[size], rows[size] = theta[dim], 0.0
    rows[size, dim] = 1.0
    for k in range(size):
        weights[size] += weights[k] / size
        for i in range(dim):
            rows[size, i] += rows[k, i] / size
    return size + 1


@entry
def slate_curvature(theta: FloatArray, terms: SlateTerms, curvature: FloatArray) -> None:
    """Add eta times the sum of the stages' covariances of features to curvature (lanes, width, width), at theta (lanes, width).

    It is the Hessian of the loss without a model of ties, a tie being one stage, and with a learnt nu, where a tie is one more
    candidate: the mean of the others, and 1 in the coordinate of log nu. For the other models of ties it stands in.
    """
    lanes, width = theta.shape
    placed, eta, q = terms.placed, terms.eta, terms.features.shape[2]
    weights, mean, rows = np.empty(q + 1), np.empty(width), np.empty((q + 1, width))
    for lane in range(lanes):
        for t in range(terms.rounds):
            for m in range(max(1, min(placed[lane, t], terms.sizes[t] - 1))):
                end = _stage(theta[lane], lane, t, m, terms, rows, weights)
                top = weights[m:end].max()
                total = 0.0
                for k in range(m, end):
                    weights[k] = math.exp(weights[k] - top)
                    total += weights[k]
                mean[:] = 0.0
                for k in range(m, end):
                    for i in range(width):
                        mean[i] += weights[k] / total * rows[k, i]
                for k in range(m, end):
                    share = eta[lane] * weights[k] / total
                    for i in range(width):
                        for j in range(width):
                            curvature[lane, i, j] += share * (rows[k, i] - mean[i]) * (rows[k, j] - mean[j])
