"""What the tests of the agent share: some arms, a policy of somebody else, and an agent as bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from duelist.agent.agent import Agent
from duelist.core.checks import FloatArray, IntArray
from duelist.core.duels import Duels
from duelist.core.lanes import Problem
from duelist.core.streams import Streams

ARMS = np.random.default_rng(1).choice([-1.0, 1.0], (6, 4))


def bytes_of(agent: Agent, folder: Path) -> bytes:
    path = folder / "probe.duelist"
    agent.save(path)
    return path.read_bytes()


class Line:
    """All multiples of one direction up to length one: a set whose arms have no rows."""

    lanes, dim, digest = 1, 2, b"line"

    def best(self, theta: FloatArray) -> Any:
        raise NotImplementedError


class Ends:
    """Plays the two ends of a line and remembers what it was told."""

    def start(self, problem: Problem, streams: Streams) -> tuple[int, ...]:  # noqa: ARG002
        return ()

    def choose(self, state: tuple[int, ...], actions: Any, streams: Streams) -> tuple[Duels, tuple[int, ...]]:  # noqa: ARG002
        none = np.array([-1])
        return Duels(none, none, np.array([[[0.0, 1.0], [0.0, -1.0]]])), state

    def learn(self, state: tuple[int, ...], actions: Any, duels: Duels, outcomes: IntArray) -> tuple[int, ...]:  # noqa: ARG002
        return (*state, int(outcomes[0]))

    def report(self, state: tuple[int, ...]) -> dict[str, FloatArray]:
        return {"sum": np.array([float(sum(state))])}
