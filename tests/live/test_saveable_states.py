"""Whatever an agent may hold has a stored name, and an agent whose state has none is refused before the first vote."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.stored_names import name_of
from duelist.journal.memory import MemoryJournal
from duelist.live.agent import Agent, SlateAgent
from duelist.live.live_agent import LiveAgent
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.registry import POLICIES, plays_slates
from duelist.samplers.registry import SAMPLERS
from tests.support.agents import ARMS, Ends, pair_policies


def classes_in(value: Any) -> set[type]:
    """Every class in a state that a file would have to name."""
    if isinstance(value, dict):
        return set().union(*map(classes_in, value.values()))
    if isinstance(value, tuple | list):
        inside = set().union(*map(classes_in, value))
        return inside | ({type(value)} if hasattr(value, "_fields") else set())
    if value is None or isinstance(value, bool | int | float | str | np.ndarray | np.generic):
        return set()
    inside = classes_in(value.to_arrays()) if hasattr(value, "to_arrays") else set()
    return inside | {type(value)}


def every_policy() -> list[Any]:
    samplers = [FGTS(sampler=name) for name in SAMPLERS]
    return [*pair_policies(), *samplers, *(kind() for kind in POLICIES.values() if plays_slates(kind))]


def states_of(policy: Any) -> list[Any]:
    """States of a policy in use: new, after asking, after several answers, on one set and on several."""
    agent: Any = (SlateAgent if plays_slates(type(policy)) else Agent)(policy, dim=4)
    states = [agent._state.lane.state]
    for t in range(6):
        question = agent.choose(ARMS if t % 2 else ARMS[:4])
        states.append(agent._state.lane.state)
        agent.learn(question, winner=question.rows[0])
        states.append(agent._state.lane.state)
    return states


@pytest.mark.parametrize("policy", every_policy(), ids=lambda policy: type(policy).__name__)
def test_every_class_in_every_state_has_a_stored_name(policy: Any) -> None:
    classes = set().union(*map(classes_in, states_of(policy)))
    assert classes, "a state without any class would prove nothing"
    for kind in classes:
        name_of(kind)


def test_every_registered_policy_is_looked_at() -> None:
    seen = {type(policy).__name__ for policy in every_policy()}
    assert set(POLICIES) - seen <= {"NonlinearFGTS"}, "NonlinearFGTS has a file of its own, with JAX"


class Nameless(NamedTuple):
    learnt: int = 0


class KeepsANameless(Ends):
    def start(self, problem: Any, streams: Any) -> Any:  # noqa: ARG002
        return Nameless()


def test_a_state_without_a_stored_name_is_refused_when_the_agent_is_made() -> None:
    with MemoryJournal() as journal:
        with pytest.raises(InvalidInputError, match="no name for files"):
            Agent(KeepsANameless(), dim=4, journal=journal)
        assert list(journal.read()) == []


def test_in_memory_a_state_without_a_stored_name_plays_and_is_refused_when_it_is_saved(tmp_path: Any) -> None:
    agent: LiveAgent[Any, Any] = Agent(KeepsANameless(), dim=4)
    agent.choose(FiniteActions(ARMS))
    with pytest.raises(InvalidInputError, match="no name for files"):
        agent.save(tmp_path / "agent")
