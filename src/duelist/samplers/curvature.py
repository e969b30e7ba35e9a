"""Preconditioning: the inverse Cholesky factor of the curvature at the mode, which makes the posterior look round.

The mode is that of prior + likelihood; the Feel-Good tilt is piecewise linear and has no curvature. A ball without a
Gaussian gets the precision of the uniform law on it, so that the factor exists before there are data. The factor only
shapes proposals, so an old one costs efficiency and never correctness: it is renewed as the data grow, not every round.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.core.checks import FloatArray, IntArray
from duelist.core.compiled import kernel
from duelist.core.errors import NonFiniteError
from duelist.core.linear_kernels import cholesky_into, invert_lower
from duelist.posteriors.potential import LinearPotential
from duelist.posteriors.potential_kernels import Likelihood
from duelist.preferences.logistic_kernels import fit_lane

TOLERANCE = 1e-6  # on the Newton decrement: the mode to a thousandth of a posterior sd
MAX_ITERATIONS = 100
_GROWTH = 20  # renew when the number of duels has grown by a twentieth, or a twentieth of what is remembered is new


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


@kernel
def curvature_lanes(
    mode: FloatArray,
    whitener: FloatArray,
    precision: FloatArray,
    likelihood: Likelihood,
    extra_precision: float,
    flags: IntArray,
) -> None:
    """Find the mode of every lane from `mode`, and whiten its curvature."""
    dim = mode.shape[1]
    hessian, factor = np.empty((dim, dim)), np.empty((dim, dim))
    for lane in range(mode.shape[0]):
        n = likelihood.n_rows[lane]
        flags[lane] = fit_lane(
            mode[lane],
            hessian,
            likelihood.contrasts[lane],
            likelihood.totals[lane, :n],
            likelihood.losses[lane, :n],
            likelihood.eta[lane],
            precision[lane] + extra_precision,
            TOLERANCE,
            MAX_ITERATIONS,
        )
        if cholesky_into(factor, hessian):
            invert_lower(whitener[lane], factor)
        else:
            flags[lane] = 0


def unknown_curvature(lanes: int, dim: int) -> Curvature:
    """Nothing known yet: to be renewed on first use."""
    return Curvature(np.zeros((lanes, dim)), np.zeros((lanes, dim, dim)), -1)


def flat_precision(potential: LinearPotential) -> float:
    """Precision that stands in for a ball: the uniform law on radius R has covariance R^2 / (dim + 2) in every direction."""
    radius = potential.prior.radius
    return (potential.dim + 2) / radius**2 if math.isfinite(radius) else 0.0


def renewed(curvature: Curvature, potential: LinearPotential) -> Curvature:
    """The curvature for this potential: the old one while the data have hardly grown, else a new one."""
    seen = curvature.observations
    if seen >= 0 and seen <= potential.observations <= seen + min(seen, int(potential.memory)) // _GROWTH:
        return curvature
    terms = potential.packed_but_open_sets  # the Feel-Good tilt has no say in the curvature
    mode, whitener = curvature.mode.copy(), np.empty_like(curvature.whitener)
    flags = np.empty(potential.lanes, dtype=np.int64)
    curvature_lanes(mode, whitener, terms.precision, terms.likelihood, flat_precision(potential), flags)
    if (flags == 0).any() or not np.isfinite(mode).all():
        raise no_curvature(int(np.argmax((flags == 0) | ~np.isfinite(mode).all(axis=1))))
    return Curvature(mode, whitener, potential.observations)


def no_curvature(lane: int) -> NonFiniteError:
    """What to raise where the curvature has no Cholesky factor."""
    return NonFiniteError(
        f"the curvature of the posterior in lane {lane} is not positive definite. Features this large overflow; "
        f"scale them so that |<theta, z>| stays below a few hundred, or use a tighter prior."
    )
