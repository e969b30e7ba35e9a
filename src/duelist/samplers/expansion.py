"""A second-order expansion of the likelihood: what a long history looks like from where the posterior is.

With t duels behind it the posterior has a width of order 1/sqrt(t), and over such a width the log likelihood is
quadratic up to terms of order 1/sqrt(t). So beyond a stated number of distinct contrasts they are replaced by

    U(theta) ~ <g, theta - r> + 1/2 <theta - r, H (theta - r)>,

slope g and Hessian H at the reference r, the mode. A step of a chain then costs O(dim^2) whatever t is. A new duel adds its
own slope and curvature at r, O(dim^2); r moves to the new mode, with a pass over all contrasts, whenever the number of duels
has grown by a twentieth, which is a constant amount of work per round on average.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duelist.core.stored_names import stored
from duelist.kernels.gaussian import expand_lanes, extend_by_newest, extend_lanes
from duelist.kernels.potential import LinearTerms, QuadraticTerm
from duelist.posteriors.linear import LinearPotential, empty_likelihood
from duelist.samplers.curvature import Curvature, refresh_curvature
from duelist.typing import FloatArray, IntArray


@stored("expansion")
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


def extend_expansion(expansion: Expansion, curvature: Curvature, potential: LinearPotential) -> Expansion:
    """The expansion of all duels of this potential around the mode of `curvature`."""
    likelihood = potential.compiled_terms.likelihood
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
        # Where every new duel is a new contrast, the old ones are as they were.
        if (likelihood.n_rows - expansion.n_rows == grown).all():
            extend_lanes(slope, hessian, expansion.reference, likelihood, expansion.n_rows)
            return longer
    slope, hessian = np.empty_like(expansion.slope), np.empty_like(expansion.hessian)
    expand_lanes(slope, hessian, curvature.mode, likelihood)
    return Expansion(curvature.mode, slope, hessian, likelihood.n_rows.copy(), potential.observations, curvature.observations)


def is_long(potential: LinearPotential) -> bool:
    """Whether some lane has more distinct contrasts than a sampler has to read one by one."""
    limit = potential.exact_rows
    if limit is None or potential.observations <= limit:
        return False
    return int(potential.likelihood.n_rows.max()) > limit


def substitute(expansion: Expansion, potential: LinearPotential) -> LinearTerms:
    """The terms of the potential with the expansion of the likelihood in place of its contrasts."""
    terms = potential.compiled_terms
    likelihood = empty_likelihood(potential.lanes, potential.dim)._replace(eta=terms.likelihood.eta)
    return terms._replace(
        likelihood=likelihood, quadratic=QuadraticTerm(expansion.reference, expansion.slope, expansion.hessian)
    )


def prepare_terms(
    curvature: Curvature, expansion: Expansion, potential: LinearPotential
) -> tuple[Curvature, Expansion, LinearTerms]:
    """The curvature refreshed, the expansion where the history is long, and the terms that the kernels should read."""
    curvature = refresh_curvature(curvature, potential)
    if not is_long(potential):
        return curvature, expansion, potential.compiled_terms
    expansion = extend_expansion(expansion, curvature, potential)
    return curvature, expansion, substitute(expansion, potential)
