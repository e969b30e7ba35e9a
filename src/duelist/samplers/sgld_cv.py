"""Stochastic-gradient Langevin with control variates: a step costs a batch, however long the history. Approximate.

Plain stochastic gradients replace the sum over all contrasts by a batch, scaled up; near the mode their noise swamps the noise
that Langevin adds on purpose, and the draws are far too wide. Here the batch only estimates what a second-order
expansion around a reference r leaves over,

    grad U(theta) ~ g + H (theta - r) + (n / batch) sum_{i in batch} [ u_i'(theta) - u_i'(r) - u_i''(r) (theta - r) ],

which is unbiased, and whose noise falls with the cube of |theta - r|. The reference is the mode, refreshed when the duels have
grown by a twentieth. What is left is the bias of Langevin without an accept step, about h^2 / 8 of the width.

Reference: Baker, Fearnhead, Fox & Nemeth (2019), Control variates for stochastic gradient MCMC (their expansion is of
first order).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from duelist.core.checks import finite_number, whole_number
from duelist.core.errors import NonFiniteError
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.kernels.langevin import Minibatch, langevin_lanes
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Prior
from duelist.samplers.base import prior_draws, random_source
from duelist.samplers.curvature import Curvature, refresh_curvature, unknown_curvature
from duelist.samplers.expansion import Expansion, extend_expansion, no_expansion, substitute
from duelist.typing import FloatArray


@stored("sgld-cv-state")
class SGLDCVState(NamedTuple):
    """State of `SGLDCV`: (lanes, chains, dim) positions, what shapes their steps, and the control variates."""

    position: FloatArray
    curvature: Curvature
    expansion: Expansion


@dataclass(frozen=True, kw_only=True)
class SGLDCV:
    """Stochastic-gradient Langevin with second-order control variates. Biased: about h^2 / 8 too wide.

    Args:
        steps: steps each chain takes per round, from where it stood the round before.
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

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> SGLDCVState:
        """Chains at independent draws from the prior."""
        lanes = len(streams)
        position = prior_draws(prior, streams, chains=chains, dim=dim)
        return SGLDCVState(position, unknown_curvature(lanes, dim), no_expansion(lanes, dim))

    def advance(
        self, potential: LinearPotential, state: SGLDCVState, streams: Streams, round_: int, attempt: int = 0
    ) -> SGLDCVState:
        """Take `steps` steps with every chain."""
        curvature = refresh_curvature(state.curvature, potential)
        expansion = extend_expansion(state.expansion, curvature, potential)
        position = state.position.copy()
        source = random_source(streams, round_, attempt, position.shape[1])
        batch, terms = Minibatch(self.batch, potential.likelihood), substitute(expansion, potential)
        bad_lane = langevin_lanes(position, curvature.whitener, source, self.steps, self.step_size, batch, terms)
        if bad_lane >= 0:
            raise NonFiniteError(
                f"stochastic-gradient Langevin ran away in lane {bad_lane}: far from the mode the batch's noise grows. "
                f"Lower step_size from {self.step_size:g}, raise batch from {self.batch}, or use MALA."
            )
        return SGLDCVState(position, curvature, expansion)

    def report(self, state: SGLDCVState) -> dict[str, FloatArray]:
        """The step size, the same for every lane."""
        return {"step_size": np.full(len(state.position), self.step_size)}
