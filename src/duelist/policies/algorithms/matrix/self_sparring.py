"""Self-Sparring: two Thompson samplers that share what they learn, one Beta posterior per arm.

    theta_i ~ Beta(1 + S_i, 1 + F_i),   S_i the duels that arm i won and F_i those that it lost, against anybody
    first   = argmax theta,  second = argmax theta', drawn independently

As one arm is played more and more, wins against anybody become wins against that one.

Reference: Sui, Zhuang, Burdick & Yue (2017), Multi-dueling Bandits with Dependent Arms: IndSelfSparring, with two arms per
round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import betaincinv

from duelist.actions.finite import FiniteActions
from duelist.core.checks import finite_number
from duelist.core.lanes import Problem
from duelist.core.stored_names import stored
from duelist.policies.parts.known_arms import padded
from duelist.policies.parts.matrix_policy import Choice, Field, MatrixPolicy, MatrixState, Update
from duelist.typing import BoolArray, FloatArray


@stored("self-sparring-memory")
class SelfSparringMemory(NamedTuple):
    """Duels that every arm won and lost, (lanes, K) each."""

    won: FloatArray
    lost: FloatArray


@dataclass(frozen=True, kw_only=True)
class SelfSparring(MatrixPolicy):
    """Play the best arms of two independent draws of one posterior.

    Args:
        rate: how much a duel counts; the paper's eta.
        same_arm: when both draws like one arm: "allow" lets it meet itself, "different" plays the arm with the next best mean;
            "auto" allows it in simulation and not live.

    Example:
        >>> import duelist
        >>> from duelist.environments import MatrixDuels
        >>> env = MatrixDuels.cycle(4, lead=0.1)
        >>> run = duelist.simulate(SelfSparring(), env, rounds=2000, trials=4, seed=0)
        >>> bool(run.final_regret.mean() < 80)
        True
    """

    blank: ClassVar[tuple[float, ...]] = ()  # it keeps nothing of pairs

    rate: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        finite_number("rate", self.rate, above=0.0)

    def begin(self, problem: Problem) -> SelfSparringMemory:
        """No arms."""
        nothing = np.zeros((problem.lanes, 0))
        return SelfSparringMemory(nothing, nothing)

    def widen(self, state: MatrixState, new: BoolArray) -> SelfSparringMemory:  # noqa: ARG002 - all alike
        """New arms have met nobody."""
        return SelfSparringMemory(*(padded(column, state.arms.size, 0.0) for column in state.memory))

    def pick(self, memory: SelfSparringMemory, field: Field) -> Choice:
        """The best arm of either draw."""
        rows = []
        for name in ("self-sparring first", "self-sparring second"):
            theta: FloatArray = np.asarray(
                betaincinv(1.0 + memory.won, 1.0 + memory.lost, field.uniforms(name)), dtype=np.float64
            )
            rows.append(field.best(theta, name))
        return Choice(rows[0], rows[1], memory)

    def update(self, state: MatrixState, duel: Update) -> SelfSparringMemory:
        """A win for one arm, and a loss for the other."""
        won, lost = (column.copy() for column in state.memory)
        lanes, weight = np.arange(len(duel.first)), self.rate * duel.counts
        for arm, share in ((duel.first, duel.won), (duel.second, 1.0 - duel.won)):
            won[lanes, arm] += weight * share
            lost[lanes, arm] += weight * (1.0 - share)
        return SelfSparringMemory(won, lost)

    def strengths(self, state: MatrixState) -> FloatArray:
        """The mean of the posterior."""
        won, lost = state.memory
        return np.asarray((1.0 + won) / (2.0 + won + lost))

    def estimated_utilities(self, state: MatrixState, actions: FiniteActions) -> FloatArray:
        """(lanes, n_arms) the share of duels that each arm wins, by the mean of its posterior."""
        state = self._know(state, state.arms.meet(actions))
        return np.take_along_axis(self.strengths(state), state.arms.places, axis=1)
