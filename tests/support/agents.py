"""What the tests of the agent share: some arms, a policy of the user's own, and an agent as bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.live.live_agent import LiveAgent
from duelist.policies.base import Policy
from duelist.policies.registry import POLICIES
from duelist.typing import FloatArray, IntArray

ARMS = np.random.default_rng(1).choice([-1.0, 1.0], (6, 4))


def bytes_of(agent: LiveAgent[Any, Any], folder: Path) -> bytes:
    path = folder / "probe.duelist"
    agent.save(path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    structure = json.loads(arrays.pop("structure").tobytes())
    # Agents that went the same way have the same state, different names, and only in memory a log.
    del structure["value"]["dict"]["token"], structure["value"]["dict"]["votes"]
    named = [
        f"{name} {array.dtype} {array.shape}".encode() + array.tobytes()
        for name, array in sorted(arrays.items())
        if not name.startswith("value/votes/")
    ]
    return b"\n".join([json.dumps(structure).encode(), *named])


def pair_policies() -> list[Any]:
    """Every registered policy that shows pairs, as it comes. One that needs a reward has tests of its own, with JAX."""
    made = [kind() for name, kind in POLICIES.items() if name != "NonlinearFGTS"]
    return [policy for policy in made if not hasattr(policy, "choices")]


class Line:
    """All multiples of one direction up to length one: a set whose arms have no rows."""

    lanes, dim, digest = 1, 2, b"line"

    def best(self, theta: FloatArray) -> Any:
        raise NotImplementedError


class Ends(Policy[Any]):
    """Plays the two ends of a line, or of a list, and remembers what it was told."""

    def start(self, problem: Problem, streams: Streams) -> tuple[int, ...]:  # noqa: ARG002
        return ()

    def choose(self, state: tuple[int, ...], actions: Any, streams: Streams) -> tuple[Duels, tuple[int, ...]]:  # noqa: ARG002
        if isinstance(actions, FiniteActions):
            return duels_between(actions, np.array([0]), np.array([actions.n_arms - 1])), state
        none, ends = np.array([-1]), np.zeros((1, 2, actions.dim))
        ends[0, :, -1] = 1.0, -1.0
        return Duels(none, none, ends), state

    def learn(self, state: tuple[int, ...], actions: Any, duels: Duels, outcomes: IntArray) -> tuple[int, ...]:  # noqa: ARG002
        return (*state, int(outcomes[0]))

    def report(self, state: tuple[int, ...]) -> dict[str, FloatArray]:
        return {"sum": np.array([float(sum(state))])}
