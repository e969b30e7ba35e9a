"""Chains that run until their draws can be used: started apart, warmed up, and thinned as far as their mixing asks for.

Each chain has its own trial number. They run in threads, or together as the lanes of one block where the potential has as many;
the draws are the same.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from duelist.core.streams import Streams
from duelist.kernels.potential import pull_into_ball
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Prior
from duelist.samplers.base import Sampler, Trace, trace
from duelist.samplers.curvature import Curvature
from duelist.samplers.diagnostics import ESS_LIMIT, Diagnostics, diagnose
from duelist.typing import FloatArray


class Block(NamedTuple):
    """Chains that move together, each in a lane of its own: their random numbers, and their state."""

    streams: Streams
    state: Any


class Run(NamedTuple):
    """Draws (chains, draws, dim), their energy (chains, draws), and how well the chains mixed."""

    draws: FloatArray
    energy: FloatArray
    diagnostics: Diagnostics


def run_chains(
    sampler: Sampler,
    potential: LinearPotential,
    shape: Curvature,
    *,
    chains: int,
    draws: int,
    warmup: int,
    seed: int,
    max_thin: int,
) -> Run:
    """Draw until the diagnostics have nothing to complain of, or chains were thinned `max_thin` times as much.

    `shape` is the curvature of the potential, as one lane. A run that mixed too slowly is thrown away and becomes warm-up: the
    chains go on from where they stand, with as many more steps between two draws as the smallest effective size says are
    missing.
    """
    # Thinning mends slow mixing; it mends neither a biased sampler nor too few draws.
    helps = may_thin(sampler, chains * draws) and hasattr(sampler, "steps")
    thin, first_round = 1, warmup
    with ThreadPoolExecutor(min(chains, os.cpu_count() or 1)) as pool:
        size = potential.lanes
        streams = [Streams(seed, range(first, first + size)) for first in range(0, chains, size)]
        standing = tuple(pool.map(partial(_start, sampler, potential, shape, warmup), streams))
        while True:
            go_on = partial(_trace_block, _thin(sampler, thin), potential, first_round, draws)
            standing, traces = zip(*pool.map(go_on, standing), strict=True)
            path = np.concatenate([one.path[:, 0] for one in traces])
            energy = np.concatenate([one.energy[:, 0] for one in traces])
            acceptance = [sampler.report(block.state).get("acceptance", np.ones(size)) for block in standing]
            found = diagnose(path, energy, np.concatenate(acceptance))
            if not found.complaints or thin >= max_thin or not helps:
                return Run(path, energy, found)
            thin, first_round = min(next_thin(thin, found), max_thin), first_round + draws


def _thin(sampler: Any, thin: int) -> Any:
    """The sampler with `thin` times as many steps between two draws."""
    return sampler if thin == 1 else replace(sampler, steps=thin * sampler.steps)


def may_thin(sampler: Sampler, draws: int) -> bool:
    """Whether thinning can mend a run of so many draws in all."""
    return sampler.exact and draws >= 2 * ESS_LIMIT


def next_thin(thin: int, found: Diagnostics) -> int:
    """How much to thin next: for twice the effective size that is asked for, and at least twice as much as before."""
    missing = 2.0 * ESS_LIMIT / found.smallest_ess if found.smallest_ess > 0.0 else 2.0
    return math.ceil(thin * max(missing, 2.0))


def _start(sampler: Sampler, potential: LinearPotential, shape: Curvature, warmup: int, streams: Streams) -> Block:
    lanes = len(streams)
    state = sampler.start(potential.prior, streams, chains=1, dim=potential.dim)
    state = state._replace(position=_disperse(shape, potential.prior, streams))
    if "curvature" in state._fields:  # known already: no chain has to find it again
        mode, whitener = np.repeat(shape.mode, lanes, axis=0), np.repeat(shape.whitener, lanes, axis=0)
        state = state._replace(curvature=Curvature(mode, whitener, shape.observations))
    for call in range(warmup):
        state = sampler.advance(potential, state, streams, call)
    return Block(streams, state)


def _trace_block(
    sampler: Sampler, potential: LinearPotential, first_round: int, draws: int, block: Block
) -> tuple[Block, Trace]:
    state, found = trace(sampler, potential, block.state, block.streams, first_round, draws)
    return block._replace(state=state), found


def _disperse(shape: Curvature, prior: Prior, streams: Streams) -> FloatArray:
    """(lanes, 1, dim) starting points: chains that begin further apart than the posterior is wide make R-hat mean something."""
    starts = np.empty((len(streams), 1, shape.mode.shape[1]))
    for lane, theta in enumerate(starts[:, 0]):
        noise = streams.generator("start", lane).standard_normal(len(theta))
        theta[:] = shape.mode[0] + 2.0 * shape.whitener[0].T @ noise
        if math.isfinite(prior.radius):
            pull_into_ball(theta, prior.radius)
    return starts
