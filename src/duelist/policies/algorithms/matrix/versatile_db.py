"""Versatile-DB: two players of an adversarial bandit, each of whom wants to beat the other.

Both play Tsallis-INF on the losses that they estimate by importance: with eta_t = rate / sqrt(t),

    p_i     = 4 / (eta_t (L_i - x))^2,  x such that the p_i add up to 1
    first   ~ p of the first player, second ~ p of the second
    L_i    += 1{i was played and lost} / p_i, half of that for a tie.

It makes no assumption about the preferences, which may change from round to round; where they do not and there is a Condorcet
winner, its regret grows as log T.

Reference: Saha & Gaillard (2022), Versatile Dueling Bandits: Best-of-both-World Analyses for Online Learning from Preferences,
with the learner of Zimmert & Seldin (2021), Tsallis-INF.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.checks import finite_number
from duelist.core.lanes import Problem
from duelist.core.stored_names import stored
from duelist.kernels.rules.matrix import tsallis_rows
from duelist.policies.parts.known_arms import padded
from duelist.policies.parts.matrix_policy import Choice, Field, MatrixPolicy, MatrixState, Update
from duelist.typing import BoolArray, FloatArray


@stored("versatile-db-memory")
class VersatileDBMemory(NamedTuple):
    """Estimated losses (lanes, 2, K) of both players' arms, and where the last search for x ended, (lanes, 2)."""

    losses: FloatArray
    shift: FloatArray


def tsallis_weights(losses: FloatArray, rate: float, shift: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(..., K) p of Tsallis-INF at these losses, and x (...), by Newton's method from the `shift` given.

    Every lane stops by itself: what it gets does not depend on others.

    Example:
        >>> weights, _ = tsallis_weights(np.array([0.0, 1.0, 5.0]), 1.0, np.array(-1.0))
        >>> weights.round(3).tolist()
        [0.613, 0.317, 0.07]
    """
    weights = np.empty(losses.shape)
    shifts = np.array(np.broadcast_to(shift, losses.shape[:-1]))
    rows = losses.shape[-1]
    tsallis_rows(weights.reshape(-1, rows), shifts.reshape(-1), np.ascontiguousarray(losses).reshape(-1, rows), rate)
    return weights, shifts


@dataclass(frozen=True, kw_only=True)
class VersatileDB(MatrixPolicy):
    """Two players of Tsallis-INF against each other: for preferences that may change, or be anything at all.

    Args:
        rate: factor of the learning rate, rate / sqrt(t).
        same_arm: when both play one arm: "allow" lets it meet itself, "different" plays the arm of the least estimated loss of
            the others; "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.environments import MatrixDuels
        >>> env = MatrixDuels.cycle(4, lead=0.1)
        >>> run = duelist.simulate(VersatileDB(), env, rounds=2000, trials=4, seed=0)
        >>> bool(run.final_regret.mean() < 100)
        True
    """

    blank: ClassVar[tuple[float, ...]] = ()  # it keeps nothing of pairs

    rate: float = 2.0

    def __post_init__(self) -> None:
        super().__post_init__()
        finite_number("rate", self.rate, above=0.0)

    def begin(self, problem: Problem) -> VersatileDBMemory:
        """No losses."""
        return VersatileDBMemory(np.zeros((problem.lanes, 2, 0)), np.full((problem.lanes, 2), -math.inf))

    def widen(self, state: MatrixState, new: BoolArray) -> VersatileDBMemory:
        """A new arm has the loss of the best arm so far: it is tried as often as that one."""
        losses = padded(state.memory.losses, state.arms.size, 0.0)
        known = ~new & (np.arange(state.arms.size) < state.arms.number[:, None])
        least = np.where(known[:, None], losses, math.inf).min(axis=2, keepdims=True)
        losses = np.where(new[:, None], np.where(np.isinf(least), 0.0, least), losses)
        return VersatileDBMemory(losses, np.full(losses.shape[:2], -math.inf))

    def pick(self, memory: VersatileDBMemory, field: Field) -> Choice:
        """One arm of each player."""
        losses = memory.losses if field.everyone else np.where(field.offered[:, None], memory.losses, math.inf)
        rate = self.rate / math.sqrt(field.rounds)
        arms = np.count_nonzero(field.offered, axis=1, keepdims=True)
        left = losses.min(axis=2) - 2.0 * np.sqrt(arms) / rate
        weights, shift = tsallis_weights(losses, rate, np.maximum(memory.shift, left))
        ordered = np.take_along_axis(weights, field.order[:, None], axis=2).cumsum(axis=2)
        level = np.stack([field.streams.uniforms(f"versatile {name}", field.asked) for name in ("first", "second")], axis=1)
        places = (ordered > (level * ordered[:, :, -1])[:, :, None]).argmax(axis=2)
        first, second = field.order[field.lanes, places[:, 0]], field.order[field.lanes, places[:, 1]]
        note = np.stack([weights[field.lanes, 0, first], weights[field.lanes, 1, second]], axis=1)
        return Choice(first, second, memory._replace(shift=shift), note)

    def update(self, state: MatrixState, duel: Update) -> VersatileDBMemory:
        """What each player lost, over the probability that it played what it did. Duels of others teach nothing."""
        memory: VersatileDBMemory = state.memory
        if duel.note is None:
            return memory
        lanes = np.arange(len(duel.first))
        losses = memory.losses.copy()
        losses[lanes, 0, duel.first] += (1.0 - duel.won) / duel.note[:, 0]
        losses[lanes, 1, duel.second] += duel.won / duel.note[:, 1]
        return memory._replace(losses=losses)

    def strengths(self, state: MatrixState) -> FloatArray:
        """Less estimated loss is better."""
        losses: FloatArray = state.memory.losses
        return np.asarray(-losses.sum(axis=1))

    def estimated_utilities(self, state: MatrixState, actions: FiniteActions) -> FloatArray:
        """(lanes, n_arms) minus the estimated losses per round, of both players together."""
        state = self._know(state, state.arms.meet(actions))
        return np.take_along_axis(self.strengths(state), state.arms.places, axis=1) / max(state.learnt, 1)
