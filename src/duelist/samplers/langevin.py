"""Langevin steps that are always taken, biased: the paper's sampler, kept for reproduction, and two with a constant step.

    theta <- theta - delta_t grad U(theta) + sqrt(2 delta_t) xi,   delta_t = step_size * decay^t.

With the paper's decay of 0.99 per round the step is 2e-7 after a thousand rounds: the chains stop moving long before the
posterior stops shrinking, so late draws are neither from the posterior nor independent from round to round. Use `MALA`
unless you want the paper's numbers.

Shaped by the curvature at the mode, a constant step h is right up to a bias of about h^2 / 8 of the width. Its gradient may be
that of all contrasts, or an estimate from a batch. Plain stochastic gradients replace the sum over all contrasts by a batch,
scaled up; near the mode their noise swamps the noise that Langevin adds on purpose, and the draws are far too wide. Here the
batch only estimates what a second-order expansion around a reference r leaves over,

    grad U(theta) ~ g + H (theta - r) + (n / batch) sum_{i in batch} [ u_i'(theta) - u_i'(r) - u_i''(r) (theta - r) ],

which is unbiased, and whose noise falls with the cube of |theta - r|. The reference is the mode, refreshed when the duels have
grown by a twentieth.

Reference: Baker, Fearnhead, Fox & Nemeth (2019), Control variates for stochastic gradient MCMC (their expansion is of
first order).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import numpy as np

from duelist.core.checks import finite_number, whole_number
from duelist.core.errors import NonFiniteError
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.kernels.langevin import Minibatch, langevin_lanes
from duelist.kernels.potential import LinearTerms
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Prior
from duelist.samplers.base import prior_draws, random_source
from duelist.samplers.curvature import Curvature, refresh_curvature, unknown_curvature
from duelist.samplers.expansion import Expansion, extend_expansion, no_expansion, prepare_terms, substitute
from duelist.typing import FloatArray

Whitened = TypeVar("Whitened", bound="WhitenedState")


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


class WhitenedState(NamedTuple):
    """Positions (lanes, chains, dim), the curvature that shapes their steps, and the expansion of a long history."""

    position: FloatArray
    curvature: Curvature
    expansion: Expansion


@stored("unadjusted-state")
class UnadjustedState(WhitenedState):
    """State of `UnadjustedLangevin`."""

    __slots__ = ()


@stored("sgld-cv-state")
class SGLDCVState(WhitenedState):
    """State of `SGLDCV`; its expansion gives the control variates."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class _WhitenedLangevin(Generic[Whitened]):
    """Steps of a constant size in the coordinates in which the posterior is round."""

    exact: ClassVar[bool] = False
    one_pass: ClassVar[bool] = False
    state_type: ClassVar[type[Any]]

    steps: int = 10
    step_size: float = 0.5

    def __post_init__(self) -> None:
        whole_number("steps", self.steps, at_least=1)
        finite_number("step_size", self.step_size, above=0.0, at_most=1.99)

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> Whitened:
        """Chains at independent draws from the prior."""
        lanes, position = len(streams), prior_draws(prior, streams, chains=chains, dim=dim)
        started: Whitened = self.state_type(position, unknown_curvature(lanes, dim), no_expansion(lanes, dim))
        return started

    def advance(self, potential: LinearPotential, state: Whitened, streams: Streams, round_: int, attempt: int = 0) -> Whitened:
        """Take `steps` steps with every chain."""
        curvature, expansion, batch, terms = self._prepare(state, potential)
        position = state.position.copy()
        source = random_source(streams, round_, attempt, position.shape[1])
        bad_lane = langevin_lanes(position, curvature.whitener, source, self.steps, self.step_size, batch, terms)
        if bad_lane >= 0:
            raise NonFiniteError(self._ran_away(bad_lane))
        return state._replace(position=position, curvature=curvature, expansion=expansion)

    def _prepare(
        self, state: Whitened, potential: LinearPotential
    ) -> tuple[Curvature, Expansion, Minibatch | None, LinearTerms]:
        """What a round's steps read."""
        raise NotImplementedError

    def _ran_away(self, lane: int) -> str:
        raise NotImplementedError

    def report(self, state: Whitened) -> dict[str, FloatArray]:
        """The step size, the same for every lane."""
        return {"step_size": np.full(len(state.position), self.step_size)}


@dataclass(frozen=True, kw_only=True)
class UnadjustedLangevin(_WhitenedLangevin[UnadjustedState]):
    """Preconditioned Langevin steps that are always taken. Biased: about h^2 / 8 too wide.

    Args:
        steps: steps each chain takes per round, from where it stood the round before.
        step_size: h in whitened coordinates, below 2, where it would run away.
    """

    state_type = UnadjustedState

    def _prepare(
        self, state: UnadjustedState, potential: LinearPotential
    ) -> tuple[Curvature, Expansion, Minibatch | None, LinearTerms]:
        curvature, expansion, terms = prepare_terms(state.curvature, state.expansion, potential)
        return curvature, expansion, None, terms

    def _ran_away(self, lane: int) -> str:
        return (
            f"unadjusted Langevin ran away in lane {lane}. Lower step_size from {self.step_size:g}, or use MALA, which rejects "
            f"such steps."
        )


@dataclass(frozen=True, kw_only=True)
class SGLDCV(_WhitenedLangevin[SGLDCVState]):
    """Stochastic-gradient Langevin with second-order control variates. Biased: about h^2 / 8 too wide.

    A step costs a batch, however long the history.

    Args:
        steps: steps each chain takes per round, from where it stood the round before.
        step_size: h in whitened coordinates.
        batch: contrasts a step reads, drawn with replacement.
    """

    state_type = SGLDCVState

    batch: int = 64

    def __post_init__(self) -> None:
        super().__post_init__()
        whole_number("batch", self.batch, at_least=1)

    def _prepare(
        self, state: SGLDCVState, potential: LinearPotential
    ) -> tuple[Curvature, Expansion, Minibatch | None, LinearTerms]:
        curvature = refresh_curvature(state.curvature, potential)
        expansion = extend_expansion(state.expansion, curvature, potential)
        return curvature, expansion, Minibatch(self.batch, potential.likelihood), substitute(expansion, potential)

    def _ran_away(self, lane: int) -> str:
        return (
            f"stochastic-gradient Langevin ran away in lane {lane}: far from the mode the batch's noise grows. "
            f"Lower step_size from {self.step_size:g}, raise batch from {self.batch}, or use MALA."
        )
