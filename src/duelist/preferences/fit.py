"""Regularised maximum likelihood that never diverges, for all lanes at once."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from duelist.history.statistics import Statistics
from duelist.kernels.logistic import Likelihood, fit_lanes
from duelist.typing import FloatArray, IntArray

# On the squared Newton decrement: half of it estimates how far the objective is above its minimum.
TOLERANCE = 1e-12
MAX_ITERATIONS = 100


class Fit(NamedTuple):
    """A fit in every lane.

    Attributes:
        theta: (lanes, dim) the minimiser of ridge/2 |theta|^2 + weight * loss.
        hessian: (lanes, dim, dim) curvature of that objective there, ridge included.
        iterations: (lanes,) Newton iterations used.
        converged: (lanes,) whether the tolerance was met.
    """

    theta: FloatArray
    hessian: FloatArray
    iterations: IntArray
    converged: npt.NDArray[np.bool_]


def fit(
    statistics: Statistics,
    *,
    ridge: FloatArray,
    weight: FloatArray,
    start: FloatArray,
    tolerance: float = TOLERANCE,
    max_iterations: int = MAX_ITERATIONS,
) -> Fit:
    """Fit every lane by damped Newton from `start` (lanes, dim), which stays as it is.

    Args:
        statistics: what was compared and who won.
        ridge: (lanes,) positive: it makes the minimiser finite and unique on separable data.
        weight: (lanes,) factor of the loss (the eta of a tempered likelihood; 1 for maximum likelihood).
        start: where to begin; the previous round's fit makes one or two iterations enough.
        tolerance: on the squared Newton decrement.
        max_iterations: after which a lane counts as not converged.
    """
    theta = start.copy()
    lanes, dim = theta.shape
    hessian = np.empty((lanes, dim, dim))
    iterations = np.empty(lanes, dtype=np.int64)
    fit_lanes(
        theta,
        hessian,
        Likelihood(statistics.contrasts, statistics.totals, statistics.losses, statistics.n_rows, weight),
        ridge,
        tolerance,
        max_iterations,
        iterations,
    )
    return Fit(theta, hessian, np.abs(iterations), iterations > 0)
