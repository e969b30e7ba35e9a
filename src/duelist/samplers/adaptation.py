"""What MALA on any potential adapts: the length of a step, and the curvature that shapes it.

The step scale 1.65 d^(-1/6) and the target 0.574 are those of Roberts & Rosenthal (1998), for a target close to a Gaussian.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np
from scipy.linalg import solve_triangular

from duelist.core.checks import whole_number
from duelist.core.stored_names import nest, stored
from duelist.core.streams import Streams
from duelist.posteriors.priors import Prior
from duelist.samplers.base import prior_draws
from duelist.typing import FloatArray

_TARGET_ACCEPTANCE = 0.574
_ADAPTATION_DECAY = 0.6  # Robbins-Monro gain (1 + calls)^-0.6: adapts for ever, ever less
_REFRESH_AFTER = 1.3  # the curvature is computed again when the answers are this many times those it was computed from


def first_step(dim: int) -> float:
    """H in whitened coordinates."""
    return float(1.65 * dim ** (-1 / 6))


def adapt_step(log_step: FloatArray, acceptance: FloatArray, calls: int) -> FloatArray:
    """Logarithm of h after a call with that mean acceptance, `calls` calls having gone before."""
    gain = float((1.0 + calls) ** -_ADAPTATION_DECAY)
    return log_step + gain * (acceptance - _TARGET_ACCEPTANCE)


@stored("chain-info")
class ChainInfo(NamedTuple):
    """Counters of chains: (lanes, chains) sum of mean acceptance probabilities, one term per call."""

    accepted: FloatArray


@stored("stepping", version=2, upgrade=nest(info=ChainInfo))
class ChainState(NamedTuple):
    """Chains that step with an adapted length in whitened coordinates.

    Attributes:
        position: (lanes, chains, dim) current draws.
        log_step: (lanes, chains) logarithm of h, adapted between calls and fixed within one.
        whitener: (lanes, dim, dim) inverse Cholesky factor of the curvature.
        whitened_at: number of answers the whitener was computed from.
        calls: calls so far.
        info: counters.
    """

    position: FloatArray
    log_step: FloatArray
    whitener: FloatArray
    whitened_at: int
    calls: int
    info: ChainInfo


S = TypeVar("S", bound=ChainState)


def start_at_prior(prior: Prior, streams: Streams, *, chains: int, dim: int) -> ChainState:
    """Chains at draws from the prior, whitened by its width."""
    lanes = len(streams)
    scale = 1.0 / math.sqrt(max(float(prior.precision), 1.0 / float(prior.radius) ** 2))
    return ChainState(
        position=prior_draws(prior, streams, chains=chains, dim=dim),
        log_step=np.full((lanes, chains), math.log(first_step(dim))),
        whitener=np.repeat(scale * np.eye(dim)[None], lanes, axis=0),
        whitened_at=0,
        calls=0,
        info=ChainInfo(np.zeros((lanes, chains))),
    )


def refresh_whitener(state: S, answers: int, curvature: Callable[[], FloatArray]) -> S:
    """The state with whiteners for that many answers; `curvature` gives (lanes, dim, dim) and is asked if they are too old."""
    if answers < _REFRESH_AFTER * state.whitened_at:
        return state
    return state._replace(whitener=whiten(curvature()), whitened_at=answers)


def whiten(curvatures: FloatArray) -> FloatArray:
    """Inverse Cholesky factors of (lanes, dim, dim) curvatures; NaN where one is not finite."""
    if not np.isfinite(curvatures).all():
        return np.full_like(curvatures, np.nan)
    identity = np.eye(curvatures.shape[1])
    return np.array([solve_triangular(np.linalg.cholesky(one), identity, lower=True) for one in curvatures])


def advance_state(state: S, position: FloatArray, acceptance: FloatArray) -> S:
    """The state after a call that ended at `position`, with a step adapted towards an acceptance of 0.574."""
    return state._replace(
        position=position,
        log_step=adapt_step(state.log_step, acceptance, state.calls),
        calls=state.calls + 1,
        info=ChainInfo(state.info.accepted + acceptance),
    )


@dataclass(frozen=True, kw_only=True)
class AdaptiveMALA:
    """What samplers with a `ChainState` share.

    Args:
        steps: steps each chain takes per round, from where it stood the round before.
    """

    steps: int = 10

    def __post_init__(self) -> None:
        whole_number("steps", self.steps, at_least=1)

    def report(self, state: ChainState) -> dict[str, FloatArray]:
        """Mean acceptance probability and step size, one number per lane."""
        return {
            "acceptance": state.info.accepted.mean(axis=1) / max(state.calls, 1),
            "step_size": np.exp(state.log_step).mean(axis=1),
        }
