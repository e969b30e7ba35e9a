"""Three tests that a sampler keeps its posterior: ranks of the truth, Geweke's joint test, and Stein's discrepancy.

**Simulation-based calibration.** Every lane draws theta from the prior and outcomes given theta, and then samples the posterior
of those outcomes. If the sampler is right, the rank of the truth among L draws is uniform on 0, ..., L, for every coordinate,
and for the log joint density, which sees errors of width and of correlation that leave single coordinates uniform.

**Geweke's joint test**, in lanes. A sampler that keeps the posterior keeps the joint law of (theta, outcomes). Every lane
starts at an exact draw of theta and of outcomes given theta, and alternates: move theta with the sampler, given the outcomes;
draw new outcomes, given theta. Were the sampler right, theta would be a draw from the prior after any number of turns. Lanes
are independent, so the law after the last turn is compared with fresh draws by plain two-sample tests, without any correction
for autocorrelation.

**Kernel Stein discrepancy**: how far draws are from a density that is known up to its constant, without any other draws. With
the score s = -grad U and the inverse-multiquadric kernel k(x, y) = (1 + |x - y|^2)^(-1/2), in coordinates in which the
posterior is round,

    KSD^2 = mean over pairs of  <s(x), s(y)> k + <s(x), grad_y k> + <s(y), grad_x k> + trace(grad_x grad_y k),

whose expectation is zero exactly when the draws have density exp(-U). It sees a bias that every chain shares, which R-hat does
not.

References: Talts et al. (2018), Validating Bayesian inference algorithms with simulation-based calibration; Modrak et al.
(2023) on the joint density as a test quantity; Geweke (2004), Getting it right: joint distribution tests of posterior
simulators; Gorham & Mackey (2017), Measuring sample quality with kernels; the bootstrap is that of Liu, Lee & Jordan (2016).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats

from duelist.core.streams import Streams
from duelist.posteriors.linear import LinearPotential
from duelist.samplers.base import Sampler, trace
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


class SteinTest(NamedTuple):
    """The squared discrepancy of independent draws, and its p-value under the wild bootstrap."""

    squared: float
    p_value: float


def stein_test(
    draws: FloatArray, gradients: FloatArray, whitener: FloatArray, *, seed: int = 0, resamples: int = 1000
) -> SteinTest:
    """Test that independent draws (n, dim) with potential gradients (n, dim) have density exp(-U).

    `whitener` (dim, dim) is the inverse of the lower Cholesky factor of the curvature: coordinates become factor^T theta.
    """
    n, dim = draws.shape
    x = draws @ np.linalg.inv(whitener)
    score = -gradients @ whitener.T
    difference = x[:, None] - x[None]
    base = 1.0 + (difference**2).sum(axis=2)
    value = base**-0.5
    slope = base**-1.5  # grad_x k = -(x - y) slope, grad_y k = (x - y) slope
    along_x = np.einsum("ijd,id->ij", difference, score)
    along_y = np.einsum("ijd,jd->ij", difference, score)
    mixed = dim * slope - 3.0 * (base - 1.0) * base**-2.5
    pairs = score @ score.T * value + (along_x - along_y) * slope + mixed
    np.fill_diagonal(pairs, 0.0)
    squared = float(pairs.sum()) / (n * (n - 1))
    generator = np.random.default_rng([seed, 3])
    weights = (generator.multinomial(n, np.full(n, 1.0 / n), size=resamples) - 1.0) / n
    null = np.einsum("ri,ij,rj->r", weights, pairs, weights, optimize=True)
    return SteinTest(squared, float((1 + (null * n / (n - 1) >= squared).sum()) / (resamples + 1)))
