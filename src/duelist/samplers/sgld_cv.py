"""Stochastic-gradient Langevin with control variates: a step costs a batch, however long the history. Approximate.

Plain stochastic gradients replace the sum over all contrasts by a batch, scaled up; near the mode their noise swamps the noise
that Langevin adds on purpose, and the draws are far too wide. Here the batch only estimates what a second-order
expansion around a reference r leaves over,

    grad U(theta) ~ g + H (theta - r) + (n / batch) sum_{i in batch} [ u_i'(theta) - u_i'(r) - u_i''(r) (theta - r) ],

which is unbiased, and whose noise falls with the cube of |theta - r|. The reference is the mode, renewed when the duels have
grown by a twentieth. What is left is the bias of Langevin without an accept step, about h^2 / 8 of the width.

Reference: Baker, Fearnhead, Fox & Nemeth (2019), Control variates for stochastic gradient MCMC (their expansion is of
first order).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from duelist.core.checks import FloatArray, finite_number, whole_number
from duelist.core.compiled import kernel, part
from duelist.core.errors import NonFiniteError
from duelist.core.linear_kernels import lower_times, lower_transposed_times
from duelist.core.streams import Keys, Streams
from duelist.posteriors.potential import LinearPotential
from duelist.posteriors.potential_kernels import Likelihood, LinearTerms, gradient_alone, pull_into_ball, scratch_for
from duelist.posteriors.priors import Prior
from duelist.samplers.base import prior_draws
from duelist.samplers.curvature import Curvature, renewed, unknown_curvature
from duelist.samplers.expansion import Expansion, covering, no_expansion
from duelist.samplers.random_kernels import Tape, normal, tape_from, uniform


class SGLDCVChains(NamedTuple):
    """Chains of `SGLDCV`: (lanes, chains, dim) positions, what shapes their steps, and the control variates."""

    position: FloatArray
    curvature: Curvature
    expansion: Expansion


@part
def _lose(u: float) -> float:
    e = math.exp(-abs(u))
    return (e if u > 0.0 else 1.0) / (1.0 + e)


@part
def _add_batch(
    gradient: FloatArray, theta: FloatArray, reference: FloatArray, lane: int, full: Likelihood, batch: int, tape: Tape
) -> None:
    """Add the batch's estimate of the gradient that the expansion leaves over."""
    n = full.n_rows[lane]
    scale = full.eta[lane] * n / batch
    for _ in range(batch):
        p = int(uniform(tape) * n)
        at_theta, at_reference = 0.0, 0.0
        for i in range(theta.shape[0]):
            at_theta += full.contrasts[lane, i, p] * theta[i]
            at_reference += full.contrasts[lane, i, p] * reference[i]
        before, after = _lose(at_reference), _lose(at_theta)
        rest = before - after - before * (1.0 - before) * (at_theta - at_reference)
        for i in range(theta.shape[0]):
            gradient[i] += scale * full.totals[lane, p] * rest * full.contrasts[lane, i, p]


@kernel
def sgld_cv_lanes(
    position: FloatArray,
    whitener: FloatArray,
    keys: Keys,
    round_: int,
    first_substream: int,
    steps: int,
    step_size: float,
    batch: int,
    full: Likelihood,
    expanded: LinearTerms,
) -> int:
    """Take `steps` steps with every chain in place. Returns -1, or the first lane that is not finite."""
    lanes, chains, dim = position.shape
    scratch = scratch_for(expanded)
    gradient, slope, whitened, move = np.empty(dim), np.empty(dim), np.empty(dim), np.empty(dim)
    for lane in range(lanes):
        for chain in range(chains):
            theta = position[lane, chain]
            tape = tape_from(keys[lane], round_, first_substream + chain)
            for _ in range(steps):
                gradient_alone(gradient, theta, lane, chain, expanded, scratch)
                if full.n_rows[lane] > 0:
                    _add_batch(gradient, theta, expanded.parabola.reference[lane], lane, full, batch, tape)
                lower_times(slope, whitener[lane], gradient)
                for i in range(dim):
                    whitened[i] = step_size * normal(tape) - 0.5 * step_size * step_size * slope[i]
                lower_transposed_times(move, whitener[lane], whitened)
                for i in range(dim):
                    theta[i] += move[i]
                if not pull_into_ball(theta, expanded.radius):
                    return lane
    return -1


@dataclass(frozen=True, kw_only=True)
class SGLDCV:
    """Stochastic-gradient Langevin with second-order control variates. Biased: about h^2 / 8 too wide.

    Args:
        steps: steps each chain takes a round, from where it stood the round before.
        step_size: h in whitened coordinates.
        batch: contrasts a step reads, drawn with replacement.
    """

    exact: ClassVar[bool] = False
    one_pass: ClassVar[bool] = False

    steps: int = 10
    step_size: float = 0.5
    batch: int = 64

    def __post_init__(self) -> None:
        whole_number("steps", self.steps, at_least=1)
        finite_number("step_size", self.step_size, above=0.0, at_most=1.99)
        whole_number("batch", self.batch, at_least=1)

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> SGLDCVChains:
        """Chains at independent draws from the prior."""
        lanes = len(streams)
        position = prior_draws(prior, streams, chains=chains, dim=dim)
        return SGLDCVChains(position, unknown_curvature(lanes, dim), no_expansion(lanes, dim))

    def advance(
        self, potential: LinearPotential, chains: SGLDCVChains, streams: Streams, round_: int, attempt: int = 0
    ) -> SGLDCVChains:
        """Take `steps` steps with every chain."""
        curvature = renewed(chains.curvature, potential)
        expansion = covering(chains.expansion, curvature, potential)
        position = chains.position.copy()
        bad_lane = sgld_cv_lanes(
            position,
            curvature.whitener,
            streams.keys("sampler"),
            round_,
            attempt * position.shape[1],
            self.steps,
            self.step_size,
            self.batch,
            potential.packed.likelihood,
            potential.expanded(expansion.reference, expansion.slope, expansion.hessian),
        )
        if bad_lane >= 0:
            raise NonFiniteError(
                f"stochastic-gradient Langevin ran away in lane {bad_lane}: far from the mode the batch's noise grows. "
                f"Lower step_size from {self.step_size:g}, raise batch from {self.batch}, or use MALA."
            )
        return SGLDCVChains(position, curvature, expansion)

    def report(self, chains: SGLDCVChains) -> dict[str, FloatArray]:
        """The step size, the same for every lane."""
        return {"step_size": np.full(len(chains.position), self.step_size)}
