"""Open duels are part of the fold: a restart asks the same, and asking one by one is as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import duelist
from duelist.journal.memory import MemoryJournal
from duelist.live.lane import FRESH_QUESTIONS
from tests.support.golden_files import assert_same_state

FEATURES = np.random.default_rng(4).standard_normal((7, 3))


@pytest.mark.parametrize("policy", [duelist.MaxInP(), duelist.VACDB(), duelist.Foresight()])
def test_a_restart_asks_the_same_with_open_duels(policy: Any) -> None:
    journal, rng = MemoryJournal(), np.random.default_rng(0)
    agent = duelist.Agent(policy, dim=3, seed=1, journal=journal, snapshot_every=25)
    in_memory = duelist.Agent(policy, dim=3, seed=1)
    for _ in range(30):
        assert agent.choose(FEATURES) == in_memory.choose(FEATURES)
        if rng.random() < 0.7:
            number = agent.pending[int(rng.integers(len(agent.pending)))].id
            for one in (agent, in_memory):
                one.learn(number, "first") if number % 3 else one.skip(number)
    again = duelist.Agent(policy, dim=3, seed=1, journal=journal)
    assert_same_state(again, agent)
    assert agent.pending
    assert again.choose(FEATURES) == in_memory.choose(FEATURES)


@pytest.mark.parametrize("policy", [duelist.MaxInP(), duelist.VACDB(), duelist.CoLSTIM(), duelist.Foresight()])
def test_nobody_sees_a_thing_twice_beside_open_duels(policy: Any) -> None:
    agent, rng = duelist.Agent(policy, dim=3, seed=1), np.random.default_rng(0)
    for t in range(60):
        duel = agent.choose(FEATURES[rng.permutation(7)[: rng.integers(2, 6)]])
        assert duel.first != duel.second
        if t % 3:
            agent.learn(duel, "first" if t % 2 else "second")


def test_a_skipped_duel_no_longer_counts() -> None:
    """Between a proposal and its commit nothing may go stale: what is open is part of what was proposed."""
    agent, other = (duelist.Agent(duelist.MaxInP(), dim=3, seed=1) for _ in range(2))
    first = agent.choose(FEATURES)
    agent._state.propose(agent._actions(FEATURES))
    agent.skip(first)
    other.skip(other.choose(FEATURES))
    again = agent.choose(FEATURES)
    assert again == other.choose(FEATURES)
    assert set(again.rows) == set(first.rows)


def test_a_duel_that_nobody_answers_counts_only_while_it_is_fresh() -> None:
    agent = duelist.Agent(duelist.MaxInP(), dim=3, seed=1)
    state = agent._state
    for _ in range(FRESH_QUESTIONS + 10):
        agent.choose(FEATURES)
    proposal = state.propose(agent._actions(FEATURES))
    assert proposal.pending == tuple(range(10, FRESH_QUESTIONS + 10))


def test_policies_that_draw_at_random_are_not_told() -> None:
    agent = duelist.Agent(duelist.Uniform(), dim=3, seed=1)
    agent.choose(FEATURES)
    assert not agent._state.lane.counts_pending
    assert agent._state.propose(agent._actions(FEATURES)).pending == ()
