"""Double Thompson sampling: two draws from Beta posteriors of every pair, kept within confidence bounds.

    theta_ij   ~ Beta(1 + w_ij, 1 + w_ji),  theta_ji = 1 - theta_ij
    C          = the arms with the most j such that u_ij >= 1/2: the highest upper bound of the Copeland score
    first      = the arm of C with the most theta_ij > 1/2
    second     = argmax theta'_j,first over the arms j with l_j,first <= 1/2, theta' drawn anew and theta'_first,first = 1/2

Among arms of C with equally many wins, the first is random (D-TS), or the one with the least regret to learn (D-TS+):

    argmin_i  sum_j (max zeta - (zeta_i + zeta_j) / 2) / KL(theta_ij, 1/2),    zeta_i = number of theta_ij > 1/2 / (K - 1).

The first step asks of a draw only on which side of 1/2 it is. So we keep P(theta_ij > 1/2) of every pair, worked out again
after a duel of the pair, and compare it with one uniform number; the draw itself, the quantile of that number, is worked out
only where its value counts.

Reference: Wu & Liu (2016), Double Thompson Sampling for Dueling Bandits, and their code,
github.com/HuasenWu/DuelingBandits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import betainc, betaincinv, xlogy

from duelist.core.checks import finite_number, one_of
from duelist.core.lanes import Problem
from duelist.policies.parts.matrix_policy import DUELS, WINS, Choice, Field, MatrixPolicy, MatrixState, Update
from duelist.policies.parts.sure_wins import (
    SureWins,
    level_at,
    no_wins,
    sure_among,
    surely_loses,
    update_wins,
    widen_wins,
)
from duelist.typing import BoolArray, FloatArray, IntArray

CHANCE = 2  # layer: P(theta_ij > 1/2)
TIE_BREAKS = ("random", "regret")


@dataclass(frozen=True, kw_only=True)
class DoubleTS(MatrixPolicy):
    """Thompson sampling twice: the arm with the most wins in a draw, against the one that beats it most in another.

    Args:
        alpha: how wide the confidence bounds are; the authors play 0.51.
        tie_break: which arm comes first among those with equally many wins in the draw: "random" (D-TS), or the one with the
            least "regret" to learn (D-TS+), which draws all pairs of all arms.
        same_arm: when the first arm beats all others in the second draw: "allow" plays it against itself, "different" against
            the one most likely to beat it; "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.environments import MatrixDuels
        >>> env = MatrixDuels.cycle(4, lead=0.1)
        >>> run = duelist.simulate(DoubleTS(), env, rounds=2000, trials=4, seed=0)
        >>> bool(run.final_regret.mean() < 60)
        True
    """

    blank: ClassVar[tuple[float, ...]] = (0.0, 0.0, 0.5)

    alpha: float = 0.51
    tie_break: str = "random"

    def __post_init__(self) -> None:
        super().__post_init__()
        finite_number("alpha", self.alpha, above=0.0)
        one_of("tie_break", self.tie_break, TIE_BREAKS)

    def begin(self, problem: Problem) -> SureWins:
        """Nobody surely beats anybody."""
        return no_wins(problem.lanes)

    def widen(self, state: MatrixState, new: BoolArray) -> SureWins:  # noqa: ARG002 - others ask which
        """With more arms."""
        return widen_wins(state.memory, state.arms.size)

    def further_cells(self, duel: Update) -> FloatArray:
        """P(theta > 1/2) of the pair."""
        wins, duels = duel.after[WINS], duel.after[DUELS]
        return np.asarray(betainc(1.0 + duels - wins, 1.0 + wins, 0.5))[None]

    def pick(self, memory: SureWins, field: Field) -> Choice:
        """The first arm by one draw, the second by another."""
        lost = np.where(field.offered, sure_among(memory, field, self.alpha)[1], field.offered.shape[1])
        candidates = lost == lost.min(axis=1, keepdims=True)
        first = self._first(candidates, field)
        return Choice(first, self._second(first, field), memory)

    def update(self, state: MatrixState, duel: Update) -> SureWins:
        """Read the rows of the two arms again."""
        return update_wins(state.memory, state, duel, self.alpha)

    def _first(self, candidates: BoolArray, field: Field) -> IntArray:
        """The candidate with the most wins in a draw; where there is one candidate, no draw."""
        several = np.count_nonzero(candidates, axis=1) > 1
        if not several.any():
            return np.asarray(candidates.argmax(axis=1))
        drawn = candidates if self.tie_break == "random" else field.offered
        lanes, arms = np.nonzero(drawn & several[:, None])
        uniforms = _pair_uniforms(field, lanes, arms)
        wins = uniforms > 1.0 - field.cells[CHANCE, lanes, arms]
        wins[np.arange(len(arms)), arms] = False
        if not field.everyone:
            wins &= field.offered[lanes]
        scores = np.full(candidates.shape, -1)
        scores[lanes, arms] = np.count_nonzero(wins, axis=1)
        top = np.where(candidates, scores, -1)
        tied = candidates & (top == top.max(axis=1, keepdims=True))
        if self.tie_break == "random":
            return field.draw(tied, "double ts tie")
        return self._least_regret(tied, scores, field, (lanes, arms, uniforms))

    def _least_regret(
        self, tied: BoolArray, scores: IntArray, field: Field, drawn: tuple[IntArray, IntArray, FloatArray]
    ) -> IntArray:
        """Of the tied arms, that with the least regret until it is known to beat the others as in the draw."""
        ask = np.flatnonzero(tied[drawn[0], drawn[1]])
        lanes, arms, uniforms = (part[ask] for part in drawn)
        wins, duels = field.cells[: DUELS + 1, lanes, arms]
        theta = betaincinv(1.0 + wins, 1.0 + duels - wins, uniforms)
        divergence = xlogy(theta, 2.0 * theta) + xlogy(1.0 - theta, 2.0 * (1.0 - theta))
        mine = scores[lanes, arms][:, None]
        cost = (scores[lanes].max(axis=1, keepdims=True) - 0.5 * (mine + scores[lanes])) / np.maximum(divergence, 1e-300)
        cost[np.arange(len(arms)), arms] = 0.0
        cost[~field.offered[lanes]] = 0.0
        regret = np.full(tied.shape, np.inf)
        # Sorted, so that the sum does not depend on the order of arms.
        regret[lanes, arms] = np.sort(cost, axis=1).sum(axis=1)
        regret[np.count_nonzero(tied, axis=1) == 1] = np.inf
        return field.draw(tied & (regret == regret.min(axis=1, keepdims=True)), "double ts tie")

    def _second(self, first: IntArray, field: Field) -> IntArray:
        """The arm that beats the first most in a new draw; the first itself where none beats it."""
        wins, duels, chance = field.rows_of(first)
        uniforms = field.uniforms("double ts second")
        # theta'_j,first > 1/2: only then its value counts, for theta' of the first arm against itself is 1/2.
        beats = (uniforms > chance) & field.offered & ~surely_loses(wins, duels, level_at(self.alpha, field.rounds))
        beats[field.lanes, first] = False
        lanes, arms = np.nonzero(beats)
        drawn = np.zeros(beats.shape)
        lost = (duels - wins)[lanes, arms]
        drawn[lanes, arms] = betaincinv(1.0 + lost, 1.0 + wins[lanes, arms], uniforms[lanes, arms])
        drawn[field.lanes, first] = 0.5
        return field.draw(drawn == drawn.max(axis=1, keepdims=True), "double ts second tie")


def _pair_uniforms(field: Field, lanes: IntArray, arms: IntArray) -> FloatArray:
    """(n, K) the uniform number behind theta_ij of n arms and all others: that of theta_ji is 1 less this one."""
    mine, all_arms = field.prints[lanes, arms][:, None], field.prints[lanes]
    numbers = field.uniforms("double ts first", mine ^ all_arms, lanes)
    return np.where(mine < all_arms, numbers, 1.0 - numbers)
