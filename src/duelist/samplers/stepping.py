"""What samplers that step on any potential share: where chains start, when their curvature is old, how their step adapts.

Each has its own type of chains, a kind of `Stepping`: saved states name it.
"""

from __future__ import annotations

import math
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.linalg import solve_triangular

from duelist.core.checks import FloatArray
from duelist.core.streams import Streams
from duelist.posteriors.priors import Prior
from duelist.samplers.base import prior_draws
from duelist.samplers.step_size import adapted, first_step

_RENEW_AFTER = 1.3  # the curvature is computed again when there are so many times the answers it was computed from


class Stepping(NamedTuple):
    """Chains that step with an adapted length in whitened coordinates.

    Attributes:
        position: (lanes, chains, dim) current draws.
        log_step: (lanes, chains) logarithm of h, adapted between calls and fixed within one.
        whitener: (lanes, dim, dim) inverse Cholesky factor of the curvature.
        whitened_at: number of answers the whitener was computed from.
        accepted: (lanes, chains) sum of mean acceptance probabilities.
        calls: calls so far.
    """

    position: FloatArray
    log_step: FloatArray
    whitener: FloatArray
    whitened_at: int
    accepted: FloatArray
    calls: int


S = TypeVar("S", bound=Stepping)


def at_the_prior(prior: Prior, streams: Streams, *, chains: int, dim: int) -> Stepping:
    """Chains at draws from the prior, whitened by its width."""
    lanes = len(streams)
    scale = 1.0 / math.sqrt(max(float(prior.precision), 1.0 / float(prior.radius) ** 2))
    return Stepping(
        position=prior_draws(prior, streams, chains=chains, dim=dim),
        log_step=np.full((lanes, chains), math.log(first_step(dim))),
        whitener=np.repeat(scale * np.eye(dim)[None], lanes, axis=0),
        whitened_at=0,
        accepted=np.zeros((lanes, chains)),
        calls=0,
    )


def is_old(whitened_at: int, answers: int) -> bool:
    """Whether a curvature computed from `whitened_at` answers is too old for so many."""
    return answers >= _RENEW_AFTER * whitened_at


def whiteners(curvatures: FloatArray) -> FloatArray:
    """Inverse Cholesky factors of (lanes, dim, dim) curvatures; NaN where one is not finite."""
    if not np.isfinite(curvatures).all():
        return np.full_like(curvatures, np.nan)
    identity = np.eye(curvatures.shape[1])
    return np.array([solve_triangular(np.linalg.cholesky(one), identity, lower=True) for one in curvatures])


def stepped(chains: S, position: FloatArray, acceptance: FloatArray, whitener: FloatArray, whitened_at: int) -> S:
    """The chains where a walk led them, with a step adapted towards an acceptance of 0.574."""
    return chains._replace(
        position=position,
        log_step=adapted(chains.log_step, acceptance, chains.calls),
        whitener=whitener,
        whitened_at=whitened_at,
        accepted=chains.accepted + acceptance,
        calls=chains.calls + 1,
    )


def report_of(chains: Stepping) -> dict[str, FloatArray]:
    """Mean acceptance probability and step size, one a lane."""
    return {
        "acceptance": chains.accepted.mean(axis=1) / max(chains.calls, 1),
        "step_size": np.exp(chains.log_step).mean(axis=1),
    }
