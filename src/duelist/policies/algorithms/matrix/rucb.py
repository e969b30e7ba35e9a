"""RUCB: an arm that may still beat all others meets the strongest of them, by upper confidence bounds.

    u_ij      = w_ij / n_ij + sqrt(alpha log t / n_ij);  2 for pairs that never met, and u_ii = 1/2
    C         = { i : u_ij >= 1/2 for every j }
    best      = the one arm that was once alone in C, while it stays in C
    first     = the arm of C if there is one; best with probability 1/2, otherwise any other of C; any arm if C is empty
    second    = argmax_j u_j,first

Reference: Zoghi, Whiteson, Munos & de Rijke (2014), Relative Upper Confidence Bound for the K-Armed Dueling Bandit Problem,
Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duelist.core.checks import finite_number
from duelist.core.lanes import Problem
from duelist.core.stored_names import stored
from duelist.policies.parts.matrix_policy import Choice, Field, MatrixPolicy, MatrixState, Update
from duelist.policies.parts.sure_wins import SureWins, bounds_against, no_wins, sure_among, update_wins, widen_wins
from duelist.typing import BoolArray, IntArray


@stored("rucb-memory")
class RUCBMemory(NamedTuple):
    """Who surely beats whom, and best (lanes,), the place of the arm that was once alone in C; -1 for none."""

    sure: SureWins
    best: IntArray


@dataclass(frozen=True, kw_only=True)
class RUCB(MatrixPolicy):
    """Play an arm that may be the Condorcet winner against the arm most likely to refute it.

    Args:
        alpha: how wide the bounds are. The theory asks for more than 1/2; the paper plays 0.51.
        same_arm: when the first arm surely beats all others: "allow" plays it against itself, "different" against its strongest
            challenger; "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.environments import MatrixDuels
        >>> env = MatrixDuels.cycle(4, lead=0.1)
        >>> run = duelist.simulate(RUCB(), env, rounds=2000, trials=4, seed=0)
        >>> bool(run.final_regret.mean() < 100)
        True
    """

    alpha: float = 0.51

    def __post_init__(self) -> None:
        super().__post_init__()
        finite_number("alpha", self.alpha, above=0.0)

    def begin(self, problem: Problem) -> RUCBMemory:
        """Nobody surely beats anybody."""
        return RUCBMemory(no_wins(problem.lanes), np.full(problem.lanes, -1))

    def widen(self, state: MatrixState, new: BoolArray) -> RUCBMemory:  # noqa: ARG002 - others ask which
        """With more arms."""
        memory: RUCBMemory = state.memory
        return memory._replace(sure=widen_wins(memory.sure, state.arms.size))

    def pick(self, memory: RUCBMemory, field: Field) -> Choice:
        """One of the candidates, and the arm with the highest bound against it."""
        candidates = field.offered & (sure_among(memory.sure, field, self.alpha)[1] == 0)
        number = np.count_nonzero(candidates, axis=1)
        best = np.where(candidates[field.lanes, memory.best], memory.best, -1)
        best = np.where(number == 1, candidates.argmax(axis=1), best)
        others = np.where(number[:, None] > 0, candidates, field.offered)
        others[field.lanes, best] &= best < 0
        stays = (best >= 0) & ((number == 1) | (field.streams.uniforms("rucb coin", field.asked) < 0.5))
        first = np.where(stays, best, field.draw(others, "rucb first"))
        second = field.best(bounds_against(first, field, self.alpha), "rucb second")
        return Choice(first, second, memory._replace(best=best))

    def update(self, state: MatrixState, duel: Update) -> RUCBMemory:
        """Read the rows of the two arms again."""
        memory: RUCBMemory = state.memory
        return memory._replace(sure=update_wins(memory.sure, state, duel, self.alpha))
