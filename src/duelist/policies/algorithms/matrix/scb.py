"""SCB: Copeland bandits for many arms, by a bandit whose arms are paid for the others that they beat.

A virtual bandit plays the arms that are left in turn. To play arm i, it draws any other arm j, and the two meet until it is
sure who wins: with p = w/n of this phase, after s of its rounds,

    n KL(p, 1/2) > scale (log(4 s K) + 2 max(1, log log s)).

Arm i is paid 1 if it beats j, and 0 otherwise; pairs that are decided need no further duel. After every turn of all arms, those
whose upper bound of the mean pay is below another's lower bound are dropped: the bounds are the largest and the smallest q with

    plays KL(mean pay, q) <= scale (log(4 T_r K) + 2 max(1, log log s)).

The last arm is played against itself. A phase of T_r rounds over, all is forgotten and T_r+1 = T_r^2.

Reference: Zoghi, Karnin, Whiteson & de Rijke (2015), Copeland Dueling Bandits, and the code of Wu & Liu,
github.com/HuasenWu/DuelingBandits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import rel_entr, xlogy

from duelist.core.checks import finite_number, whole_number
from duelist.core.lanes import Problem
from duelist.core.stored_names import stored
from duelist.policies.parts.known_arms import padded
from duelist.policies.parts.matrix_policy import DUELS, WINS, Choice, Field, MatrixPolicy, MatrixState, Update
from duelist.policies.parts.pair_table import PairTable
from duelist.typing import BoolArray, FloatArray, IntArray

_VIRTUAL_PLAYS = 32  # of decided pairs, at most so many before a real duel
_HALVINGS = 50


@stored("scb-memory")
class SCBMemory(NamedTuple):
    """What SCB keeps of a phase.

    Attributes:
        table: wins and duels of the phase.
        active: (lanes, K) the arms that are left.
        plays: (lanes, K) virtual plays.
        pay: (lanes, K) what they earned.
        first: (lanes,) the arm that is being played; -1 for none.
        second: (lanes,) the one that it meets.
        begun: duels learnt before the phase.
        length: T_r.
    """

    table: PairTable
    active: BoolArray
    plays: FloatArray
    pay: FloatArray
    first: IntArray
    second: IntArray
    begun: int
    length: int


@dataclass(frozen=True, kw_only=True)
class SCB(MatrixPolicy):
    """Find the arm that beats the most others by sampling whom it beats.

    Args:
        scale: factor of the logarithms in both bounds; 0.51 in the public code.
        phase: rounds of the first phase; each further one has the square.
        same_arm: when one arm is left: "allow" plays it against itself, "different" against the one most likely to beat it;
            "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.environments import MatrixDuels
        >>> env = MatrixDuels.bradley_terry([3.0, 0.0, -1.0, -2.0])
        >>> run = duelist.simulate(SCB(), env, rounds=900, trials=4, seed=0)
        >>> bool((run.first[:, -1] == 0).mean() > 0.5)
        True
    """

    scale: float = 0.51
    phase: int = 1000

    def __post_init__(self) -> None:
        super().__post_init__()
        finite_number("scale", self.scale, above=0.0)
        whole_number("phase", self.phase, at_least=2)

    def begin(self, problem: Problem) -> SCBMemory:
        """The first phase, without arms."""
        nothing, none = np.zeros((problem.lanes, 0)), np.full(problem.lanes, -1)
        table = PairTable.start(problem.lanes, 0.0, 0.0)
        return SCBMemory(table, nothing.astype(bool), nothing, nothing, none, none, 0, self.phase)

    def widen(self, state: MatrixState, new: BoolArray) -> SCBMemory:
        """New arms are among those that are left, and have been played as often as the others, for half the pay."""
        memory: SCBMemory = state.memory
        size = state.arms.size
        plays, pay = (padded(column, size, 0.0) for column in (memory.plays, memory.pay))
        fewest = np.where(padded(memory.active, size, 0), plays, np.inf).min(axis=1, keepdims=True, initial=np.inf)
        fewest = np.where(np.isinf(fewest), 0.0, fewest)
        table = memory.table.grow(size) if size > memory.table.size else memory.table
        return memory._replace(
            table=table,
            active=padded(memory.active, size, 0) | new,
            plays=np.where(new, fewest, plays),
            pay=np.where(new, 0.5 * fewest, pay),
        )

    def pick(self, memory: SCBMemory, field: Field) -> Choice:
        """The pair that is being decided; a new one where there is none; the last arm twice."""
        step = max(field.rounds - memory.begun, 1)
        arms = np.count_nonzero(field.offered, axis=1)
        there = field.offered[field.lanes, memory.first] & field.offered[field.lanes, memory.second]
        first, second = (np.where((memory.first >= 0) & there, arm, -1) for arm in (memory.first, memory.second))
        memory = memory._replace(first=first, second=second)
        for attempt in range(_VIRTUAL_PLAYS + 1):
            left = self._left(memory, field)
            waits = (memory.first < 0) & (np.count_nonzero(left, axis=1) > 1)
            if not waits.any():
                break
            arm = field.first_of(_least_played(left, memory.plays))
            others = field.offered.copy()
            others[field.lanes, arm] = False
            other = field.draw(others, f"scb opponent {attempt}")
            wins, duels = memory.table.cells[:, field.lanes, arm, other]
            known = _sure(wins, duels, self._level(step, step, arms))
            if attempt == _VIRTUAL_PLAYS:
                known[:] = False
            starts = waits & ~known
            memory = memory._replace(first=np.where(starts, arm, memory.first), second=np.where(starts, other, memory.second))
            memory = self._pay(memory, waits & known, arm, 2.0 * wins > duels, left, self._level(memory.length, step, arms))
        last = field.first_of(self._left(memory, field))
        alone = memory.first < 0
        first, second = np.where(alone, last, memory.first), np.where(alone, last, memory.second)
        return Choice(first, second, memory)

    def update(self, state: MatrixState, duel: Update) -> SCBMemory:
        """Count the duel; pay the arm once its pair is decided; begin a new phase where this one is over."""
        memory: SCBMemory = state.memory
        before = memory.table.read(duel.first, duel.second)
        before[WINS, 0] += duel.won * duel.counts
        before[WINS, 1] += (1.0 - duel.won) * duel.counts
        before[DUELS] += duel.counts
        memory = memory._replace(table=memory.table.write(duel.first, duel.second, before))
        step = state.learnt - memory.begun
        if step >= memory.length:
            return self._next_phase(state)
        straight = (duel.first == memory.first) & (duel.second == memory.second)
        turned = (duel.second == memory.first) & (duel.first == memory.second)
        side = np.where(straight, 0, 1)
        lanes = np.arange(len(duel.first))
        wins, duels = before[:, side, lanes]
        arms = np.count_nonzero(state.arms.offered, axis=1)
        decided = (straight | turned) & duel.counts & _sure(wins, duels, self._level(step, step, arms))
        if not decided.any():
            return memory
        left = memory.active & state.arms.offered
        memory = self._pay(memory, decided, memory.first, 2.0 * wins > duels, left, self._level(memory.length, step, arms))
        return memory._replace(first=np.where(decided, -1, memory.first), second=np.where(decided, -1, memory.second))

    def _level(self, rounds: int, step: int, arms: IntArray) -> FloatArray:
        """(lanes,) scale (log(4 rounds K) + 2 max(1, log log step))."""
        steps = 2.0 * max(1.0, math.log(max(1.0, math.log(step))))
        return np.asarray(self.scale * (np.log(4.0 * rounds * np.maximum(arms, 1)) + steps))

    def _left(self, memory: SCBMemory, field: Field) -> BoolArray:
        """(lanes, K) the arms on offer that are left; all on offer where none is."""
        left = memory.active & field.offered
        return np.where(left.any(axis=1, keepdims=True), left, field.offered)

    def _pay(
        self, memory: SCBMemory, who: BoolArray, arm: IntArray, wins: BoolArray, left: BoolArray, level: FloatArray
    ) -> SCBMemory:
        """One virtual play of an arm in some lanes; where all that are left were played as often, drop the surely worse."""
        lanes = np.flatnonzero(who)
        if len(lanes) == 0:
            return memory
        plays, pay, active = memory.plays.copy(), memory.pay.copy(), memory.active
        plays[lanes, arm[lanes]] += 1.0
        pay[lanes, arm[lanes]] += wins[lanes]
        most = np.where(left, plays, -np.inf).max(axis=1)
        least = np.where(left, plays, np.inf).min(axis=1)
        ended = np.flatnonzero(who & (most == least))
        if len(ended):
            number = np.maximum(plays[ended], 1.0)
            lower, upper = mean_bounds(pay[ended] / number, level[ended, None] / number)
            best = np.where(left[ended], lower, -np.inf).max(axis=1, keepdims=True)
            active = active.copy()
            active[ended] &= ~(left[ended] & (upper < best))
        return memory._replace(plays=plays, pay=pay, active=active)

    def _next_phase(self, state: MatrixState) -> SCBMemory:
        """Nothing known but the arms."""
        size, lanes = state.arms.size, len(state.arms.number)
        none, zeros = np.full(lanes, -1), np.zeros((lanes, size))
        real = np.arange(size) < state.arms.number[:, None]
        table = PairTable.start(lanes, 0.0, 0.0).grow(size)
        return SCBMemory(table, real, zeros, zeros, none, none, state.learnt, state.memory.length**2)


def mean_bounds(mean: FloatArray, width: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The smallest and the largest q with KL(mean, q) <= width, by halving.

    Example:
        >>> lower, upper = mean_bounds(np.array([0.0, 0.5]), np.array([0.1, 0.1]))
        >>> lower.round(3).tolist(), upper.round(3).tolist()
        ([0.0, 0.287], [0.095, 0.713])
    """
    bounds = []
    for end in (0.0, 1.0):
        inside, outside = mean.copy(), np.full_like(mean, end)
        for _ in range(_HALVINGS):
            middle = 0.5 * (inside + outside)
            fits = rel_entr(mean, middle) + rel_entr(1.0 - mean, 1.0 - middle) <= width
            inside, outside = np.where(fits, middle, inside), np.where(fits, outside, middle)
        bounds.append(inside)
    return bounds[0], bounds[1]


def _sure(wins: FloatArray, duels: FloatArray, level: FloatArray) -> BoolArray:
    """Whether n KL(w/n, 1/2) is above the level."""
    lost = duels - wins
    return np.asarray(xlogy(wins, wins) + xlogy(lost, lost) - xlogy(duels, 0.5 * duels) > level)


def _least_played(left: BoolArray, plays: FloatArray) -> BoolArray:
    """(lanes, K) those that are left and were played least."""
    least = np.where(left, plays, np.inf)
    return np.asarray(left & (least == least.min(axis=1, keepdims=True)))
