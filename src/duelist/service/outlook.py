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
from duelist.policies.pair_probability import favourites, normal_draws, pair_probability
from duelist.policies.uniform import Uniform
from duelist.samplers.curvature import renewed, unknown_curvature
from duelist.service.vote_statistics import discount_of, potential_of

if TYPE_CHECKING:
    from duelist.service.arena import Arena

_GROWTH = 20
# Digest of a line-up, utilities of its arms at the mode, how often each is best, how often each is second behind each.
Table = tuple[bytes, FloatArray, FloatArray, FloatArray]


class Outlook:
    """A cache of the normal approximation and of what follows from it for the present line-up."""

    def __init__(self) -> None:
        self._dim = -1
        self._curvature = unknown_curvature(1, 1)
        self._theta = np.empty((0, 0))
        self._favourites: Table | None = None

    def of_pair(self, arena: Arena, actions: FiniteActions, first: int, second: int) -> tuple[float, float]:
        """(probability of the unordered pair or NaN, share of it that was exploration) for two rows of an action set."""
        self._renew(arena)
        table = self._of_line_up(actions)
        leading = np.argsort(-table[1], kind="stable")[:2]
        explored = sum(row not in leading for row in (first, second)) / 2
        if isinstance(arena.player.policy, Uniform):
            return 2.0 / (actions.n_arms * (actions.n_arms - 1)), explored
        if isinstance(arena.player.policy, FGTS):
            return self._of_draws(arena.player.policy.same_arm_rule(live=True), table, first, second), explored
        return math.nan, explored

    def _of_draws(self, rule: str, table: Table, first: int, second: int) -> float:
        if rule == "allow":  # the player then shows a neighbour instead of the same arm twice, which no draw chose
            return math.nan
        orders = ((first, second), (second, first))
        return sum(pair_probability(table[2], table[3], i, j, rule) for i, j in orders)

    def _of_line_up(self, actions: FiniteActions) -> Table:
        if self._favourites is None or self._favourites[0] != actions.digest:
            features = actions.features[0]
            best, runner_up = favourites(features @ self._theta)
            self._favourites = (actions.digest, features @ self._curvature.mode[0], best, runner_up)
        return self._favourites

    def _renew(self, arena: Arena) -> None:
        answers, discount = arena.n_teaching, discount_of(arena)
        known, dim = self._curvature, arena.player.dim
        # Where old votes fade, only so many count: then that number has to change by a twentieth.
        counted = known.observations if discount == 1.0 else min(known.observations, 1.0 / (1.0 - discount))
        if self._dim == dim and known.observations <= answers <= known.observations + counted / _GROWTH:
            return
        start = known if self._dim == dim else unknown_curvature(1, dim)
        self._curvature = renewed(start, potential_of(arena, chains=1))
        self._dim = dim
        self._favourites = None
        self._theta = normal_draws(self._curvature, 0, seed=answers)
