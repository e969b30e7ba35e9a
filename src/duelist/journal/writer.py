"""One writer that groups commits: the part that every journal shares.

Transactions wait in a queue. A single thread takes all that wait, runs them one after the other, commits once, and only then
answers the callers. While it waits for the disk the next group gathers, so the number of commits per second does not limit the
number of events per second.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from types import MappingProxyType, TracebackType
from typing import Any, NamedTuple, Protocol, Self

from duelist.core.errors import InvalidInputError
from duelist.journal.base import (
    COMPACTED,
    JournalClosedError,
    JournalDamagedError,
    JournalError,
    Record,
    Result,
    Snapshot,
    Turn,
    check_process,
)

_LARGEST_GROUP = 512
_BETWEEN_STEPS = 0.002  # seconds in which the next caller may come
_json_text = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode


class Saved(NamedTuple):
    """What a commit saves beside its rows: a snapshot, its new pieces, and a row that takes the place of all before it."""

    snapshot: Snapshot | None = None
    pieces: Mapping[str, bytes] = MappingProxyType({})
    base: Row | None = None


class Row(NamedTuple):
    """An event as it is stored: the body as JSON text, and a checksum over everything."""

    position: int
    kind: str
    body: str
    blob: bytes
    checksum: int


class Store(Protocol):
    """What a backend must be able to do. `begin`, `commit` and `rollback` are called by one thread only."""

    notes: tuple[str, ...]

    def begin(self) -> int:
        """Take the lock that keeps every other writer out, and return the position of the last event."""

    def commit(self, rows: Sequence[Row], saved: Saved) -> None:
        """Append the rows and save the rest, all or nothing; return when they are durable.

        In the same commit a base takes the place of all rows up to its position, of all snapshots up to there, and all pieces.
        """

    def piece(self, name: str) -> bytes | None:
        """A piece by its name, as the writer sees it in its turn."""

    def pieces(self) -> Iterator[tuple[str, bytes]]:
        """All pieces by name, from any thread outside a turn."""

    def has_compacted(self, position: int) -> bool:
        """Whether a row that stands for all before it is at that position or behind it, as the writer sees it in its turn."""

    def room(self) -> int | None:
        """Free bytes where it writes; None where that is not known."""

    def erase(self) -> None:
        """Leave nothing of what earlier commits dropped, as far as the backend can."""

    def rollback(self) -> None:
        """Release the lock without a change. Never raises."""

    def rows(self, after: int, *, in_turn: bool) -> Iterator[Row]:
        """Rows behind `after`: as the writer sees them in its turn, or from any thread outside it."""

    def snapshot(self, *, in_turn: bool) -> Snapshot | None:
        """The newest snapshot that is whole."""

    def close(self) -> None:
        """Release everything."""


_NOTHING_SAVED = Saved()


class GroupedTurn:
    """A turn whose events gather in memory until the commit.

    Attributes:
        head: position of the last event, those of this turn included.
        failures: failed commits of this journal object so far.
        rows: what is to be committed.
        saved: what is to be saved with it.
        steps: what is to be done afterwards.
    """

    def __init__(self, store: Store, head: int, failures: int) -> None:
        self._store, self._stored_head = store, head
        self.head, self.failures = head, failures
        self.rows: list[Row] = []
        self.saved = _NOTHING_SAVED
        self.steps: list[Callable[[Turn], bool]] = []

    def read(self, after: int = 0) -> Iterator[Record]:
        """The events behind `after`."""
        if after < self._stored_head:
            yield from checked(self._store.rows(after, in_turn=True), after)
        for row in self.rows[max(0, after - self._stored_head) :]:
            yield _record(row)

    def append(self, kind: str, body: dict[str, Any], blob: bytes = b"") -> int:
        """Append an event."""
        try:
            text = _json_text(body)
        except (TypeError, ValueError) as error:
            raise InvalidInputError(f"the body of an event must be JSON values; got {body!r} ({error}).") from error
        position = self.head + 1
        self.rows.append(Row(position, kind, text, bytes(blob), checksum(position, kind, text, blob)))
        self.head = position
        return position

    def compact(self, body: dict[str, Any], blob: bytes, at: int | None = None) -> None:
        """Let one event take the place of all up to a position."""
        head = self.head
        if head:
            self.head = (head if at is None else at) - 1  # it takes the place of the last event
            self.append(COMPACTED, body, blob)
            self.head, self.saved = head, Saved(base=self.rows.pop())

    def save_snapshot(self, data: bytes, at: int | None = None) -> None:
        """Save a snapshot of the state at `head`, or at an earlier position."""
        self.saved = self.saved._replace(snapshot=Snapshot(self.head if at is None else at, data))

    def save_pieces(self, pieces: Mapping[str, bytes]) -> None:
        """Save pieces of a snapshot."""
        self.saved = self.saved._replace(pieces={**self.saved.pieces, **pieces})

    def afterwards(self, step: Callable[[Turn], bool]) -> None:
        """Call a function again and again in later turns, until it returns False."""
        self.steps.append(step)

    def has_compacted(self, position: int) -> bool:
        """Whether the events up to that position are compacted away, with the commit of this turn at the latest."""
        base = self.saved.base
        return (base is not None and base.position >= position) or self._store.has_compacted(position)

    def piece(self, name: str) -> bytes | None:
        """A piece that was saved before this turn."""
        return self._store.piece(name)

    def latest_snapshot(self) -> Snapshot | None:
        """The newest snapshot that was committed before this turn."""
        return self._store.snapshot(in_turn=True)

    def back_to(self, n_rows: int, saved: Saved, n_steps: int) -> None:
        """Drop what one transaction appended."""
        del self.rows[n_rows:], self.steps[n_steps:]
        self.head, self.saved = self._stored_head + n_rows, saved


class _Job(NamedTuple):
    transaction: Callable[[Turn], Any]
    future: Future[Any]


def _erase(turn: Turn) -> None:
    """Stands in the queue for erasing what was dropped, which is no transaction."""


class GroupedJournal:
    """A journal over a store. See `duelist.journal.base` for its promises."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._process = os.getpid()
        self._failures = 0
        self._steps: deque[Callable[[Turn], bool]] = deque()  # of the writer alone
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._closed = False
        self._closing = threading.Lock()
        self._writer = threading.Thread(target=self._write, name="duelist journal", daemon=True)
        self._writer.start()

    def submit(self, transaction: Callable[[Turn], Result]) -> Future[Result]:
        """Run a transaction when its turn comes; the future is done when what it appended is durable."""
        check_process(self._process)
        future: Future[Result] = Future()
        with self._closing:
            if self._closed:
                raise JournalClosedError("the journal is closed; nothing was appended. Open it again.")
            self._jobs.put(_Job(transaction, future))
        return future

    def transact(self, transaction: Callable[[Turn], Result]) -> Result:
        """Run a transaction when its turn comes and wait until what it appended is durable."""
        if threading.current_thread() is self._writer:
            raise JournalError("a transaction must not wait for another of the same journal. Use the turn it was given.")
        return self.submit(transaction).result()

    def room(self) -> int | None:
        """Free bytes where it writes; None where that is not known."""
        return self._store.room()

    def erase(self) -> None:
        """Leave nothing of what was compacted away."""
        self.submit(_erase).result()

    def read(self, after: int = 0) -> Iterator[Record]:
        """The durable events behind position `after`."""
        check_process(self._process)
        return checked(self._store.rows(after, in_turn=False), after)

    def latest_snapshot(self) -> Snapshot | None:
        """The newest durable snapshot."""
        check_process(self._process)
        return self._store.snapshot(in_turn=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """Human-readable remarks on the state in which the journal was found."""
        return self._store.notes

    def close(self) -> None:
        """Finish the transactions that were submitted and release everything; in another process, leave all to its owner."""
        if os.getpid() != self._process:
            return
        with self._closing:
            if self._closed:
                return
            self._closed = True
            self._jobs.put(None)
        self._writer.join()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def _write(self) -> None:
        last = False
        while not last or self._steps:
            group = self._wait(last=last)
            while len(group) < _LARGEST_GROUP and not self._jobs.empty():
                group.append(self._jobs.get())
            last = last or None in group
            jobs: list[_Job] = []
            erasing: list[_Job] = []
            for job in group:
                if job is not None and job.future.set_running_or_notify_cancel():
                    (erasing if job.transaction is _erase else jobs).append(job)
            if jobs:
                self._run(jobs)
            for job in erasing:
                self._erase(job.future)
            if self._steps:
                self._make_step(self._steps.popleft())

    def _wait(self, *, last: bool) -> list[_Job | None]:
        """The next job, if there is one before the next step; a caller who asks again at once has a turn between two steps."""
        if not self._steps:
            return [self._jobs.get()]
        with contextlib.suppress(queue.Empty):
            return [self._jobs.get(timeout=0.0 if last else _BETWEEN_STEPS)]
        return []

    def _make_step(self, step: Callable[[Turn], bool]) -> None:
        """One step, in a commit of its own: what it writes cannot fail the votes of others."""
        done: Future[bool] = Future()
        self._run([_Job(step, done)])
        if done.exception() is None and done.result():
            self._steps.append(step)

    def _erase(self, future: Future[None]) -> None:
        try:
            self._store.erase()
        except Exception as error:
            failure = JournalError(f"what was dropped from the journal is not erased yet ({error}). Compact it again.")
            failure.__cause__ = error
            future.set_exception(failure)
        else:
            future.set_result(None)

    def _run(self, jobs: list[_Job]) -> None:
        """Run a group of transactions, commit them together, and answer their callers when that is durable."""
        answered: list[tuple[Future[Any], Any]] = []
        try:
            turn = GroupedTurn(self._store, self._store.begin(), self._failures)
            for job in jobs:
                n_rows, saved, n_steps = len(turn.rows), turn.saved, len(turn.steps)
                try:
                    answered.append((job.future, job.transaction(turn)))
                except BaseException as error:  # every error belongs to the caller and must not end the writer
                    turn.back_to(n_rows, saved, n_steps)
                    job.future.set_exception(error)
            if turn.rows or turn.saved is not _NOTHING_SAVED:
                self._store.commit(turn.rows, turn.saved)
            else:
                self._store.rollback()
        except Exception as error:
            self._failures += 1
            self._store.rollback()
            for job in jobs:
                if not job.future.done():
                    failure = JournalError(f"the journal could not be written ({type(error).__name__}: {error}).")
                    failure.__cause__ = error
                    job.future.set_exception(failure)
        else:
            self._steps.extend(turn.steps)
            for future, result in answered:
                future.set_result(result)


def checksum(position: int, kind: str, body: str, blob: bytes) -> int:
    """A checksum that tells an event from a damaged or moved one."""
    return zlib.crc32(blob, zlib.crc32(f"{position}\n{kind}\n{body}\n".encode()))


def checked(rows: Iterator[Row], after: int) -> Iterator[Record]:
    """Records of the rows, refusing gaps and damage."""
    return map(_record, checked_rows(rows, after))


def checked_rows(rows: Iterator[Row], after: int) -> Iterator[Row]:
    """The rows themselves, refusing gaps and damage."""
    expected = after
    for row in rows:
        # The event that stands for all before it is where the log begins, wherever a reader was.
        expected = row.position if row.kind == COMPACTED and row.position > after else expected + 1
        if row.position != expected:
            raise JournalDamagedError(
                f"expected event {expected} next; got event {row.position}. Restore the journal from a copy."
            )
        if checksum(row.position, row.kind, row.body, row.blob) != row.checksum:
            raise JournalDamagedError(f"event {row.position} is not what was written. Restore the journal from a copy.")
        yield row


def _record(row: Row) -> Record:
    return Record(row.position, row.kind, json.loads(row.body), row.blob)
