"""The potential of a posterior, -log density up to a constant, as the sum of its terms."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from duelist.core.actions import ActionSet
from duelist.core.checks import FloatArray
from duelist.core.errors import ImproperPosteriorError, InvalidInputError
from duelist.core.statistics import Newest
from duelist.core.support import side_by_side
from duelist.posteriors.potential_kernels import Likelihood, LinearTerms, Parabola, Tilt, evaluate
from duelist.posteriors.priors import Prior
from duelist.posteriors.terms import FeelGoodTerm, PreferenceTerm, PriorTerm

Term = PriorTerm | PreferenceTerm | FeelGoodTerm


class LinearPotential:
    """Sum of terms that are linear in features: at most one of each kind, and a prior always.

    Args:
        terms: the terms, in any order.
        lanes: number of independent runs.
        chains: draws a lane, 2 for a duel.
        dim: length of theta.
        observations: number of duels behind the likelihood; samplers renew what they tuned as it grows.
        memory: what those duels add up to where old ones are discounted; None if each counts in full.
        exact_rows: distinct contrasts up to which a sampler must read them one by one; beyond, it may put a second-order
            expansion in their place. None for always one by one.

    The Feel-Good tilt is a term you add: a potential without one is plain Thompson sampling's.
    """

    def __init__(
        self,
        *terms: Term,
        lanes: int,
        chains: int,
        dim: int,
        observations: int = 0,
        memory: float | None = None,
        exact_rows: int | None = None,
    ) -> None:
        self.lanes, self.chains, self.dim = lanes, chains, dim
        self.observations, self.exact_rows = observations, exact_rows
        self.memory = float(observations) if memory is None else memory
        self._terms: dict[type, Term] = {}
        for term in terms:
            if type(term) in self._terms:
                raise InvalidInputError(f"a potential takes one {type(term).__name__}; got two. Add their weights up.")
            self._terms[type(term)] = term
        prior = self._terms.get(PriorTerm)
        if not isinstance(prior, PriorTerm):
            raise ImproperPosteriorError(
                "a potential needs a PriorTerm: without a prior the posterior of separable data is improper."
            )
        self.prior: Prior = prior.prior
        if not self.prior.precision > 0.0 and math.isinf(self.prior.radius):
            raise ImproperPosteriorError(
                f"the prior {self.prior!r} is flat on all of R^dim: with separable data, or a Feel-Good tilt, the posterior "
                f"is improper. Use Gaussian(scale), or a ball: UniformBall(radius) or GaussianBall(scale, radius)."
            )
        self._check_shapes()

    def _check_shapes(self) -> None:
        """Kernels do not check bounds, so shapes are checked before they are reached."""
        likelihood, feel_good = self._terms.get(PreferenceTerm), self._terms.get(FeelGoodTerm)
        if isinstance(likelihood, PreferenceTerm):
            lanes, dim, _ = likelihood.statistics.contrasts.shape
            if (lanes, dim) != (self.lanes, self.dim) or likelihood.eta.shape != (self.lanes,):
                raise InvalidInputError(
                    f"a likelihood for {self.lanes} lanes of dimension {self.dim} needs contrasts and eta of that many; got "
                    f"{lanes} lanes of dimension {dim} and eta of shape {likelihood.eta.shape}."
                )
        if isinstance(feel_good, FeelGoodTerm):
            wanted = (self.lanes, self.chains, self.dim)
            if feel_good.adversary.shape != wanted or feel_good.mu.shape != (self.lanes,):
                raise InvalidInputError(
                    f"a Feel-Good term needs an adversary of shape (lanes, chains, dim) = {wanted} and mu ({self.lanes},); got "
                    f"{feel_good.adversary.shape} and {feel_good.mu.shape}."
                )

    @cached_property
    def open_sets(self) -> tuple[tuple[ActionSet, float], ...]:
        """Action sets of the Feel-Good term that have no closed form, and how often each was offered."""
        feel_good = self._terms.get(FeelGoodTerm)
        support = feel_good.support if isinstance(feel_good, FeelGoodTerm) else None
        return () if support is None else support.open_sets

    @property
    def outside_kernels(self) -> bool:
        """Whether kernels cannot evaluate all of it, so that a sampler has to ask for values and gradients step by step."""
        return bool(self.open_sets)

    @property
    def mu(self) -> FloatArray:
        """(lanes,) weight of the Feel-Good tilt; 0 without one."""
        feel_good = self._terms.get(FeelGoodTerm)
        return feel_good.mu if isinstance(feel_good, FeelGoodTerm) else np.zeros(self.lanes)

    @property
    def packed(self) -> LinearTerms:
        """The terms as flat arrays for kernels, where they say everything about the potential."""
        if self.open_sets:
            kinds = sorted({type(actions).__name__ for actions, _ in self.open_sets})
            raise InvalidInputError(
                f"this sampler is compiled and cannot ask {', '.join(kinds)} for its best arm, which the Feel-Good term needs. "
                f'Use sampler="mala", or mu=0 for plain Thompson sampling.'
            )
        return self.packed_but_open_sets

    @cached_property
    def packed_but_open_sets(self) -> LinearTerms:
        """The terms as flat arrays for kernels; open sets are missing."""
        precision = np.full(self.lanes, float(self.prior.precision))
        nothing = np.zeros((self.lanes, 0))
        parabola = Parabola(nothing, nothing, np.zeros((self.lanes, 0, 0)))
        return LinearTerms(precision, float(self.prior.radius), self._packed_likelihood(), self._packed_tilt(), parabola)

    def _packed_likelihood(self) -> Likelihood:
        term = self._terms.get(PreferenceTerm)
        if isinstance(term, PreferenceTerm):
            return Likelihood(*term.statistics[:4], term.eta)
        return self._no_duels()

    def _no_duels(self) -> Likelihood:
        no_counts, no_rows = np.zeros((self.lanes, 0)), np.zeros(self.lanes, dtype=np.int64)
        return Likelihood(np.zeros((self.lanes, self.dim, 0)), no_counts, no_counts, no_rows, np.zeros(self.lanes))

    def _packed_tilt(self) -> Tilt | None:
        term = self._terms.get(FeelGoodTerm)
        if not isinstance(term, FeelGoodTerm):
            return None
        sets, repeats, adversary, support = term.sets, term.repeats, term.adversary, term.support
        if support is None:
            # An empty last axis, so that kernels pay nothing for boxes where there are none.
            spread, shapes, shape_repeats = (
                np.zeros((self.lanes, 0)),
                np.zeros((self.lanes, 0, self.dim, self.dim)),
                np.zeros(0),
            )
        else:
            spread, shapes, shape_repeats = support.spread, support.shapes, support.shape_repeats
            # <centre, theta> counts for the set as <adversary, theta> counts against it.
            adversary = adversary - support.centre[:, None]
            if support.point_repeats.size:
                sets = side_by_side([sets[:, : len(repeats)], support.points])
                repeats = np.concatenate([repeats, support.point_repeats])
        return Tilt(sets, repeats, adversary, term.mu, term.ball_reach, spread, shapes, shape_repeats)

    @property
    def newest(self) -> Newest | None:
        """The newest duel behind the likelihood, where it is known."""
        likelihood = self._terms.get(PreferenceTerm)
        return likelihood.statistics.newest if isinstance(likelihood, PreferenceTerm) else None

    @property
    def is_long(self) -> bool:
        """Whether there are more distinct contrasts in some lane than a sampler has to read one by one."""
        if self.exact_rows is None or self.observations <= self.exact_rows:
            return False
        return int(self.packed_but_open_sets.likelihood.n_rows.max()) > self.exact_rows

    def expanded(self, reference: FloatArray, slope: FloatArray, quadratic: FloatArray) -> LinearTerms:
        """The terms with the expansion of the likelihood around `reference` in place of its contrasts."""
        likelihood = self._no_duels()._replace(eta=self.packed.likelihood.eta)
        return self.packed._replace(likelihood=likelihood, parabola=Parabola(reference, slope, quadratic))

    def value(self, theta: FloatArray) -> FloatArray:
        """Potential at theta (lanes, chains, dim): (lanes, chains)."""
        return self.value_and_gradient(theta)[0]

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Gradient at theta (lanes, chains, dim), of the same shape; a subgradient where two arms tie."""
        return self.value_and_gradient(theta)[1]

    def value_and_gradient(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both at once, at theta (lanes, chains, dim)."""
        if theta.shape != (self.lanes, self.chains, self.dim):
            wanted = (self.lanes, self.chains, self.dim)
            raise InvalidInputError(f"theta must be {wanted}, as (lanes, chains, dim); got {theta.shape}.")
        values, gradients = np.empty(theta.shape[:2]), np.empty(theta.shape)
        evaluate(np.ascontiguousarray(theta), self.packed_but_open_sets, values, gradients)
        for actions, repeats in self.open_sets:
            weight = repeats * self.mu[:, None]
            best = actions.best(theta)
            values -= weight * best.value
            gradients -= weight[..., None] * best.features
        return values, gradients
