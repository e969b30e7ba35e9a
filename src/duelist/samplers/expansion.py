"""A second-order expansion of the likelihood: what a long history looks like from where the posterior is.

With t duels behind it the posterior has a width of order 1/sqrt(t), and over such a width the log likelihood is a
parabola up to terms of order 1/sqrt(t). So beyond a stated number of distinct contrasts they are replaced by

    U(theta) ~ <g, theta - r> + 1/2 <theta - r, H (theta - r)>,

slope g and Hessian H at the reference r, the mode. A step of a chain then costs O(dim^2) whatever t is. A new duel adds its
own slope and curvature at r, O(dim^2); r moves to the new mode, with a pass over all contrasts, whenever the number of duels
has grown by a twentieth, which is a constant amount of work a round on average.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.core.checks import FloatArray, IntArray
from duelist.core.compiled import kernel, part
from duelist.posteriors.potential import LinearPotential
from duelist.posteriors.potential_kernels import Likelihood, LinearTerms
from duelist.preferences.logistic_kernels import add_loss_gradient, add_loss_hessian
from duelist.samplers.curvature import Curvature, renewed


class Expansion(NamedTuple):
    """An expansion of the tempered likelihood, without the prior.

    Attributes:
        reference: (lanes, dim) where it is taken.
        slope: (lanes, dim) gradient there.
        hessian: (lanes, dim, dim) curvature there.
        n_rows: (lanes,) distinct contrasts that it covers.
        observations: duels that it covers; -1 for no expansion yet.
        centred: number of duels when the reference was chosen.
    """

    reference: FloatArray
    slope: FloatArray
    hessian: FloatArray
    n_rows: IntArray
    observations: int
    centred: int


def no_expansion(lanes: int, dim: int) -> Expansion:
    """Nothing expanded yet."""
    zeros = np.zeros((lanes, dim))
    return Expansion(zeros, zeros, np.zeros((lanes, dim, dim)), np.zeros(lanes, dtype=np.int64), -1, -1)


@kernel
def expand_lanes(slope: FloatArray, hessian: FloatArray, reference: FloatArray, likelihood: Likelihood) -> None:
    """Slope and Hessian of all contrasts at the reference, in place of what is there."""
    slope[:] = 0.0
    hessian[:] = 0.0
    capacity = likelihood.contrasts.shape[2]
    logits, scratch = np.empty(capacity), np.empty(capacity)
    for lane in range(reference.shape[0]):
        n = likelihood.n_rows[lane]
        if n > 0:
            contrasts, totals, losses, eta = (
                likelihood.contrasts[lane],
                likelihood.totals[lane, :n],
                likelihood.losses[lane, :n],
                likelihood.eta[lane],
            )
            add_loss_gradient(slope[lane], reference[lane], contrasts, totals, losses, eta, logits[:n], scratch[:n])
            add_loss_hessian(hessian[lane], reference[lane], contrasts, totals, eta, logits[:n], scratch[:n])


@part
def _add_duels(
    slope: FloatArray,
    hessian: FloatArray,
    reference: FloatArray,
    lane: int,
    p: int,
    total: float,
    lost: float,
    likelihood: Likelihood,
) -> None:
    """Add `total` duels of contrast p, `lost` of them lost, to the slope (dim,) and Hessian (dim, dim) of a lane."""
    dim = reference.shape[0]
    u = 0.0
    for i in range(dim):
        u += likelihood.contrasts[lane, i, p] * reference[i]
    e = math.exp(-abs(u))
    lose = (e if u > 0.0 else 1.0) / (1.0 + e)
    slope_p = likelihood.eta[lane] * (lost - total * lose)
    curvature_p = likelihood.eta[lane] * total * lose * (1.0 - lose)
    for i in range(dim):
        z = likelihood.contrasts[lane, i, p]
        slope[i] += slope_p * z
        for j in range(dim):
            hessian[i, j] += curvature_p * z * likelihood.contrasts[lane, j, p]


@kernel
def extend_lanes(
    slope: FloatArray, hessian: FloatArray, reference: FloatArray, likelihood: Likelihood, n_rows: IntArray
) -> None:
    """Add the contrasts from n_rows (lanes,) on, with all their duels."""
    for lane in range(reference.shape[0]):
        for p in range(n_rows[lane], likelihood.n_rows[lane]):
            total, lost = likelihood.totals[lane, p], likelihood.losses[lane, p]
            _add_duels(slope[lane], hessian[lane], reference[lane], lane, p, total, lost, likelihood)


@kernel
def extend_by_newest(
    slope: FloatArray, hessian: FloatArray, reference: FloatArray, likelihood: Likelihood, rows: IntArray, lost: FloatArray
) -> None:
    """Add one duel a lane, of contrast rows (lanes,); none where the row is -1."""
    for lane in range(reference.shape[0]):
        if rows[lane] >= 0:
            _add_duels(slope[lane], hessian[lane], reference[lane], lane, rows[lane], 1.0, lost[lane], likelihood)


def covering(expansion: Expansion, curvature: Curvature, potential: LinearPotential) -> Expansion:
    """The expansion of all duels of this potential around the mode of `curvature`."""
    likelihood = potential.packed.likelihood
    grown = potential.observations - expansion.observations
    # Where old duels are discounted they are not as they were, and what was added up is of no use.
    kept = not grown or potential.memory >= potential.observations
    if kept and expansion.observations >= 0 and expansion.centred == curvature.observations:
        if not grown:
            return expansion
        slope, hessian = expansion.slope.copy(), expansion.hessian.copy()
        longer = expansion._replace(
            slope=slope, hessian=hessian, n_rows=likelihood.n_rows.copy(), observations=potential.observations
        )
        if grown == 1 and potential.newest is not None:
            extend_by_newest(slope, hessian, expansion.reference, likelihood, *potential.newest)
            return longer
        if (
            likelihood.n_rows - expansion.n_rows == grown
        ).all():  # every new duel a new contrast: the old ones are as they were
            extend_lanes(slope, hessian, expansion.reference, likelihood, expansion.n_rows)
            return longer
    slope, hessian = np.empty_like(expansion.slope), np.empty_like(expansion.hessian)
    expand_lanes(slope, hessian, curvature.mode, likelihood)
    return Expansion(curvature.mode, slope, hessian, likelihood.n_rows.copy(), potential.observations, curvature.observations)


def shaped(curvature: Curvature, expansion: Expansion, potential: LinearPotential) -> tuple[Curvature, Expansion, LinearTerms]:
    """The curvature renewed, the expansion where the history is long, and the terms that the kernels should read."""
    curvature = renewed(curvature, potential)
    if not potential.is_long:
        return curvature, expansion, potential.packed
    expansion = covering(expansion, curvature, potential)
    return curvature, expansion, potential.expanded(expansion.reference, expansion.slope, expansion.hessian)
