"""What an arena thinks of its items at the moment of an ask, quickly: a normal approximation of the posterior at its mode.

It serves two numbers that are written down with every ask and never influence it: how probable the pair was, and how much of
it was exploration. The approximation is renewed when the votes have grown by a twentieth, or when the items changed.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from duelist.core.actions import FiniteActions
from duelist.core.checks import FloatArray
from duelist.policies.fgts import FGTS
from duelist.policies.uniform import Uniform
from duelist.samplers.curvature import renewed, unknown_curvature
from duelist.service.vote_statistics import discount_of, potential_of

if TYPE_CHECKING:
    from duelist.service.arena import Arena

_DRAWS = 256
_GROWTH = 20


class Outlook:
    """A cache of the normal approximation and of what follows from it for the present line-up."""

    def __init__(self) -> None:
        self._dim = -1
        self._curvature = unknown_curvature(1, 1)
        self._theta = np.empty((0, 0))
        self._favourites: tuple[bytes, FloatArray, FloatArray, FloatArray] | None = None

    def of_pair(self, arena: Arena, actions: FiniteActions, first: int, second: int) -> tuple[float, float]:
        """(probability of the unordered pair or NaN, share of it that was exploration) for two rows of an action set."""
        self._renew(arena)
        table = self._of_line_up(actions)
        leading = np.argsort(-table[1], kind="stable")[:2]
        explored = sum(row not in leading for row in (first, second)) / 2
        if isinstance(arena.player.policy, Uniform):
            return 2.0 / (actions.n_arms * (actions.n_arms - 1)), explored
        if isinstance(arena.player.policy, FGTS):
            return pair_probability(table[2], table[3], first, second), explored
        return math.nan, explored

    def _of_line_up(self, actions: FiniteActions) -> tuple[bytes, FloatArray, FloatArray, FloatArray]:
        if self._favourites is None or self._favourites[0] != actions.digest:
            features = actions.features[0]
            best, runner_up = favourites(features @ self._theta)
            self._favourites = (actions.digest, features @ self._curvature.mode[0], best, runner_up)
        return self._favourites

    def _renew(self, arena: Arena) -> None:
        wins, discount = arena.n_wins, discount_of(arena)
        known, dim = self._curvature, arena.player.dim
        # Where old votes fade, only so many count: then that number has to change by a twentieth.
        counted = known.observations if discount == 1.0 else min(known.observations, 1.0 / (1.0 - discount))
        if self._dim == dim and known.observations <= wins <= known.observations + counted / _GROWTH:
            return
        start = known if self._dim == dim else unknown_curvature(1, dim)
        self._curvature = renewed(start, potential_of(arena, chains=1))
        self._dim = dim
        self._favourites = None
        noise = np.random.default_rng(wins).standard_normal((dim, _DRAWS))
        # Covariance is the inverse of L L^T, so L^-T times white noise has it.
        self._theta = self._curvature.mode[0][:, None] + self._curvature.whitener[0].T @ noise


def favourites(utilities: FloatArray) -> tuple[FloatArray, FloatArray]:
    """How often each row of utilities (n_arms, draws) is best, (n_arms,), and second behind each, (n_arms, n_arms)."""
    n_arms, draws = utilities.shape
    best = utilities.argmax(axis=0)
    behind = utilities.copy()
    behind[best, np.arange(draws)] = -np.inf
    second = behind.argmax(axis=0)
    times_second = np.zeros((n_arms, n_arms))
    np.add.at(times_second, (best, second), 1.0)
    return np.bincount(best, minlength=n_arms).astype(np.float64), times_second


def pair_probability(best: FloatArray, second_behind: FloatArray, first: int, second: int) -> float:
    """Estimated probability that two independent draws play this unordered pair, the runner-up standing in for a repeat.

    The first draw plays its best arm i. The second plays its best arm other than i: j when j is best, or when i is best and j
    second. Half a count is added everywhere, so that a pair which did happen never gets probability zero.

    Args:
        best: (n_arms,) how often each arm is best among the draws.
        second_behind: (n_arms, n_arms) how often each arm is second behind each.
        first: one row.
        second: the other.

    Example:
        >>> pair_probability(np.array([100.0, 100.0]), np.array([[0.0, 100.0], [100.0, 0.0]]), 0, 1)
        1.0
    """
    draws, n_arms = best.sum(), len(best)

    def ordered(i: int, j: int) -> float:
        plays_first = (best[i] + 0.5) / (draws + 0.5 * n_arms)
        plays_second = (best[j] + second_behind[i, j] + 0.5) / (draws + 0.5 * (n_arms - 1))
        return float(plays_first * plays_second)

    return ordered(first, second) + ordered(second, first)
