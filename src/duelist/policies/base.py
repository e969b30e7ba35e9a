"""What a policy is: frozen hyper-parameters, and three verbs over a separate state.

`start` makes the state of a block of lanes; `choose` picks a pair in every lane; `learn` takes who won. A policy never
sees the environment, the clock, the disk or a global generator: the same state, action set and streams give the same pair.
"""

from __future__ import annotations

from typing import Any, Protocol

from duelist.core.actions import ActionSet
from duelist.core.checks import FloatArray, IntArray
from duelist.core.duels import Duels
from duelist.core.lanes import Problem
from duelist.core.streams import Streams


class Policy(Protocol):
    """A rule for choosing the next pair. States are values: `choose` and `learn` return new ones."""

    def start(self, problem: Problem, streams: Streams) -> Any:
        """The state before the first round, one lane a stream."""

    def choose(self, state: Any, actions: ActionSet, streams: Streams) -> tuple[Duels, Any]:
        """A pair for every lane, and the state after asking. Asking again without learning is allowed."""

    def learn(self, state: Any, actions: ActionSet, duels: Duels, outcomes: IntArray) -> Any:
        """The state after learning outcomes (lanes,): +1 where the first candidate won, -1 where it lost, 0 where they tied."""

    def report(self, state: Any) -> dict[str, FloatArray]:
        """Numbers for a person about how the policy is doing, each (lanes,)."""
