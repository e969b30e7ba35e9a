"""Preconditioning: the inverse Cholesky factor of the curvature at the mode, which makes the posterior look round.

The mode is that of prior + likelihood; the Feel-Good tilt is piecewise linear and has no curvature. A ball without a
Gaussian gets the precision of the uniform law on it, so that the factor exists before there are data. The factor only
shapes proposals, so an old one costs efficiency and never correctness: it is refreshed as the data grow, not every round.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.core.errors import NonFiniteError
from duelist.core.stored_names import stored
from duelist.kernels.gaussian import MAX_ITERATIONS, TOLERANCE, curvature_lanes
from duelist.kernels.logistic import Likelihood
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Prior
from duelist.posteriors.table import TableLoss
from duelist.typing import FloatArray

_NEAR = 0.25  # Newton decrement from which on the Hessian of a table is taken along: half a posterior sd in all
_GROWTH = 20  # refresh when the number of duels has grown by a twentieth, or a twentieth of what is remembered is new


@stored("curvature")
class Curvature(NamedTuple):
    """What is known of the posterior's shape.

    Attributes:
        mode: (lanes, dim) maximum of prior x likelihood.
        whitener: (lanes, dim, dim) inverse of the lower Cholesky factor of the curvature there.
        observations: number of duels it was computed from; -1 for never.
    """

    mode: FloatArray
    whitener: FloatArray
    observations: int


def unknown_curvature(lanes: int, dim: int) -> Curvature:
    """Nothing known yet: to be refreshed on first use."""
    return Curvature(np.zeros((lanes, dim)), np.zeros((lanes, dim, dim)), -1)


def flat_precision(prior: Prior, dim: int) -> float:
    """Precision that stands in for a ball: the uniform law on radius R has covariance R^2 / (dim + 2) in every direction."""
    return (dim + 2) / prior.radius**2 if math.isfinite(prior.radius) else 0.0


def refresh_curvature(curvature: Curvature, potential: LinearPotential) -> Curvature:
    """The curvature for this potential: the old one while the data have hardly grown, else a new one."""
    seen = curvature.observations
    if seen >= 0 and seen <= potential.observations <= seen + min(seen, int(potential.memory)) // _GROWTH:
        return curvature
    precision = potential.precision + flat_precision(potential.prior, potential.dim)
    return fit_curvature(curvature, potential.likelihood, precision, potential.observations)


def fit_curvature(curvature: Curvature, likelihood: Likelihood, precision: FloatArray, observations: int) -> Curvature:
    """The mode of a likelihood and a prior of precision (lanes,), from where the old one was, and the curvature there."""
    mode, whitener = curvature.mode.copy(), np.empty_like(curvature.whitener)
    flags = np.empty(len(mode), dtype=np.int64)
    curvature_lanes(mode, whitener, precision, likelihood, flags)
    if (flags == 0).any() or not np.isfinite(mode).all():
        raise curvature_error(int(np.argmax((flags == 0) | ~np.isfinite(mode).all(axis=1))))
    return Curvature(mode, whitener, observations)


def curvature_error(lane: int) -> NonFiniteError:
    """What to raise where the curvature has no Cholesky factor."""
    return NonFiniteError(
        f"the curvature of the posterior in lane {lane} is not positive definite. Features this large overflow; "
        f"scale them so that |<theta, z>| stays below a few hundred, or use a tighter prior."
    )


def curvature_of_table(table: TableLoss, potential: LinearPotential, *, start: FloatArray | None = None) -> Curvature:
    """The curvature of a potential whose likelihood is that of the table, as one lane; `start` (dim,) is near the mode.

    A Hessian costs as much as dozens of gradients. So it is taken along while steps are short, and without a start worked out
    at the mode in the end; from a start near the mode it is the one from there.
    """
    identity = np.eye(potential.dim)
    ridge = float(potential.prior.precision) + flat_precision(potential.prior, potential.dim)
    mode, whitener, far = np.zeros(potential.dim) if start is None else start, identity, True
    for _ in range(MAX_ITERATIONS):
        with np.errstate(over="ignore", invalid="ignore"):  # it is looked at on the next line
            value, gradient = _objective(table, ridge, mode)
        if not (math.isfinite(value) and np.isfinite(gradient).all()):
            raise curvature_error(0)
        if far:
            whitener = _whitener_of_table(table, ridge, mode)
        direction = whitener.T @ (whitener @ gradient)
        decrement = float(gradient @ direction)
        if decrement < TOLERANCE:
            break
        far = decrement > _NEAR
        mode = _descend(table, ridge, mode, direction, value, decrement)
    if start is None and not far:
        whitener = _whitener_of_table(table, ridge, mode)
    return Curvature(mode[None], whitener[None], potential.observations)


def _whitener_of_table(table: TableLoss, ridge: float, theta: FloatArray) -> FloatArray:
    identity = np.eye(len(theta))
    with np.errstate(over="ignore", invalid="ignore"):  # it is looked at on the next line
        hessian = table.hessian(theta) + ridge * identity
    if not np.isfinite(hessian).all():
        raise curvature_error(0)
    try:
        # Lower triangular; `tril` takes away what rounding left above the diagonal.
        return np.tril(np.linalg.solve(np.linalg.cholesky(hessian), identity))
    except np.linalg.LinAlgError:
        raise curvature_error(0) from None


def _objective(table: TableLoss, ridge: float, theta: FloatArray) -> tuple[float, FloatArray]:
    value, gradient = table.value_and_gradient(theta[None])
    return float(value[0]) + 0.5 * ridge * float(theta @ theta), gradient[0] + ridge * theta


def _descend(
    table: TableLoss, ridge: float, mode: FloatArray, direction: FloatArray, value: float, decrement: float
) -> FloatArray:
    """The end of a Newton step that is halved until it descends."""
    step = 1.0
    while step > 1e-10:
        with np.errstate(over="ignore", invalid="ignore"):  # too long a step may overflow; a shorter one will not
            found, _ = _objective(table, ridge, mode - step * direction)
        # The slack covers rounding: near the minimum the true descent is below the last digit of the value.
        if found <= value - 1e-4 * step * decrement + 1e-12 * abs(value):
            break
        step *= 0.5
    return mode - step * direction
