"""Agents and journals of version 0.1.0 are read, go on, and end where 0.1.0 ended."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from duelist.journal.sqlite import SQLiteJournal
from duelist.live.agent import Agent
from tests.support.golden_files import (
    assert_same_state,
    assert_stands_at,
    facts,
    let_chains_not_jump,
    play,
    policy_of,
    settings_of,
    unpack,
)

AGENTS: dict[str, Any] = facts("saved_agents")["agents"]
JOURNALS: dict[str, Any] = facts("journals")["journals"]


@pytest.fixture
def chains_do_not_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    let_chains_not_jump(monkeypatch)


@pytest.fixture
def open_duels_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 0.1.0 policies did not know which duels waited for an answer; today those that would repeat themselves do."""
    monkeypatch.setattr("duelist.live.agent_state.FRESH_QUESTIONS", 0)


def plays_the_same_duels(case: dict[str, Any]) -> bool:
    """Foresight chooses by another rule since 0.2.0: live, 0.1.0 went on showing bad arms for ever. So its files are read and
    played on, and what it asks then is not compared."""
    return case["policy"] is None or case["policy"]["kind"] != "Foresight"


@pytest.mark.usefixtures("chains_do_not_jump", "open_duels_do_not_count")
@pytest.mark.parametrize("name", AGENTS)
def test_a_saved_agent_goes_on_and_ends_where_0_1_0_ended(name: str, tmp_path: Path) -> None:
    case = AGENTS[name]
    if case["policy"] is None:
        pytest.importorskip("jax")
    policy = policy_of(case)
    at_a, at_b = (
        Agent.load(unpack(case[place]["file"], tmp_path / place), policy=policy if case["policy"] is None else None)
        for place in ("at_A", "at_B")
    )
    assert at_a.policy == policy
    assert_stands_at(at_a, case["at_A"])
    if not plays_the_same_duels(case):
        play(at_a, case, case["from_A_to_B"], same_duels=False)
        assert at_a.rounds == case["at_B"]["rounds"]
        assert [duel.id for duel in at_a.pending] == [number for number, *_ in case["at_B"]["pending"]]
        return
    new = Agent(policy, **settings_of(case))
    play(new, case, case["to_A"])
    assert_same_state(new, at_a)
    play(at_a, case, case["from_A_to_B"])
    assert_stands_at(at_a, case["at_B"])
    assert_same_state(at_a, at_b)


def on_the_side(path: Path, statement: str, *values: Any) -> None:
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, values)
    connection.close()


def leave_snapshots(path: Path) -> None:
    """Nothing to do."""


def drop_snapshots(path: Path) -> None:
    on_the_side(path, "DELETE FROM snapshots")


def spoil_snapshots(path: Path) -> None:
    """Snapshots that are whole and say nothing to this version."""
    data = b"written by another version"
    on_the_side(path, "UPDATE snapshots SET data = ?, checksum = ?", data, zlib.crc32(data))


@pytest.mark.slow
@pytest.mark.usefixtures("chains_do_not_jump", "open_duels_do_not_count")
@pytest.mark.parametrize("prepare", [leave_snapshots, drop_snapshots, spoil_snapshots])
@pytest.mark.parametrize("name", JOURNALS)
def test_a_journal_goes_on_and_ends_where_0_1_0_ended(name: str, prepare: Callable[[Path], None], tmp_path: Path) -> None:
    case = JOURNALS[name]
    path = unpack(case["file"], tmp_path / "agent.db")
    prepare(path)
    settings: dict[str, Any] = {**settings_of(case), "snapshot_every": case["snapshot_every"]}
    with SQLiteJournal(path) as journal:
        agent = Agent(policy_of(case), journal=journal, **settings)
        replayed = agent._replica.counters.replayed if agent._replica else 0
        used = case["snapshots"] if prepare is leave_snapshots else []
        assert replayed == case["events"] - max(used, default=0), "a readable snapshot spares the events before it"
        assert_stands_at(agent, case)
        play(agent, case, case["continuation"], same_duels=plays_the_same_duels(case))
        if plays_the_same_duels(case):
            assert_same_state(agent, Agent.load(unpack(case["continued"]["file"], tmp_path / "continued")))
        again = Agent(policy_of(case), journal=journal, **settings)
        assert_same_state(again, agent)
