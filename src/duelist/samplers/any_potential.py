"""Metropolis-adjusted Langevin on any potential: the steps of `MALA` in NumPy, for potentials that no kernel can evaluate.

The random numbers are those of the compiled sampler, so on a potential that both can evaluate both take the same path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from duelist.core.checks import FloatArray
from duelist.core.compiled import kernel
from duelist.core.philox import SHIFT, TO_UNIT, fill_normals, first_block
from duelist.core.streams import Keys


class AnyPotential(Protocol):
    """-log density up to a constant, for all lanes and chains at once."""

    def value_and_gradient(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Values (lanes, chains), infinite outside the support, and gradients of the shape of theta (lanes, chains, dim)."""


class Walk(NamedTuple):
    """Where a walk led.

    Attributes:
        position: (lanes, chains, dim) after the last step.
        acceptance: (lanes, chains) mean acceptance probability.
        path: (lanes, chains, kept, dim) after every `keep_every`-th step.
        energy: (lanes, chains, kept) the potential there.
        started_at: (lanes, chains) the potential before the first step; nothing moved in chains where it is not finite.
    """

    position: FloatArray
    acceptance: FloatArray
    path: FloatArray
    energy: FloatArray
    started_at: FloatArray


@kernel
def mala_randomness(noise: FloatArray, uniforms: FloatArray, keys: Keys, round_: int, first_substream: int) -> None:
    """Fill noise (lanes, chains, steps, dim) and uniforms (lanes, chains, steps) with the numbers that `mala_lanes` uses."""
    lanes, chains, steps, _ = noise.shape
    for lane in range(lanes):
        for chain in range(chains):
            block = first_block()
            for step in range(steps):
                block, uniforms[lane, chain, step] = fill_normals(
                    noise[lane, chain, step], keys[lane], block, round_, first_substream + chain
                )


def randomness_in_numpy(noise: FloatArray, uniforms: FloatArray, keys: Keys, round_: int, first_substream: int) -> None:
    """`mala_randomness` without a kernel: the same numbers up to rounding, with nothing to compile, but slow for few steps."""
    lanes, chains, steps, dim = noise.shape
    blocks = -(-dim // 4)
    for lane in range(lanes):
        for chain in range(chains):
            counter = np.array([0, round_, first_substream + chain, 0], dtype=np.uint64)
            words = np.random.Philox(key=keys[lane], counter=counter).random_raw(4 * (blocks + 1) * steps)
            units = ((words >> SHIFT).astype(np.float64) + 0.5) * TO_UNIT
            units = units.reshape(steps, blocks + 1, 2, 2)
            radius, angle = np.sqrt(-2.0 * np.log(units[:, :-1, :, 0])), 2.0 * np.pi * units[:, :-1, :, 1]
            normals = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
            noise[lane, chain] = normals.reshape(steps, -1)[:, :dim]
            uniforms[lane, chain] = units[:, -1, 0, 0]


def mala_walk(
    potential: AnyPotential,
    position: FloatArray,
    log_step: FloatArray,
    whitener: FloatArray,
    keys: Keys,
    *,
    round_: int,
    first_substream: int = 0,
    steps: int,
    keep_every: int = 1,
    kept: int = 0,
    randomness: Callable[[FloatArray, FloatArray, Keys, int, int], None] = mala_randomness,
) -> Walk:
    """Take `steps` steps with every chain.

    Args:
        potential: what to sample.
        position: (lanes, chains, dim) where the chains stand.
        log_step: (lanes, chains) logarithm of h in whitened coordinates.
        whitener: (lanes, dim, dim) inverse of the lower Cholesky factor of a curvature; the identity for none.
        keys: (lanes, 2) of the stream.
        round_: names the random numbers, with `first_substream`.
        first_substream: of the first chain.
        steps: how many.
        keep_every: how many steps apart the kept positions are.
        kept: how many to keep.
        randomness: fills noise and uniforms; `randomness_in_numpy` where nothing should be compiled.
    """
    lanes, chains, dim = position.shape
    noise, uniforms = np.empty((lanes, chains, steps, dim)), np.empty((lanes, chains, steps))
    randomness(noise, uniforms, keys, round_, first_substream)
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
    return Walk(theta, acceptance, path, energy, started_at)


def _times(matrices: FloatArray, vectors: FloatArray) -> FloatArray:
    """(lanes, dim, dim) matrices times (lanes, chains, dim) vectors."""
    return np.asarray(vectors @ np.swapaxes(matrices, 1, 2))
