"""The paper's sampler: unadjusted Langevin steps on the full-data gradient. Biased: kept for reproduction.

    theta <- theta - delta_t grad U(theta) + sqrt(2 delta_t) xi,   delta_t = step_size * decay^t.

With the paper's decay of 0.99 per round the step is 2e-7 after a thousand rounds: the chains stop moving long before the
posterior stops shrinking, so late draws are neither from the posterior nor independent from round to round. Use `MALA`
unless you want the paper's numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from duelist.core.checks import finite_number, whole_number
from duelist.core.errors import NonFiniteError
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.kernels.langevin import langevin_lanes
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Prior
from duelist.samplers.base import prior_draws, random_source
from duelist.samplers.curvature import Curvature, unknown_curvature
from duelist.samplers.expansion import Expansion, no_expansion, prepare_terms
from duelist.typing import FloatArray


@stored("langevin-state")
class LangevinState(NamedTuple):
    """State of `Langevin`: (lanes, chains, dim) positions, and the number of calls so far, which sets the step."""

    position: FloatArray
    calls: int


@dataclass(frozen=True, kw_only=True)
class Langevin:
    """Unadjusted Langevin with a decaying step: the paper's recipe by default, labelled biased.

    Args:
        steps: steps each chain takes per round, from where it stood the round before. The paper does not state its number.
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

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> LangevinState:
        """Chains at independent draws from the prior."""
        return LangevinState(prior_draws(prior, streams, chains=chains, dim=dim), 0)

    def advance(
        self, potential: LinearPotential, state: LangevinState, streams: Streams, round_: int, attempt: int = 0
    ) -> LangevinState:
        """Take `steps` steps with every chain at this round's step size."""
        position = state.position.copy()
        if not self.warm_start:
            _, n_chains, dim = position.shape
            position = prior_draws(potential.prior, streams, chains=n_chains, dim=dim, round_=round_ + 1)
        step_size = self.step_size * self.decay**state.calls
        source = random_source(streams, round_, attempt, position.shape[1])
        bad_lane = langevin_lanes(position, None, source, self.steps, step_size, None, potential.compiled_terms)
        if bad_lane >= 0:
            raise NonFiniteError(
                f"Langevin ran away in lane {bad_lane}: a step of {step_size:g} is too large for this curvature. "
                f"Lower step_size, or use MALA, which rejects such steps."
            )
        return LangevinState(position, state.calls + 1)

    def report(self, state: LangevinState) -> dict[str, FloatArray]:
        """The step size of the next round, the same for every lane."""
        return {"step_size": np.full(len(state.position), self.step_size * self.decay**state.calls)}


@stored("unadjusted-state")
class UnadjustedState(NamedTuple):
    """State of `UnadjustedLangevin`: (lanes, chains, dim) positions, and what shapes their steps."""

    position: FloatArray
    curvature: Curvature
    expansion: Expansion


@dataclass(frozen=True, kw_only=True)
class UnadjustedLangevin:
    """Preconditioned Langevin steps that are always taken. Biased: about h^2 / 8 too wide.

    Args:
        steps: steps each chain takes per round, from where it stood the round before.
        step_size: h in whitened coordinates, below 2, where it would run away.
    """

    exact: ClassVar[bool] = False
    one_pass: ClassVar[bool] = False

    steps: int = 10
    step_size: float = 0.5

    def __post_init__(self) -> None:
        whole_number("steps", self.steps, at_least=1)
        finite_number("step_size", self.step_size, above=0.0, at_most=1.99)

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> UnadjustedState:
        """Chains at independent draws from the prior."""
        lanes = len(streams)
        position = prior_draws(prior, streams, chains=chains, dim=dim)
        return UnadjustedState(position, unknown_curvature(lanes, dim), no_expansion(lanes, dim))

    def advance(
        self, potential: LinearPotential, state: UnadjustedState, streams: Streams, round_: int, attempt: int = 0
    ) -> UnadjustedState:
        """Take `steps` steps with every chain."""
        curvature, expansion, terms = prepare_terms(state.curvature, state.expansion, potential)
        position = state.position.copy()
        source = random_source(streams, round_, attempt, position.shape[1])
        bad_lane = langevin_lanes(position, curvature.whitener, source, self.steps, self.step_size, None, terms)
        if bad_lane >= 0:
            raise NonFiniteError(
                f"unadjusted Langevin ran away in lane {bad_lane}. Lower step_size from {self.step_size:g}, or use MALA, "
                f"which rejects such steps."
            )
        return UnadjustedState(position, curvature, expansion)

    def report(self, state: UnadjustedState) -> dict[str, FloatArray]:
        """The step size, the same for every lane."""
        return {"step_size": np.full(len(state.position), self.step_size)}
