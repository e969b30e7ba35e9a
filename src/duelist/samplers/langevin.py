"""The paper's sampler: unadjusted Langevin steps on the full-data gradient. Biased: kept for reproduction.

    theta <- theta - delta_t grad U(theta) + sqrt(2 delta_t) xi,   delta_t = step_size * decay^t.

With the paper's decay of 0.99 a round the step is 2e-7 after a thousand rounds: the chains stop moving long before the
posterior stops shrinking, so late draws are neither from the posterior nor independent from round to round. Use `MALA`
unless you want the paper's numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from duelist.core.checks import FloatArray, finite_number, whole_number
from duelist.core.compiled import kernel
from duelist.core.errors import NonFiniteError
from duelist.core.philox import fill_normals, first_block
from duelist.core.streams import Keys, Streams
from duelist.posteriors.potential import LinearPotential
from duelist.posteriors.potential_kernels import LinearTerms, gradient_alone, pull_into_ball, scratch_for
from duelist.posteriors.priors import Prior
from duelist.samplers.base import prior_draws


class LangevinChains(NamedTuple):
    """Chains of `Langevin`: (lanes, chains, dim) positions, and the number of calls so far, which sets the step."""

    position: FloatArray
    calls: int


@kernel
def langevin_lanes(
    position: FloatArray,
    keys: Keys,
    round_: int,
    first_substream: int,
    steps: int,
    step_size: float,
    terms: LinearTerms,
) -> int:
    """Take `steps` unadjusted steps with every chain in place. Returns -1, or the first lane that is not finite."""
    lanes, chains, dim = position.shape
    scratch = scratch_for(terms)
    gradient, noise = np.empty(dim), np.empty(dim)
    spread = math.sqrt(2.0 * step_size)
    for lane in range(lanes):
        for chain in range(chains):
            theta = position[lane, chain]
            block = first_block()
            for _ in range(steps):
                gradient_alone(gradient, theta, lane, chain, terms, scratch)
                block, _uniform = fill_normals(noise, keys[lane], block, round_, first_substream + chain)
                for i in range(dim):
                    theta[i] += spread * noise[i] - step_size * gradient[i]
                if not pull_into_ball(theta, terms.radius):
                    return lane
    return -1


@dataclass(frozen=True, kw_only=True)
class Langevin:
    """Unadjusted Langevin with a decaying step: the paper's recipe by default, labelled biased.

    Args:
        steps: steps each chain takes a round, from where it stood the round before. The paper does not state its number.
        step_size: delta of the first round (the paper: 0.005).
        decay: factor of delta after every round (the paper: 0.99; 1 keeps it constant).
        warm_start: False starts every round from a fresh prior draw instead of the round before (the paper implies True).
    """

    exact: ClassVar[bool] = False
    one_pass: ClassVar[bool] = False

    steps: int = 10
    step_size: float = 0.005
    decay: float = 0.99
    warm_start: bool = True

    def __post_init__(self) -> None:
        whole_number("steps", self.steps, at_least=1)
        finite_number("step_size", self.step_size, above=0.0)
        finite_number("decay", self.decay, above=0.0, at_most=1.0)

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> LangevinChains:
        """Chains at independent draws from the prior."""
        return LangevinChains(prior_draws(prior, streams, chains=chains, dim=dim), 0)

    def advance(
        self, potential: LinearPotential, chains: LangevinChains, streams: Streams, round_: int, attempt: int = 0
    ) -> LangevinChains:
        """Take `steps` steps with every chain at this round's step size."""
        position = chains.position.copy()
        if not self.warm_start:
            _, n_chains, dim = position.shape
            position = prior_draws(potential.prior, streams, chains=n_chains, dim=dim, round_=round_ + 1)
        step_size = self.step_size * self.decay**chains.calls
        bad_lane = langevin_lanes(
            position,
            streams.keys("sampler"),
            round_,
            attempt * position.shape[1],
            self.steps,
            step_size,
            potential.packed,
        )
        if bad_lane >= 0:
            raise NonFiniteError(
                f"Langevin ran away in lane {bad_lane}: a step of {step_size:g} is too large for this curvature. "
                f"Lower step_size, or use MALA, which rejects such steps."
            )
        return LangevinChains(position, chains.calls + 1)

    def report(self, chains: LangevinChains) -> dict[str, FloatArray]:
        """The step size of the next round, the same for every lane."""
        return {"step_size": np.full(len(chains.position), self.step_size * self.decay**chains.calls)}
