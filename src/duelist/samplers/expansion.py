"""A second-order expansion of the likelihood: what a long history looks like from where the posterior is.

With t duels behind it the posterior has a width of order 1/sqrt(t), and over such a width the log likelihood is
quadratic up to terms of order 1/sqrt(t). So beyond a stated number of distinct contrasts they are replaced by

    U(theta) ~ <g, theta - r> + 1/2 <theta - r, H (theta - r)>,

slope g and Hessian H at the reference r, the mode. A step of a chain then costs O(dim^2) whatever t is. A new duel adds its
own slope and curvature at r, O(dim^2), and the inverse Cholesky factor and the mode follow. r moves to the new mode whenever
the number of duels has grown by a twentieth. That takes a pass over all contrasts, which is made in parts: a few dozen with
every new duel. So no round is slow, however long the history is. In very large dimensions the factor of the new Hessian and the
inverse of that factor take a duel each.

In large dimensions the mode and its curvature follow every duel in this way from the first one on, also while all contrasts
are still read one by one: a factor from scratch takes O(dim^3). Before the first pass is through, each duel moves the Gaussian
to the mode of itself times the duel's likelihood.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from duelist.core.stored_names import Fields, stored
from duelist.history.statistics import Newest
from duelist.kernels.gaussian import (
    Belief,
    Pass,
    expand_lanes,
    extend_by_newest,
    extend_lanes,
    factor_expansions,
    follow_duels,
    whiten_expansions,
)
from duelist.kernels.linalg.factors import LARGE
from duelist.kernels.logistic import Likelihood
from duelist.kernels.potential import LinearTerms, QuadraticTerm
from duelist.posteriors.linear import LinearPotential, empty_likelihood
from duelist.samplers.curvature import (
    Curvature,
    curvature_error,
    fit_curvature,
    flat_precision,
    refresh_curvature,
    unknown_curvature,
)
from duelist.typing import FloatArray, IntArray

_GROWTH = 20  # a new reference when the number of duels has grown by a twentieth
_ROWS_PER_DUEL = 32  # of a pass: it is through when the history has grown by a thirty-second
_SHORT = 1024  # duels up to which a pass is made at once in small dimensions: it takes a millisecond or two
_SLOW = 512  # dimension from which on a factor and its inverse are not both worked out with one duel: 30 ms each at 1,536
_FEW = 64  # duels that may be taken in one by one, however few were known


def _upgrade(version: int, fields: Fields) -> Fields:
    """Version 1 moved its reference at once, and 2 had the factor of a pass as soon as it was through."""
    nothing = _no_pass(*fields["reference"].shape)
    return {**fields, **nothing} if version == 1 else {**fields, "next_factor": nothing["next_factor"]}


@stored("expansion", version=3, upgrade=_upgrade)
class Expansion(NamedTuple):
    """An expansion of the tempered likelihood, without the prior.

    Attributes:
        reference: (lanes, dim) where it is taken.
        slope: (lanes, dim) gradient there.
        hessian: (lanes, dim, dim) curvature there.
        n_rows: (lanes,) distinct contrasts that it covers.
        observations: duels that it covers; -1 for none yet.
        centred: number of duels when the reference was chosen; -1 while there is no expansion, and no Hessian.
        next_reference: (lanes, dim) of the pass under way, as the next three.
        next_slope: (lanes, dim).
        next_hessian: (lanes, dim, dim), or (lanes, 0, 0) while there is no pass.
        next_rows: (lanes,) contrasts that the pass has read.
        next_centred: number of duels when the pass began.
        next_factor: (lanes, dim, dim) Cholesky factor of its curvature before the newest duel, or (lanes, 0, 0).
    """

    reference: FloatArray
    slope: FloatArray
    hessian: FloatArray
    n_rows: IntArray
    observations: int
    centred: int
    next_reference: FloatArray
    next_slope: FloatArray
    next_hessian: FloatArray
    next_rows: IntArray
    next_centred: int
    next_factor: FloatArray


def no_expansion(lanes: int, dim: int) -> Expansion:
    """Nothing expanded yet."""
    zeros = np.zeros((lanes, dim))
    return Expansion(zeros, zeros, np.zeros((lanes, dim, dim)), np.zeros(lanes, dtype=np.int64), -1, -1, **_no_pass(lanes, dim))


def _no_pass(lanes: int, dim: int) -> dict[str, Any]:
    zeros, nothing = np.zeros((lanes, dim)), np.zeros((lanes, 0, 0))
    pass_ = {"next_reference": zeros, "next_slope": zeros, "next_hessian": nothing}
    return {**pass_, "next_rows": np.zeros(lanes, dtype=np.int64), "next_centred": -1, "next_factor": nothing}


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
            extend_by_newest(slope, hessian, expansion.reference, likelihood, potential.newest.row, potential.newest.lost)
            return longer
        # Where every new duel is a new contrast, the old ones are as they were.
        if (likelihood.n_rows - expansion.n_rows == grown).all():
            extend_lanes(slope, hessian, expansion.reference, likelihood, expansion.n_rows)
            return longer
    slope, hessian = np.empty_like(expansion.slope), np.empty_like(expansion.hessian)
    expand_lanes(slope, hessian, curvature.mode, likelihood)
    return Expansion(
        curvature.mode,
        slope,
        hessian,
        likelihood.n_rows.copy(),
        potential.observations,
        curvature.observations,
        **_no_pass(potential.lanes, potential.dim),
    )


def is_long(potential: LinearPotential) -> bool:
    """Whether some lane has more distinct contrasts than a sampler has to read one by one."""
    limit = potential.exact_rows
    if limit is None or potential.observations <= limit:
        return False
    likelihood = potential.likelihood
    return likelihood.contrasts.shape[2] > limit and int(likelihood.n_rows.max()) > limit


def substitute(expansion: Expansion, potential: LinearPotential) -> LinearTerms:
    """The terms of the potential with the expansion of the likelihood in place of its contrasts."""
    terms = potential.compiled_terms
    likelihood = empty_likelihood(potential.lanes, potential.dim)._replace(eta=terms.likelihood.eta)
    return terms._replace(
        likelihood=likelihood, quadratic=QuadraticTerm(expansion.reference, expansion.slope, expansion.hessian)
    )


def follows(potential: LinearPotential) -> bool:
    """Whether the mode and its curvature follow the duels one by one: in large dimensions, and in long histories."""
    if potential.memory < potential.observations:  # where old duels are discounted, what was added up is of no use
        return False
    return potential.dim >= LARGE or (potential.observations > _SHORT and is_long(potential))


def prepare_terms(
    curvature: Curvature, expansion: Expansion, potential: LinearPotential
) -> tuple[Curvature, Expansion, LinearTerms]:
    """The curvature refreshed, the expansion where the history is long, and the terms that the kernels should read."""
    small = potential.dim < LARGE and potential.observations <= _SHORT
    if small or not follows(potential):
        curvature = refresh_curvature(curvature, potential)
        if not is_long(potential):
            return curvature, expansion, potential.compiled_terms
        expansion = extend_expansion(expansion, curvature, potential)
        return curvature, expansion, substitute(expansion, potential)
    duels = Following(
        potential.likelihood,
        potential.precision + flat_precision(potential.prior, potential.dim),
        potential.newest,
        potential.observations,
    )
    curvature, expansion = follow(curvature, expansion, duels)
    if not is_long(potential):
        return curvature, expansion, potential.compiled_terms
    if expansion.centred < 0:
        if int(potential.likelihood.n_rows.max()) <= 2 * (potential.exact_rows or 0):
            return curvature, expansion, potential.compiled_terms  # the first pass is under way
        curvature, expansion = start_following(unknown_curvature(potential.lanes, potential.dim), duels, expand=True)
    return curvature, expansion, substitute(expansion, potential)


class Following(NamedTuple):
    """What a Gaussian follows.

    Attributes:
        likelihood: of all duels.
        precision: (lanes,) of the prior, or what stands in for it.
        newest: the newest duel, where it is known.
        observations: number of duels.
    """

    likelihood: Likelihood
    precision: FloatArray
    newest: Newest | None
    observations: int


def follow(curvature: Curvature, expansion: Expansion, duels: Following) -> tuple[Curvature, Expansion]:
    """Mode, curvature and expansion after new duels, each taken in by itself; from scratch where it is not known which came."""
    if expansion.observations == duels.observations == curvature.observations:
        return curvature, expansion
    likelihood = duels.likelihood
    news = _new_duels(expansion, duels) if curvature.observations == expansion.observations else None
    if news is None:
        return start_following(curvature, duels)
    rows, lost = news
    expansion = _begin_pass(expansion, curvature)
    held = expansion.centred >= 0
    slope, hessian = expansion.slope, expansion.hessian
    if held:
        slope, hessian = slope.copy(), hessian.copy()
    expansion = expansion._replace(
        slope=slope,
        hessian=hessian,
        n_rows=likelihood.n_rows.copy(),
        observations=duels.observations,
        next_slope=expansion.next_slope.copy(),
        next_hessian=expansion.next_hessian.copy(),
        next_rows=expansion.next_rows.copy(),
    )
    curvature = Curvature(curvature.mode.copy(), curvature.whitener.copy(), duels.observations)
    belief = _belief(curvature, expansion, duels, held=held)
    coming = Pass(expansion.next_reference, expansion.next_slope, expansion.next_hessian, expansion.next_rows)
    follow_duels(belief, coming, likelihood, rows, lost, _ROWS_PER_DUEL * rows.shape[1])
    if expansion.next_centred >= 0 and (expansion.next_rows == likelihood.n_rows).all():
        return _end_pass(curvature, expansion, duels, rows)
    return curvature, expansion


def _new_duels(expansion: Expansion, duels: Following) -> tuple[IntArray, FloatArray] | None:
    """Rows (lanes, n) and losses (lanes, n) of the duels that came since; None if that is not known, or if they are many."""
    grown, n_rows = duels.observations - expansion.observations, duels.likelihood.n_rows
    if expansion.observations < 0 or grown <= 0 or grown > max(_FEW, expansion.observations // 4):
        return None
    if grown == 1 and duels.newest is not None:
        return duels.newest.row[:, None], duels.newest.lost[:, None]
    if not (n_rows - expansion.n_rows == grown).all():
        return None
    rows = expansion.n_rows[:, None] + np.arange(grown)
    return rows, np.take_along_axis(duels.likelihood.losses, rows, axis=1)


def start_following(curvature: Curvature, duels: Following, *, expand: bool = False) -> tuple[Curvature, Expansion]:
    """A Gaussian to follow from: the one that is known while it is nearly new, else that of all duels by a fit.

    Args:
        curvature: what is known.
        duels: what to follow from now on.
        expand: have the expansion at once, by a pass over all contrasts, in place of a pass in parts.
    """
    lanes, dim = curvature.mode.shape
    likelihood, seen = duels.likelihood, curvature.observations
    if duels.observations == 0:
        # No factor to work out: it is that of the prior.
        whitener = np.eye(dim) / np.sqrt(duels.precision)[:, None, None]
        curvature = Curvature(np.zeros((lanes, dim)), whitener, 0)
    elif seen < 0 or duels.observations < seen or duels.observations - seen > max(seen // 10, 1):
        curvature = fit_curvature(curvature, likelihood, duels.precision, duels.observations)
    curvature = curvature._replace(observations=duels.observations)
    known = no_expansion(lanes, dim)._replace(n_rows=likelihood.n_rows.copy(), observations=duels.observations)
    if expand:
        slope, hessian = np.empty_like(known.slope), np.empty_like(known.hessian)
        expand_lanes(slope, hessian, curvature.mode, likelihood)
        known = known._replace(reference=curvature.mode, slope=slope, hessian=hessian, centred=duels.observations)
    return curvature, known


def _begin_pass(expansion: Expansion, curvature: Curvature) -> Expansion:
    """The expansion with a pass that is about to begin, where one is due."""
    lanes, dim = curvature.mode.shape
    seen, started = expansion.observations, expansion.centred
    few = seen < dim // 4  # where the factor from scratch costs more than it is worth
    if expansion.next_centred >= 0 or few or (started >= 0 and seen - started <= started // _GROWTH):
        return expansion
    return expansion._replace(
        next_reference=curvature.mode,
        next_slope=np.zeros((lanes, dim)),
        next_hessian=np.zeros((lanes, dim, dim)),
        next_rows=np.zeros(lanes, dtype=np.int64),
        next_centred=seen,
    )


def _end_pass(curvature: Curvature, expansion: Expansion, duels: Following, rows: IntArray) -> tuple[Curvature, Expansion]:
    """The expansion of the pass that is through, with its mode and curvature; in very large dimensions its factor first.

    rows (lanes, n) are the duels that came since the factor was worked out, if it was.
    """
    lanes, dim = curvature.mode.shape
    factor = expansion.next_factor
    if factor.shape[1] == 0:
        factor = np.empty((lanes, dim, dim))
        bad_lane = factor_expansions(factor, expansion.next_hessian, duels.precision)
        if bad_lane >= 0:
            raise curvature_error(bad_lane)
        if dim >= _SLOW:
            return curvature, expansion._replace(next_factor=factor)
        rows = rows[:, :0]
    renewed = expansion._replace(
        reference=expansion.next_reference,
        slope=expansion.next_slope,
        hessian=expansion.next_hessian,
        centred=expansion.next_centred,
        **_no_pass(lanes, dim),
    )
    whiten_expansions(_belief(curvature, renewed, duels, held=True), factor, duels.likelihood, np.ascontiguousarray(rows))
    return curvature, renewed


def _belief(curvature: Curvature, expansion: Expansion, duels: Following, *, held: bool) -> Belief:
    """What kernels change; without an expansion if it is not `held`."""
    hessian = expansion.hessian if held else np.zeros((len(expansion.hessian), 0, 0))
    return Belief(curvature.mode, curvature.whitener, duels.precision, expansion.reference, expansion.slope, hessian)
