"""One pass over the duels, O(dim^2) memory, nothing stored: a running Gaussian. Approximate.

The belief is N(m, P^-1). A contrast z seen n times and lost l times moves it to the mode of belief x likelihood, which
lies on the line m + a P^-1 z and solves one equation in one unknown, u = <theta, z>,

    u - <m, z> = v eta (n s(-u) - l),    v = <z, P^-1 z>,

and adds its curvature there, P + eta n s(u) s(-u) z z^T. Earlier duels keep the curvature of the moment they were seen,
which is the approximation: it is worst while the belief still moves far. The Feel-Good maximum of a round enters by its
slope at the mean of that round. After the pass, draws are independent.

Reference: Spiegelhalter & Lauritzen (1990), sequential updating of conditional probabilities, for the one-dimensional step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from duelist.core.action_kernels import first_maximum, utilities_into
from duelist.core.checks import FloatArray, whole_number
from duelist.core.compiled import kernel, part
from duelist.core.errors import InvalidInputError, NonFiniteError
from duelist.core.linear_kernels import cholesky_into, invert_lower, solve_cholesky
from duelist.core.streams import Streams
from duelist.posteriors.potential import LinearPotential
from duelist.posteriors.potential_kernels import Likelihood, LinearTerms, Tilt
from duelist.posteriors.priors import Prior
from duelist.samplers.base import prior_draws
from duelist.samplers.curvature import flat_precision
from duelist.samplers.laplace import draw_gaussians


class OnlineChains(NamedTuple):
    """The running Gaussian of every lane, and draws from it.

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


@part
def _solve_logit(start: float, spread: float, total: float, lost: float) -> float:
    """The root of u - start = spread (total s(-u) - lost): bracketed, so Newton's method cannot leave."""
    low, high = start - spread * lost, start + spread * (total - lost)
    u = min(max(start, low), high)
    for _ in range(100):
        e = math.exp(-abs(u))
        lose = (e if u > 0.0 else 1.0) / (1.0 + e)
        value = u - start - spread * (total * lose - lost)
        if value > 0.0:
            high = u
        else:
            low = u
        following = u - value / (1.0 + spread * total * lose * (1.0 - lose))
        if not low <= following <= high:
            following = 0.5 * (low + high)
        if abs(following - u) <= 1e-12 * (1.0 + abs(u)):
            return following
        u = following
    return u


@part
def _add_best_slopes(slope: FloatArray, mean: FloatArray, lane: int, tilt: Tilt | None) -> None:
    """Add the slope of the Feel-Good maximum at the mean."""
    if tilt is None:
        return
    utilities = np.empty(tilt.sets.shape[3])
    for s in range(tilt.repeats.shape[0]):
        utilities_into(utilities, tilt.sets[lane, s], mean)
        best = first_maximum(utilities)
        for i in range(mean.shape[0]):
            slope[i] += tilt.repeats[s] * tilt.sets[lane, s, i, best]
    length = math.sqrt((mean * mean).sum())
    if tilt.ball_reach > 0.0 and length > 0.0:
        for i in range(mean.shape[0]):
            slope[i] += tilt.ball_reach * mean[i] / length


@part
def _absorb_contrast(
    mean: FloatArray, precision: FloatArray, factor: FloatArray, lane: int, p: int, likelihood: Likelihood
) -> bool:
    """Move the Gaussian to the mode of itself x one contrast's likelihood, and add the curvature there."""
    dim = mean.shape[0]
    if not cholesky_into(factor, precision):
        return False
    direction = np.empty(dim)
    start = 0.0
    for i in range(dim):
        direction[i] = likelihood.contrasts[lane, i, p]
        start += direction[i] * mean[i]
    solve_cholesky(factor, direction)
    spread = 0.0
    for i in range(dim):
        spread += direction[i] * likelihood.contrasts[lane, i, p]
    if not spread > 0.0:  # an arm against itself says nothing
        return math.isfinite(spread)
    eta = likelihood.eta[lane]
    u = _solve_logit(start, eta * spread, likelihood.totals[lane, p], likelihood.losses[lane, p])
    e = math.exp(-abs(u))
    weight = eta * likelihood.totals[lane, p] * e / ((1.0 + e) * (1.0 + e))
    for i in range(dim):
        mean[i] += direction[i] * (u - start) / spread
        for j in range(dim):
            precision[i, j] += weight * likelihood.contrasts[lane, i, p] * likelihood.contrasts[lane, j, p]
    return True


