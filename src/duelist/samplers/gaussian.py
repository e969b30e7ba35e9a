"""Gaussian approximations of the posterior, with independent draws: `Laplace` and `Online`. Approximate.

`Laplace` fits the mode of prior x likelihood and its curvature there. The Feel-Good tilt, whose curvature is that of kinks,
enters by its slope at the mode, which moves the mean by (curvature)^-1 times it. What is lost is the skewness of the posterior:
of order 1/sqrt(duels), and large while there are few.

`Online` makes one pass over the duels with O(dim^2) memory and stores none of them. The belief is N(m, P^-1). A contrast z seen
n times and lost l times moves it to the mode of belief x likelihood, which lies on the line m + a P^-1 z and solves one
equation in one unknown, u = <theta, z>,

    u - <m, z> = v eta (n s(-u) - l),    v = <z, P^-1 z>,

and adds its curvature there, P + eta n s(u) s(-u) z z^T. Earlier duels keep the curvature of the moment they were seen,
which is the approximation: it is worst while the belief still moves far. The Feel-Good maximum of a round enters by its
slope at the mean of that round.

Both respect a ball by drawing again.

Reference: Spiegelhalter & Lauritzen (1990), sequential updating of conditional probabilities, for the one-dimensional step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from duelist.core.checks import whole_number
from duelist.core.errors import InvalidInputError, NonFiniteError
from duelist.core.stored_names import nest, stored
from duelist.core.streams import Streams
from duelist.kernels.gaussian import absorb_lanes, gaussian_lanes
from duelist.kernels.philox import RandomSource
from duelist.kernels.potential import LinearTerms
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Prior
from duelist.samplers.base import prior_draws, random_source
from duelist.samplers.curvature import Curvature, flat_precision, refresh_curvature, unknown_curvature
from duelist.typing import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class _GaussianSampler:
    """Draws from a Gaussian, again and again until they are in the prior's ball.

    Args:
        tries: draws that may fall outside a ball before one is pulled onto it.
    """

    exact: ClassVar[bool] = False
    one_pass: ClassVar[bool] = False

    tries: int = 100

    def __post_init__(self) -> None:
        whole_number("tries", self.tries, at_least=1)

    def _draw(
        self, chains: int, mean: FloatArray, whitener: FloatArray, source: RandomSource, terms: LinearTerms
    ) -> tuple[FloatArray, IntArray]:
        """Draws (lanes, chains, dim), and how many of each lane (lanes,) were pulled onto the ball."""
        lanes, dim = mean.shape
        position, pulled = np.empty((lanes, chains, dim)), np.zeros(lanes, dtype=np.int64)
        bad_lane = gaussian_lanes(position, mean, whitener, source, self.tries, terms, pulled)
        if bad_lane >= 0:
            raise NonFiniteError(
                f"the Gaussian of lane {bad_lane} is not finite. Features this large overflow; scale them so that "
                f"|<theta, z>| stays below a few hundred."
            )
        return position, pulled


@stored("laplace-info")
class LaplaceInfo(NamedTuple):
    """Counters of `Laplace`: (lanes,) draws that had to be pulled onto the ball so far."""

    pulled: FloatArray


@stored("laplace-state", version=2, upgrade=nest(info=LaplaceInfo))
class LaplaceState(NamedTuple):
    """State of `Laplace`: (lanes, chains, dim) positions, the Gaussian they came from, and counters."""

    position: FloatArray
    curvature: Curvature
    info: LaplaceInfo


@dataclass(frozen=True, kw_only=True)
class Laplace(_GaussianSampler):
    """Draws from the Gaussian at the mode, a new independent one every round. Approximate.

    Args:
        tries: draws that may fall outside a ball before one is pulled onto it.
    """

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> LaplaceState:
        """Draws from the prior, before there is anything to fit."""
        lanes = len(streams)
        position = prior_draws(prior, streams, chains=chains, dim=dim)
        return LaplaceState(position, unknown_curvature(lanes, dim), LaplaceInfo(np.zeros(lanes)))

    def advance(
        self, potential: LinearPotential, state: LaplaceState, streams: Streams, round_: int, attempt: int = 0
    ) -> LaplaceState:
        """Fit the mode if there are new duels, and draw."""
        curvature, chains = state.curvature, state.position.shape[1]
        if curvature.observations != potential.observations:
            curvature = refresh_curvature(curvature._replace(observations=-1), potential)
        source = random_source(streams, round_, attempt, chains)
        position, pulled = self._draw(chains, curvature.mode, curvature.whitener, source, potential.compiled_terms)
        return LaplaceState(position, curvature, LaplaceInfo(state.info.pulled + pulled))

    def report(self, state: LaplaceState) -> dict[str, FloatArray]:
        """Draws that had to be pulled onto the ball so far, one number per lane."""
        return {"pulled": state.info.pulled}


@stored("online-state")
class OnlineState(NamedTuple):
    """State of `Online`: the running Gaussian of every lane, and draws from it.

    Attributes:
        position: (lanes, chains, dim) current draws.
        mean: (lanes, dim) of prior x likelihood.
        precision: (lanes, dim, dim).
        whitener: (lanes, dim, dim) inverse of its lower Cholesky factor.
        slope: (lanes, dim) sum over rounds of the slope of the Feel-Good maximum, without mu.
        observations: duels that went in.
    """

    position: FloatArray
    mean: FloatArray
    precision: FloatArray
    whitener: FloatArray
    slope: FloatArray
    observations: int

    @property
    def curvature(self) -> Curvature:
        """The Gaussian, as samplers that fit a mode have it."""
        return Curvature(self.mean, self.whitener, self.observations)


@dataclass(frozen=True, kw_only=True)
class Online(_GaussianSampler):
    """A running Gaussian: every duel is used once and forgotten. Approximate.

    Args:
        tries: draws that may fall outside a ball before one is pulled onto it.
    """

    one_pass: ClassVar[bool] = True

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> OnlineState:
        """The prior itself; a ball is replaced by a Gaussian of the same covariance, and respected when drawing."""
        lanes = len(streams)
        return OnlineState(
            position=prior_draws(prior, streams, chains=chains, dim=dim),
            mean=np.zeros((lanes, dim)),
            precision=np.zeros((lanes, dim, dim)),
            whitener=np.zeros((lanes, dim, dim)),
            slope=np.zeros((lanes, dim)),
            observations=-1,
        )

    def advance(
        self, potential: LinearPotential, state: OnlineState, streams: Streams, round_: int, attempt: int = 0
    ) -> OnlineState:
        """Let new duels in, and draw."""
        belief = self.absorb(potential, state)
        terms, chains = potential.compiled_terms, state.position.shape[1]
        # The tilt was absorbed as a slope: with no sets left to maximise over, it is the linear term of a Gaussian.
        if terms.tilt is not None:
            absorbed = terms.tilt._replace(
                sets=np.zeros((potential.lanes, 0, potential.dim, 0)),
                repeats=np.zeros(0),
                ball_reach=0.0,
                adversary=terms.tilt.adversary - belief.slope[:, None],
            )
            terms = terms._replace(tilt=absorbed)
        source = random_source(streams, round_, attempt, chains)
        position, _ = self._draw(chains, belief.mean, belief.whitener, source, terms)
        return belief._replace(position=position)

    def absorb(self, potential: LinearPotential, state: OnlineState) -> OnlineState:
        """The belief after all duels of this potential; a full history is read from its beginning, a last duel is added."""
        if potential.observations == state.observations:
            return state
        terms = potential.compiled_terms
        listed = terms.likelihood.totals.sum(axis=1)
        whole = bool((listed == potential.observations).all())
        if not whole and not (state.observations + listed == potential.observations).all():
            raise InvalidInputError(
                f"a one-pass sampler must be called after every duel: it has seen {max(state.observations, 0)} of "
                f"{potential.observations} and is given {int(listed[0])}. Start it again with the full history."
            )
        mean, precision, whitener = state.mean.copy(), state.precision.copy(), np.empty_like(state.whitener)
        slope = state.slope.copy()
        if whole:
            mean[:], slope[:] = 0.0, 0.0
            precision[:] = np.eye(potential.dim) * (
                terms.precision[:, None, None] + flat_precision(potential.prior, potential.dim)
            )
        bad_lane = absorb_lanes(mean, precision, whitener, slope, terms)
        if bad_lane >= 0:
            raise NonFiniteError(
                f"the running Gaussian of lane {bad_lane} is not finite. Features this large overflow; scale them so that "
                f"|<theta, z>| stays below a few hundred."
            )
        return OnlineState(state.position, mean, precision, whitener, slope, potential.observations)

    def report(self, state: OnlineState) -> dict[str, FloatArray]:
        """Logarithm of the determinant of the precision, one number per lane: how much has been learnt."""
        return {"log_precision": -2.0 * np.log(np.diagonal(state.whitener, axis1=1, axis2=2)).sum(axis=1)}
