"""The ledger: an event is in the journal before anybody hears of it, and memory follows the journal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from arena_parts import spec
from duelist.journal.base import Snapshot
from duelist.journal.errors import JournalError
from duelist.journal.grouped import GroupedJournal, Row
from duelist.journal.memory import MemoryJournal, MemoryStore
from duelist.journal.sqlite import SQLiteJournal
from duelist.service.errors import NotFoundError
from duelist.service.events import Event
from duelist.service.hall import Hall
from duelist.service.items import Item
from duelist.service.ledger import Ledger

ITEMS = [Item("a", "A", "a"), Item("b", "B", "b"), Item("c", "C", "c")]


def create(ledger: Ledger) -> None:
    ledger.change(lambda hall, at: hall.create(spec(undo_ms=0), ITEMS, at=at), lambda _hall, _event: None)


def vote(ledger: Ledger, times: int = 1) -> None:
    for _ in range(times):

        def ask(hall: Hall, at: int) -> Event:
            return hall.arena("arena").ask(at=at, token=1, flipped=False, request="", features=None)

        number = ledger.change(ask, lambda _hall, event: int(event["number"]) if event else -1)

        def tell(hall: Hall, at: int, number: int = number) -> Event | None:
            return hall.arena("arena").tell(hall.arena("arena").log[number], "left", at=at, voter="")

        ledger.change(tell, lambda _hall, _event: None)


def bytes_of(ledger: Ledger) -> bytes:
    return ledger.read(lambda hall: hall.to_bytes())


def test_opening_again_gives_the_same_state(tmp_path: Path) -> None:
    with SQLiteJournal(tmp_path / "a.db") as journal:
        ledger = Ledger(journal, snapshot_every=7)
        create(ledger)
        vote(ledger, 10)
        before = bytes_of(ledger)
        assert ledger.counters.snapshots == 3
    with SQLiteJournal(tmp_path / "a.db") as journal:
        again = Ledger(journal)
        assert bytes_of(again) == before
        assert again.counters.replayed < 21, "the snapshot spared the rest"


def test_closing_keeps_a_snapshot_so_that_the_next_start_replays_nothing(tmp_path: Path) -> None:
    ledger = Ledger(SQLiteJournal(tmp_path / "a.db"))
    create(ledger)
    vote(ledger, 3)
    before = bytes_of(ledger)
    ledger.close()
    with SQLiteJournal(tmp_path / "a.db") as journal:
        again = Ledger(journal)
        assert bytes_of(again) == before
        assert again.counters.replayed == 0


def test_a_snapshot_of_another_version_is_left_alone_and_everything_replayed() -> None:
    journal = MemoryJournal()
    ledger = Ledger(journal)
    create(ledger)
    vote(ledger, 3)
    before = bytes_of(ledger)
    journal.transact(lambda turn: turn.keep(b"written by another version"))
    again = Ledger(journal)
    assert bytes_of(again) == before
    assert again.counters.replayed == 7
    journal.close()


def test_two_ledgers_on_one_journal_follow_each_other() -> None:
    journal = MemoryJournal()
    one, two = Ledger(journal), Ledger(journal)
    create(one)
    vote(two, 2)
    vote(one, 2)
    assert one.position == two.position + 4
    two.refresh()
    assert bytes_of(one) == bytes_of(two)
    journal.close()


def test_a_refused_command_changes_nothing() -> None:
    journal = MemoryJournal()
    ledger = Ledger(journal)
    create(ledger)
    before = bytes_of(ledger)

    def decide(hall: Hall, at: int) -> Event:
        return hall.arena("nowhere").add([], at=at)

    with pytest.raises(NotFoundError):
        ledger.change(decide, lambda _hall, _event: None)
    assert bytes_of(ledger) == before
    assert len(list(journal.read())) == 1
    journal.close()


def test_an_event_whose_result_cannot_be_made_never_happened() -> None:
    journal = MemoryJournal()
    ledger = Ledger(journal)
    create(ledger)
    before = bytes_of(ledger)

    def ask(hall: Hall, at: int) -> Event:
        return hall.arena("arena").ask(at=at, token=1, flipped=False, request="", features=None)

    def broken(_hall: Hall, _event: Event | None) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ledger.change(ask, broken)
    ledger.refresh()
    assert bytes_of(ledger) == before
    vote(ledger)
    assert len(list(journal.read())) == 3
    journal.close()


class FullDisk(MemoryStore):
    """A store whose commits fail while `full`."""

    full = False

    def commit(self, rows: Sequence[Row], snapshot: Snapshot | None) -> None:
        if self.full:
            raise OSError("no space left on device")
        super().commit(rows, snapshot)


def test_when_the_disk_is_full_nothing_is_acknowledged_and_memory_goes_back() -> None:
    store = FullDisk()
    journal = GroupedJournal(store)
    ledger = Ledger(journal)
    create(ledger)
    vote(ledger, 2)
    before = bytes_of(ledger)
    store.full = True
    for _ in range(3):
        with pytest.raises(JournalError, match="no space left"):
            vote(ledger)
    store.full = False
    ledger.refresh()
    assert bytes_of(ledger) == before
    vote(ledger, 2)
    whole = Hall()
    for record in journal.read():
        whole.apply({"kind": record.kind, **record.body})
    assert whole.to_bytes() == bytes_of(ledger)
    journal.close()


def test_time_never_runs_backwards_in_the_journal() -> None:
    times = iter([100, 50, 20, 200])
    journal = MemoryJournal()
    ledger = Ledger(journal, clock=lambda: next(times))
    create(ledger)
    vote(ledger)
    assert [record.body["at"] for record in journal.read()] == [100, 100, 100]
    journal.close()
