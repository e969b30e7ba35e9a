"""A replica follows its journal: what is acknowledged is durable, and memory is the fold over what the journal holds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from duelist.core.errors import DuelistError, InvalidInputError, SavedStateError
from duelist.journal.base import Event, JournalError, Record
from duelist.journal.memory import MemoryJournal, MemoryStore
from duelist.journal.replica import Fold, Replica
from duelist.journal.sqlite import SQLiteJournal
from duelist.journal.writer import GroupedJournal, Row, Saved


class Sums(Fold[list[int]]):
    """A state of two numbers: the sum of what was added, and the time of the latest event."""

    def new(self) -> list[int]:
        return [0, 0]

    def apply(self, state: list[int], record: Record) -> None:
        state[0] += record.body["value"]
        state[1] = record.body["at"]
        if record.body["value"] == 13:
            raise ZeroDivisionError("half way")

    def dump(self, state: list[int]) -> bytes:
        if state[0] >= 1000:
            raise InvalidInputError("too large to be saved")
        return json.dumps(state).encode()

    def load(self, data: bytes) -> list[int]:
        try:
            return list(json.loads(data))
        except ValueError as error:
            raise SavedStateError("another version") from error

    def latest(self, state: list[int]) -> int:
        return state[1]


@dataclass(frozen=True)
class Add:
    """Add a number; 0 is nothing to do, and negative ones are refused."""

    value: int
    breaks: bool = False

    def decide(self, state: list[int], at: int) -> Event | None:
        if self.value < 0:
            raise InvalidInputError("negative")
        if self.breaks:
            state[0] += 77
            raise ZeroDivisionError
        return Event("added", {"value": self.value, "at": at}) if self.value else None

    def reply(self, state: list[int], event: Event | None) -> tuple[int, bool]:
        if self.value == 7:
            raise LookupError
        return state[0], event is not None


@pytest.fixture
def journal() -> Iterator[MemoryJournal]:
    with MemoryJournal() as opened:
        yield opened


def replica_on(journal: Any, snapshot_every: int = 1000, growth: int = 10, **settings: Any) -> Replica[list[int]]:
    return Replica(journal, Sums(), snapshot_every=snapshot_every, growth=growth, **settings)


def values(journal: Any) -> list[int]:
    return [record.body["value"] for record in journal.read()]


def test_a_command_gets_its_reply_from_the_state_after_its_event(journal: MemoryJournal) -> None:
    replica = replica_on(journal)
    assert replica.commit(Add(2)) == (2, True)
    assert replica.submit(Add(3)).result(10) == (5, True)
    assert replica.read(lambda state: state[0]) == replica.state[0] == 5
    assert (replica.position, values(journal)) == (2, [2, 3])


def test_a_command_that_has_nothing_to_do_appends_nothing(journal: MemoryJournal) -> None:
    replica = replica_on(journal)
    assert replica.commit(Add(0)) == (0, False)
    assert (replica.position, values(journal)) == (0, [])


@pytest.mark.parametrize("snapshot_every", [1, 3, 1000])
def test_opening_again_gives_the_same_state(snapshot_every: int, tmp_path: Path) -> None:
    with SQLiteJournal(tmp_path / "a.db") as journal:
        replica = replica_on(journal, snapshot_every)
        for value in range(1, 11):
            replica.commit(Add(value) if value != 7 else Add(20))
    with SQLiteJournal(tmp_path / "a.db") as journal:
        again = replica_on(journal)
        assert again.state[0] == 55 - 7 + 20
        assert again.counters.replayed == (0 if snapshot_every == 1 else 1 if snapshot_every == 3 else 10)


def test_closing_saves_a_snapshot_so_that_the_next_start_replays_nothing(tmp_path: Path) -> None:
    replica = replica_on(SQLiteJournal(tmp_path / "a.db"))
    replica.commit(Add(4))
    replica.close()
    with SQLiteJournal(tmp_path / "a.db") as journal:
        again = replica_on(journal)
        assert (again.state[0], again.counters.replayed) == (4, 0)


def test_a_snapshot_that_this_version_cannot_read_is_left_alone_and_everything_replayed(journal: MemoryJournal) -> None:
    replica = replica_on(journal)
    for value in (1, 2, 3):
        replica.commit(Add(value))
    journal.transact(lambda turn: turn.save_snapshot(b"written by another version"))
    again = replica_on(journal)
    assert (again.state[0], again.counters.replayed) == (6, 3)


def test_snapshots_come_further_apart_in_a_long_journal(journal: MemoryJournal) -> None:
    replica, taken = replica_on(journal, snapshot_every=2, growth=4), []
    for event in range(1, 41):
        before = replica.counters.snapshots
        replica.commit(Add(1))
        if replica.counters.snapshots > before:
            taken.append(event)
    assert taken == [2, 4, 6, 8, 10, 13, 17, 22, 29, 38]


def test_a_state_that_cannot_be_saved_costs_no_vote_and_is_noted(journal: MemoryJournal) -> None:
    replica = replica_on(journal, snapshot_every=2)
    for _ in range(5):
        replica.commit(Add(500))
    assert replica.state[0] == 2500
    assert "no snapshot could be saved at event 4" in replica.notes[-1]
    with pytest.raises(InvalidInputError, match="too large"):
        replica.save_snapshot()
    assert replica_on(journal).state[0] == 2500


def test_replicas_on_one_journal_follow_each_other(journal: MemoryJournal) -> None:
    one, two = replica_on(journal), replica_on(journal)
    one.commit(Add(1))
    assert two.commit(Add(2)) == (3, True)
    assert one.state[0] == 1
    one.refresh()
    assert (one.state, one.counters.replayed) == (two.state, 1)


def test_a_refused_command_changes_nothing(journal: MemoryJournal) -> None:
    replica = replica_on(journal)
    replica.commit(Add(1))
    with pytest.raises(DuelistError, match="negative"):
        replica.commit(Add(-1))
    assert (replica.state[0], values(journal), replica.counters.rebuilt) == (1, [1], 1)


@pytest.mark.parametrize(
    ("command", "error"),
    [(Add(13), ZeroDivisionError), (Add(7), LookupError), (Add(1, breaks=True), ZeroDivisionError)],
    ids=["applying", "replying", "deciding"],
)
def test_a_command_that_breaks_half_way_never_happened(command: Add, error: type[Exception], journal: MemoryJournal) -> None:
    replica = replica_on(journal)
    replica.commit(Add(1))
    with pytest.raises(error):
        replica.commit(command)
    assert replica.commit(Add(2)) == (3, True)
    assert (values(journal), replica.counters.rebuilt) == ([1, 2], 2)


class FullDisk(MemoryStore):
    """A store whose commits fail while `full`."""

    full = False

    def commit(self, rows: Sequence[Row], saved: Saved) -> None:
        if self.full:
            raise OSError("no space left on device")
        super().commit(rows, saved)


@pytest.mark.parametrize("snapshot_every", [2, 1000])
def test_when_the_disk_is_full_nothing_is_acknowledged_and_memory_goes_back(snapshot_every: int) -> None:
    store = FullDisk()
    with GroupedJournal(store) as journal:
        replica = replica_on(journal, snapshot_every)
        for value in (1, 2, 3):
            replica.commit(Add(value))
        store.full = True
        for _ in range(3):
            with pytest.raises(JournalError, match="no space left"):
                replica.commit(Add(4))
        store.full = False
        replica.refresh()
        assert (replica.state[0], replica.position) == (6, 3)
        assert replica.commit(Add(5)) == (11, True)
        assert values(journal) == [1, 2, 3, 5]


def clock_of(*times: int) -> Callable[[], int]:
    return iter(times).__next__


def test_time_never_runs_backwards_in_the_journal(journal: MemoryJournal) -> None:
    replica = replica_on(journal, clock=clock_of(100, 50, 20, 200))
    for _ in range(4):
        replica.commit(Add(1))
    assert [record.body["at"] for record in journal.read()] == [100, 100, 100, 200]


def test_the_frames_between_the_writer_and_a_command_are_few(journal: MemoryJournal) -> None:
    """Every vote of the service passes here: one call up from the journal, and then straight to the command."""
    seen: list[int] = []

    @dataclass(frozen=True)
    class Look(Add):
        def decide(self, state: list[int], at: int) -> Event | None:
            import inspect

            frames = inspect.stack(0)
            seen.append([frame.function for frame in frames].index("_run"))
            return super().decide(state, at)

    replica_on(journal).commit(Look(1))
    assert seen == [2]
