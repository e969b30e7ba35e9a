"""CoLSTIM's perturbation, which SupCoLSTIM uses too: clipped Gumbel noise, an arm's own or shared by all."""

from __future__ import annotations

import math

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.streams import Streams
from duelist.typing import FloatArray


def theory_radius(dim: int, horizon: int) -> float:
    """The paper's c_1 = C = sqrt(d log T)."""
    return math.sqrt(dim * math.log(max(horizon, 2)))


def own_noise_chance(dim: int, horizon: int, since: int) -> float:
    """The paper's p_t = min(1, sqrt(d log(d T) / (t - tau))), with t - tau - 1 = `since` rounds after the warm-up."""
    return min(1.0, math.sqrt(dim * math.log(max(dim * horizon, 2)) / (since + 1)))


def coupled_noise(
    actions: FiniteActions, streams: Streams, asked: int, *, since: int, horizon: int, clip: float | None
) -> FloatArray:
    """Clipped Gumbel noise (lanes, n_arms) for the round after `asked` others, `since` of them after the warm-up.

    With probability p_t of `own_noise_chance` every arm has its own, else all share one: early rounds explore, late
    ones follow the estimate. Noise is named by an arm's content, so equal arms are perturbed alike.
    """
    dim = actions.dim
    own_chance = own_noise_chance(dim, horizon, since)
    coin, shared = streams.uniforms("coupling", asked), streams.uniforms("shared noise", asked)
    own = actions.random_priority(streams, "arm noise", asked)
    uniform = np.where((coin < own_chance)[:, None], own, shared[:, None])
    limit = theory_radius(dim, horizon) if clip is None else clip
    return np.asarray(np.clip(-np.log(-np.log(uniform)), -limit, limit))
