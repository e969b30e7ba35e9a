"""The curvature of one table of comparisons at its mode, by Newton's method in NumPy.

The steps are those of `curvature_lanes`. A table is read once, and compiling that kernel takes longer than finding the mode of
any but the largest.
"""

from __future__ import annotations

import math

import numpy as np

from duelist.core.checks import FloatArray
from duelist.posteriors.potential import LinearPotential
from duelist.preferences.table_loss import TableLoss
from duelist.samplers.curvature import MAX_ITERATIONS, TOLERANCE, Curvature, flat_precision, no_curvature


def curvature_of_table(table: TableLoss, potential: LinearPotential) -> Curvature:
    """The curvature of a potential whose likelihood is that of the table, as one lane."""
    identity = np.eye(potential.dim)
    ridge = float(potential.prior.precision) + flat_precision(potential)
    mode, whitener = np.zeros(potential.dim), identity
    for _ in range(MAX_ITERATIONS):
        with np.errstate(over="ignore", invalid="ignore"):  # it is looked at on the next line
            value, gradient = _objective(table, ridge, mode)
            hessian = table.hessian(mode) + ridge * identity
        if not (math.isfinite(value) and np.isfinite(gradient).all() and np.isfinite(hessian).all()):
            raise no_curvature(0)
        try:
            # Lower triangular; `tril` takes away what rounding left above the diagonal.
            whitener = np.tril(np.linalg.solve(np.linalg.cholesky(hessian), identity))
        except np.linalg.LinAlgError:
            raise no_curvature(0) from None
        direction = whitener.T @ (whitener @ gradient)
        decrement = float(gradient @ direction)
        if decrement < TOLERANCE:
            break
        mode = _descended(table, ridge, mode, direction, value, decrement)
    return Curvature(mode[None], whitener[None], potential.observations)


def _objective(table: TableLoss, ridge: float, theta: FloatArray) -> tuple[float, FloatArray]:
    value, gradient = table.value_and_gradient(theta[None])
    return float(value[0]) + 0.5 * ridge * float(theta @ theta), gradient[0] + ridge * theta


def _descended(
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
