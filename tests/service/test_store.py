"""The store: an event is durable before its caller hears of it, and memory follows the journal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from duelist.journal.base import Event, JournalError
from duelist.journal.memory import MemoryJournal, MemoryStore
from duelist.journal.sqlite import SQLiteJournal
from duelist.journal.writer import GroupedJournal, Row, Saved
from duelist.service.arena.commands import Arenas, Ask, Asked, Tell
from duelist.service.arena.item_commands import AddItems
from duelist.service.arena.items import Item
from duelist.service.commands import CreateArena
from duelist.service.errors import NotFoundError
from duelist.service.state import ServiceState
from duelist.service.store import Store
from tests.support.arenas import spec

ITEMS = [Item("a", "A", "a"), Item("b", "B", "b"), Item("c", "C", "c")]


def create(store: Store) -> None:
    store.commit(CreateArena(spec(undo_ms=0), ITEMS))


def vote(store: Store, times: int = 1) -> None:
    for _ in range(times):
        asked = store.commit(Ask("arena", token=1, flipped=False))
        store.commit(Tell("arena", asked.decision.id, "left"))


def bytes_of(store: Store) -> bytes:
    return store.read(lambda state: state.to_bytes())


def test_opening_again_gives_the_same_state(tmp_path: Path) -> None:
    with SQLiteJournal(tmp_path / "a.db") as journal:
        store = Store(journal, snapshot_every=7)
        create(store)
        vote(store, 10)
        before = bytes_of(store)
        assert store.counters.snapshots == 3
    with SQLiteJournal(tmp_path / "a.db") as journal:
        again = Store(journal)
        assert bytes_of(again) == before
        assert again.counters.replayed < 21, "the snapshot spared the rest"


def test_closing_keeps_a_snapshot_so_that_the_next_start_replays_nothing(tmp_path: Path) -> None:
    store = Store(SQLiteJournal(tmp_path / "a.db"))
    create(store)
    vote(store, 3)
    before = bytes_of(store)
    store.close()
    with SQLiteJournal(tmp_path / "a.db") as journal:
        again = Store(journal)
        assert bytes_of(again) == before
        assert again.counters.replayed == 0


def test_a_snapshot_of_another_version_is_left_alone_and_everything_replayed() -> None:
    journal = MemoryJournal()
    store = Store(journal)
    create(store)
    vote(store, 3)
    before = bytes_of(store)
    journal.transact(lambda turn: turn.save_snapshot(b"written by another version"))
    again = Store(journal)
    assert bytes_of(again) == before
    assert again.counters.replayed == 7
    journal.close()


def test_two_stores_on_one_journal_follow_each_other() -> None:
    journal = MemoryJournal()
    one, two = Store(journal), Store(journal)
    create(one)
    vote(two, 2)
    vote(one, 2)
    assert one.position == two.position + 4
    two.refresh()
    assert bytes_of(one) == bytes_of(two)
    journal.close()


def test_a_refused_command_changes_nothing() -> None:
    journal = MemoryJournal()
    store = Store(journal)
    create(store)
    before = bytes_of(store)
    with pytest.raises(NotFoundError):
        store.commit(AddItems("nowhere", []))
    assert bytes_of(store) == before
    assert len(list(journal.read())) == 1
    journal.close()


class AskWithoutReply(Ask):
    """An ask whose reply cannot be made."""

    def reply(self, state: Arenas, event: Event | None) -> Asked:  # noqa: ARG002 - a command's signature
        raise ZeroDivisionError


def test_an_event_whose_result_cannot_be_made_never_happened() -> None:
    journal = MemoryJournal()
    store = Store(journal)
    create(store)
    before = bytes_of(store)
    with pytest.raises(ZeroDivisionError):
        store.commit(AskWithoutReply("arena", token=1, flipped=False))
    store.refresh()
    assert bytes_of(store) == before
    vote(store)
    assert len(list(journal.read())) == 3
    journal.close()


class FullDisk(MemoryStore):
    """A store whose commits fail while `full`."""

    full = False

    def commit(self, rows: Sequence[Row], saved: Saved) -> None:
        if self.full:
            raise OSError("no space left on device")
        super().commit(rows, saved)


def test_when_the_disk_is_full_nothing_is_acknowledged_and_memory_goes_back() -> None:
    disk = FullDisk()
    journal = GroupedJournal(disk)
    store = Store(journal)
    create(store)
    vote(store, 2)
    before = bytes_of(store)
    disk.full = True
    for _ in range(3):
        with pytest.raises(JournalError, match="no space left"):
            vote(store)
    disk.full = False
    store.refresh()
    assert bytes_of(store) == before
    vote(store, 2)
    whole = ServiceState()
    for record in journal.read():
        whole.apply(record)
    assert whole.to_bytes() == bytes_of(store)
    journal.close()


def test_time_never_runs_backwards_in_the_journal() -> None:
    times = iter([100, 50, 20, 200])
    journal = MemoryJournal()
    store = Store(journal, clock=lambda: next(times))
    create(store)
    vote(store)
    told = [record.body["at"] for record in journal.read()]
    assert told[0] == 100
    assert told == sorted(told)
    journal.close()
