"""Uniform: two different arms at random. Learns nothing; the floor under every comparison.

Every arm gets a random number named by its content, and the two largest play: a uniform ordered pair of distinct arms. Where
arms are not listed, as on a ball, the best arms under two uniformly random directions of theta play.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.lanes import Problem
from duelist.core.stored_names import stored
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.policies.base import Policy
from duelist.typing import FloatArray, IntArray


@stored("uniform-state")
class UniformState(NamedTuple):
    """How many pairs were asked for: it names the next random numbers."""

    asked: int


@dataclass(frozen=True, kw_only=True)
class Uniform(Policy[UniformState]):
    """Play two different arms, uniformly at random.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> duelist.simulate(duelist.Uniform(), env, rounds=10, trials=2, seed=0).regret.shape
        (2, 10)
    """

    def start(self, problem: Problem, streams: Streams) -> UniformState:  # noqa: ARG002 - a policy's signature
        """Nothing asked yet."""
        return UniformState(0)

    def choose(self, state: UniformState, actions: ActionSet, streams: Streams) -> tuple[Duels, UniformState]:
        """A pair of different arms in every lane."""
        after = UniformState(state.asked + 1)
        if not isinstance(actions, FiniteActions):
            theta = streams.normals("uniform directions", state.asked, 2 * actions.dim)
            best = actions.best(theta.reshape(actions.lanes, 2, actions.dim))
            return Duels(best.row[:, 0], best.row[:, 1], best.features), after
        priority = actions.random_priority(streams, "uniform pair", state.asked)
        order = np.argsort(-priority, axis=1, kind="stable")
        return duels_between(actions, order[:, 0], order[:, 1]), after

    def learn(
        self,
        state: UniformState,
        actions: ActionSet,  # noqa: ARG002 - a policy's signature
        duels: Duels,  # noqa: ARG002
        outcomes: IntArray,  # noqa: ARG002
    ) -> UniformState:
        """Nothing to learn."""
        return state

    def keeps_sets(self) -> bool:
        """Nothing is learnt from anything."""
        return False

    def follows_sets(self) -> bool:
        """The number of questions is all that changes."""
        return False

    def pair_probability(
        self,
        state: UniformState,  # noqa: ARG002 - every state plays alike
        actions: ActionSet,
        duels: Duels,  # noqa: ARG002 - and every pair
    ) -> FloatArray:
        """(lanes,) how likely this pair was, in this order: 1 / (K (K - 1)); NaN where arms are not listed."""
        if not isinstance(actions, FiniteActions):
            return np.full(actions.lanes, np.nan)
        return np.full(actions.lanes, 1.0 / (actions.n_arms * (actions.n_arms - 1)))
