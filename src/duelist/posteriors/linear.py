"""The potential of a posterior, -log density up to a constant: prior, preference likelihood and Feel-Good tilt.

The likelihood and the tilt are the tuples of arrays that kernels read, so nothing is wrapped between a history and a kernel:

    statistics = history.statistics
    LinearPotential.of(prior, statistics, eta=eta, mu=mu)                      # what most callers write
    LinearPotential(prior, likelihood_from(statistics, eta), tilt, chains=2)   # term by term
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from duelist.actions.support import CallbackSets, side_by_side
from duelist.core.errors import ImproperPosteriorError, InvalidInputError
from duelist.history.statistics import Newest, Statistics
from duelist.kernels.logistic import Likelihood
from duelist.kernels.potential import LinearTerms, QuadraticTerm, Tilt, evaluate
from duelist.posteriors.priors import Prior
from duelist.typing import FloatArray


def likelihood_from(statistics: Statistics, eta: FloatArray) -> Likelihood:
    """The likelihood of the outcomes, tempered by eta (lanes,): 1 is the Bayesian likelihood, 0 ignores the data."""
    return Likelihood(statistics.contrasts, statistics.totals, statistics.losses, statistics.n_rows, eta)


def empty_likelihood(lanes: int, dim: int) -> Likelihood:
    """The likelihood of no duels."""
    counts, n_rows = np.zeros((lanes, 0)), np.zeros(lanes, dtype=np.int64)
    return Likelihood(np.zeros((lanes, dim, 0)), counts, counts, n_rows, np.zeros(lanes))


def finite_tilt(sets: FloatArray, repeats: FloatArray, adversary: FloatArray, mu: FloatArray) -> Tilt:
    """The Feel-Good tilt over finite action sets alone.

    Args:
        sets: (lanes, n_sets, dim, n_arms) the distinct action sets of past rounds.
        repeats: (n_sets,) how often each was offered.
        adversary: (lanes, chains, dim) sum over rounds of the features of the arm that the *other* draw chose.
        mu: (lanes,) weight.
    """
    lanes, _, dim = adversary.shape
    # An empty last axis, so that kernels pay nothing for boxes where there are none.
    return Tilt(sets, repeats, adversary, mu, 0.0, np.zeros((lanes, 0)), np.zeros((lanes, 0, dim, dim)), np.zeros(0))


def tilt_from(statistics: Statistics, mu: FloatArray) -> Tilt:
    """The Feel-Good tilt of both draws of a duel, from a history that keeps its action sets; mu (lanes,) is its weight.

    It favours parameters under which past rounds held a better arm than the adversary's, so it is *subtracted* from the
    potential; -max is concave, so the sum is not log-concave. Sets that only a callback can maximise over are not in it: see
    `LinearPotential.callback_sets`.
    """
    support = statistics.support
    kept = statistics.repeats.sum() > 0 or statistics.ball_reach > 0 or support is not None
    if not kept and statistics.adversary.any():
        raise InvalidInputError(
            "the Feel-Good term needs the action set of every past round, and this history did not keep them. "
            "Start it with History.start(..., keep_sets=True)."
        )
    sets, repeats, adversary = statistics.sets, statistics.repeats, statistics.adversary
    if support is not None:
        # <centre, theta> counts for the set as <adversary, theta> counts against it.
        adversary = adversary - support.centre[:, None]
        if support.point_repeats.size:
            sets = side_by_side([sets[:, : len(repeats)], support.points])
            repeats = np.concatenate([repeats, support.point_repeats])
    tilt = finite_tilt(sets, repeats, adversary, mu)._replace(ball_reach=statistics.ball_reach)
    if support is None:
        return tilt
    return tilt._replace(spread=support.spread, shapes=support.shapes, shape_repeats=support.shape_repeats)


class LinearPotential:
    """-log density of a posterior whose utilities are linear in features.

    U_j(theta) = precision / 2 |theta|^2 + eta sum_i log(1 + exp(-y_i <theta, z_i>))
                 - mu sum_i ( max_{a in A_i} <theta, phi(a)> - <theta, phi(a_i^{3-j})> ),  infinite outside the prior's ball.

    Args:
        prior: on theta, the same for every lane and chain.
        likelihood: of the outcomes; `empty_likelihood` for none.
        tilt: the Feel-Good tilt; None is plain Thompson sampling.
        chains: draws per lane, 2 for a duel.
        observations: number of duels behind the likelihood; samplers refresh what they tuned as it grows.
        memory: what those duels add up to where old ones are discounted; None if each counts in full.
        exact_rows: distinct contrasts up to which a sampler must read them one by one; beyond, it may put a second-order
            expansion in their place. None for always one by one.
        callback_sets: action sets of the tilt that only a Python callback can maximise over, and how often each was offered.
        newest: the newest duel behind the likelihood, where it is known.
    """

    def __init__(
        self,
        prior: Prior,
        likelihood: Likelihood,
        tilt: Tilt | None = None,
        *,
        chains: int,
        observations: int = 0,
        memory: float | None = None,
        exact_rows: int | None = None,
        callback_sets: CallbackSets = (),
        newest: Newest | None = None,
    ) -> None:
        if not prior.precision > 0.0 and math.isinf(prior.radius):
            raise ImproperPosteriorError(
                f"the prior {prior!r} is flat on all of R^dim: with separable data, or a Feel-Good tilt, the posterior "
                f"is improper. Use Gaussian(scale), or a ball: UniformBall(radius) or GaussianBall(scale, radius)."
            )
        self.lanes, self.dim, _ = likelihood.contrasts.shape
        self.chains = chains
        _check_shapes(likelihood, tilt, (self.lanes, chains, self.dim))
        self.prior, self.tilt, self._likelihood = prior, tilt, likelihood
        self.callback_sets, self.newest = callback_sets, newest
        self.observations, self.exact_rows = observations, exact_rows
        self.memory = float(observations) if memory is None else memory

    @classmethod
    def of(
        cls,
        prior: Prior,
        statistics: Statistics,
        *,
        eta: FloatArray,
        mu: FloatArray | None = None,
        chains: int = 2,
        observations: int = 0,
        memory: float | None = None,
        exact_rows: int | None = None,
    ) -> LinearPotential:
        """The potential of a history: eta (lanes,) tempers the likelihood, mu (lanes,) weighs the tilt; None for no tilt."""
        support = statistics.support
        return cls(
            prior,
            likelihood_from(statistics, eta),
            None if mu is None else tilt_from(statistics, mu),
            chains=chains,
            observations=observations,
            memory=memory,
            exact_rows=exact_rows,
            callback_sets=() if mu is None or support is None else support.callback_sets,
            newest=statistics.newest,
        )

    @property
    def likelihood(self) -> Likelihood:
        """The likelihood, as kernels read it."""
        return self._likelihood

    @property
    def needs_python(self) -> bool:
        """Whether kernels cannot evaluate all of it, so that a sampler has to ask for values and gradients step by step."""
        return bool(self.callback_sets)

    @property
    def mu(self) -> FloatArray:
        """(lanes,) weight of the Feel-Good tilt; 0 without one."""
        return np.zeros(self.lanes) if self.tilt is None else self.tilt.mu

    @property
    def precision(self) -> FloatArray:
        """(lanes,) coefficient of |theta|^2 / 2."""
        return self._compilable.precision

    @property
    def compiled_terms(self) -> LinearTerms:
        """Everything as flat arrays for kernels; refused where kernels cannot evaluate all of it."""
        if self.callback_sets:
            kinds = sorted({type(actions).__name__ for actions, _ in self.callback_sets})
            raise InvalidInputError(
                f"this sampler is compiled and cannot ask {', '.join(kinds)} for its best arm, which the Feel-Good term needs. "
                f'Use sampler="mala", or mu=0 for plain Thompson sampling.'
            )
        return self._compilable

    @cached_property
    def _compilable(self) -> LinearTerms:
        """The terms that kernels can evaluate: all but the callback sets."""
        precision = np.full(self.lanes, float(self.prior.precision))
        nothing = np.zeros((self.lanes, 0))
        no_expansion = QuadraticTerm(nothing, nothing, np.zeros((self.lanes, 0, 0)))
        return LinearTerms(precision, float(self.prior.radius), self.likelihood, self.tilt, no_expansion)

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
        evaluate(np.ascontiguousarray(theta), self._compilable, values, gradients)
        for actions, repeats in self.callback_sets:
            weight = repeats * self.mu[:, None]
            best = actions.best(theta)
            values -= weight * best.value
            gradients -= weight[..., None] * best.features
        return values, gradients


def _check_shapes(likelihood: Likelihood, tilt: Tilt | None, shape: tuple[int, int, int]) -> None:
    """Kernels do not check bounds, so shapes are checked before they are reached."""
    lanes, _, dim = shape
    if likelihood.eta.shape != (lanes,):
        raise InvalidInputError(
            f"a likelihood with contrasts for {lanes} lane(s) of dimension {dim} needs eta ({lanes},); got "
            f"{likelihood.eta.shape}."
        )
    if tilt is not None and (tilt.adversary.shape != shape or tilt.mu.shape != (lanes,)):
        raise InvalidInputError(
            f"a Feel-Good tilt needs an adversary of shape (lanes, chains, dim) = {shape} and mu ({lanes},); got "
            f"{tilt.adversary.shape} and {tilt.mu.shape}."
        )
