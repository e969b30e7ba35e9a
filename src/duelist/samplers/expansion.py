"""A second-order expansion of the likelihood: what a long history looks like from where the posterior is.

With t duels behind it the posterior has a width of order 1/sqrt(t), and over such a width the log likelihood is
quadratic up to terms of order 1/sqrt(t). So beyond a stated number of distinct contrasts they are replaced by

    U(theta) ~ <g, theta - r> + 1/2 <theta - r, H (theta - r)>,

slope g and Hessian H at the reference r, near the mode. A step of a chain then costs O(dim^2) whatever t is. A new duel adds
its own slope and curvature at r, O(dim^2). When the number of duels has grown by a twentieth, r moves to where the expansion
has its mode. That takes a pass over all contrasts. Where it would take long, it is spread over the rounds that follow: each
reads a few hundred, and until the last is read the old expansion stays in use. So no round waits for it, however long the
history is.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duelist.core.stored_names import Fields, stored
from duelist.kernels.gaussian import expand_lanes, extend_by_newest, extend_lanes
from duelist.kernels.potential import LinearTerms, QuadraticTerm
from duelist.posteriors.linear import LinearPotential, empty_likelihood
from duelist.samplers.curvature import Curvature, curvature_error, flat_precision, needs_refresh, refresh_curvature
from duelist.typing import FloatArray, IntArray

_QUICK = 2**23  # numbers of the Hessians of all contrasts up to which a pass over them takes milliseconds
_AT_ONCE = 256  # contrasts that a round reads ahead, or this part of all of them where that is more


@stored("expansion-ahead")
class Ahead(NamedTuple):
    """An expansion that is being worked out.

    Attributes:
        reference: (lanes, dim) where it is taken.
        slope: (lanes, dim) gradient there of the contrasts that were read.
        hessian: (lanes, dim, dim) their curvature.
        n_rows: (lanes,) contrasts read so far.
    """

    reference: FloatArray
    slope: FloatArray
    hessian: FloatArray
    n_rows: IntArray


def _nothing_ahead(version: int, fields: Fields) -> Fields:  # noqa: ARG001 - there is one older version
    """Version 1 took its pass over all contrasts in one round."""
    return {**fields, "ahead": None}


@stored("expansion", version=2, upgrade=_nothing_ahead)
class Expansion(NamedTuple):
    """An expansion of the tempered likelihood, without the prior.

    Attributes:
        reference: (lanes, dim) where it is taken.
        slope: (lanes, dim) gradient there.
        hessian: (lanes, dim, dim) curvature there.
        n_rows: (lanes,) distinct contrasts that it covers.
        observations: duels that it covers; -1 for no expansion yet.
        centred: number of duels when the reference was chosen.
        ahead: the next one, while it is worked out.
    """

    reference: FloatArray
    slope: FloatArray
    hessian: FloatArray
    n_rows: IntArray
    observations: int
    centred: int
    ahead: Ahead | None = None


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
    long, n_rows = is_long(potential), int(potential.likelihood.n_rows.max())
    follows = 0 <= expansion.observations <= potential.observations and expansion.centred == curvature.observations
    if long and follows and n_rows * potential.dim**2 > _QUICK and potential.memory >= potential.observations:
        curvature, expansion = _move_on(curvature, expansion, potential)
        return curvature, expansion, substitute(expansion, potential)
    curvature = refresh_curvature(curvature, potential)
    if not long:
        return curvature, expansion, potential.compiled_terms
    expansion = extend_expansion(expansion, curvature, potential)
    return curvature, expansion, substitute(expansion, potential)


def _move_on(curvature: Curvature, expansion: Expansion, potential: LinearPotential) -> tuple[Curvature, Expansion]:
    """The expansion of all duels around the reference it has, and one step of the way to the next."""
    ahead = _count_returns(expansion, potential)
    if ahead is None and expansion.ahead is not None:  # what was read is of no use: work it all out now
        curvature = refresh_curvature(curvature, potential)
        return curvature, extend_expansion(expansion._replace(ahead=None), curvature, potential)
    longer = extend_expansion(expansion, curvature, potential)
    if ahead is None and not needs_refresh(curvature, potential):
        return curvature, longer._replace(ahead=None)
    if ahead is None:
        zeros, rows = np.zeros_like(longer.slope), np.zeros_like(longer.n_rows)
        mode, _ = _mode_and_whitener(longer.reference, longer.slope, longer.hessian, potential)
        ahead = Ahead(mode, zeros, np.zeros_like(longer.hessian), rows)
    ahead = _read_on(ahead, potential)
    if (ahead.n_rows < potential.likelihood.n_rows).any():
        return curvature, longer._replace(ahead=ahead)
    mode, whitener = _mode_and_whitener(ahead.reference, ahead.slope, ahead.hessian, potential)
    seen = potential.observations
    return Curvature(mode, whitener, seen), Expansion(*ahead, seen, seen)


def _count_returns(expansion: Expansion, potential: LinearPotential) -> Ahead | None:
    """What was read ahead, with the duels since then of contrasts that were read; None where that is not known."""
    ahead, likelihood = expansion.ahead, potential.compiled_terms.likelihood
    grown = potential.observations - expansion.observations
    if ahead is None or (likelihood.n_rows - expansion.n_rows == grown).all():
        return ahead  # nothing was read, or every new duel has a new contrast, which will be
    if grown != 1 or potential.newest is None:
        return None
    row, lost = potential.newest
    slope, hessian = ahead.slope.copy(), ahead.hessian.copy()
    extend_by_newest(slope, hessian, ahead.reference, likelihood, np.where(row < ahead.n_rows, row, -1), lost)
    return ahead._replace(slope=slope, hessian=hessian)


def _read_on(ahead: Ahead, potential: LinearPotential) -> Ahead:
    """Add the next contrasts of every lane."""
    likelihood = potential.compiled_terms.likelihood
    slope, hessian, n_rows = ahead.slope.copy(), ahead.hessian.copy(), ahead.n_rows.copy()
    for lane, start in enumerate(ahead.n_rows):
        stop = min(start + max(_AT_ONCE, likelihood.n_rows[lane] // _AT_ONCE), likelihood.n_rows[lane])
        contrasts = likelihood.contrasts[lane, :, start:stop]
        totals, losses = likelihood.totals[lane, start:stop], likelihood.losses[lane, start:stop]
        lose = 0.5 - 0.5 * np.tanh(0.5 * (ahead.reference[lane] @ contrasts))
        slope[lane] += likelihood.eta[lane] * (contrasts @ (losses - totals * lose))
        hessian[lane] += (contrasts * (likelihood.eta[lane] * totals * lose * (1.0 - lose))) @ contrasts.T
        n_rows[lane] = stop
    return ahead._replace(slope=slope, hessian=hessian, n_rows=n_rows)


def _mode_and_whitener(
    reference: FloatArray, slope: FloatArray, hessian: FloatArray, potential: LinearPotential
) -> tuple[FloatArray, FloatArray]:
    """The mode of the prior times an expansion, one Newton step from its reference, and the whitener of its curvature."""
    ridge = potential.precision + flat_precision(potential)
    identity = np.eye(potential.dim)
    try:
        factor = np.linalg.cholesky(hessian + ridge[:, None, None] * identity)
        whitener = np.tril(np.linalg.solve(factor, np.broadcast_to(identity, hessian.shape)))
    except np.linalg.LinAlgError:
        raise curvature_error(0) from None
    gradient = slope + ridge[:, None] * reference
    step = np.einsum("lji,ljk,lk->li", whitener, whitener, gradient, optimize=True)
    return reference - step, whitener
