"""MALA with a renewed curvature and an adapted step, on any potential that can tell its value, gradient and curvature."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from scipy.linalg import solve_triangular

from duelist.core.checks import FloatArray, whole_number
from duelist.core.errors import NonFiniteError
from duelist.core.streams import Streams
from duelist.posteriors.priors import Prior
from duelist.samplers.any_potential import AnyPotential, mala_walk
from duelist.samplers.base import prior_draws

_TARGET_ACCEPTANCE = 0.574
_ADAPTATION_DECAY = 0.6
_RENEW_AFTER = 1.3  # the curvature is computed again when there are so many times the answers it was computed from


class CurvedPotential(AnyPotential, Protocol):
    """A potential that also knows how it curves."""

    def curvature(self, theta: FloatArray) -> FloatArray:
        """Positive definite matrices (lanes, dim, dim) at theta (lanes, dim)."""


class WalkingChains(NamedTuple):
    """Chains of `WalkingMALA`.

    Attributes:
        position: (lanes, chains, dim) current draws.
        log_step: (lanes, chains) logarithm of h, adapted between calls and fixed within one.
        whitener: (lanes, dim, dim) inverse Cholesky factor of the curvature.
        whitened_at: number of answers the whitener was computed from.
        accepted: (lanes, chains) sum of mean acceptance probabilities.
        calls: calls of `advance` so far.
    """

    position: FloatArray
    log_step: FloatArray
    whitener: FloatArray
    whitened_at: int
    accepted: FloatArray
    calls: int


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
        lanes = len(streams)
        scale = 1.0 / math.sqrt(max(float(prior.precision), 1.0 / float(prior.radius) ** 2))
        return WalkingChains(
            position=prior_draws(prior, streams, chains=chains, dim=dim),
            log_step=np.full((lanes, chains), math.log(1.65 * dim ** (-1 / 6))),
            whitener=np.repeat(scale * np.eye(dim)[None], lanes, axis=0),
            whitened_at=0,
            accepted=np.zeros((lanes, chains)),
            calls=0,
        )

    def advance(
        self, potential: CurvedPotential, chains: WalkingChains, streams: Streams, round_: int, *, answers: int
    ) -> WalkingChains:
        """Move every chain towards the potential of that many answers; round_ names the random numbers."""
        if answers == 0:
            return chains  # draws from the prior are draws from the posterior of no answers
        whitener, whitened_at = chains.whitener, chains.whitened_at
        if answers >= _RENEW_AFTER * whitened_at:
            identity = np.eye(chains.position.shape[2])
            curvature = potential.curvature(chains.position.mean(axis=1))
            whitener = np.array([solve_triangular(np.linalg.cholesky(c), identity, lower=True) for c in curvature])
            whitened_at = answers
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
        gain = (1.0 + chains.calls) ** -_ADAPTATION_DECAY
        return WalkingChains(
            position=walk.position,
            log_step=chains.log_step + gain * (walk.acceptance - _TARGET_ACCEPTANCE),
            whitener=whitener,
            whitened_at=whitened_at,
            accepted=chains.accepted + walk.acceptance,
            calls=chains.calls + 1,
        )

    def report(self, chains: WalkingChains) -> dict[str, FloatArray]:
        """Mean acceptance probability and step size, one a lane."""
        return {
            "acceptance": chains.accepted.mean(axis=1) / max(chains.calls, 1),
            "step_size": np.exp(chains.log_step).mean(axis=1),
        }
