"""The Bradley-Terry-Luce model: the first candidate wins with probability s(<theta, z>), s the logistic sigmoid.

The paper writes sigma(u) = log(1 + e^-u) for the *loss*; the sigmoid is another function. Here the loss is `log_loss` and
the sigmoid `win_probability`, so that the two cannot be confused.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from duelist.typing import FloatArray, IntArray


def win_probability(logit: npt.ArrayLike) -> FloatArray:
    """Chance that the first candidate wins, s(u) = 1 / (1 + e^-u).

    Example:
        >>> float(win_probability(0.0))
        0.5
    """
    return np.asarray(expit(np.asarray(logit, dtype=np.float64)))


def log_loss(logit: npt.ArrayLike) -> FloatArray:
    """The paper's sigma(u) = log(1 + e^-u) = -log s(u), without overflow for any finite u.

    Example:
        >>> float(log_loss(-700.0))
        700.0
    """
    u = np.asarray(logit, dtype=np.float64)
    return np.log1p(np.exp(-np.abs(u))) + np.maximum(-u, 0.0)


def log_loss_slope(logit: npt.ArrayLike) -> FloatArray:
    """First derivative of `log_loss`: -s(-u)."""
    return -win_probability(-np.asarray(logit, dtype=np.float64))


def log_loss_curvature(logit: npt.ArrayLike) -> FloatArray:
    """Second derivative of `log_loss`: s(u) s(-u), at most 1/4."""
    u = np.asarray(logit, dtype=np.float64)
    return win_probability(u) * win_probability(-u)


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
