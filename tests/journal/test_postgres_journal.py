"""The PostgreSQL journal keeps the promises of every journal, between processes too."""

from __future__ import annotations

import itertools
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from duelist.journal.base import JournalError
from duelist.journal.postgres import PostgresJournal
from tests.support.journal_contract import DurableContract, OpenJournal, add, values
from tests.support.postgres_server import private_server

_NAMES = (f"journal {n}" for n in itertools.count())


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with private_server() as found:
        yield found


class TestPostgresJournal(DurableContract):
    @pytest.fixture
    def name(self) -> str:
        return next(_NAMES)

    @pytest.fixture
    def open_journal(self, address: str, name: str) -> Iterator[OpenJournal]:
        opened: list[PostgresJournal] = []

        def open_one() -> PostgresJournal:
            opened.append(PostgresJournal(address, name=name))
            return opened[-1]

        yield open_one
        for journal in opened:
            journal.close()

    @pytest.fixture
    def damage(self, address: str, name: str) -> Callable[[str], None]:
        def run(statement: str) -> None:
            table = "duelist_events" if "{events}" in statement else "duelist_snapshots"
            on_the_side(address, f"{statement.replace('{events}', table).replace('{snapshots}', table)} AND journal = '{name}'")

        return run

    @pytest.fixture
    def later_schema(self, address: str) -> Iterator[Callable[[], None]]:
        yield lambda: on_the_side(address, "UPDATE duelist_schema SET version = 99")
        on_the_side(address, "UPDATE duelist_schema SET version = 1")

    def test_journals_of_one_database_do_not_see_each_other(self, address: str) -> None:
        with PostgresJournal(address, name="left") as left, PostgresJournal(address, name="right") as right:
            left.transact(add(1))
            right.transact(add(2))
            right.transact(lambda turn: turn.save_snapshot(b"right"))
            assert (values(left.read()), values(right.read())) == ([1], [2])
            assert left.latest_snapshot() is None

    def test_a_commit_waits_for_the_disk(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        assert journal._store._writer.execute("SHOW synchronous_commit").fetchone() == ("on",)

    def test_a_lost_connection_is_made_again(self, address: str, open_journal: OpenJournal) -> None:
        journal = open_journal()
        journal.transact(add(1))
        on_the_side(address, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        assert journal.transact(add(2)) == 2
        assert values(journal.read()) == [1, 2]

    def test_a_connection_lost_in_a_turn_fails_that_turn_only(self, address: str, open_journal: OpenJournal) -> None:
        journal = open_journal()
        journal.transact(add(1))

        def interrupted(turn: object) -> None:
            add(2)(turn)  # type: ignore[arg-type]
            on_the_side(address, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

        with pytest.raises(JournalError, match="could not be written"):
            journal.transact(interrupted)
        assert journal.transact(lambda turn: (turn.failures, turn.append("number", {"value": 3}))) == (1, 2)
        assert values(journal.read()) == [1, 3]


_COUNTER = """
import sys
from duelist.journal.postgres import PostgresJournal
with PostgresJournal(sys.argv[1], name="shared") as journal:
    for _ in range(100):
        journal.transact(lambda turn: turn.append("number", {"value": sum(1 for _ in turn.read()) + 1}))
"""


@pytest.mark.slow
def test_two_processes_share_a_journal_without_a_lost_or_doubled_event(address: str) -> None:
    processes = [subprocess.Popen([sys.executable, "-c", _COUNTER, address]) for _ in range(2)]
    assert [process.wait(120) for process in processes] == [0, 0]
    with PostgresJournal(address, name="shared") as journal:
        assert values(journal.read()) == list(range(1, 201))


def test_an_address_without_a_server_is_refused() -> None:
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with pytest.raises(JournalError, match="cannot be opened"):
        PostgresJournal("host=/nonexistent user=nobody dbname=none")


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(JournalError, match=r"pip install 'duelist\[postgres\]'"):
        PostgresJournal("host=anywhere")


def on_the_side(address: str, statement: str) -> None:
    import psycopg

    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(statement)  # type: ignore[arg-type, call-overload, unused-ignore]