@kernel
def absorb_lanes(mean: FloatArray, precision: FloatArray, whitener: FloatArray, slope: FloatArray, terms: LinearTerms) -> int:
    """Let every listed contrast and action set into the running Gaussians. Returns -1, or the first lane that fails."""
    lanes, dim = mean.shape
    factor = np.empty((dim, dim))
    for lane in range(lanes):
        for p in range(terms.likelihood.n_rows[lane]):
            if not _absorb_contrast(mean[lane], precision[lane], factor, lane, p, terms.likelihood):
                return lane
        _add_best_slopes(slope[lane], mean[lane], lane, terms.tilt)
        if not cholesky_into(factor, precision[lane]) or not math.isfinite(mean[lane].sum()):
            return lane
        invert_lower(whitener[lane], factor)
    return -1


@dataclass(frozen=True, kw_only=True)
class Online:
    """A running Gaussian: every duel is used once and forgotten. Approximate.

    Args:
        tries: draws that may fall outside a ball before one is pulled onto it.
    """

    exact: ClassVar[bool] = False
    one_pass: ClassVar[bool] = True

    tries: int = 100

    def __post_init__(self) -> None:
        whole_number("tries", self.tries, at_least=1)

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> OnlineChains:
        """The prior itself; a ball is replaced by a Gaussian of the same covariance, and respected when drawing."""
        lanes = len(streams)
        return OnlineChains(
            position=prior_draws(prior, streams, chains=chains, dim=dim),
            mean=np.zeros((lanes, dim)),
            precision=np.zeros((lanes, dim, dim)),
            whitener=np.zeros((lanes, dim, dim)),
            slope=np.zeros((lanes, dim)),
            observations=-1,
        )

    def advance(
        self, potential: LinearPotential, chains: OnlineChains, streams: Streams, round_: int, attempt: int = 0
    ) -> OnlineChains:
        """Let new duels in, and draw."""
        belief = self._absorbed(potential, chains)
        terms = potential.packed
        # The tilt was absorbed as a slope: with no sets left to maximise over, it is the linear term of a Gaussian.
        if terms.tilt is not None:
            absorbed = terms.tilt._replace(
                sets=np.zeros((potential.lanes, 0, potential.dim, 0)),
                repeats=np.zeros(0),
                ball_reach=0.0,
                adversary=terms.tilt.adversary - belief.slope[:, None],
            )
            terms = terms._replace(tilt=absorbed)
        position, _ = draw_gaussians(chains.position, belief.mean, belief.whitener, streams, round_, attempt, self.tries, terms)
        return belief._replace(position=position)

    def _absorbed(self, potential: LinearPotential, chains: OnlineChains) -> OnlineChains:
        """The belief after all duels of this potential; a full history is read from its beginning, a last duel is added."""
        if potential.observations == chains.observations:
            return chains
        terms = potential.packed
        listed = terms.likelihood.totals.sum(axis=1)
        whole = bool((listed == potential.observations).all())
        if not whole and not (chains.observations + listed == potential.observations).all():
            raise InvalidInputError(
                f"a one-pass sampler must be called after every duel: it has seen {max(chains.observations, 0)} of "
                f"{potential.observations} and is given {int(listed[0])}. Start it again with the full history."
            )
        mean, precision, whitener = chains.mean.copy(), chains.precision.copy(), np.empty_like(chains.whitener)
        slope = chains.slope.copy()
        if whole:
            mean[:], slope[:] = 0.0, 0.0
            precision[:] = np.eye(potential.dim) * (terms.precision[:, None, None] + flat_precision(potential))
        bad_lane = absorb_lanes(mean, precision, whitener, slope, terms)
        if bad_lane >= 0:
            raise NonFiniteError(
                f"the running Gaussian of lane {bad_lane} is not finite. Features this large overflow; scale them so that "
                f"|<theta, z>| stays below a few hundred."
            )
        return OnlineChains(chains.position, mean, precision, whitener, slope, potential.observations)

    def report(self, chains: OnlineChains) -> dict[str, FloatArray]:
        """Logarithm of the determinant of the precision, one a lane: how much has been learnt."""
        return {"log_precision": -2.0 * np.log(np.diagonal(chains.whitener, axis1=1, axis2=2)).sum(axis=1)}
