"""Gibbs sampling with Polya-Gamma variables: exact, and of a construction that has nothing in common with MALA's.

Given one variable w_i ~ PG(eta n_i, <theta, z_i>) a contrast (n_i duels, l_i of them lost), theta is Gaussian with

    precision  prior + sum_i w_i z_i z_i^T,    precision x mean  = eta sum_i (n_i/2 - l_i) z_i - mu * adversaries + mu * g,

g the slope of the Feel-Good maximum at the mode. That Gaussian draw is a proposal; a Metropolis step corrects what is not Gaussian:
the Feel-Good maximum beyond its slope, the wall of a ball, and the truncated Polya-Gamma sums (see `polya_gamma_kernels`).
Without those three every proposal is accepted: plain Gibbs. There is nothing to tune.

Reference: Polson, Scott & Windle (2013), Bayesian inference for logistic models using Polya-Gamma latent variables.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from duelist.core.action_kernels import first_maximum, utilities_into
from duelist.core.checks import FloatArray, whole_number
from duelist.core.compiled import kernel
from duelist.core.errors import InvalidInputError, NonFiniteError
from duelist.core.linear_kernels import cholesky_into, solve_cholesky
from duelist.core.streams import Keys, Streams
from duelist.posteriors.potential import LinearPotential
from duelist.posteriors.potential_kernels import LinearTerms, scratch_for
from duelist.posteriors.priors import Prior
from duelist.preferences.logistic_kernels import add_weighted_gram
from duelist.samplers.base import prior_draws
from duelist.samplers.curvature import Curvature, flat_precision, renewed, unknown_curvature
from duelist.samplers.polya_gamma_kernels import log_cosh_error, polya_gamma_one, polya_gamma_truncated
from duelist.samplers.random_kernels import normal, tape_from, uniform

_SUM_UP_TO = 3.0  # whole counts up to here are sums of exact PG(1, c); above, the truncated sum is cheaper


class PolyaGammaChains(NamedTuple):
    """Chains of `PolyaGamma`.

    Attributes:
        position: (lanes, chains, dim) current draws.
        curvature: where the Feel-Good maximum is linearised.
        accepted: (lanes, chains) sum of acceptance probabilities so far.
        proposed: sweeps a chain so far.
    """

    position: FloatArray
    curvature: Curvature
    accepted: FloatArray
    proposed: int


@kernel
def _is_summed(b: float) -> bool:
    return b <= _SUM_UP_TO and b == math.floor(b)


@kernel
def _not_gaussian(
    theta: FloatArray, logits: FloatArray, slope: FloatArray, extra: float, lane: int, terms: LinearTerms, utilities: FloatArray
) -> float:
    """Logarithm of target / proposal target at theta, with logits (n,) of all contrasts there."""
    squared = 0.0
    linear = 0.0
    for i in range(theta.shape[0]):
        squared += theta[i] * theta[i]
        linear += slope[i] * theta[i]
    if squared > terms.radius * terms.radius:
        return -math.inf
    value: float = 0.5 * extra * squared
    for p in range(logits.shape[0]):
        b = terms.eta[lane] * terms.totals[lane, p]
        if not _is_summed(b):
            value -= b * log_cosh_error(logits[p])
    mu = terms.mu[lane]
    if mu > 0.0:
        value -= mu * linear
        for s in range(terms.repeats.shape[0]):
            utilities_into(utilities, terms.sets[lane, s], theta)
            value += mu * terms.repeats[s] * utilities[first_maximum(utilities)]
    return value


@kernel
def _linear_part(
    linear: FloatArray, slope: FloatArray, mode: FloatArray, lane: int, chain: int, terms: LinearTerms, utilities: FloatArray
) -> None:
    """Fill `slope` with the subgradient of the Feel-Good maximum at the mode, and `linear` with precision x mean."""
    dim = mode.shape[0]
    mu = terms.mu[lane]
    for i in range(dim):
        slope[i] = 0.0
    if mu > 0.0:
        for s in range(terms.repeats.shape[0]):
            utilities_into(utilities, terms.sets[lane, s], mode)
            best = first_maximum(utilities)
            for i in range(dim):
                slope[i] += terms.repeats[s] * terms.sets[lane, s, i, best]
    for i in range(dim):
        total = 0.0
        for p in range(terms.n_rows[lane]):
            total += (0.5 * terms.totals[lane, p] - terms.losses[lane, p]) * terms.contrasts[lane, i, p]
        linear[i] = terms.eta[lane] * total
        if mu > 0.0:
            linear[i] += mu * (slope[i] - terms.adversary[lane, chain, i])


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
    acceptance: FloatArray,
) -> int:
    """Sweep every chain in place. Returns -1, or the first lane where a number is not finite."""
    lanes, chains, dim = position.shape
    scratch = scratch_for(terms)
    new_logits, weights = np.empty(scratch.shape[1]), np.empty(scratch.shape[1])
    utilities = np.empty(terms.sets.shape[3])
    precision, factor = np.empty((dim, dim)), np.empty((dim, dim))
    linear, slope, mean, proposal = np.empty(dim), np.empty(dim), np.empty(dim), np.empty(dim)
    for lane in range(lanes):
        n = terms.n_rows[lane]
        logits, scaled = scratch[0, :n], scratch[1, :n]
        eta = terms.eta[lane]
        for chain in range(chains):
            theta = position[lane, chain]
            tape = tape_from(keys[lane], round_, first_substream + chain)
            _linear_part(linear, slope, mode[lane], lane, chain, terms, utilities)
            if n > 0:
                utilities_into(logits, terms.contrasts[lane], theta)
            current = _not_gaussian(theta, logits, slope, extra, lane, terms, utilities)
            accepted = 0.0
            for _ in range(sweeps):
                for p in range(n):
                    b = eta * terms.totals[lane, p]
                    # A NaN or infinite logit would keep the rejection sampler busy for ever.
                    if not math.isfinite(logits[p]):
                        return lane
                    weights[p] = 0.0
                    if _is_summed(b):
                        for _one in range(int(b)):
                            weights[p] += polya_gamma_one(tape, logits[p])
                    else:
                        weights[p] = polya_gamma_truncated(tape, b, logits[p])
                for i in range(dim):
                    for j in range(dim):
                        precision[i, j] = terms.precision[lane] + extra if i == j else 0.0
                    mean[i] = linear[i]
                add_weighted_gram(precision, terms.contrasts[lane], weights[:n], scaled)
                if not cholesky_into(factor, precision):
                    return lane
                solve_cholesky(factor, mean)
                # proposal = mean + L^-T xi, by back substitution.
                for i in range(dim):
                    proposal[i] = normal(tape)
                for i in range(dim - 1, -1, -1):
                    entry = proposal[i]
                    for k in range(i + 1, dim):
                        entry -= factor[k, i] * proposal[k]
                    proposal[i] = entry / factor[i, i]
                for i in range(dim):
                    proposal[i] += mean[i]
                if n > 0:
                    utilities_into(new_logits[:n], terms.contrasts[lane], proposal)
                candidate = _not_gaussian(proposal, new_logits[:n], slope, extra, lane, terms, utilities)
                if math.isnan(candidate):
                    return lane
                accepted += math.exp(min(0.0, candidate - current))
                if math.log(uniform(tape)) < candidate - current:
                    current = candidate
                    theta[:] = proposal
                    logits[:] = new_logits[:n]
            acceptance[lane, chain] = accepted / sweeps
    return -1


@dataclass(frozen=True, kw_only=True)
class PolyaGamma:
    """Gibbs sampling with Polya-Gamma variables.

    Args:
        steps: sweeps each chain makes a round, from where it stood the round before. A sweep costs one Polya-Gamma variate
            a distinct contrast and one Cholesky factor, some thirty MALA steps; it also moves much further.
    """

    exact: ClassVar[bool] = True

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
        if terms.mu.any() and (terms.ball_reach > 0.0 or terms.spread.any() or terms.shape_repeats.size):
            raise InvalidInputError(
                "the Polya-Gamma sampler knows the Feel-Good maximum of finite sets and polytopes; this history holds balls, "
                'boxes or ellipsoids. Use sampler="mala", or mu=0 for plain Thompson sampling.'
            )
        # The mode is needed for the Feel-Good slope alone; without the tilt nothing is ever computed from it.
        curvature = renewed(chains.curvature, potential) if terms.mu.any() else chains.curvature
        position = chains.position.copy()
        lanes, n_chains, _ = position.shape
        acceptance = np.empty((lanes, n_chains))
        bad_lane = polya_gamma_lanes(
            position,
            curvature.mode,
            streams.keys("sampler"),
            round_,
            attempt * n_chains,
            self.steps,
            flat_precision(potential),
            terms,
            acceptance,
        )
        if bad_lane >= 0:
            raise NonFiniteError(
                f"the Polya-Gamma sampler met a number that is not finite in lane {bad_lane}. Features this large overflow; "
                f"scale them so that |<theta, z>| stays below a few hundred."
            )
        return PolyaGammaChains(position, curvature, chains.accepted + self.steps * acceptance, chains.proposed + self.steps)

    def report(self, chains: PolyaGammaChains) -> dict[str, FloatArray]:
        """Mean acceptance probability, one a lane."""
        return {"acceptance": chains.accepted.mean(axis=1) / max(chains.proposed, 1)}
