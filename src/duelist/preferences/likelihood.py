"""The preference likelihood of a table of contrasts: loss, gradient and Hessian in theta.

Shapes: theta (dim,), contrasts (n, dim), outcomes (n,) of +1 (the first won) and -1.
"""

from __future__ import annotations

import numpy as np

from duelist.core.checks import FloatArray, IntArray
from duelist.preferences.logistic import log_loss, log_loss_curvature, log_loss_slope


def preference_loss(theta: FloatArray, contrasts: FloatArray, outcomes: IntArray) -> float:
    """Negative log likelihood, sum_i log(1 + exp(-y_i <theta, z_i>))."""
    return float(log_loss(outcomes * (contrasts @ theta)).sum())


def preference_gradient(theta: FloatArray, contrasts: FloatArray, outcomes: IntArray) -> FloatArray:
    """Gradient of `preference_loss`, -sum_i y_i s(-y_i <theta, z_i>) z_i."""
    gradient: FloatArray = contrasts.T @ (outcomes * log_loss_slope(outcomes * (contrasts @ theta)))
    return gradient


def preference_hessian(theta: FloatArray, contrasts: FloatArray) -> FloatArray:
    """Hessian of `preference_loss`, sum_i s'(<theta, z_i>) z_i z_i^T; outcomes do not enter."""
    hessian: FloatArray = (contrasts.T * log_loss_curvature(contrasts @ theta)) @ contrasts
    return np.asarray(hessian)
