"""How large theta is, learnt from the duels: a mixture over ridges, weighted by their evidence.

A Gaussian prior N(0, I / ridge) needs a scale, and a wrong one costs dearly: too wide, and early wins look decisive; too
narrow, and nothing does. The evidence of a ridge, by Laplace's approximation at its fit theta_r,

    log p(data | r) = -loss(theta_r) - r/2 |theta_r|^2 + d/2 log r - 1/2 log det H_r  (+ constant),

is compared over a grid around a base that makes the arms' utilities have variance 1, under a log-normal prior on the ridge.
The posterior is then the mixture of the Gaussians N(theta_r, H_r^-1), and the scale's own uncertainty is in it.
"""

from __future__ import annotations

import math

import numpy as np

from duelist.core.action_kernels import utilities_into
from duelist.core.actions import FiniteActions
from duelist.core.checks import FloatArray, IntArray
from duelist.core.compiled import kernel
from duelist.core.linear_kernels import cholesky_into, invert_lower
from duelist.policies.ucb_kernels import MAX_ITERATIONS, TOLERANCE
from duelist.preferences.logistic_kernels import fit_lane, loss_and_slopes

# Factors of the base ridge in the mixture: utilities' standard deviation from 4 down to 1/4.
FACTORS: FloatArray = np.array([4.0 ** (half / 2) for half in range(-4, 5)])
# Standard deviation of log(ridge / base): the scale is known to about a factor of two either way before there are data.
_LOG_SPREAD = math.log(4.0)
LOG_PRIOR: FloatArray = -0.5 * (np.log(FACTORS) / _LOG_SPREAD) ** 2
_NEGLIGIBLE = 0.01  # a ridge of less weight is left out until all are fitted again


def base_ridge(actions: FiniteActions) -> FloatArray:
    """(lanes,) the ridge under which the arms' utilities vary with variance 1 around their mean."""
    centred = actions.features - actions.features.mean(axis=1, keepdims=True)
    spread = (centred**2).sum(axis=2).mean(axis=1)
    return np.asarray(np.maximum(spread, np.finfo(float).tiny))


@kernel
def set_weights(weights: FloatArray, evidence: FloatArray) -> None:
    """Fill weights (n,) with exp(evidence), normalised; negligible ones are 0."""
    highest = -math.inf
    for g in range(evidence.shape[0]):
        highest = max(highest, evidence[g])
    total = 0.0
    for g in range(evidence.shape[0]):
        weights[g] = math.exp(evidence[g] - highest)
        total += weights[g]
    kept = 0.0
    for g in range(evidence.shape[0]):
        if weights[g] < _NEGLIGIBLE * total:
            weights[g] = 0.0
        kept += weights[g]
    for g in range(evidence.shape[0]):
        weights[g] /= kept


@kernel
def refit_scales(
    theta: FloatArray,
    whitener: FloatArray,
    evidence: FloatArray,
    weights: FloatArray,
    unconverged: FloatArray,
    ridges: FloatArray,
    log_prior: FloatArray,
    contrast: FloatArray,
    contrasts: FloatArray,
    totals: FloatArray,
    losses: FloatArray,
    n_rows: IntArray,
    everything: bool,
) -> None:
    """Fit every ridge that counts, or everything, in the lanes that learnt something; weigh them by their evidence.

    theta (lanes, ridges, dim) holds the fits, whitener (lanes, ridges, dim, dim) the inverse Cholesky factors of their
    curvatures. A lane whose arm met itself, contrast (lanes, dim) of 0, stays as it is.
    """
    lanes, n_ridges, dim = theta.shape
    hessian, factor = np.empty((dim, dim)), np.empty((dim, dim))
    for lane in range(lanes):
        n = n_rows[lane]
        logits, slopes = np.empty(n), np.empty(n)
        size = 0.0
        for i in range(dim):
            size += abs(contrast[lane, i])
        if size == 0.0 and not everything:
            continue
        for g in range(n_ridges):
            if weights[lane, g] == 0.0 and not everything:
                evidence[lane, g] = -math.inf  # what it was, it was with fewer duels
                continue
            r, fitted = ridges[lane, g], theta[lane, g]
            iterations = fit_lane(
                fitted, hessian, contrasts[lane], totals[lane, :n], losses[lane, :n], 1.0, r, TOLERANCE, MAX_ITERATIONS
            )
            unconverged[lane] += iterations < 0
            if not cholesky_into(factor, hessian):
                evidence[lane, g] = -math.inf
                continue
            invert_lower(whitener[lane, g], factor)
            utilities_into(logits, contrasts[lane], fitted)
            value = log_prior[g] - loss_and_slopes(logits, totals[lane, :n], losses[lane, :n], slopes)
            for i in range(dim):
                value += 0.5 * math.log(r) - 0.5 * r * fitted[i] * fitted[i] - math.log(factor[i, i])
            evidence[lane, g] = value
        set_weights(weights[lane], evidence[lane])
