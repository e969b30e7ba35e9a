"""Interleaved Filter 2: one champion meets all others in turn, and gives way to the first that surely beats it.

    champion   random at first; W, the arms that it still has to meet
    play       the champion against the arm of W that it met least
    drop       an arm b that the champion surely beats: P_b - c > 1/2, with P_b = wins / n and c = sqrt(4 log(T K^2) / n)
    change     when an arm surely beats the champion, P_b + c < 1/2, it is the champion; arms that the old one beat so far,
               P > 1/2, are dropped with it, and counting begins anew

With nobody left to meet, the champion is played against itself.

Reference: Yue, Broder, Kleinberg & Joachims (2012), The K-armed Dueling Bandits Problem: IF2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duelist.core.checks import whole_number
from duelist.core.lanes import Problem
from duelist.core.stored_names import stored
from duelist.policies.parts.known_arms import padded
from duelist.policies.parts.matrix_policy import Choice, Field, MatrixPolicy, MatrixState, Update, noted_arm
from duelist.typing import BoolArray, FloatArray, IntArray

UNKNOWN_HORIZON = 1_000_000


@stored("interleaved-filter-memory")
class InterleavedFilterMemory(NamedTuple):
    """What the rule keeps.

    Attributes:
        champion: (lanes,) its place; -1 before there is one.
        active: (lanes, K) W, and the champion.
        won: (lanes, K) how often this champion beat every arm.
        met: (lanes, K) how often they met.
        horizon: T.
    """

    champion: IntArray
    active: BoolArray
    won: FloatArray
    met: FloatArray
    horizon: int


@dataclass(frozen=True, kw_only=True)
class InterleavedFilter(MatrixPolicy):
    """Interleaved Filter 2: a champion against all others. It explores first, and then commits.

    Args:
        horizon: T; None takes the simulation's, and a million where it is unknown.
        same_arm: when the champion has no opponents left: "allow" plays it against itself, "different" against the one most
            likely to beat it; "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.environments import MatrixDuels
        >>> env = MatrixDuels.bradley_terry([2.0, 0.0, 0.0, -1.0])
        >>> run = duelist.simulate(InterleavedFilter(), env, rounds=8000, trials=4, seed=0)
        >>> bool((run.first[:, -1] == 0).all())
        True
    """

    horizon: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)

    def begin(self, problem: Problem) -> InterleavedFilterMemory:
        """No arms."""
        nothing = np.zeros((problem.lanes, 0))
        horizon = self.horizon or problem.horizon or UNKNOWN_HORIZON
        return InterleavedFilterMemory(np.full(problem.lanes, -1), nothing.astype(bool), nothing, nothing, horizon)

    def widen(self, state: MatrixState, new: BoolArray) -> InterleavedFilterMemory:
        """The champion has to meet new arms too."""
        memory: InterleavedFilterMemory = state.memory
        won, met = (padded(column, state.arms.size, 0.0) for column in (memory.won, memory.met))
        return memory._replace(active=padded(memory.active, state.arms.size, 0) | new, won=won, met=met)

    def pick(self, memory: InterleavedFilterMemory, field: Field) -> Choice:
        """The champion, and the arm that it met least. Where the champion is not on offer, another stands in for the round."""
        here = (memory.champion >= 0) & field.offered[field.lanes, memory.champion]
        active = memory.active & field.offered
        pool = np.where(active.any(axis=1, keepdims=True), active, field.offered)
        first = np.where(here, memory.champion, field.draw(pool, "interleaved champion"))
        memory = memory._replace(champion=np.where(memory.champion < 0, first, memory.champion))
        others = active.copy()
        others[field.lanes, first] = False
        least = np.where(others, memory.met, np.inf)
        second = field.first_of(others & (least == least.min(axis=1, keepdims=True)))
        second = np.where(others.any(axis=1), second, first)
        return Choice(first, second, memory, first[:, None].astype(np.float64))

    def update(self, state: MatrixState, duel: Update) -> InterleavedFilterMemory:
        """Drop the opponent that surely loses, or make the one that surely wins the champion."""
        memory: InterleavedFilterMemory = state.memory
        arm, lanes = noted_arm(duel), np.arange(len(duel.first))
        is_first = arm == duel.first
        rival = np.where(is_first, duel.second, duel.first)
        counts = duel.counts & (arm >= 0) & (arm == memory.champion) & memory.active[lanes, rival]
        won, met, active = memory.won.copy(), memory.met.copy(), memory.active.copy()
        won[lanes, rival] += counts * np.where(is_first, duel.won, 1.0 - duel.won)
        met[lanes, rival] += counts
        share = np.where(met > 0.0, won / np.maximum(met, 1.0), 0.5)
        log = math.log(memory.horizon) + 2.0 * np.log(state.arms.number)
        width = np.sqrt(4.0 * log / np.maximum(met[lanes, rival], 1.0))
        chance = share[lanes, rival]
        active[lanes, rival] &= ~(counts & (chance - width > 0.5))
        changes = counts & (chance + width < 0.5)
        if changes.any():
            active &= ~(changes[:, None] & (share > 0.5))
            at = np.flatnonzero(changes)
            active[at, memory.champion[at]] = False
            won[at], met[at] = 0.0, 0.0
        return memory._replace(champion=np.where(changes, rival, memory.champion), active=active, won=won, met=met)
