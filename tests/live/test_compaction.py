"""A compacted journal has the same agent and nothing of its past; an agent that keeps no votes does not grow with them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.journal.base import COMPACTED, JournalError
from duelist.journal.memory import MemoryJournal
from duelist.journal.sqlite import SQLiteJournal
from duelist.live.agent import Agent, SlateAgent
from duelist.live.agent_log import Tell
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.algorithms.slates.listwise_fgts import ListwiseFGTS
from duelist.policies.algorithms.uniform import Uniform
from tests.live.test_agent_log import act
from tests.support.agents import ARMS, bytes_of, pair_policies

SETTINGS: dict[str, Any] = {"dim": 4, "seed": 11, "max_pending": 5}
VOTER, TAKEN = "ann.of.green.gables@example.org", "bob.the.builder@example.org"


@pytest.fixture
def journal() -> Iterator[MemoryJournal]:
    with MemoryJournal() as opened:
        yield opened


def vote(agent: Agent, voter: str, times: int) -> None:
    for _ in range(times):
        agent.learn(agent.choose(ARMS), "first", voter=voter)


@pytest.mark.parametrize("policy", [*pair_policies(), FGTS(sampler="online")], ids=repr)
def test_compacting_at_any_point_changes_nothing_that_comes_later(policy: Any, journal: MemoryJournal, tmp_path: Path) -> None:
    reference = Agent(policy, **SETTINGS)
    agent = Agent(policy, **SETTINGS, journal=journal)
    follower = Agent(policy, **SETTINGS, journal=journal)  # another process, which was far behind
    for t in range(60):
        act(reference, t)
        act(agent, t)
        if t in (7, 30, 31):
            agent.compact()
            assert [record.kind for record in journal.read()] == [COMPACTED]
    restarted = Agent(policy, **SETTINGS, journal=journal)
    follower.refresh()
    expected = bytes_of(reference, tmp_path)
    assert [bytes_of(one, tmp_path) == expected for one in (agent, restarted, follower)] == [True] * 3
    assert agent.pending == restarted.pending == follower.pending == reference.pending


def test_nothing_is_left_of_a_snapshot_that_was_being_saved_when_the_journal_was_compacted(journal: MemoryJournal) -> None:
    """The writer is held up until both wait for it, so that the first step of the snapshot comes after the compaction."""
    agent = Agent(FGTS(), **SETTINGS, journal=journal, snapshot_every=21)
    vote(agent, VOTER, 9)
    duel = agent.choose(ARMS)
    replica, go_on = agent._replica, threading.Event()
    assert replica is not None
    held = journal.submit(lambda turn: go_on.wait())  # noqa: ARG005
    told = replica.submit(Tell(duel, "first", VOTER))  # the 21st event: a snapshot is due
    compacted = journal.submit(replica._compact)
    go_on.set()
    for future in (held, told, compacted):
        future.result()
    journal.transact(lambda turn: turn.head)
    assert [record.kind for record in journal.read()] == [COMPACTED]
    assert journal.latest_snapshot() is None
    assert replica.counters.snapshots == 1, "only the compaction"
    vote(agent, VOTER, 11)
    journal.close()
    assert replica.counters.snapshots == 2, "and later snapshots are saved again"


def test_slates_can_be_compacted_too(journal: MemoryJournal, tmp_path: Path) -> None:
    agent = SlateAgent(ListwiseFGTS(choices=3), dim=4, seed=1, journal=journal)
    agent.learn(agent.choose(ARMS), ranking=list(agent.pending[0].rows))
    waiting = agent.choose(ARMS)
    agent.compact()
    again = SlateAgent(ListwiseFGTS(choices=3), dim=4, seed=1, journal=journal)
    again.learn(waiting, winner=waiting.rows[0])
    agent.refresh()
    assert agent.rounds == 2
    assert bytes_of(agent, tmp_path) == bytes_of(again, tmp_path)


def test_a_voter_who_is_forgotten_and_compacted_is_nowhere_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "votes.db"

    def anywhere(name: str) -> list[str]:
        return [file.name for file in tmp_path.glob("votes.db*") if name.encode() in file.read_bytes()]

    with SQLiteJournal(path) as journal, SQLiteJournal(path) as other_process:
        agent = Agent(FGTS(), **SETTINGS, journal=journal, snapshot_every=7)
        reader = Agent(FGTS(), **SETTINGS, journal=other_process)
        vote(agent, VOTER, 10)
        vote(agent, TAKEN, 10)
        agent.import_votes(ARMS[:2], ARMS[2:4], [1, -1], voters=[TAKEN, VOTER])
        assert agent.forget(voter=TAKEN) == 11
        assert anywhere(TAKEN), "the name stays in the file until it is compacted, or this test shows nothing"
        agent.compact()
        assert not anywhere(TAKEN)
        assert not anywhere(VOTER), "all names are gone, for all events are"
        reader.refresh()
        vote(reader, VOTER, 1)
        assert agent.choose(ARMS).id == 21
        assert agent.rounds == reader.rounds == 12
    with SQLiteJournal(path) as journal:
        assert Agent(FGTS(), **SETTINGS, journal=journal).rounds == 12


def test_a_reader_that_does_not_let_go_is_said_to_keep_the_names_alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlite3

    monkeypatch.setattr("duelist.journal.sqlite._PATIENCE", 0.1)
    path = tmp_path / "votes.db"
    with SQLiteJournal(path) as journal:
        agent = Agent(Uniform(), **SETTINGS, journal=journal)
        vote(agent, VOTER, 3)
        reading = sqlite3.connect(path, isolation_level=None)
        reading.execute("BEGIN")
        reading.execute("SELECT * FROM events").fetchone()
        with pytest.raises(JournalError, match="not erased yet"):
            agent.compact()
        reading.close()
        assert agent.rounds == 3
        agent.compact()
        assert VOTER.encode() not in path.read_bytes()


def test_what_was_compacted_can_no_longer_be_taken_back_and_the_rest_can(journal: MemoryJournal, tmp_path: Path) -> None:
    agent, reference = Agent(FGTS(), **SETTINGS, journal=journal), Agent(FGTS(), **SETTINGS)
    for one in (agent, reference):
        vote(one, VOTER, 6)
        one.choose(ARMS)  # 6, which is answered later
    agent.compact()
    for one in (agent, reference):
        one.learn(6, "second", voter=VOTER)
        vote(one, TAKEN, 3)
    with pytest.raises(InvalidInputError, match="compacted since"):
        agent.forget(2)
    with pytest.raises(InvalidInputError, match="cannot change its policy"):
        agent.change_policy(Uniform())
    assert agent.forget(6) == reference.forget(6) == 1
    assert agent.forget(voter=TAKEN) == reference.forget(voter=TAKEN) == 3
    assert agent.forget(voter=VOTER) == 0, "what she said before is compacted, what she said since was forgotten above"
    expected = bytes_of(reference, tmp_path)
    assert bytes_of(agent, tmp_path) == expected
    assert bytes_of(Agent(FGTS(), **SETTINGS, journal=journal), tmp_path) == expected


def test_a_compacted_journal_of_another_agent_is_refused(journal: MemoryJournal) -> None:
    Agent(FGTS(), **SETTINGS, journal=journal).compact()
    with pytest.raises(InvalidInputError, match="belongs to an agent with seed 11"):
        Agent(FGTS(), **{**SETTINGS, "seed": 12}, journal=journal)


def test_an_agent_in_memory_drops_what_it_kept_to_forget() -> None:
    agent = Agent(FGTS(), **SETTINGS)
    vote(agent, VOTER, 3)
    agent.compact()
    vote(agent, VOTER, 3)
    assert agent.rounds == 6
    with pytest.raises(InvalidInputError, match="keep_votes=True"):
        agent.forget(voter=VOTER)


def test_a_journal_that_keeps_no_votes_does_not_grow(tmp_path: Path) -> None:
    """With fresh features in every duel: twice as many duels leave a file of the same size, and the same number of events."""
    rng = np.random.default_rng(0)
    sizes, events = [], []
    policy = FGTS(sampler="online")
    settings: dict[str, Any] = {"dim": 4, "seed": 0, "snapshot_every": 20, "keep_votes": False}
    for _ in range(3):
        with SQLiteJournal(tmp_path / "votes.db") as journal:
            agent = Agent(policy, **settings, journal=journal)
            for _ in range(200):
                agent.learn(agent.choose(rng.standard_normal((8, 4))), "first")
            events.append(len(list(journal.read())))
            with pytest.raises(InvalidInputError, match="keep_votes=True"):
                agent.forget(0)
            with pytest.raises(InvalidInputError, match="keep_votes=True"):
                agent.change_policy(FGTS())
        sizes.append((tmp_path / "votes.db").stat().st_size)
    assert max(events) <= 30, "some came while the latest compaction was written"
    assert sizes[2] < 1.3 * sizes[0]
    with SQLiteJournal(tmp_path / "votes.db") as journal:
        assert Agent(policy, **settings, journal=journal).rounds == 600


def test_a_policy_with_a_history_keeps_its_events_on_a_journal_all_the_same(journal: MemoryJournal) -> None:
    agent = Agent(FGTS(), **SETTINGS, journal=journal, snapshot_every=5, keep_votes=False)
    vote(agent, VOTER, 10)
    assert next(journal.read()).kind == "opened"
    assert agent.forget(voter=VOTER) == 10


def test_a_running_belief_takes_late_answers_and_agrees_with_the_posterior_of_all_votes() -> None:
    """The oracle keeps every vote and samples the posterior: means within a tenth of a deviation, and the same favourite."""
    rng = np.random.default_rng(3)
    theta, arms = np.array([1.0, -0.5, 0.5, 0.0]), rng.standard_normal((200, 6, 4))
    bounded = Agent(FGTS(sampler="online", alpha=0.0), dim=4, seed=0, keep_votes=False)
    exact = Agent(FGTS(sampler="online", alpha=0.0), dim=4, seed=0)
    waiting: list[tuple[int, Any]] = []
    assert bounded.predict(np.eye(4)).is_prior
    for offered in np.tile(arms, (3, 1, 1)):
        duel, same = bounded.choose(offered), exact.choose(offered)
        assert duel.rows == same.rows, "keeping votes does not change what is asked"
        gap = (duel.features[0] - duel.features[1]) @ theta
        waiting.append((duel.id, "first" if rng.random() < 1 / (1 + np.exp(-gap)) else "second"))
        while len(waiting) > 7:  # late, out of order, several between two questions
            number, winner = waiting.pop(int(rng.integers(len(waiting) - 4)))
            bounded.learn(number, winner)
            exact.learn(number, winner)
    rows = np.eye(4)
    mine, truth = bounded.predict(rows), exact.predict(rows)
    width = truth.high - truth.low
    assert mine.votes == bounded.rounds == exact.rounds
    np.testing.assert_allclose(mine.utility, truth.utility, atol=0.1 * width.max())
    np.testing.assert_allclose(mine.high - mine.low, width, rtol=0.2)
    assert bounded.best(rows) == exact.best(rows) == 0
    assert bounded._memory.lane.votes is None
    assert bounded._memory.log is None
