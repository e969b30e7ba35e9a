"""Geweke's joint test in lanes: a sampler that keeps the posterior keeps the joint law of (theta, outcomes).

Every lane starts at an exact draw of theta and of outcomes given theta, and alternates: move theta with the sampler, given the
outcomes; draw new outcomes, given theta. Were the sampler right, theta would be a draw from the prior after any number
of turns. Lanes are independent, so the law after the last turn is compared with fresh draws by plain two-sample tests,
without any correction for autocorrelation.

Reference: Geweke (2004), Getting it right: joint distribution tests of posterior simulators.
"""

from __future__ import annotations

import numpy as np
from scipy import stats

from duelist.core.streams import Streams
from duelist.samplers.base import Sampler, trace
from duelist.samplers.calibration.joint_model import JointModel
from duelist.typing import FloatArray


def joint_test(sampler: Sampler, model: JointModel, *, turns: int = 10, seed: int = 0) -> FloatArray:
    """(dim + 2,) p-values of Kolmogorov-Smirnov tests: coordinates of theta, |theta|, and the log joint density."""
    generator = np.random.default_rng([seed, 2])
    streams = Streams(seed, range(model.lanes))
    theta = model.draw_theta(generator)
    for turn in range(turns):
        potential = model.potential(model.draw_outcomes(theta, generator))
        # Started anew each turn, so that nothing but the outcomes shapes its proposals: what a sampler learnt in earlier turns
        # would depend on earlier theta, and the argument above would not hold.
        state = sampler.start(potential.prior, streams, chains=1, dim=model.dim)
        state, _ = trace(sampler, potential, state._replace(position=theta[:, None].copy()), streams, turn, 1)
        theta = state.position[:, 0]
    moved = _quantities(model, theta, generator)
    fresh = _quantities(model, model.draw_theta(generator), generator)
    return np.array([stats.ks_2samp(one, other).pvalue for one, other in zip(moved.T, fresh.T, strict=True)])


def _quantities(model: JointModel, theta: FloatArray, generator: np.random.Generator) -> FloatArray:
    energy = model.potential(model.draw_outcomes(theta, generator)).value(theta[:, None])
    return np.hstack([theta, np.linalg.norm(theta, axis=1, keepdims=True), energy])
