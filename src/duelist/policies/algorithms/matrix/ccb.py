"""CCB: the arm that beats the most others, where none need beat all of them.

With u and l the upper and lower bounds of every pair, as in RUCB and with l_ij = 1 - u_ji:

    upper_i = number of j with u_ij >= 1/2,   lower_i = number of j with l_ij >= 1/2
    C       = the arms with the highest upper_i

Beside the bounds there are hypotheses: B, the arms that may be best; L, how often the best arm loses; and for every other arm i
a set B_i of L + 1 arms that seem to beat it. A round first brings them up to date:

    drop     from B the arms whose upper_i is below a lower_j; B_i becomes the arms that surely beat i, unless it has L + 1
    add      to B the arms of C with upper_i = lower_i: they set L, and every B_i is cut to L + 1 arms, or emptied if smaller
    reset    everything, if an arm surely beats one of its B_i, or B is empty

and then plays, with probability 1/4, a pair (i, j of B_i) that is not yet decided, if there is one; otherwise an arm of C, with
probability 2/3 one that is in B as well, against argmax_j u_j,first over the arms with l_j,first <= 1/2, with probability 1/2
only those of B_first.

Reference: Zoghi, Karnin, Whiteson & de Rijke (2015), Copeland Dueling Bandits, Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duelist.core.checks import finite_number
from duelist.core.lanes import Problem
from duelist.core.stored_names import stored
from duelist.policies.parts.matrix_policy import DUELS, WINS, Choice, Field, MatrixPolicy, MatrixState, Update
from duelist.policies.parts.sure_wins import (
    SureWins,
    bounds_against,
    evidence,
    level_at,
    no_wins,
    sure_among,
    surely_loses,
    undefeated_against,
    update_wins,
    widen_wins,
)
from duelist.typing import BoolArray, FloatArray, IntArray

_ODD = np.uint64(0x9E3779B97F4A7C15)  # so that a pair and the same pair turned round have different numbers


@stored("ccb-memory")
class CCBMemory(NamedTuple):
    """What CCB keeps.

    Attributes:
        sure: who surely beats whom.
        best: (lanes, K) B.
        rivals: (lanes, K, K) B_i, a row for every arm.
        sizes: (lanes, K) how many arms each B_i has.
        losses: (lanes,) L.
    """

    sure: SureWins
    best: BoolArray
    rivals: BoolArray
    sizes: IntArray
    losses: IntArray


@dataclass(frozen=True, kw_only=True)
class CCB(MatrixPolicy):
    """Play the arms with the highest possible Copeland score, and look for the ones that refute the others.

    Args:
        alpha: how wide the bounds are. The theory asks for more than 1/2; the paper plays 0.51.
        same_arm: when the first arm surely beats all others: "allow" plays it against itself, "different" against its strongest
            challenger; "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.environments import MatrixDuels
        >>> env = MatrixDuels.random(5, seed=3)
        >>> run = duelist.simulate(CCB(), env, rounds=2000, trials=4, seed=0)
        >>> floor = duelist.simulate(duelist.Uniform(), env, rounds=2000, trials=4, seed=0)
        >>> bool(run.final_regret.mean() < 0.6 * floor.final_regret.mean())
        True
    """

    alpha: float = 0.51

    def __post_init__(self) -> None:
        super().__post_init__()
        finite_number("alpha", self.alpha, above=0.0)

    def begin(self, problem: Problem) -> CCBMemory:
        """No arms."""
        flags = np.zeros((problem.lanes, 0), dtype=bool)
        return CCBMemory(
            no_wins(problem.lanes), flags, flags[:, None], flags.astype(np.int64), np.zeros(problem.lanes, dtype=int)
        )

    def widen(self, state: MatrixState, new: BoolArray) -> CCBMemory:  # noqa: ARG002 - others ask which
        """New arms take all hypotheses back: any of them may be the best."""
        size, lanes = state.arms.size, len(state.arms.number)
        return CCBMemory(
            widen_wins(state.memory.sure, size),
            np.ones((lanes, size), dtype=bool),
            np.zeros((lanes, size, size), dtype=bool),
            np.zeros((lanes, size), dtype=np.int64),
            np.full(lanes, size),
        )

    def pick(self, memory: CCBMemory, field: Field) -> Choice:
        """Bring the hypotheses up to date, then choose by them."""
        won, lost = sure_among(memory.sure, field, self.alpha)
        others = np.count_nonzero(field.offered, axis=1, keepdims=True) - 1
        upper, lower = np.where(field.offered, others - lost, -1), np.where(field.offered, won, -1)
        candidates = upper == upper.max(axis=1, keepdims=True)
        memory = self._drop(memory, field, upper < lower.max(axis=1, keepdims=True))
        memory = _add(memory, field, candidates & (upper == lower), others[:, 0] - upper.max(axis=1))
        both = memory.best & candidates
        narrow = both.any(axis=1) & (field.streams.uniforms("ccb narrow", field.asked) < 2.0 / 3.0)
        first = field.draw(np.where(narrow[:, None], both, candidates), "ccb first")
        second = self._second(memory, field, first)
        return Choice(*self._explore(memory, field, first, second), memory)

    def _drop(self, memory: CCBMemory, field: Field, beaten: BoolArray) -> CCBMemory:
        """Arms that surely score less than another leave B."""
        lanes, arms = np.nonzero(memory.best & beaten & field.offered)
        if len(lanes) == 0:
            return memory
        best, rivals, sizes = memory.best.copy(), memory.rivals, memory.sizes
        best[lanes, arms] = False
        new = sizes[lanes, arms] != memory.losses[lanes] + 1
        if new.any():
            lanes, arms = lanes[new], arms[new]
            wins, duels = field.cells[: DUELS + 1, lanes, arms]
            beaten_by = surely_loses(wins, duels, level_at(self.alpha, field.rounds)) & field.offered[lanes]
            rivals, sizes = rivals.copy(), sizes.copy()
            rivals[lanes, arms], sizes[lanes, arms] = beaten_by, np.count_nonzero(beaten_by, axis=1)
        return _reset(memory._replace(best=best, rivals=rivals, sizes=sizes), np.asarray(~(best & field.offered).any(axis=1)))

    def _second(self, memory: CCBMemory, field: Field, first: IntArray) -> IntArray:
        """The strongest of the arms that do not surely beat the first; of those that seem to beat it, every other time."""
        allowed = undefeated_against(first, field, self.alpha)
        rivals = allowed & memory.rivals[field.lanes, first]
        some = rivals.any(axis=1) & (field.streams.uniforms("ccb rivals", field.asked) < 0.5)
        pool = np.where(some[:, None], rivals, allowed)
        return field.best(np.where(pool, bounds_against(first, field, self.alpha), -np.inf), "ccb second")

    def _explore(self, memory: CCBMemory, field: Field, first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
        """In one of four rounds, an undecided pair of an arm and one of those that seem to beat it."""
        chosen = np.flatnonzero(field.streams.uniforms("ccb explore", field.asked) < 0.25)
        at, arms = np.nonzero(memory.sizes[chosen])  # few arms have rivals: reading all pairs would cost K^2
        rows, rivals = np.nonzero(memory.rivals[chosen[at], arms])
        lanes, arms = chosen[at][rows], arms[rows]
        wins, duels = field.cells[: DUELS + 1, lanes, arms, rivals]
        undecided = evidence(wins, duels)[0] <= level_at(self.alpha, field.rounds)
        undecided &= field.offered[lanes, arms] & field.offered[lanes, rivals]
        lanes, arms, rivals = lanes[undecided], arms[undecided], rivals[undecided]
        if len(lanes) == 0:
            return first, second
        prints = (field.prints[lanes, arms] * _ODD) ^ field.prints[lanes, rivals]
        numbers = field.uniforms("ccb pair", prints[:, None], lanes)[:, 0]
        largest = np.zeros(len(first))
        np.maximum.at(largest, lanes, numbers)
        picked = numbers == largest[lanes]
        first, second = first.copy(), second.copy()
        first[lanes[picked]], second[lanes[picked]] = arms[picked], rivals[picked]
        return first, second

    def update(self, state: MatrixState, duel: Update) -> CCBMemory:
        """Read the two rows again; if an arm now surely beats one that seemed to beat it, all hypotheses go."""
        memory: CCBMemory = state.memory
        memory = memory._replace(sure=update_wins(memory.sure, state, duel, self.alpha))
        size, margin = evidence(duel.after[WINS], duel.after[DUELS])
        surely = (size > level_at(self.alpha, state.learnt + 1)) & (margin > 0.0)
        lanes = np.arange(len(duel.first))
        disproved = surely[0] & memory.rivals[lanes, duel.first, duel.second]
        disproved |= surely[1] & memory.rivals[lanes, duel.second, duel.first]
        return _reset(memory, disproved)


def _reset(memory: CCBMemory, lanes: BoolArray) -> CCBMemory:
    """The first hypotheses in some lanes: anything may be the best, and nothing is known of who beats whom."""
    if not lanes.any():
        return memory
    return memory._replace(
        best=memory.best | lanes[:, None],
        rivals=memory.rivals & ~lanes[:, None, None],
        sizes=np.where(lanes[:, None], 0, memory.sizes),
        losses=np.where(lanes, memory.best.shape[1], memory.losses),
    )


def _add(memory: CCBMemory, field: Field, exact: BoolArray, losses: IntArray) -> CCBMemory:
    """Arms whose score is known and highest join B, and say how many losses the best has."""
    found: BoolArray = np.asarray(exact.any(axis=1))
    if not found.any():
        return memory
    best = memory.best | exact
    losses = np.where(found, losses, memory.losses)
    wanted = np.where(exact, 0, losses[:, None] + 1)
    sizes = memory.sizes
    wrong = found[:, None] & (sizes > 0) & (sizes != wanted)
    if not wrong.any():
        return memory._replace(best=best, losses=losses)
    rivals, sizes = memory.rivals.copy(), sizes.copy()
    lanes, arms = np.nonzero(wrong)
    rows = rivals[lanes, arms]
    keep = np.where(sizes[lanes, arms] > wanted[lanes, arms], wanted[lanes, arms], 0)
    numbers = np.where(rows, _pair_numbers(field, lanes, arms), 0.0)
    # Kept are the arms whose number is among the `keep` largest.
    ranks = np.argsort(np.argsort(-numbers, axis=1), axis=1)
    rivals[lanes, arms], sizes[lanes, arms] = rows & (ranks < keep[:, None]), keep
    return memory._replace(best=best, rivals=rivals, sizes=sizes, losses=losses)


def _pair_numbers(field: Field, lanes: IntArray, arms: IntArray) -> FloatArray:
    """(n, K) a uniform number for each of n arms with every other."""
    prints = (field.prints[lanes, arms][:, None] * _ODD) ^ field.prints[lanes]
    return field.uniforms("ccb keep", prints, lanes)
