"""The potential of a posterior, -log density up to a constant, as the sum of its terms."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from duelist.core.checks import FloatArray
from duelist.core.errors import ImproperPosteriorError, InvalidInputError
from duelist.posteriors.potential_kernels import LinearTerms, evaluate
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
    def packed(self) -> LinearTerms:
        """The terms as flat arrays for kernels; a missing term is an empty one."""
        likelihood, feel_good = self._terms.get(PreferenceTerm), self._terms.get(FeelGoodTerm)
        zero = np.zeros(self.lanes)
        if isinstance(likelihood, PreferenceTerm):
            contrasts, totals, losses, n_rows, *_ = likelihood.statistics
            eta = likelihood.eta
        else:
            contrasts, totals, losses = np.zeros((self.lanes, self.dim, 0)), zero[:, None][:, :0], zero[:, None][:, :0]
            n_rows, eta = np.zeros(self.lanes, dtype=np.int64), zero
        if isinstance(feel_good, FeelGoodTerm):
            sets, repeats, adversary, mu = feel_good.sets, feel_good.repeats, feel_good.adversary, feel_good.mu
            ball_reach = feel_good.ball_reach
        else:
            sets, repeats = np.zeros((self.lanes, 0, self.dim, 0)), np.zeros(0)
            adversary, mu, ball_reach = np.zeros((self.lanes, self.chains, self.dim)), zero, 0.0
        return LinearTerms(
            np.full(self.lanes, float(self.prior.precision)),
            float(self.prior.radius),
            contrasts,
            totals,
            losses,
            n_rows,
            eta,
            sets,
            repeats,
            adversary,
            mu,
            ball_reach,
            np.zeros((self.lanes, 0)),
            np.zeros((self.lanes, 0)),
            np.zeros((self.lanes, 0, 0)),
        )

    @property
    def is_long(self) -> bool:
        """Whether there are more distinct contrasts in some lane than a sampler has to read one by one."""
        if self.exact_rows is None or self.observations <= self.exact_rows:
            return False
        return int(self.packed.n_rows.max()) > self.exact_rows

    def expanded(self, reference: FloatArray, slope: FloatArray, quadratic: FloatArray) -> LinearTerms:
        """The terms with the expansion of the likelihood around `reference` in place of its contrasts."""
        return self.packed._replace(
            contrasts=np.zeros((self.lanes, self.dim, 0)),
            totals=np.zeros((self.lanes, 0)),
            losses=np.zeros((self.lanes, 0)),
            n_rows=np.zeros(self.lanes, dtype=np.int64),
            reference=reference,
            slope=slope,
            quadratic=quadratic,
        )

    def value(self, theta: FloatArray) -> FloatArray:
        """Potential at theta (lanes, chains, dim): (lanes, chains)."""
        return self._evaluate(theta)[0]

    def gradient(self, theta: FloatArray) -> FloatArray:
        """Gradient at theta (lanes, chains, dim), of the same shape; a subgradient where two arms tie."""
        return self._evaluate(theta)[1]

    def _evaluate(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        if theta.shape != (self.lanes, self.chains, self.dim):
            wanted = (self.lanes, self.chains, self.dim)
            raise InvalidInputError(f"theta must be {wanted}, as (lanes, chains, dim); got {theta.shape}.")
        values, gradients = np.empty(theta.shape[:2]), np.empty(theta.shape)
        evaluate(np.ascontiguousarray(theta), self.packed, values, gradients)
        return values, gradients
