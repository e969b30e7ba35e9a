"""`duelist backup`, `restore`, `migrate` and `verify`: nothing is lost on the way, and damage is found."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from duelist.cli.main import cli
from duelist.core.errors import InvalidInputError
from duelist.journal.postgres import PostgresJournal
from duelist.journal.sqlite import SQLiteJournal, SQLiteStore
from duelist.live.agent import Agent
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.service.arena.commands import Ask, Tell
from duelist.service.arena.items import Item
from duelist.service.commands import CreateArena
from duelist.service.store import ServiceFold, Store
from tests.support.agents import ARMS, bytes_of
from tests.support.arenas import spec
from tests.support.postgres_server import private_server


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(cli, [str(argument) for argument in arguments])


def said(result: Result) -> str:
    """What it printed, or the error that `main` would print."""
    return f"{result.output}{result.exception or ''}"


def vote(store: Store, votes: int) -> None:
    for _ in range(votes):
        asked = store.commit(Ask("arena", token=store.position, flipped=False))
        store.commit(Tell("arena", asked.decision.id, "left"))


def open_service(path: Path, *, votes: int = 0) -> Store:
    store = Store(SQLiteJournal(path), snapshot_every=10)
    if not store.state.arenas:
        store.commit(CreateArena(spec(), [Item(f"i{n}", f"Item {n}", "x") for n in range(4)]))
    vote(store, votes)
    return store


def state_of(path: Path) -> bytes:
    store = open_service(path)
    try:
        return ServiceFold.dump(store.state)
    finally:
        store.close()


def on_the_side(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()


def test_a_backup_of_a_service_in_use_brings_every_vote_back(tmp_path: Path) -> None:
    live, copy, back = (tmp_path / name for name in ("live.db", "copy.db", "back.db"))
    store = open_service(live, votes=15)
    assert run("backup", live, copy).exit_code == 0
    expected = ServiceFold.dump(store.state)
    vote(store, 3)
    store.close()
    assert f"{back}: 31 events" in run("restore", copy, back).output
    assert state_of(back) == expected != state_of(live)
    with SQLiteJournal(back) as journal:
        assert journal.latest_snapshot() is not None  # the first start replays no more than the end


def test_a_backup_never_takes_the_place_of_a_file_and_is_whole_or_not_there(tmp_path: Path) -> None:
    live, copy = tmp_path / "live.db", tmp_path / "copy.db"
    open_service(live, votes=3).close()
    copy.write_text("something of mine")
    assert "exists already" in said(run("backup", live, copy))
    assert copy.read_text() == "something of mine"
    on_the_side(live, "UPDATE events SET body = body || ' ' WHERE position = 5")
    assert "event 5 is not what was written" in said(run("backup", live, tmp_path / "other.db"))
    assert not (tmp_path / "other.db").exists()


def test_an_interrupted_copy_is_continued_and_another_journal_is_not_written_into(tmp_path: Path) -> None:
    source, target, other = (tmp_path / name for name in ("source.db", "target.db", "other.db"))
    open_service(source, votes=2).close()
    assert "5 events copied" in run("migrate", source, target).output
    open_service(source, votes=4).close()
    assert "8 more events copied" in run("migrate", source, target).output
    assert state_of(target) == state_of(source)
    open_service(other, votes=1).close()
    with SQLiteJournal(target) as journal:
        journal.transact(lambda turn: turn.append("told", {"arena": "arena", "at": 0}))
    assert "not the beginning" in said(run("migrate", source, target))
    assert "not the beginning" in said(run("restore", source, other))


def test_what_cannot_be_copied_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="there is no file"):
        CliRunner().invoke(cli, ["backup", str(tmp_path / "no.db"), str(tmp_path / "b.db")], catch_exceptions=False)
    empty = tmp_path / "empty.db"
    SQLiteJournal(empty).close()
    assert "no events" in said(run("backup", empty, tmp_path / "b.db"))
    assert "same file" in said(run("migrate", empty, empty))


def test_a_service_moves_to_postgresql_and_back(tmp_path: Path) -> None:
    live, back = tmp_path / "live.db", tmp_path / "back.db"
    open_service(live, votes=6).close()
    with private_server() as address:
        where = f"postgresql:///?{address.replace(' ', '&')}"
        assert "13 events copied" in run("migrate", live, where).output
        store = Store(PostgresJournal(where))
        vote(store, 2)
        expected = ServiceFold.dump(store.state)
        store.close()
        assert "whole" in run("verify", where).output
        assert run("backup", where, back).exit_code == 0
    assert state_of(back) == expected


def test_the_journal_of_an_agent_is_copied_with_its_snapshot(tmp_path: Path) -> None:
    live, copy = tmp_path / "live.db", tmp_path / "copy.db"
    settings: dict[str, Any] = {"dim": 4, "seed": 3}
    with SQLiteJournal(live) as journal:
        agent = Agent(FGTS(), **settings, journal=journal)
        for _ in range(5):
            agent.learn(agent.choose(ARMS), "first")
        agent.compact()
        agent.learn(agent.choose(ARMS), "first")
        assert run("backup", live, copy).exit_code == 0
        expected = bytes_of(agent, tmp_path)
    with SQLiteJournal(copy) as journal:
        assert bytes_of(Agent(FGTS(), **settings, journal=journal), tmp_path) == expected
    assert "whole" in run("verify", copy).output


def test_verify_finds_a_changed_event_a_missing_one_and_a_wrong_snapshot(tmp_path: Path) -> None:
    live = tmp_path / "live.db"
    open_service(live, votes=15).close()
    good = run("verify", live)
    assert (good.exit_code, good.output.splitlines()[-1]) == (0, "whole")
    for statement, finding in (
        ("UPDATE events SET body = body || ' ' WHERE position = 5", "event 5 is not"),
        ("DELETE FROM events WHERE position = 7", "expected event 7"),
        ("DELETE FROM events WHERE position > 20", "the journal ends at 20"),
    ):
        copy = tmp_path / "copy.db"
        shutil.copy(live, copy)
        on_the_side(copy, statement)
        found = run("verify", copy)
        assert found.exit_code == 1
        assert finding in found.output


def test_verify_finds_a_snapshot_that_the_events_do_not_add_up_to(tmp_path: Path) -> None:
    live, other = tmp_path / "live.db", tmp_path / "other.db"
    open_service(live, votes=4).close()
    store = Store(SQLiteJournal(other), snapshot_every=10)
    store.commit(CreateArena(spec(seed=1), [Item(f"i{n}", f"Item {n}", "x") for n in range(4)]))
    vote(store, 4)
    store.close()
    with SQLiteJournal(other) as journal:
        snapshot = journal.latest_snapshot()
    assert snapshot is not None
    with SQLiteJournal(live) as journal:
        journal.transact(lambda turn: turn.save_snapshot(snapshot.data, snapshot.position))
    found = run("verify", live)
    assert found.exit_code == 1
    assert "not what the events add up to" in found.output
    assert run("verify", live, "--no-replay").exit_code == 0


def test_a_plain_copy_of_a_file_in_use_says_that_votes_are_missing(tmp_path: Path) -> None:
    live, copy = tmp_path / "live.db", tmp_path / "copy.db"
    store = open_service(live, votes=3)
    shutil.copy(live, copy)
    store.close()
    with SQLiteJournal(copy) as journal:
        assert "a copy of a file that was in use" in " ".join(journal.notes)
    with SQLiteJournal(copy) as journal:
        assert journal.notes == ()  # said once
    shutil.copy(live, tmp_path / "closed.db")
    with SQLiteJournal(tmp_path / "closed.db") as journal:
        assert journal.notes == ()


def test_a_crash_is_not_taken_for_a_copy(tmp_path: Path) -> None:
    live = tmp_path / "live.db"
    open_service(live, votes=1).close()
    # A process that died: its mark stays in the file, and its write-ahead log beside it.
    store = SQLiteStore(live)
    store._writer.execute("UPDATE in_use SET process = 2000000000")
    store._mark = -1
    second = SQLiteStore(live)
    assert not any("copy of" in note for note in second.notes)
    second.close()
    store.close()
    with SQLiteJournal(live) as journal:
        assert journal.notes == ()
