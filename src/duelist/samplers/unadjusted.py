"""Langevin without the accept step, preconditioned, at a constant step: biased, by an amount that is known.

In whitened coordinates a step is phi' = phi - (h^2 / 2) grad U(phi) + h xi. On a standard normal its stationary law is normal
with standard deviation 1 / sqrt(1 - h^2 / 4): at the default h = 0.5, 3 % too wide. `MALA` removes this at the price of
rejections; this one is for comparison, and for showing that the calibration suite sees the difference.

Reference: Roberts & Tweedie (1996) on the unadjusted Langevin algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from duelist.core.checks import FloatArray, finite_number, whole_number
from duelist.core.compiled import kernel
from duelist.core.errors import NonFiniteError
from duelist.core.linear_kernels import lower_times, lower_transposed_times
from duelist.core.philox import fill_normals, first_block
from duelist.core.streams import Keys, Streams
from duelist.posteriors.potential import LinearPotential
from duelist.posteriors.potential_kernels import LinearTerms, gradient_alone, pull_into_ball, scratch_for
from duelist.posteriors.priors import Prior
from duelist.samplers.base import prior_draws
from duelist.samplers.curvature import Curvature, unknown_curvature
from duelist.samplers.expansion import Expansion, no_expansion, shaped


class UnadjustedChains(NamedTuple):
    """Chains of `UnadjustedLangevin`: (lanes, chains, dim) positions, and what shapes their steps."""

    position: FloatArray
    curvature: Curvature
    expansion: Expansion


@kernel
def unadjusted_lanes(
    position: FloatArray,
    whitener: FloatArray,
    keys: Keys,
    round_: int,
    first_substream: int,
    steps: int,
    step_size: float,
    terms: LinearTerms,
) -> int:
    """Take `steps` steps with every chain in place. Returns -1, or the first lane that is not finite."""
    lanes, chains, dim = position.shape
    scratch = scratch_for(terms)
    gradient, slope, noise, move = np.empty(dim), np.empty(dim), np.empty(dim), np.empty(dim)
    for lane in range(lanes):
        for chain in range(chains):
            theta = position[lane, chain]
            block = first_block()
            for _ in range(steps):
                gradient_alone(gradient, theta, lane, chain, terms, scratch)
                lower_times(slope, whitener[lane], gradient)
                block, _uniform = fill_normals(noise, keys[lane], block, round_, first_substream + chain)
                for i in range(dim):
                    noise[i] = step_size * noise[i] - 0.5 * step_size * step_size * slope[i]
                lower_transposed_times(move, whitener[lane], noise)
                for i in range(dim):
                    theta[i] += move[i]
                if not pull_into_ball(theta, terms.radius):
                    return lane
    return -1


@dataclass(frozen=True, kw_only=True)
class UnadjustedLangevin:
    """Preconditioned Langevin steps that are always taken. Biased: about h^2 / 8 too wide.

    Args:
        steps: steps each chain takes a round, from where it stood the round before.
        step_size: h in whitened coordinates, below 2, where it would run away.
    """

    exact: ClassVar[bool] = False
    one_pass: ClassVar[bool] = False

    steps: int = 10
    step_size: float = 0.5

    def __post_init__(self) -> None:
        whole_number("steps", self.steps, at_least=1)
        finite_number("step_size", self.step_size, above=0.0, at_most=1.99)

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> UnadjustedChains:
        """Chains at independent draws from the prior."""
        lanes = len(streams)
        position = prior_draws(prior, streams, chains=chains, dim=dim)
        return UnadjustedChains(position, unknown_curvature(lanes, dim), no_expansion(lanes, dim))

    def advance(
        self, potential: LinearPotential, chains: UnadjustedChains, streams: Streams, round_: int, attempt: int = 0
    ) -> UnadjustedChains:
        """Take `steps` steps with every chain."""
        curvature, expansion, terms = shaped(chains.curvature, chains.expansion, potential)
        position = chains.position.copy()
        bad_lane = unadjusted_lanes(
            position,
            curvature.whitener,
            streams.keys("sampler"),
            round_,
            attempt * position.shape[1],
            self.steps,
            self.step_size,
            terms,
        )
        if bad_lane >= 0:
            raise NonFiniteError(
                f"unadjusted Langevin ran away in lane {bad_lane}. Lower step_size from {self.step_size:g}, or use MALA, "
                f"which rejects such steps."
            )
        return UnadjustedChains(position, curvature, expansion)

    def report(self, chains: UnadjustedChains) -> dict[str, FloatArray]:
        """The step size, the same for every lane."""
        return {"step_size": np.full(len(chains.position), self.step_size)}
