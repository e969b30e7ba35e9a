"""The SQLite journal keeps the promises of every journal, and survives crashes."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from duelist.journal.base import JournalDamagedError, JournalError
from duelist.journal.sqlite import SQLiteJournal
from tests.support.journal_contract import DurableContract, OpenJournal, add, values


def on_the_side(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


class TestSQLiteJournal(DurableContract):
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "journal.db"

    @pytest.fixture
    def open_journal(self, path: Path) -> Iterator[OpenJournal]:
        opened: list[SQLiteJournal] = []

        def open_one() -> SQLiteJournal:
            opened.append(SQLiteJournal(path))
            return opened[-1]

        yield open_one
        for journal in opened:
            journal.close()

    @pytest.fixture
    def damage(self, path: Path) -> Callable[[str], None]:
        return lambda statement: on_the_side(path, statement.replace("{events}", "events").replace("{snapshots}", "snapshots"))

    @pytest.fixture
    def later_schema(self, path: Path) -> Callable[[], None]:
        return lambda: on_the_side(path, "PRAGMA user_version = 99")

    def test_a_commit_waits_for_the_disk(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        asked = journal._store._writer.execute
        assert asked("PRAGMA journal_mode").fetchone() == ("wal",)
        assert asked("PRAGMA synchronous").fetchone() == (2,)  # FULL

    def test_a_clean_end_leaves_nothing_to_tell(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        journal.transact(add(1))
        journal.close()
        assert open_journal().notes == ()

    def test_waiting_transactions_share_commits(self, open_journal: OpenJournal, monkeypatch: pytest.MonkeyPatch) -> None:
        journal = open_journal()
        commits = []
        commit = journal._store.commit

        def counted(*arguments: object) -> None:
            commits.append(1)
            commit(*arguments)

        monkeypatch.setattr(journal._store, "commit", counted)
        futures = [journal.submit(add(number)) for number in range(400)]
        for future in futures:
            future.result(30)
        assert len(commits) < 200

    def test_the_file_of_another_program_is_left_alone(self, path: Path) -> None:
        on_the_side(path, "CREATE TABLE diary (day TEXT)")
        before = path.read_bytes()
        with pytest.raises(JournalDamagedError, match="another program"):
            SQLiteJournal(path)
        connection = sqlite3.connect(path)
        assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("diary",)]
        connection.close()
        assert len(path.read_bytes()) == len(before)

    def test_a_file_that_is_no_database_is_refused(self, path: Path) -> None:
        path.write_text("dear diary, " * 100)
        with pytest.raises(JournalDamagedError, match="cannot be opened as a journal"):
            SQLiteJournal(path)

    @pytest.mark.parametrize("missing", [1, 24, 1000, 5000])
    def test_a_torn_last_record_is_reported_and_survived(self, path: Path, tmp_path: Path, missing: int) -> None:
        journal = SQLiteJournal(path)
        for number in range(1, 6):
            journal.transact(add(number))
        torn = tmp_path / "torn.db"
        torn.write_bytes(path.read_bytes())
        log = path.with_name("journal.db-wal").read_bytes()
        (tmp_path / "torn.db-wal").write_bytes(log[:-missing])
        journal.close()
        with SQLiteJournal(torn) as again:
            assert values(again.read()) in ([1, 2, 3, 4], [1, 2, 3])
            assert "not closed" in again.notes[0]
            if missing < 4096:
                assert values(again.read()) == [1, 2, 3, 4]
                assert "torn last record of 1 page(s)" in again.notes[0]
            again.transact(add(6))


_WRITER = """
import sys
from duelist.journal.sqlite import SQLiteJournal
journal = SQLiteJournal(sys.argv[1])
number = journal.transact(lambda turn: turn.head)
while True:
    number += 1
    position = journal.transact(lambda turn: turn.append("number", {"value": number}))
    print(position, flush=True)
"""


def test_nothing_acknowledged_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    acknowledged = 0
    for crash in range(5):
        process = subprocess.Popen([sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        for _ in range(3 + 7 * crash):
            acknowledged = int(process.stdout.readline())
        time.sleep(0.001 * crash)  # any moment will do: the promise holds at all of them
        process.send_signal(signal.SIGKILL)
        rest = process.stdout.read().split()
        process.wait()
        process.stdout.close()
        acknowledged = int(rest[-1]) if rest else acknowledged
        with SQLiteJournal(path) as journal:
            found = values(journal.read())
        assert found == list(range(1, len(found) + 1))
        assert len(found) - acknowledged in (0, 1)  # one commit may have been durable but not yet told


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="may you write to it"):
        SQLiteJournal(tmp_path / "no such folder" / "votes.db")
