"""Metropolis-adjusted Langevin on any potential: the steps of `MALA` in NumPy, for potentials that no kernel can evaluate.

The random numbers are those of the compiled sampler, so on a potential that both can evaluate both take the same path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from duelist.core.errors import NonFiniteError
from duelist.core.stored_names import nest, stored
from duelist.core.streams import Streams
from duelist.kernels.philox import SHIFT, TO_UNIT, RandomSource, mala_randomness
from duelist.posteriors.priors import Prior
from duelist.samplers.adaptation import AdaptiveMALA, ChainInfo, ChainState, advance_state, refresh_whitener, start_at_prior
from duelist.typing import FloatArray


class GenericPotential(Protocol):
    """-log density up to a constant, for all lanes and chains at once."""

    def value_and_gradient(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (lanes, chains), infinite outside the support, and gradients of the shape of theta (lanes, chains, dim)."""


class ChainRun(NamedTuple):
    """Where a run of chains led.

    Attributes:
        position: (lanes, chains, dim) after the last step.
        acceptance: (lanes, chains) mean acceptance probability.
        path: (lanes, chains, kept, dim) after every kept step.
        energy: (lanes, chains, kept) the potential there.
        started_at: (lanes, chains) the potential before the first step; nothing moved in chains where it is not finite.
    """

    position: FloatArray
    acceptance: FloatArray
    path: FloatArray
    energy: FloatArray
    started_at: FloatArray


def randomness_in_numpy(noise: FloatArray, uniforms: FloatArray, source: RandomSource) -> None:
    """`mala_randomness` without a kernel: the same numbers up to rounding, with nothing to compile, but slow for few steps."""
    lanes, chains, steps, dim = noise.shape
    blocks = -(-dim // 4)
    for lane in range(lanes):
        for chain in range(chains):
            counter = np.array([0, source.round_, source.first_substream + chain, 0], dtype=np.uint64)
            words = np.random.Philox(key=source.keys[lane], counter=counter).random_raw(4 * (blocks + 1) * steps)
            units = ((words >> SHIFT).astype(np.float64) + 0.5) * TO_UNIT
            units = units.reshape(steps, blocks + 1, 2, 2)
            radius, angle = np.sqrt(-2.0 * np.log(units[:, :-1, :, 0])), 2.0 * np.pi * units[:, :-1, :, 1]
            normals = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
            noise[lane, chain] = normals.reshape(steps, -1)[:, :dim]
            uniforms[lane, chain] = units[:, -1, 0, 0]


def run_mala(
    potential: GenericPotential,
    position: FloatArray,
    log_step: FloatArray,
    whitener: FloatArray,
    source: RandomSource,
    *,
    steps: int,
    keep: tuple[int, int] = (1, 0),
    randomness: Callable[[FloatArray, FloatArray, RandomSource], None] = mala_randomness,
) -> ChainRun:
    """Take `steps` steps with every chain.

    Args:
        potential: what to sample.
        position: (lanes, chains, dim) where the chains stand.
        log_step: (lanes, chains) logarithm of h in whitened coordinates.
        whitener: (lanes, dim, dim) inverse of the lower Cholesky factor of a curvature; the identity for none.
        source: names the random numbers.
        steps: how many.
        keep: how many steps apart the kept positions are, and how many to keep.
        randomness: fills noise and uniforms; `randomness_in_numpy` where nothing should be compiled.
    """
    lanes, chains, dim = position.shape
    noise, uniforms = np.empty((lanes, chains, steps, dim)), np.empty((lanes, chains, steps))
    randomness(noise, uniforms, source)
    keep_every, kept = keep
    path, energy = np.empty((lanes, chains, kept, dim)), np.empty((lanes, chains, kept))
    h = np.exp(log_step)[..., None]
    half = 0.5 * h
    drift, log_uniforms = half * h, np.log(uniforms)
    forward = 0.5 * np.einsum("lcsi,lcsi->lcs", noise, noise)
    log_ratios = np.empty((lanes, chains, steps))
    unwhitener = np.swapaxes(whitener, 1, 2)
    theta = position.copy()
    value, gradient = potential.value_and_gradient(theta)
    started_at = value.copy()
    slope = _times(whitener, gradient)
    for step in range(steps):
        move = h * noise[:, :, step] - drift * slope
        proposal = theta + _times(unwhitener, move)
        new_value, new_gradient = potential.value_and_gradient(proposal)
        new_slope = _times(whitener, new_gradient)
        back = half * new_slope - move / h
        log_ratio = (value - new_value) + (forward[:, :, step] - 0.5 * np.einsum("lci,lci->lc", back, back))
        log_ratio[~(new_value < np.inf)] = -np.inf  # outside the support, or not a number
        log_ratios[:, :, step] = log_ratio
        taken = log_uniforms[:, :, step] < log_ratio
        value = np.where(taken, new_value, value)
        moved = taken[..., None]
        theta = np.where(moved, proposal, theta)
        slope = np.where(moved, new_slope, slope)
        place = (step + 1) // keep_every - 1
        if (step + 1) % keep_every == 0 and place < kept:
            path[:, :, place], energy[:, :, place] = theta, value
    acceptance = np.exp(np.minimum(0.0, log_ratios)).mean(axis=2)
    return ChainRun(theta, acceptance, path, energy, started_at)


def _times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """(lanes, dim, dim) matrices times (lanes, chains, dim) vectors."""
    return np.asarray(vectors @ np.swapaxes(matrices, 1, 2))


class CurvedPotential(GenericPotential, Protocol):
    """A potential that also knows how it curves."""

    def curvature(self, theta: FloatArray) -> FloatArray:
        """Positive definite matrices (lanes, dim, dim) at theta (lanes, dim)."""


@stored("generic-mala-state", version=2, upgrade=nest(info=ChainInfo))
class GenericMALAState(ChainState):
    """State of `GenericMALA`."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class GenericMALA(AdaptiveMALA):
    """Preconditioned MALA on any potential.

    Args:
        steps: steps each chain takes per round, from where it stood the round before.
    """

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> GenericMALAState:
        """Chains at draws from the prior."""
        return GenericMALAState(*start_at_prior(prior, streams, chains=chains, dim=dim))

    def advance(
        self, potential: CurvedPotential, state: GenericMALAState, streams: Streams, round_: int, *, answers: int
    ) -> GenericMALAState:
        """Move every chain towards the potential of that many answers; round_ names the random numbers."""
        if answers == 0:
            return state  # draws from the prior are draws from the posterior of no answers
        state = refresh_whitener(state, answers, lambda: potential.curvature(state.position.mean(axis=1)))
        source = RandomSource(streams.keys("walking mala"), round_, 0)
        run = run_mala(potential, state.position, state.log_step, state.whitener, source, steps=self.steps)
        if not np.isfinite(run.started_at).all():
            raise NonFiniteError("the potential is not finite where a chain stands. Check the scale of the features.")
        return advance_state(state, run.position, run.acceptance)
