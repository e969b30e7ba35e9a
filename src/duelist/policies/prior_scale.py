"""How large theta is, learnt from the duels: the ridge with the highest evidence.

A Gaussian prior N(0, I / ridge) needs a scale, and a wrong one costs dearly: too wide, and early wins look decisive; too
narrow, and nothing does. The evidence of a ridge, by Laplace's approximation at its fit theta_r,

    log p(data | r) = -loss(theta_r) - r/2 |theta_r|^2 + d/2 log r - 1/2 log det H_r  (+ constant),

is compared over a grid around a base that makes the arms' utilities have variance 1, under a log-normal prior on the ridge.
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

# Factors of the base ridge that are compared: utilities' standard deviation from 4 down to 1/4.
FACTORS: FloatArray = np.array([4.0 ** (half / 2) for half in range(-4, 5)])
# Standard deviation of log(ridge / base): the scale is known to about a factor of two either way before there are data.
_LOG_SPREAD = math.log(4.0)


def base_ridge(actions: FiniteActions) -> FloatArray:
    """(lanes,) the ridge under which the arms' utilities vary with variance 1 around their mean."""
    centred = actions.features - actions.features.mean(axis=1, keepdims=True)
    spread = (centred**2).sum(axis=2).mean(axis=1)
    return np.asarray(np.maximum(spread, np.finfo(float).tiny))


@kernel
def evidence_lanes(
    theta: FloatArray,
    whitener: FloatArray,
    ridge: FloatArray,
    base: FloatArray,
    factors: FloatArray,
    contrasts: FloatArray,
    totals: FloatArray,
    losses: FloatArray,
    n_rows: IntArray,
) -> None:
    """Set every lane's ridge to the one with the highest evidence, and theta and whitener to its fit."""
    lanes, dim = theta.shape
    hessian, factor, trial, kept = np.empty((dim, dim)), np.empty((dim, dim)), np.empty(dim), np.empty(dim)
    for lane in range(lanes):
        n = n_rows[lane]
        logits, slopes = np.empty(n), np.empty(n)
        trial[:] = theta[lane]
        highest = -math.inf
        for g in range(factors.shape[0]):
            r = base[lane] * factors[g]
            # Each fit starts from the last one: neighbouring ridges have neighbouring minima.
            fit_lane(trial, hessian, contrasts[lane], totals[lane, :n], losses[lane, :n], 1.0, r, TOLERANCE, MAX_ITERATIONS)
            if not cholesky_into(factor, hessian):
                continue
            utilities_into(logits, contrasts[lane], trial)
            evidence = -loss_and_slopes(logits, totals[lane, :n], losses[lane, :n], slopes)
            log_factor = math.log(factors[g])
            evidence -= 0.5 * (log_factor / _LOG_SPREAD) ** 2
            for i in range(dim):
                evidence += 0.5 * math.log(r) - 0.5 * r * trial[i] * trial[i] - math.log(factor[i, i])
            if evidence > highest:
                highest = evidence
                ridge[lane] = r
                kept[:] = trial
                invert_lower(whitener[lane], factor)
        theta[lane] = kept
