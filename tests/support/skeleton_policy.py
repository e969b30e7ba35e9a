"""Epsilon-greedy: a whole policy in NumPy, to copy from. docs/develop/add-a-policy.md explains it line by line.

    theta     a logistic model, one gradient step per duel: theta += rate * y / (1 + exp(y <theta, z>)) * z
    first     the arm with the highest utility <theta, x>, or with probability epsilon a random one
    second    the best of the others

Reference: Sutton & Barto (2018), Reinforcement Learning, Section 2.2, for epsilon-greedy choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duelist.actions import ActionSet
from duelist.core import Problem, Streams
from duelist.core.checks import finite_number
from duelist.core.stored_names import stored
from duelist.history import Duels, duels_between
from duelist.policies.base import Policy
from duelist.policies.parts.same_arm import best_other, require_finite
from duelist.typing import FloatArray, IntArray


@stored("epsilon-greedy-state")
class EpsilonGreedyState(NamedTuple):
    """What was learnt: theta (lanes, dim), and the pairs asked for so far, which name the next random numbers."""

    theta: FloatArray
    asked: int


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedy(Policy[EpsilonGreedyState]):
    """Play the best arm against the second best, and now and then a random one.

    Args:
        epsilon: how often the first arm is random.
        rate: size of a gradient step.
    """

    epsilon: float = 0.1
    rate: float = 0.3

    def __post_init__(self) -> None:
        finite_number("epsilon", self.epsilon, at_least=0.0, at_most=1.0)
        finite_number("rate", self.rate, above=0.0)

    def start(self, problem: Problem, streams: Streams) -> EpsilonGreedyState:  # noqa: ARG002 - a policy's signature
        """Nothing learnt."""
        return EpsilonGreedyState(np.zeros((problem.lanes, problem.dim)), 0)

    def choose(self, state: EpsilonGreedyState, actions: ActionSet, streams: Streams) -> tuple[Duels, EpsilonGreedyState]:
        """The best arm or a random one, and the best of the others."""
        arms = require_finite(self, actions)
        # Random numbers belong to an arm's content, not to its row: permuting the arms then permutes the choice.
        random = arms.random_priority(streams, "epsilon greedy", state.asked)
        utilities = arms.utilities(state.theta) + 1e-9 * random
        explore = streams.uniforms("epsilon", state.asked) < self.epsilon
        first = np.where(explore, random.argmax(axis=1), utilities.argmax(axis=1))
        return duels_between(arms, first, best_other(utilities, first)), state._replace(asked=state.asked + 1)

    def learn(
        self,
        state: EpsilonGreedyState,
        actions: ActionSet,  # noqa: ARG002 - a policy's signature
        duels: Duels,
        outcomes: IntArray,
    ) -> EpsilonGreedyState:
        """One gradient step per lane. A tie pulls towards equal utilities."""
        z = duels.contrast
        win = 1.0 / (1.0 + np.exp(-np.einsum("ld,ld->l", state.theta, z)))
        slope = 0.5 * (1.0 + outcomes) - win
        return state._replace(theta=state.theta + self.rate * slope[:, None] * z)
