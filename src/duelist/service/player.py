"""The policy of one arena: a single live lane that chooses pairs and learns who won.

A player is a deterministic fold: the same calls in the same order give the same state, bit for bit.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from duelist.core.actions import FiniteActions
from duelist.core.checks import FloatArray
from duelist.core.duels import duels_between
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.policies.base import Policy


class Considered(NamedTuple):
    """A pair that the policy would choose, and the state that it would then be in.

    Attributes:
        first: row of the first candidate in the action set.
        second: row of the second, never the same.
        drawn: (2, 2) utilities of both candidates under each of the two posterior draws; empty where a policy draws none.
        state: the policy's state after asking.
    """

    first: int
    second: int
    drawn: FloatArray
    state: Any


class Player:
    """A policy in one lane.

    Args:
        policy: hyper-parameters.
        dim: length of a feature vector.
        seed: names all random numbers of the arena.
        generation: how often the player was started anew because the dimension grew; each has its own random numbers.
    """

    def __init__(self, policy: Policy, *, dim: int, seed: int, generation: int = 0) -> None:
        self.policy, self.dim, self.seed, self.generation = policy, dim, seed, generation
        self.streams = Streams(seed, [generation])
        self.state = policy.start(Problem(dim=dim, live=True), self.streams)

    def consider(self, actions: FiniteActions) -> Considered:
        """The pair to show next. Changes nothing until `accept`."""
        duels, state = self.policy.choose(self.state, actions, self.streams)
        first, second = int(duels.first[0]), int(duels.second[0])
        if first == second:
            # Nobody is shown the same thing twice. Policies know that they play live; this is for one that does not care.
            second = (first + 1) % actions.n_arms
        position = getattr(getattr(state, "chains", None), "position", None)
        drawn = np.empty((0, 2))
        if position is not None:
            drawn = position[0] @ actions.features[0, [first, second]].T
        return Considered(first, second, drawn, state)

    def accept(self, considered: Considered) -> None:
        """The pair was asked for."""
        self.state = considered.state

    def learn(self, actions: FiniteActions, first: int, second: int, outcome: int) -> None:
        """Learn what was said of two rows of an action set: +1 where the first won, -1 where it lost, 0 for a tie."""
        duels = duels_between(actions, np.array([first]), np.array([second]))
        self.state = self.policy.learn(self.state, actions, duels, np.array([outcome]))
