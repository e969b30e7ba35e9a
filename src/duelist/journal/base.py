"""What a journal is: an append-only log of events, with snapshots, that several threads and processes may share.

Promises of every journal, whatever its backend:

1. **Order.** Events have positions 1, 2, 3, ... without gaps. They are never changed or moved, and only
   compaction removes them: one event of the kind `compacted`, with what they add up to, takes the place of all up to it.
2. **Turns.** `transact(transaction)` calls the function with a `Turn` at the end of the log. No other transaction on the same
   journal, in any thread or process, runs between what a turn reads and what it appends.
3. **Durability.** When `transact` returns, everything that its transaction appended survives a crash of the process and of the
   machine. Transactions of several callers may share one commit; each caller waits for it.
4. **All or nothing.** If a transaction raises, nothing that it appended is kept and the error reaches the caller. If the commit
   fails, nothing of any transaction in it is kept, every caller gets a `JournalError`, and `Turn.failures` of later turns has
   grown.
5. **Snapshots** are a cache: a snapshot carries the position of the last event before it, and is saved in the commit of that
   event or in a later one. A state equals the fold over all events; a snapshot only spares the fold its beginning. Older
   snapshots may be dropped. What does not change from one snapshot to the next may be saved once, as a piece with a name;
   pieces are dropped by compaction.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple, Protocol, TypeVar

from duelist.core.errors import DuelistError


class JournalError(DuelistError):
    """The journal could not be read or written. What was to be appended may or may not be in it: read it to find out."""


class JournalClosedError(JournalError):
    """The journal was closed before. Nothing was appended."""


class JournalDamagedError(JournalError):
    """What the journal holds is not what was written to it, or not a journal that this version reads."""


COMPACTED = "compacted"  # the kind of the event that stands for all before it


class JournalForkedError(JournalError):
    """The process was forked after the journal was opened. Nothing was appended."""


def check_process(opened_in: int) -> None:
    """Refuse a journal that another process opened: its writer thread stayed there, and waiting for it never ends."""
    if os.getpid() != opened_in:
        raise JournalForkedError(
            f"the journal was opened in process {opened_in}; this is process {os.getpid()}, forked from it, where the thread "
            f"that writes does not exist. Open the journal and make the agent after the fork: with gunicorn --preload, in the "
            f"hook post_fork."
        )


Result = TypeVar("Result")


class Event(NamedTuple):
    """Something that is to be appended.

    Attributes:
        kind: what happened, a word.
        body: the facts, as JSON values.
        blob: bytes that belong to it, such as an array; often empty.
    """

    kind: str
    body: dict[str, Any]
    blob: bytes = b""


class Record(NamedTuple):
    """An event in the log.

    Attributes:
        position: its place, from 1.
        kind: what happened, a word.
        body: the facts, as JSON values.
        blob: bytes that belong to it, such as an array; often empty.
    """

    position: int
    kind: str
    body: dict[str, Any]
    blob: bytes = b""


class Snapshot(NamedTuple):
    """What the events up to and including `position` add up to, as bytes that only their writer understands."""

    position: int
    data: bytes


class Turn(Protocol):
    """The right to read the end of the log and append to it, for the duration of one transaction."""

    @property
    def head(self) -> int:
        """Position of the last event, those appended in this turn included; 0 for an empty log."""

    @property
    def failures(self) -> int:
        """Commits of this journal object that failed so far. If it has grown, memory is ahead of the log: build it again."""

    def read(self, after: int = 0) -> Iterator[Record]:
        """The events behind position `after`, those appended in this turn included."""

    def append(self, kind: str, body: dict[str, Any], blob: bytes = b"") -> int:
        """Append an event and return its position."""

    def save_snapshot(self, data: bytes, at: int | None = None) -> None:
        """Save a snapshot of the state at `head`, or at an earlier position."""

    def save_pieces(self, pieces: Mapping[str, bytes]) -> None:
        """Save pieces, by name, that a snapshot needs and that are not saved yet."""

    def afterwards(self, step: Callable[[Turn], bool]) -> None:
        """Once this turn is durable, call a function again and again until it returns False, each time in a turn of its own.

        Others have their turns in between, so long work in small steps keeps nobody waiting. `Journal.close` finishes it.
        """

    def has_compacted(self, position: int) -> bool:
        """Whether the events up to that position were compacted away, or will be at the commit."""

    def latest_snapshot(self) -> Snapshot | None:
        """The newest snapshot that was committed before this turn."""

    def piece(self, name: str) -> bytes | None:
        """A piece that was saved with a snapshot before this turn; None where there is none of that name."""

    def compact(self, body: dict[str, Any], blob: bytes, at: int | None = None) -> None:
        """At the commit, let one `compacted` event take the place of all events up to a position, and drop their snapshots.

        Args:
            body: the facts of that event.
            blob: what all these events add up to.
            at: the position; None for `head`.
        """


class Journal(Protocol):
    """An append-only log of events. See the promises at the top of this module."""

    def submit(self, transaction: Callable[[Turn], Result]) -> Future[Result]:
        """Run a transaction when its turn comes, in the order of submission. The future is done when the commit is durable."""

    def transact(self, transaction: Callable[[Turn], Result]) -> Result:
        """Run a transaction when its turn comes and wait until what it appended is durable."""

    def read(self, after: int = 0) -> Iterator[Record]:
        """The durable events behind position `after`, without waiting for a turn."""

    def latest_snapshot(self) -> Snapshot | None:
        """The newest durable snapshot, without waiting for a turn."""

    def room(self) -> int | None:
        """Free bytes where it writes; None where that is not known."""

    def erase(self) -> None:
        """Leave nothing in the file of events that were compacted away. It takes as long as writing all of it anew.

        Without, what they held may be read from free pages of the file until something else is written there.
        """

    @property
    def notes(self) -> tuple[str, ...]:
        """Human-readable remarks on the state in which the journal was found: an unclean end, a torn record."""

    def close(self) -> None:
        """Finish the transactions that were submitted and release everything. Closing again does nothing."""
