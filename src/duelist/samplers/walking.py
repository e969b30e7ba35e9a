"""MALA with a renewed curvature and an adapted step, on any potential that can tell its value, gradient and curvature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from duelist.core.checks import FloatArray, whole_number
from duelist.core.errors import NonFiniteError
from duelist.core.streams import Streams
from duelist.posteriors.priors import Prior
from duelist.samplers.any_potential import AnyPotential, mala_walk
from duelist.samplers.stepping import Stepping, at_the_prior, is_old, report_of, stepped, whiteners


class CurvedPotential(AnyPotential, Protocol):
    """A potential that also knows how it curves."""

    def curvature(self, theta: FloatArray) -> FloatArray:
        """Positive definite matrices (lanes, dim, dim) at theta (lanes, dim)."""


class WalkingChains(Stepping):
    """Chains of `WalkingMALA`."""

    __slots__ = ()


@dataclass(frozen=True, kw_only=True)
class WalkingMALA:
    """Preconditioned MALA on any potential.

    Args:
        steps: steps each chain takes a round, from where it stood the round before.
    """

    steps: int = 10

    def __post_init__(self) -> None:
        whole_number("steps", self.steps, at_least=1)

    def start(self, prior: Prior, streams: Streams, *, chains: int, dim: int) -> WalkingChains:
        """Chains at draws from the prior."""
        return WalkingChains(*at_the_prior(prior, streams, chains=chains, dim=dim))

    def advance(
        self, potential: CurvedPotential, chains: WalkingChains, streams: Streams, round_: int, *, answers: int
    ) -> WalkingChains:
        """Move every chain towards the potential of that many answers; round_ names the random numbers."""
        if answers == 0:
            return chains  # draws from the prior are draws from the posterior of no answers
        whitener, whitened_at = chains.whitener, chains.whitened_at
        if is_old(whitened_at, answers):
            whitener, whitened_at = whiteners(potential.curvature(chains.position.mean(axis=1))), answers
        walk = mala_walk(
            potential,
            chains.position,
            chains.log_step,
            whitener,
            streams.keys("walking mala"),
            round_=round_,
            steps=self.steps,
        )
        if not np.isfinite(walk.started_at).all():
            raise NonFiniteError("the potential is not finite where a chain stands. Check the scale of the features.")
        return stepped(chains, walk.position, walk.acceptance, whitener, whitened_at)

    def report(self, chains: WalkingChains) -> dict[str, FloatArray]:
        """Mean acceptance probability and step size, one a lane."""
        return report_of(chains)
