"""What every journal must do, written once. A backend's test file gives `open_journal` and inherits the sentences."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from duelist.core.errors import InvalidInputError
from duelist.journal.base import COMPACTED, Journal, JournalClosedError, JournalDamagedError, JournalError, Record, Turn

OpenJournal = Callable[[], Any]


def add(number: int) -> Callable[[Turn], int]:
    return lambda turn: turn.append("number", {"value": number})


def values(records: Iterator[Record]) -> list[int]:
    return [record.body["value"] for record in records]


class JournalContract:
    """The promises of `duelist.journal.base`, one test per promise."""

    def test_an_empty_journal_has_no_events_and_no_snapshot(self, open_journal: OpenJournal) -> None:
        journal: Journal = open_journal()
        assert list(journal.read()) == []
        assert journal.latest_snapshot() is None
        assert journal.transact(lambda turn: (turn.head, turn.failures, turn.latest_snapshot())) == (0, 0, None)

    def test_events_come_back_as_they_were_in_order_without_gaps(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        body = {"text": 'naïve "quotes" \\ \u2603', "list": [1, 2.5, None, True], "deep": {"x": 0.1}, "big": 2**60}
        assert journal.transact(lambda turn: turn.append("asked", body, bytes(range(256)))) == 1
        assert journal.transact(lambda turn: turn.append("told", {})) == 2
        assert list(journal.read()) == [Record(1, "asked", body, bytes(range(256))), Record(2, "told", {}, b"")]

    def test_reading_starts_behind_a_position_however_long_the_log(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        journal.transact(lambda turn: [turn.append("number", {"value": n}) for n in range(1, 1301)])
        assert values(journal.read()) == list(range(1, 1301))
        assert values(journal.read(after=1290)) == list(range(1291, 1301))
        assert list(journal.read(after=1300)) == []
        assert journal.transact(lambda turn: values(turn.read(after=600))) == list(range(601, 1301))

    def test_a_turn_sees_the_end_of_the_log_and_what_it_appended_itself(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        journal.transact(add(1))

        def transaction(turn: Turn) -> None:
            assert turn.head == 1
            turn.append("number", {"value": 2})
            assert turn.head == 2
            assert values(turn.read()) == [1, 2]
            assert values(turn.read(after=1)) == [2]
            assert values(turn.read(after=2)) == []

        journal.transact(transaction)

    def test_a_transaction_that_raises_leaves_nothing_behind(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        journal.transact(add(1))

        def transaction(turn: Turn) -> None:
            turn.append("number", {"value": 2})
            turn.save_snapshot(b"half")
            raise LookupError("changed my mind")

        with pytest.raises(LookupError, match="changed my mind"):
            journal.transact(transaction)
        journal.transact(add(3))
        assert values(journal.read()) == [1, 3]
        assert journal.latest_snapshot() is None

    def test_a_transaction_that_raises_does_not_take_its_neighbours_along(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        hold, held = threading.Event(), threading.Event()

        def slow(turn: Turn) -> int:
            held.set()
            assert hold.wait(10)
            return turn.append("number", {"value": 0})

        def failing(turn: Turn) -> int:
            turn.append("number", {"value": 99})
            raise LookupError

        futures = [journal.submit(slow)]
        assert held.wait(10)  # the next three wait behind it and share a commit
        futures += [journal.submit(one) for one in (add(1), failing, add(2))]
        hold.set()
        assert [future.exception(10) is None for future in futures] == [True, True, False, True]
        assert values(journal.read()) == [0, 1, 2]

    def test_threads_take_turns_and_lose_nothing(self, open_journal: OpenJournal) -> None:
        journal = open_journal()

        def count(turn: Turn) -> int:
            return turn.append("number", {"value": turn.head + 1})

        def visit() -> None:
            for _ in range(25):
                journal.transact(count)

        threads = [threading.Thread(target=visit) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert values(journal.read()) == list(range(1, 201))

    def test_a_snapshot_carries_the_position_of_the_last_event_before_it(self, open_journal: OpenJournal) -> None:
        journal = open_journal()

        def transaction(turn: Turn) -> None:
            turn.append("number", {"value": 1})
            turn.append("number", {"value": 2})
            turn.save_snapshot(b"sum 3")

        journal.transact(transaction)
        journal.transact(add(3))
        assert journal.latest_snapshot() == (2, b"sum 3")
        assert journal.transact(lambda turn: turn.latest_snapshot()) == (2, b"sum 3")

    def test_the_newest_snapshot_wins_and_may_be_made_without_an_event(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        for number in range(5):
            journal.transact(add(number))
            journal.transact(lambda turn: turn.save_snapshot(f"at {turn.head}".encode() + bytes(3)))
        assert journal.latest_snapshot() == (5, b"at 5\0\0\0")

    def test_a_compacted_event_takes_the_place_of_all_before_it(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        for number in range(1, 4):
            journal.transact(add(number))
        journal.transact(lambda turn: turn.save_snapshot(b"old"))

        def transaction(turn: Turn) -> None:
            turn.append("number", {"value": 4})
            turn.compact({"value": 10}, b"all four")
            turn.append("number", {"value": 5})

        journal.transact(transaction)
        journal.erase()
        assert journal.transact(add(6)) == 6
        compacted = [(4, COMPACTED, {"value": 10}, b"all four"), (5, "number", {"value": 5}, b"")]
        for after in (0, 2, 3):  # wherever a reader was, it goes on from there
            assert list(journal.read(after))[:2] == compacted
        assert values(journal.read(4)) == values(journal.transact(lambda turn: list(turn.read(4)))) == [5, 6]
        assert journal.latest_snapshot() is None
        journal.transact(lambda turn: turn.compact({"value": 21}, b""))
        assert [tuple(record) for record in journal.read()] == [(6, COMPACTED, {"value": 21}, b"")]

    def test_a_compaction_whose_transaction_raises_drops_nothing(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        journal.transact(add(1))

        def transaction(turn: Turn) -> None:
            turn.compact({"value": 1}, b"")
            raise LookupError

        with pytest.raises(LookupError):
            journal.transact(transaction)
        journal.transact(add(2))
        assert values(journal.read()) == [1, 2]

    def test_a_position_behind_the_end_can_be_compacted_and_what_follows_stays(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        for number in range(1, 6):
            journal.transact(add(number))
        journal.transact(lambda turn: turn.save_snapshot(b"at four", at=4))
        assert journal.latest_snapshot() == (4, b"at four")
        journal.transact(lambda turn: turn.compact({"value": 6}, b"", at=3))
        assert [record.position for record in journal.read()] == [3, 4, 5]
        assert journal.transact(lambda turn: [turn.has_compacted(at) for at in (2, 3, 4)]) == [True, True, False]
        assert journal.latest_snapshot() == (4, b"at four"), "it is of a later position"
        assert journal.transact(add(6)) == 6

    def test_long_work_is_done_in_turns_between_those_of_others_and_before_closing(self, open_journal: OpenJournal) -> None:
        journal, steps = open_journal(), 5

        def step(turn: Turn) -> bool:
            nonlocal steps
            steps -= 1
            turn.save_pieces({f"piece {steps}": bytes([steps])})
            return steps > 0

        def begin(turn: Turn) -> None:
            turn.append("number", {"value": 1})
            turn.afterwards(step)

        def fail(turn: Turn) -> None:
            turn.afterwards(step)
            raise LookupError

        with pytest.raises(LookupError):
            journal.transact(fail)
        journal.transact(add(0))
        assert steps == 5, "what a failed transaction wanted is not done"
        journal.transact(begin)
        for number in range(2, 8):  # at least one step is made after each
            journal.transact(add(number))
        assert steps == 0
        pieces = journal.transact(lambda turn: [turn.piece(f"piece {n}") for n in range(6)])
        assert pieces == [*(bytes([n]) for n in range(5)), None]
        assert values(journal.read()) == list(range(8))
        steps = 50
        journal.transact(begin)
        journal.close()
        assert steps == 0

    def test_a_body_that_is_not_json_is_refused(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        for body in ({"x": object()}, {"x": float("nan")}, {"x": b"bytes"}):
            with pytest.raises(InvalidInputError, match="JSON"):
                journal.transact(lambda turn, body=body: turn.append("bad", body))
        assert list(journal.read()) == []

    def test_changing_a_body_after_appending_changes_nothing(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        body = {"value": 1}

        def transaction(turn: Turn) -> None:
            turn.append("number", body)
            body["value"] = 2

        journal.transact(transaction)
        assert values(journal.read()) == [1]

    def test_a_closed_journal_refuses_and_closing_again_does_nothing(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        journal.transact(add(1))
        journal.close()
        journal.close()
        with pytest.raises(JournalClosedError, match="closed"):
            journal.transact(add(2))

    def test_closing_finishes_what_was_submitted(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        futures = [journal.submit(add(number)) for number in range(20)]
        journal.close()
        assert [future.result(0) for future in futures] == list(range(1, 21))

    def test_a_transaction_that_waits_for_another_is_refused_instead_of_waiting_for_ever(
        self, open_journal: OpenJournal
    ) -> None:
        journal = open_journal()
        with pytest.raises(JournalError, match="must not wait"):
            journal.transact(lambda _turn: journal.transact(add(1)))

    def test_a_commit_that_fails_keeps_nothing_tells_every_caller_and_is_counted(
        self, open_journal: OpenJournal, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        journal = open_journal()
        journal.transact(add(1))

        def fail(*_: object) -> None:
            raise OSError("disk full")

        with monkeypatch.context() as patched:
            patched.setattr(journal._store, "commit", fail)
            with pytest.raises(JournalError, match="disk full"):
                journal.transact(add(2))
        assert journal.transact(lambda turn: (turn.head, turn.failures)) == (1, 1)
        assert journal.transact(add(3)) == 2
        assert values(journal.read()) == [1, 3]


class DurableContract(JournalContract):
    """What a journal that outlives its process must do on top. `open_journal` opens the same journal every time."""

    def test_everything_is_there_after_opening_again(self, open_journal: OpenJournal) -> None:
        journal = open_journal()
        journal.transact(lambda turn: (turn.append("number", {"value": 1}, b"\0\1"), turn.save_snapshot(b"state")))
        journal.close()
        again = open_journal()
        assert list(again.read()) == [Record(1, "number", {"value": 1}, b"\0\1")]
        assert again.latest_snapshot() == (1, b"state")
        assert again.transact(add(2)) == 2

    def test_two_journals_on_one_log_take_turns(self, open_journal: OpenJournal) -> None:
        one, other = open_journal(), open_journal()

        def count(turn: Turn) -> int:
            return turn.append("number", {"value": sum(1 for _ in turn.read()) + 1})

        def visit(journal: Any) -> None:
            for _ in range(20):
                journal.transact(count)

        threads = [threading.Thread(target=visit, args=(journal,)) for journal in (one, other, one, other)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert values(one.read()) == values(other.read()) == list(range(1, 81))

    def test_a_damaged_event_is_refused_by_its_position(self, open_journal: OpenJournal, damage: Callable[[str], None]) -> None:
        journal = open_journal()
        journal.transact(lambda turn: [turn.append("number", {"value": n}) for n in (1, 2, 3)])
        damage("UPDATE {events} SET body = '{\"value\":7}' WHERE position = 2")
        reading = journal.read()
        assert next(reading).position == 1
        with pytest.raises(JournalDamagedError, match="event 2 is not what was written"):
            next(reading)

    def test_a_missing_event_is_refused(self, open_journal: OpenJournal, damage: Callable[[str], None]) -> None:
        journal = open_journal()
        journal.transact(lambda turn: [turn.append("number", {"value": n}) for n in (1, 2, 3)])
        damage("DELETE FROM {events} WHERE position = 2")
        with pytest.raises(JournalDamagedError, match="expected event 2 next; got event 3"):
            list(journal.read())

    def test_a_damaged_snapshot_gives_way_to_the_one_before(
        self, open_journal: OpenJournal, damage: Callable[[str], None]
    ) -> None:
        journal = open_journal()
        for number in (1, 2, 3):
            journal.transact(add(number))
            journal.transact(lambda turn: turn.save_snapshot(b"state"))
        damage("UPDATE {snapshots} SET checksum = 1 WHERE position = 3")
        assert journal.latest_snapshot() == (2, b"state")

    def test_a_journal_of_a_later_schema_is_refused(self, open_journal: OpenJournal, later_schema: Callable[[], None]) -> None:
        open_journal().close()
        later_schema()
        with pytest.raises(JournalDamagedError, match="schema 99"):
            open_journal()
