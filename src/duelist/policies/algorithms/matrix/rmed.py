"""RMED: compare an arm as often as it takes to refute that it is the best, and no more.

How much speaks against arm i being the Condorcet winner, and the arm that least does:

    I_i = sum over j with mu_ij <= 1/2 of n_ij KL(mu_ij, 1/2),     i* = argmin I_i.

After every pair has met, the arms of a list take turns. An arm l of it meets i*, unless l has beaten it so far and lost to
others: then the arm that beat it most. Arms with I_i - I_i* <= log t + f(K) make the next list. RMED2F looks for a cheaper
opponent: each pair first meets alpha log log T times, then

    b_l = argmin over j with mu_lj < 1/2 of (Delta_l + Delta_j) / KL(mu_lj, 1/2),    Delta_j = mu_i*,j - 1/2,

is fixed for every arm, and l meets b_l, and i* now and then.

I is kept in whole numbers of 2^-32, so that a sum does not depend on its order, and what a duel changes in it is exact.

Reference: Komiyama, Honda, Kashima & Nakagawa (2015), Regret Lower Bound and Optimal Algorithm in Dueling Bandit Problem,
Algorithms 1 to 3, and their code, github.com/jkomiyama/duelingbanditlib.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from duelist.core.checks import finite_number, whole_number
from duelist.core.lanes import Problem
from duelist.core.stored_names import stored
from duelist.policies.parts.known_arms import padded
from duelist.policies.parts.matrix_policy import DUELS, WINS, Choice, Field, MatrixPolicy, MatrixState, Update, noted_arm
from duelist.typing import BoolArray, FloatArray, IntArray

UNIT = 2.0**-32
UNKNOWN_HORIZON = 1_000_000
_LEAST_GAP = 0.01  # of the authors' code: an estimate of a regret is at least this
_NONE = -1


@stored("rmed-memory")
class RMEDMemory(NamedTuple):
    """What RMED keeps.

    Attributes:
        against: (lanes, K) I, in units of 2^-32.
        unmet: (lanes, K) other arms that each has not yet met often enough.
        now: (lanes, K) the arms of this list that are still to come.
        done: (lanes, K) the arms that may be put on the next list: those that are not to come.
        later: (lanes, K) the next list.
        rival: (lanes, K) b of every arm; -1 before it is fixed. Nobody reads it in RMED1.
        meetings: how often each pair meets at first.
    """

    against: IntArray
    unmet: IntArray
    now: BoolArray
    done: BoolArray
    later: BoolArray
    rival: IntArray
    meetings: int


def divergence(wins: FloatArray, duels: FloatArray) -> IntArray:
    """N KL(w/n, 1/2) in units of 2^-32 where w <= n/2, and 0 elsewhere."""
    lost = duels - wins
    full = xlogy(wins, wins) + xlogy(lost, lost) - xlogy(duels, 0.5 * duels)
    return np.asarray(np.rint(np.where(wins < lost, np.maximum(full, 0.0), 0.0) / UNIT), dtype=np.int64)


@dataclass(frozen=True, kw_only=True)
class RMED1(MatrixPolicy):
    """Play every arm that may be the best against the one that seems to be.

    Args:
        patience: c of f(K) = c K^1.01, by which arms stay on the list at first; the authors play 0.3.
        same_arm: when the best arm beats all others: "allow" plays it against itself, "different" against the one that is most
            likely to beat it; "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.environments import MatrixDuels
        >>> env = MatrixDuels.cycle(4, lead=0.1)
        >>> run = duelist.simulate(RMED1(), env, rounds=2000, trials=4, seed=0)
        >>> bool(run.final_regret.mean() < 80)
        True
    """

    patience: float = 0.3

    def __post_init__(self) -> None:
        super().__post_init__()
        finite_number("patience", self.patience, at_least=0.0)

    def meetings(self, problem: Problem) -> int:  # noqa: ARG002 - RMED2F asks the problem
        """How often every pair meets at first."""
        return 1

    def begin(self, problem: Problem) -> RMEDMemory:
        """No arms."""
        whole, flags = np.zeros((problem.lanes, 0), dtype=np.int64), np.zeros((problem.lanes, 0), dtype=bool)
        return RMEDMemory(whole, whole, flags, flags, flags, whole, self.meetings(problem))

    def widen(self, state: MatrixState, new: BoolArray) -> RMEDMemory:  # noqa: ARG002 - the list begins anew for all
        """New arms have met nobody, and everybody is on the list again."""
        memory, size = state.memory, state.arms.size
        assert state.counts is not None
        real = np.arange(size) < state.arms.number[:, None]
        return RMEDMemory(
            against=padded(memory.against, size, 0),
            unmet=_unmet(state.counts.cells[DUELS], real, memory.meetings),
            now=real,
            done=~real,
            later=np.zeros_like(real),
            rival=np.full(real.shape, _NONE),
            meetings=memory.meetings,
        )

    def pick(self, memory: RMEDMemory, field: Field) -> Choice:
        """A pair that has not met; or the next arm of the list, and its opponent."""
        view = memory if field.everyone else _restrict(memory, field)
        unmet: BoolArray = np.asarray(view.unmet > 0) & field.offered
        early: BoolArray = np.asarray(unmet.any(axis=1))
        listed = memory.now & field.offered
        listed = np.where(listed.any(axis=1, keepdims=True), listed, field.offered)
        arm = field.first_of(np.where(early[:, None], unmet, listed))
        wins, duels = field.rows_of(arm)[:2]
        others = field.offered.copy()
        others[field.lanes, arm] = False
        second = self._opponent(view, field, arm, (wins, duels))
        if early.any():
            second = np.where(early, field.first_of(others & (duels < memory.meetings)), second)
        return Choice(arm, second, memory, np.where(early, float(_NONE), arm)[:, None])

    def _opponent(self, memory: RMEDMemory, field: Field, arm: IntArray, row: tuple[FloatArray, FloatArray]) -> IntArray:
        """Algorithm 2: the arm that seems best, unless this one has beaten it and lost to others."""
        wins, duels = row
        beaten_by = _beaten_by(field, arm, row)
        seems_best = field.best(np.where(field.offered, -memory.against, -np.inf), "rmed best")
        to_best = beaten_by[field.lanes, seems_best] | ~beaten_by.any(axis=1)
        if to_best.all():
            return seems_best
        share = np.where(beaten_by, wins / np.maximum(duels, 1.0), np.inf)
        return np.where(to_best, seems_best, field.best(-share, "rmed opponent"))

    def update(self, state: MatrixState, duel: Update) -> RMEDMemory:
        """Take the arm off the list, and put on the next one who may still be best; begin it if this one is done."""
        memory: RMEDMemory = state.memory
        lanes = np.arange(len(duel.first))
        change = divergence(duel.after[WINS], duel.after[DUELS]) - divergence(duel.before[WINS], duel.before[DUELS])
        against, unmet = memory.against.copy(), memory.unmet.copy()
        filled = duel.counts & (duel.after[DUELS, 0] == memory.meetings)
        for side, arm in enumerate((duel.first, duel.second)):
            against[lanes, arm] += np.where(duel.counts, change[side], 0)
            unmet[lanes, arm] -= filled
        memory = memory._replace(against=against, unmet=unmet)
        arm = noted_arm(duel)
        listed = arm >= 0
        if not listed.any():
            return memory
        now, done = memory.now.copy(), memory.done.copy()
        now[lanes[listed], arm[listed]] = False
        done[lanes[listed], arm[listed]] = True
        offered = state.arms.offered
        lowest = np.where(offered, against, np.iinfo(np.int64).max).min(axis=1, keepdims=True)
        slack = math.log(state.learnt) + self.patience * np.count_nonzero(offered, axis=1, keepdims=True) ** 1.01
        may_be_best = (against - lowest <= slack / UNIT) & offered
        later = memory.later | (done & may_be_best & listed[:, None])
        over = ~(now & offered).any(axis=1, keepdims=True)
        return memory._replace(now=np.where(over, later, now), done=np.where(over, ~later, done), later=later & ~over)


@dataclass(frozen=True, kw_only=True)
class RMED2F(RMED1):
    """RMED that pays for finding the cheapest opponent of every arm first, and then plays it.

    Args:
        patience: c of f(K) = c K^1.01; the authors play 0.3.
        alpha: each pair first meets alpha log log T times; the authors play 3.
        horizon: T; None takes the simulation's, and a million where it is unknown: log log T hardly notices.
        same_arm: when the best arm beats all others: "allow" plays it against itself, "different" against the one that is most
            likely to beat it; "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.environments import MatrixDuels
        >>> env = MatrixDuels.cycle(4, lead=0.1)
        >>> run = duelist.simulate(RMED2F(), env, rounds=2000, trials=4, seed=0)
        >>> bool(run.final_regret.mean() < 80)
        True
    """

    alpha: float = 3.0
    horizon: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        finite_number("alpha", self.alpha, above=0.0)
        if self.horizon is not None:
            whole_number("horizon", self.horizon, at_least=1)

    def meetings(self, problem: Problem) -> int:
        """Alpha log log T, rounded up; at least one."""
        horizon = self.horizon or problem.horizon or UNKNOWN_HORIZON
        return max(1, math.ceil(self.alpha * math.log(math.log(max(horizon, 3)) + 0.01)))

    def pick(self, memory: RMEDMemory, field: Field) -> Choice:
        """As RMED1, with rivals fixed in the first round in which all pairs have met."""
        fresh = ((memory.rival == _NONE) & field.offered).any(axis=1)
        if fresh.any():
            view = memory if field.everyone else _restrict(memory, field)
            lanes = np.flatnonzero(fresh & ~((view.unmet > 0) & field.offered).any(axis=1))
            if len(lanes):
                rival = memory.rival.copy()
                best = field.best(np.where(field.offered, -view.against, -np.inf), "rmed best")
                rival[lanes] = cheapest_opponents(field.wins[lanes], field.duels[lanes], best[lanes], field.order[lanes])
                memory = memory._replace(rival=rival)
        return super().pick(memory, field)

    def _opponent(self, memory: RMEDMemory, field: Field, arm: IntArray, row: tuple[FloatArray, FloatArray]) -> IntArray:
        """Algorithm 3: the rival; the arm that seems best where the two met too seldom; otherwise as in RMED1."""
        plain = super()._opponent(memory, field, arm, row)
        duels, beaten_by = row[1], _beaten_by(field, arm, row)
        rival = memory.rival[field.lanes, arm]
        known = np.where(rival >= 0, rival, 0)
        is_rival = (rival >= 0) & beaten_by[field.lanes, known]
        seems_best = field.best(np.where(field.offered, -memory.against, -np.inf), "rmed best")
        often_enough = math.log(math.log(max(field.rounds, 3)) + 0.01)
        seldom = duels[field.lanes, seems_best] * often_enough <= duels[field.lanes, known]
        to_best = beaten_by[field.lanes, seems_best] & seldom
        return np.where(is_rival & ~to_best, rival, plain)


def cheapest_opponents(wins: FloatArray, duels: FloatArray, best: IntArray, order: IntArray) -> IntArray:
    """(lanes, K) b of every arm: who refutes it at the least regret, the first in `order` among equals; itself if none can."""
    lanes, arms = np.arange(len(wins)), wins.shape[1]
    share = np.where(duels > 0.0, wins / np.maximum(duels, 1.0), 0.5)
    gap = share[lanes, best] - 0.5
    gap[lanes, best] = 0.0
    regret = np.maximum(gap[:, :, None] + gap[:, None], _LEAST_GAP)
    information = xlogy(share, 2.0 * share) + xlogy(1.0 - share, 2.0 * (1.0 - share))
    cost = np.where(share < 0.5, regret / np.where(share < 0.5, information, 1.0), np.inf)
    in_order = np.take_along_axis(cost, np.broadcast_to(order[:, None], cost.shape), axis=2)
    found = order[lanes[:, None], in_order.argmin(axis=2)]
    return np.where(np.isinf(cost).all(axis=2), np.arange(arms), found)


def _beaten_by(field: Field, arm: IntArray, row: tuple[FloatArray, FloatArray]) -> BoolArray:
    """(lanes, K) the arms on offer that this one (lanes,), with its wins and duels, has not beaten in most of their duels."""
    wins, duels = row
    beaten_by = field.offered & (2.0 * wins <= duels)
    beaten_by[field.lanes, arm] = False
    return np.asarray(beaten_by)


def _unmet(duels: FloatArray, among: BoolArray, meetings: int) -> IntArray:
    """(lanes, K) how many other arms of the mask each has met less often than that."""
    missing = (duels < meetings) & among[:, None] & among[:, :, None] & ~np.eye(duels.shape[1], dtype=bool)
    return np.asarray(np.count_nonzero(missing, axis=2))


def _restrict(memory: RMEDMemory, field: Field) -> RMEDMemory:
    """What RMED would keep if there were only the arms on offer."""
    terms = divergence(field.wins, field.duels) * field.offered[:, None]
    return memory._replace(against=terms.sum(axis=2), unmet=_unmet(field.duels, field.offered, memory.meetings))
