"""Langevin steps over all lanes: unadjusted with and without a whitener or minibatches, and Metropolis-adjusted."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.kernels.compile import entry, inner, maker
from duelist.kernels.linalg.factors import lower_times, lower_transposed_times
from duelist.kernels.linalg.vectors import copy_into
from duelist.kernels.logistic import Likelihood, lose_chance
from duelist.kernels.philox import RandomSource, RandomStream, fill_normals, first_block, normal, open_stream, uniform
from duelist.kernels.potential import LinearTerms, gradient_alone, pull_into_ball, scratch_for, value_and_gradient
from duelist.typing import FloatArray


class Minibatch(NamedTuple):
    """Contrasts that a step reads at random, to correct an expansion: how many, and all there are to choose from."""

    size: int
    likelihood: Likelihood


@inner
def _add_batch(
    gradient: FloatArray, theta: FloatArray, lane: int, batch: Minibatch | None, terms: LinearTerms, stream: RandomStream
) -> None:
    """Add the batch's estimate of the gradient that the expansion leaves over."""
    if batch is None:
        return
    full, reference = batch.likelihood, terms.quadratic.reference[lane]
    n = full.n_rows[lane]
    if n == 0:
        return
    scale = full.eta[lane] * n / batch.size
    for _ in range(batch.size):
        p = int(uniform(stream) * n)
        at_theta, at_reference = 0.0, 0.0
        for i in range(theta.shape[0]):
            at_theta += full.contrasts[lane, i, p] * theta[i]
            at_reference += full.contrasts[lane, i, p] * reference[i]
        before, after = lose_chance(at_reference), lose_chance(at_theta)
        rest = before - after - before * (1.0 - before) * (at_theta - at_reference)
        for i in range(theta.shape[0]):
            gradient[i] += scale * full.totals[lane, p] * rest * full.contrasts[lane, i, p]


@inner
def _fill_noise(noise: FloatArray, batch: Minibatch | None, stream: RandomStream) -> None:
    """Fill `noise` (dim,) with the normals of a step: from blocks of their own, or after the uniforms of a batch."""
    if batch is None:
        stream.place[0], _uniform = fill_normals(noise, stream.key, stream.place[0], stream.round_, stream.substream)
    else:
        for i in range(noise.shape[0]):
            noise[i] = normal(stream)


@inner
def _step(
    theta: FloatArray,
    gradient: FloatArray,
    noise: FloatArray,
    step_size: float,
    whitener: FloatArray | None,
    scratch: FloatArray,
) -> None:
    """Move theta (dim,) down the gradient and by the noise, which is overwritten; `whitener` (dim, dim) shapes both.

    Without a whitener the step is delta = step_size; with one it is h = step_size in whitened coordinates, delta = h^2 / 2.
    """
    dim = theta.shape[0]
    if whitener is None:
        spread = math.sqrt(2.0 * step_size)
        for i in range(dim):
            theta[i] += spread * noise[i] - step_size * gradient[i]
    else:
        slope, move = scratch[0], scratch[1]
        lower_times(slope, whitener, gradient)
        for i in range(dim):
            noise[i] = step_size * noise[i] - 0.5 * step_size * step_size * slope[i]
        lower_transposed_times(move, whitener, noise)
        for i in range(dim):
            theta[i] += move[i]


@maker
def _of_lane(whitener: FloatArray | None, lane: int) -> FloatArray | None:
    if whitener is None:
        return None
    factor: FloatArray = whitener[lane]
    return factor


@entry
def langevin_lanes(
    position: FloatArray,
    whitener: FloatArray | None,
    source: RandomSource,
    steps: int,
    step_size: float,
    batch: Minibatch | None,
    terms: LinearTerms,
) -> int:
    """Take `steps` unadjusted steps with every chain in place. Returns -1, or the first lane that is not finite.

    With a `batch`, `terms` hold an expansion of the likelihood, and the batch estimates what it leaves over.
    """
    lanes, chains, dim = position.shape
    scratch = scratch_for(terms)
    gradient, noise, moves = np.empty(dim), np.empty(dim), np.empty((2, dim))
    for lane in range(lanes):
        shape = _of_lane(whitener, lane)
        for chain in range(chains):
            theta = position[lane, chain]
            stream = open_stream(source.keys[lane], source.round_, source.first_substream + chain)
            for _ in range(steps):
                gradient_alone(gradient, theta, lane, chain, terms, scratch)
                _add_batch(gradient, theta, lane, batch, terms, stream)
                _fill_noise(noise, batch, stream)
                _step(theta, gradient, noise, step_size, shape, moves)
                if not pull_into_ball(theta, terms.radius):
                    return lane
    return -1


class ChainOutput(NamedTuple):
    """What a run of chains fills in: mean acceptance probability, and positions and potentials along the way."""

    acceptance: FloatArray  # (lanes, chains)
    path: FloatArray  # (lanes, chains, kept, dim)
    energy: FloatArray  # (lanes, chains, kept)


@entry
def mala_lanes(
    position: FloatArray,
    log_step: FloatArray,
    whitener: FloatArray,
    source: RandomSource,
    steps: int,
    keep_every: int,
    terms: LinearTerms,
    output: ChainOutput,
) -> int:
    """Take `steps` steps with every chain in place. Returns -1, or the first lane whose potential is not finite.

    Position and potential after every `keep_every`-th step go to the path and energy of `output`, as far as these reach.
    """
    lanes, chains, dim = position.shape
    scratch = scratch_for(terms)
    gradient, new_gradient, proposal = np.empty(dim), np.empty(dim), np.empty(dim)
    slope, new_slope, noise, move = np.empty(dim), np.empty(dim), np.empty(dim), np.empty(dim)
    path, energy, acceptance = output.path, output.energy, output.acceptance
    for lane in range(lanes):
        w, key = whitener[lane], source.keys[lane]
        for chain in range(chains):
            substream = source.first_substream + chain
            theta = position[lane, chain]
            h = math.exp(log_step[lane, chain])
            value = value_and_gradient(gradient, theta, lane, chain, terms, scratch)
            if not math.isfinite(value):
                return lane
            lower_times(slope, w, gradient)
            block = first_block()
            accepted = 0.0
            for step in range(steps):
                block, uniform = fill_normals(noise, key, block, source.round_, substream)
                forward = 0.0
                for i in range(dim):
                    move[i] = h * noise[i] - 0.5 * h * h * slope[i]
                    forward += noise[i] * noise[i]
                lower_transposed_times(proposal, w, move)
                for i in range(dim):
                    proposal[i] += theta[i]
                new_value = value_and_gradient(new_gradient, proposal, lane, chain, terms, scratch)
                if new_value < math.inf:
                    lower_times(new_slope, w, new_gradient)
                    backward = 0.0
                    for i in range(dim):
                        difference = (0.5 * h * h * new_slope[i] - move[i]) / h
                        backward += difference * difference
                    log_ratio = value - new_value + 0.5 * (forward - backward)
                    accepted += math.exp(log_ratio) if log_ratio < 0.0 else 1.0
                    if math.log(uniform) < log_ratio:
                        value = new_value
                        copy_into(theta, proposal)
                        gradient, new_gradient = new_gradient, gradient
                        slope, new_slope = new_slope, slope
                kept = (step + 1) // keep_every - 1
                if (step + 1) % keep_every == 0 and kept < path.shape[2]:
                    copy_into(path[lane, chain, kept], theta)
                    energy[lane, chain, kept] = value
            acceptance[lane, chain] = accepted / steps
    return -1
