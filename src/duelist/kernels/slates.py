"""Compiled sums over answered slates: Plackett-Luce losses, ties of duels, and the Feel-Good maximum."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from duelist.kernels.compile import entry, inner
from duelist.typing import FloatArray, IntArray

NO_TIES, DAVIDSON, RAO_KUPPER, BOTH_BAD = 0, 1, 2, 3


@inner
def _softplus(u: float) -> float:
    return max(u, 0.0) + math.log1p(math.exp(-abs(u)))


@inner
def _sigmoid(u: float) -> float:
    return 1.0 / (1.0 + math.exp(-u)) if u >= 0.0 else math.exp(u) / (1.0 + math.exp(u))


@inner
def ranked_loss(utilities: FloatArray, placed: int, slopes: FloatArray) -> float:
    """-log P of utilities (q,) being in this order, the first `placed` of them ranked; slopes (q,) get its gradient."""
    q = utilities.shape[0]
    slopes[:] = 0.0
    loss = 0.0
    for m in range(min(placed, q - 1)):
        top = utilities[m]
        for k in range(m + 1, q):
            top = max(top, utilities[k])
        total = 0.0
        for k in range(m, q):
            total += math.exp(utilities[k] - top)
        loss += top + math.log(total) - utilities[m]
        for k in range(m, q):
            slopes[k] += math.exp(utilities[k] - top) / total
        slopes[m] -= 1.0
    return loss


@inner
def tied_loss(utilities: FloatArray, placed: int, model: int, parameter: float, slopes: FloatArray) -> Any:
    """-log P of a duel under a model of ties: the first of utilities (2,) won if placed > 0, else it was the third answer."""
    u = utilities[0] - utilities[1]
    if model == RAO_KUPPER:
        threshold = math.log(parameter)
        loss, slope = _softplus(threshold - u), -_sigmoid(threshold - u)
        if placed == 0:
            loss += _softplus(threshold + u) - math.log(parameter * parameter - 1.0)
            slope += _sigmoid(threshold + u)
        slopes[0], slopes[1] = slope, -slope
        return loss
    if model == DAVIDSON:
        a, b, c = 0.5 * u, -0.5 * u, math.log(parameter)
    else:
        a, b, c = utilities[0], utilities[1], parameter
    top = max(a, b, c)
    x, y, z = math.exp(a - top), math.exp(b - top), math.exp(c - top)
    total = x + y + z
    loss = top + math.log(total) - (a if placed > 0 else c)
    in_a, in_b = x / total - (1.0 if placed > 0 else 0.0), y / total
    if model == DAVIDSON:
        slopes[0] = 0.5 * (in_a - in_b)
        slopes[1] = -slopes[0]
    else:
        slopes[0], slopes[1] = in_a, in_b
    return loss


class SlateTerms(NamedTuple):
    """All terms of a posterior over answered slates as flat arrays. See `duelist.posteriors.slates`."""

    features: FloatArray  # (lanes, capacity, choices, dim) in the order of the answer
    placed: IntArray  # (lanes, capacity)
    rounds: int
    model: int  # of ties, or NO_TIES
    parameter: float  # of that model
    sets: FloatArray  # (lanes, n_sets, n_arms, dim)
    repeats: FloatArray  # (n_sets,)
    adversary: FloatArray  # (lanes, choices, dim)
    eta: FloatArray  # (lanes,)
    mu: FloatArray  # (lanes,)
    precision: float
    radius: float


@inner
def _add_tilt(theta: FloatArray, gradient: FloatArray, lane: int, chain: int, terms: SlateTerms) -> float:
    """Feel-Good tilt of one draw and lane; its gradient is added to `gradient` (dim,)."""
    sets, adversary, mu = terms.sets[lane], terms.adversary[lane, chain], terms.mu[lane]
    dim = theta.shape[0]
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


@entry
def slate_potential(theta: FloatArray, terms: SlateTerms, values: FloatArray, gradients: FloatArray) -> None:
    """Fill values (lanes, chains) and gradients (lanes, chains, dim) of the potential at theta (lanes, chains, dim)."""
    lanes, chains, dim = theta.shape
    features, placed, precision, radius = terms.features, terms.placed, terms.precision, terms.radius
    q = features.shape[2]
    utilities, slopes = np.empty(q), np.empty(q)
    for lane in range(lanes):
        eta = terms.eta[lane]
        for chain in range(chains):
            at, gradient = theta[lane, chain], gradients[lane, chain]
            square = 0.0
            for i in range(dim):
                square += at[i] * at[i]
                gradient[i] = precision * at[i]
            value = 0.5 * precision * square
            for t in range(terms.rounds):
                for k in range(q):
                    utility = 0.0
                    for i in range(dim):
                        utility += at[i] * features[lane, t, k, i]
                    utilities[k] = utility
                if terms.model == NO_TIES:
                    value += eta * ranked_loss(utilities, placed[lane, t], slopes)
                else:
                    value += eta * tied_loss(utilities, placed[lane, t], terms.model, terms.parameter, slopes)
                for k in range(q):
                    weight = eta * slopes[k]
                    for i in range(dim):
                        gradient[i] += weight * features[lane, t, k, i]
            if terms.mu[lane] > 0.0:
                value += _add_tilt(at, gradient, lane, chain, terms)
            values[lane, chain] = value if square <= radius * radius else math.inf


@entry
def slate_curvature(theta: FloatArray, terms: SlateTerms, curvature: FloatArray) -> None:
    """Add eta times the sum of the stages' covariances of features to curvature (lanes, dim, dim), at theta (lanes, dim).

    It is the Hessian of the ranking loss; for a model of ties it stands in, with a tie counted as one stage.
    """
    lanes, dim = theta.shape
    features, placed, eta = terms.features, terms.placed, terms.eta
    q = features.shape[2]
    weights, mean = np.empty(q), np.empty(dim)
    for lane in range(lanes):
        for t in range(terms.rounds):
            for m in range(max(1, min(placed[lane, t], q - 1))):
                top = -math.inf
                for k in range(m, q):
                    utility = 0.0
                    for i in range(dim):
                        utility += theta[lane, i] * features[lane, t, k, i]
                    weights[k] = utility
                    top = max(top, utility)
                total = 0.0
                for k in range(m, q):
                    weights[k] = math.exp(weights[k] - top)
                    total += weights[k]
                mean[:] = 0.0
                for k in range(m, q):
                    for i in range(dim):
                        mean[i] += weights[k] / total * features[lane, t, k, i]
                for k in range(m, q):
                    for i in range(dim):
                        for j in range(dim):
                            curvature[lane, i, j] += (
                                eta[lane]
                                * weights[k]
                                / total
                                * (features[lane, t, k, i] - mean[i])
                                * (features[lane, t, k, j] - mean[j])
                            )
