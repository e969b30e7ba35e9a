"""Simulation-based calibration: the truth must rank uniformly among draws from its own posterior.

Every lane draws theta from the prior and outcomes given theta, and then samples the posterior of those outcomes. If the
sampler is right, the rank of the truth among L draws is uniform on 0, ..., L, for every coordinate, and for the log
joint density, which sees errors of width and of correlation that leave single coordinates uniform.

Reference: Talts et al. (2018), Validating Bayesian inference algorithms with simulation-based calibration; Modrak et
al. (2023) on the joint density as a test quantity.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from duelist.core.streams import Streams
from duelist.posteriors.linear import LinearPotential
from duelist.samplers.base import Sampler
from duelist.samplers.calibration.joint_model import JointModel
from duelist.typing import FloatArray, IntArray


def truth_ranks(
    sampler: Sampler,
    model: JointModel,
    *,
    draws: int = 63,
    warmup: int = 40,
    seed: int = 0,
    believe: Callable[[LinearPotential], LinearPotential] | None = None,
) -> IntArray:
    """(lanes, dim + 1) ranks of the truth among `draws` draws: coordinates, then the log joint density.

    `believe` turns the right posterior into the one that is sampled: for showing that a defect in it is seen.
    """
    generator = np.random.default_rng([seed, 1])
    theta = model.draw_theta(generator)
    outcomes = model.draw_outcomes(theta, generator)
    potential = model.potential(outcomes)
    sampled = potential if believe is None else believe(potential)
    streams = Streams(seed, range(model.lanes))
    state = sampler.start(potential.prior, streams, chains=1, dim=model.dim)
    energy = potential.value(theta[:, None])[:, 0]
    ranks = np.zeros((model.lanes, model.dim + 1), dtype=np.int64)
    for call in range(warmup + draws):
        state = sampler.advance(sampled, state, streams, call)
        if call >= warmup:
            position = state.position[:, 0]
            ranks[:, :-1] += position < theta
            ranks[:, -1] += potential.value(state.position)[:, 0] < energy
    return ranks


def uniformity(ranks: IntArray, draws: int, bins: int = 16) -> FloatArray:
    """(statistics,) p-values of a chi-squared test that ranks (lanes, statistics) are uniform on 0, ..., draws."""
    edges = np.linspace(0, draws + 1, bins + 1)
    counts = np.array([np.histogram(column, bins=edges)[0] for column in ranks.T])
    return np.asarray(stats.chisquare(counts, axis=1).pvalue)
