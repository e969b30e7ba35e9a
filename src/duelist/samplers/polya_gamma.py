"""Gibbs sampling with Polya-Gamma variables: exact, and of a construction that has nothing in common with MALA's.

Given one variable w_i ~ PG(eta n_i, <theta, z_i>) a contrast (n_i duels, l_i of them lost), theta is Gaussian with

    precision  prior + sum_i w_i z_i z_i^T,    precision x mean  = eta sum_i (n_i/2 - l_i) z_i - g,

g the gradient of the Feel-Good tilt at the mode. Where that is all, theta is drawn from it: plain Gibbs. What is not
Gaussian, the Feel-Good maximum beyond its slope, the wall of a ball, and the truncated Polya-Gamma sums (see
`polya_gamma_kernels`), enters by an elliptical slice step around the same Gaussian, which is exact, never rejects and has
nothing to tune either.

Reference: Polson, Scott & Windle (2013), Bayesian inference for logistic models using Polya-Gamma latent variables;
Murray, Adams & MacKay (2010), Elliptical slice sampling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from duelist.core.action_kernels import utilities_into
from duelist.core.checks import FloatArray, whole_number
from duelist.core.compiled import kernel, part
from duelist.core.errors import NonFiniteError
from duelist.core.linear_kernels import cholesky_into, copy_into, solve_cholesky
from duelist.core.streams import Keys, Streams
from duelist.posteriors.potential import LinearPotential
from duelist.posteriors.potential_kernels import Likelihood, LinearTerms, add_feel_good, most_arms, scratch_for, tilts
from duelist.posteriors.priors import Prior
from duelist.preferences.logistic_kernels import add_weighted_gram
from duelist.samplers.base import prior_draws
from duelist.samplers.curvature import Curvature, flat_precision, renewed, unknown_curvature
from duelist.samplers.polya_gamma_kernels import log_cosh_error, polya_gamma_one, polya_gamma_truncated
from duelist.samplers.random_kernels import Tape, normal, tape_from, uniform

_SUM_UP_TO = 3.0  # whole counts up to here are sums of exact PG(1, c); above, the truncated sum is cheaper


class PolyaGammaChains(NamedTuple):
    """Chains of `PolyaGamma`.

    Attributes:
        position: (lanes, chains, dim) current draws.
        curvature: where the Feel-Good maximum is linearised.
        tried: (lanes, chains) points tried so far, at least one a sweep.
        sweeps: sweeps a chain so far.
    """

    position: FloatArray
    curvature: Curvature
    tried: FloatArray
    sweeps: int


@part
def _is_summed(b: float) -> bool:
    return b <= _SUM_UP_TO and b == math.floor(b)


@part
def _not_gaussian(
    theta: FloatArray,
    logits: FloatArray,
    slope: FloatArray,
    extra: float,
    lane: int,
    chain: int,
    terms: LinearTerms,
    utilities: FloatArray,
    unused: FloatArray,
) -> float:
    """Logarithm of target / proposal target at theta, with logits (n,) of all contrasts there."""
    squared = 0.0
    linear = 0.0
    for i in range(theta.shape[0]):
        squared += theta[i] * theta[i]
        linear += slope[i] * theta[i]
    if squared > terms.radius * terms.radius:
        return -math.inf
    likelihood = terms.likelihood
    value: float = 0.5 * extra * squared
    for p in range(logits.shape[0]):
        b = likelihood.eta[lane] * likelihood.totals[lane, p]
        if not _is_summed(b):
            value -= b * log_cosh_error(logits[p])
    if tilts(lane, terms.tilt):
        value += linear - add_feel_good(unused, theta, lane, chain, terms.tilt, utilities)
    return value


@part
def _linear_part(
    linear: FloatArray, slope: FloatArray, mode: FloatArray, lane: int, chain: int, terms: LinearTerms, utilities: FloatArray
) -> None:
    """Fill `slope` with the gradient of the Feel-Good tilt at the mode, and `linear` with precision x mean."""
    slope[:] = 0.0
    add_feel_good(slope, mode, lane, chain, terms.tilt, utilities)
    likelihood = terms.likelihood
    for i in range(mode.shape[0]):
        total = 0.0
        for p in range(likelihood.n_rows[lane]):
            total += (0.5 * likelihood.totals[lane, p] - likelihood.losses[lane, p]) * likelihood.contrasts[lane, i, p]
        linear[i] = likelihood.eta[lane] * total - slope[i]


@part
def _draw_weights(weights: FloatArray, logits: FloatArray, lane: int, likelihood: Likelihood, tape: Tape) -> bool:
    """Fill `weights` (n,) with Polya-Gamma variates; False at a logit that is not finite, which would never be accepted."""
    for p in range(logits.shape[0]):
        if not math.isfinite(logits[p]):
            return False
        b = likelihood.eta[lane] * likelihood.totals[lane, p]
        weights[p] = 0.0
        if _is_summed(b):
            for _ in range(int(b)):
                weights[p] += polya_gamma_one(tape, logits[p])
        else:
            weights[p] = polya_gamma_truncated(tape, b, logits[p])
    return True


@part
def _draw_gaussian(
    mean: FloatArray, noise: FloatArray, linear: FloatArray, precision: FloatArray, factor: FloatArray, tape: Tape
) -> bool:
    """Fill `mean` with precision^-1 linear and `noise` with N(0, precision^-1); False if that is not positive definite."""
    dim = linear.shape[0]
    if not cholesky_into(factor, precision):
        return False
    copy_into(mean, linear)
    solve_cholesky(factor, mean)
    # L^-T xi by back substitution has covariance (L L^T)^-1.
    for i in range(dim):
        noise[i] = normal(tape)
    for i in range(dim - 1, -1, -1):
        entry = noise[i]
        for k in range(i + 1, dim):
            entry -= factor[k, i] * noise[k]
        noise[i] = entry / factor[i, i]
    return True


@part
def _all_gaussian(lane: int, terms: LinearTerms) -> bool:
    """Whether theta given the Polya-Gamma variables is exactly Gaussian: no tilt, no ball, no truncated sums."""
    if tilts(lane, terms.tilt) or terms.radius < math.inf:
        return False
    likelihood = terms.likelihood
    for p in range(likelihood.n_rows[lane]):  # noqa: SIM110 - kernels have no generators
        if not _is_summed(likelihood.eta[lane] * likelihood.totals[lane, p]):
            return False
    return True


@kernel
def polya_gamma_lanes(
    position: FloatArray,
    mode: FloatArray,
    keys: Keys,
    round_: int,
    first_substream: int,
    sweeps: int,
    extra: float,
    terms: LinearTerms,
    tried: FloatArray,
) -> int:
    """Sweep every chain in place. Returns -1, or the first lane where a number is not finite.

    `tried` (lanes, chains) is filled with the mean number of points that a sweep tried.
    """
    lanes, chains, dim = position.shape
    scratch, more = scratch_for(terms), scratch_for(terms)
    utilities = np.empty(most_arms(terms.tilt))
    precision, factor = np.empty((dim, dim)), np.empty((dim, dim))
    linear, slope, unused = np.empty(dim), np.empty(dim), np.empty(dim)
    mean, noise, proposal = np.empty(dim), np.empty(dim), np.empty(dim)
    for lane in range(lanes):
        n = terms.likelihood.n_rows[lane]
        contrasts = terms.likelihood.contrasts[lane]
        logits, new_logits, weights, scaled = scratch[0, :n], scratch[1, :n], more[0, :n], more[1, :n]
        plain = _all_gaussian(lane, terms)
        for chain in range(chains):
            theta = position[lane, chain]
            tape = tape_from(keys[lane], round_, first_substream + chain)
            _linear_part(linear, slope, mode[lane], lane, chain, terms, utilities)
            utilities_into(logits, contrasts, theta)
            current = _not_gaussian(theta, logits, slope, extra, lane, chain, terms, utilities, unused)
            tried[lane, chain] = 0.0
            for _ in range(sweeps):
                if not math.isfinite(current) or not _draw_weights(weights, logits, lane, terms.likelihood, tape):
                    return lane
                precision[:] = 0.0
                for i in range(dim):
                    precision[i, i] = terms.precision[lane] + extra
                add_weighted_gram(precision, contrasts, weights, scaled)
                if not _draw_gaussian(mean, noise, linear, precision, factor, tape):
                    return lane
                level = current + math.log(uniform(tape))
                # A quarter turn is an independent draw; the slice starts from any angle and shrinks towards no turn.
                angle = 0.5 * math.pi if plain else 2.0 * math.pi * uniform(tape)
                low, high = angle - 2.0 * math.pi, angle
                while True:
                    for i in range(dim):
                        proposal[i] = mean[i] + (theta[i] - mean[i]) * math.cos(angle) + noise[i] * math.sin(angle)
                    utilities_into(new_logits, contrasts, proposal)
                    current = _not_gaussian(proposal, new_logits, slope, extra, lane, chain, terms, utilities, unused)
                    tried[lane, chain] += 1.0 / sweeps
                    # An interval that shrank to nothing is back where it began, to the last digit.
                    if plain or current > level or high - low < 1e-12 or math.isnan(current):
                        break
                    if angle < 0.0:
                        low = angle
                    else:
                        high = angle
                    angle = low + (high - low) * uniform(tape)
                copy_into(theta, proposal)
                copy_into(logits, new_logits)
    return -1


@dataclass(frozen=True, kw_only=True)
class PolyaGamma:
    """Gibbs sampling with Polya-Gamma variables.

    Args:
        steps: sweeps each chain makes a round, from where it stood the round before. A sweep costs one Polya-Gamma variate
            a distinct contrast and one Cholesky factor, some thirty MALA steps; it also moves much further.
    """

    exact: ClassVar[bool] = True
    one_pass: ClassVar[bool] = False

    steps: int = 5

    def __post_init__(self) -> None:
        whole_number("steps", self.steps, at_least=1)

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> PolyaGammaChains:
        """Chains at independent draws from the prior."""
        lanes = len(streams)
        position = prior_draws(prior, streams, chains=chains, dim=dim)
        return PolyaGammaChains(position, unknown_curvature(lanes, dim), np.zeros((lanes, chains)), 0)

    def advance(
        self, potential: LinearPotential, chains: PolyaGammaChains, streams: Streams, round_: int, attempt: int = 0
    ) -> PolyaGammaChains:
        """Make `steps` sweeps with every chain."""
        terms = potential.packed
        # The mode is needed for the Feel-Good slope alone; without the tilt nothing is ever computed from it.
        curvature = renewed(chains.curvature, potential) if potential.mu.any() else chains.curvature
        position = chains.position.copy()
        lanes, n_chains, _ = position.shape
        tried = np.empty((lanes, n_chains))
        bad_lane = polya_gamma_lanes(
            position,
            curvature.mode,
            streams.keys("sampler"),
            round_,
            attempt * n_chains,
            self.steps,
            flat_precision(potential),
            terms,
            tried,
        )
        if bad_lane >= 0:
            raise NonFiniteError(
                f"the Polya-Gamma sampler met a number that is not finite in lane {bad_lane}. Features this large overflow; "
                f"scale them so that |<theta, z>| stays below a few hundred."
            )
        return PolyaGammaChains(position, curvature, chains.tried + self.steps * tried, chains.sweeps + self.steps)

    def report(self, chains: PolyaGammaChains) -> dict[str, FloatArray]:
        """Share of the points tried that were taken, one a lane; 1 for plain Gibbs."""
        return {"acceptance": max(chains.sweeps, 1) / np.maximum(chains.tried.mean(axis=1), 1.0)}
