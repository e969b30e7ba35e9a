"""A replica: a state in memory that follows a journal. It is the fold over all events, and snapshots spare its beginning.

A command is a value. It *decides*, in its turn at the end of the journal, which event happens; the replica appends the event,
applies it to the state, and answers when the event is durable. Every turn first takes in what other processes appended, so
several replicas may share one journal. Memory is ahead of the disk only by what waits for the present commit. If that fails,
or anything breaks half way, the next turn builds the state again from what the journal really holds.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, runtime_checkable

from duelist.core.checks import whole_number
from duelist.core.errors import DuelistError, InvalidInputError, SavedStateError
from duelist.journal.base import Event, Journal, JournalError, Record, Result, Turn, check_process
from duelist.journal.chunks import DumpInSteps, join_chunks, save_in_chunks

State = TypeVar("State")
Rewritten = TypeVar("Rewritten", covariant=True)
DecidedOn = TypeVar("DecidedOn", contravariant=True)
Reply = TypeVar("Reply", covariant=True)


BaseInSteps = Generator[None, None, tuple[dict[str, Any], bytes]]


class Fold(Protocol[State]):
    """What events mean. Applying the same events in the same order gives the same state, bit for bit."""

    def new(self) -> State:
        """The state before the first event."""
        ...

    def apply(self, state: State, record: Record) -> None:
        """Change the state by one event."""
        ...

    def dump(self, state: State) -> bytes:
        """The whole state, for a snapshot."""
        ...

    def load(self, data: bytes) -> State:
        """The state that was dumped. Raises `SavedStateError` where this version cannot read it."""
        ...

    def latest(self, state: State) -> int:  # noqa: ARG002 - what a fold without times answers
        """Time of the latest event. A replica with a clock never decides anything before it."""
        return 0


@runtime_checkable
class RewritingFold(Protocol[Rewritten]):
    """A fold some of whose events change what earlier ones mean, and cannot be applied to the state before them."""

    def rewrites(self, record: Record) -> bool:
        """Whether this is such an event."""
        ...

    def rewrite(self, records: Callable[[], Iterator[Record]], last: Record) -> Rewritten:
        """The state after `last`, which changes the past, from all events up to it; `records` gives all, again at each call."""
        ...

    def dump_in_steps(self, state: Any, saved: Collection[str]) -> DumpInSteps:
        """A snapshot of the state as it is now, apart from what does not change, made in small steps while the state goes on.

        A step may yield pieces of what does not change that are not saved yet; the names of all are returned at the end.
        """
        ...

    def load_from_pieces(self, data: bytes, piece: Callable[[str], bytes | None]) -> Rewritten:
        """The state of such a snapshot."""
        ...

    def base_in_steps(self, state: Any, position: int) -> BaseInSteps:
        """Body and blob of a `compacted` event at that position, from which `rewrite` gives the state as it is now."""
        ...


class Command(Protocol[DecidedOn, Reply]):
    """What a caller wants, as a value."""

    def decide(self, state: DecidedOn, at: int) -> Event | None:
        """The event that happens at that time, or None where there is nothing to do.

        It may raise a `DuelistError`, and changes nothing that a replay would not change as well.
        """
        ...

    def reply(self, state: DecidedOn, event: Event | None) -> Reply:
        """What the caller gets, from the state after the event."""
        ...


class Counters(NamedTuple):
    """What a replica did since it was opened.

    Attributes:
        events: appended by this replica.
        replayed: read from the journal.
        snapshots: saved.
        rebuilt: how often the state was built again, the first time included.
    """

    events: int
    replayed: int
    snapshots: int
    rebuilt: int


_LEAST_ROOM = 4_000_000  # bytes: a few thousand votes


class LateClock:
    """The time of events, milliseconds since 1970, while the system's clock is behind the last event.

    After a clock that was ahead for a while, time goes on from the last event at nine tenths of its speed, until the system's
    clock has caught up. So it never goes back, and never stands still for good.

    Args:
        ticks: seconds that pass whatever the system's clock says.
    """

    def __init__(self, ticks: Callable[[], float] = time.monotonic) -> None:
        self._ticks = ticks
        self._told = self._at = 0.0  # the time that was told last, and the ticks then

    def go_on_from(self, latest: int) -> int:
        """The time of the next event; `latest` is that of the last one."""
        now = self._ticks()
        if latest != int(self._told):  # the first time, or the system's clock was used since
            self._told, self._at = float(latest), now
        self._told, self._at = self._told + 900.0 * (now - self._at), now
        return int(self._told)


class Replica(Generic[State]):
    """A state that follows a journal.

    Args:
        journal: where the events are.
        fold: what they mean.
        snapshot_every: events after which a snapshot is saved, so that a restart need not replay them.
        keep_events: whether events stay when what they add up to is saved; else the journal is compacted where it would get a
            snapshot, so that it does not grow without bound.
        growth: in a long journal the next snapshot comes when it has grown by one part in `growth`: a snapshot costs as much as
            the state is large, so its cost per event stays bounded.
        clock: the time for commands, milliseconds since 1970; without one they are decided at time 0.
    """

    def __init__(
        self,
        journal: Journal,
        fold: Fold[State],
        *,
        snapshot_every: int,
        growth: int,
        clock: Callable[[], int] | None = None,
        keep_events: bool = True,
    ) -> None:
        self._journal, self._fold, self._keep_events = journal, fold, keep_events
        self._clock, self._late = clock, LateClock()
        self._rewriting: RewritingFold[State] | None = fold if isinstance(fold, RewritingFold) else None
        self._snapshot_every = whole_number("snapshot_every", snapshot_every, at_least=1)
        self._growth = whole_number("growth", growth, at_least=1)
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._state = fold.new()
        self._position = self._snapshot_position = 0
        self._broken = True  # the state is not that of `position`: build it again
        self._pieces: Collection[str] = frozenset()  # those that are known to be saved
        self._saving: object = None  # the snapshot that is being saved in steps, if one is
        self._failures = 0
        self._events = self._replayed = self._snapshots = self._rebuilt = 0
        self._unsaved = ""
        self.refresh()

    @property
    def state(self) -> State:
        """The state as it is now, without waiting: for a single look-up. Use `read` for facts that must fit together."""
        return self._state

    @property
    def position(self) -> int:
        """Position of the last event that the state includes."""
        return self._position

    @property
    def counters(self) -> Counters:
        """What the replica did so far."""
        return Counters(self._events, self._replayed, self._snapshots, self._rebuilt)

    @property
    def notes(self) -> tuple[str, ...]:
        """Human-readable remarks: how the journal was found, and why the latest snapshot failed, if it did."""
        return (*self._journal.notes, self._unsaved) if self._unsaved else self._journal.notes

    def submit(self, command: Command[State, Result]) -> Future[Result]:
        """Carry out a command. The future has its reply once the event is durable."""
        return self._journal.submit(partial(self._carry_out, command))

    def commit(self, command: Command[State, Result]) -> Result:
        """Carry out a command and wait until its event is durable."""
        return self._journal.transact(partial(self._carry_out, command))

    def read(self, question: Callable[[State], Result]) -> Result:
        """Ask something of the state while nothing changes. Keep it short: commands wait meanwhile."""
        check_process(self._process)  # in a fork the writer may have left the lock closed for good
        with self._lock:
            return question(self._state)

    def events(self, after: int = 0) -> Iterator[Record]:
        """The durable events behind a position, without waiting for a turn."""
        return self._journal.read(after)

    def refresh(self) -> None:
        """Take in what other processes appended."""
        self._journal.transact(self._catch_up)

    def probe(self) -> None:
        """Raise `JournalError` where the journal does not answer or its disk is full."""
        self.refresh()
        room = self._journal.room()
        if room is not None and room < _LEAST_ROOM:
            raise JournalError(f"its disk has {room / 1e6:.1f} MB left; {_LEAST_ROOM / 1e6:g} are needed. Free some.")

    def save_snapshot(self) -> None:
        """Save a snapshot now, if there is anything new."""
        if self._position != self._snapshot_position:
            self._journal.transact(self._save_snapshot)

    def compact(self) -> None:
        """Let one event take the place of all so far, and leave nothing of them; see `Turn.compact`."""
        self._journal.transact(self._compact)
        self._journal.erase()

    def close(self) -> None:
        """Save a last snapshot and close the journal. What was submitted before is finished first."""
        try:
            self.save_snapshot()
        finally:
            self._journal.close()

    def _carry_out(self, command: Command[State, Result], turn: Turn) -> Result:
        """The transaction of a command. Everything is in one function because every vote passes through it."""
        with self._lock:
            if self._broken or self._position != turn.head or self._failures != turn.failures:
                self._catch_up(turn)
            state = self._state
            try:
                at, latest = self._clock() if self._clock else 0, self._fold.latest(state) if self._clock else 0
                event = command.decide(state, at if at >= latest else self._late.go_on_from(latest))
                if event is None:
                    return command.reply(state, None)
            except BaseException as error:
                self._broken = not isinstance(error, DuelistError)
                raise
            self._broken = True  # until it is clear that everything went well
            position = turn.append(*event)
            record = Record(position, *event)
            # As in `_apply`, written out: the journal calls up from one place for a command.
            rewritten = self._rewriting is not None and self._rewriting.rewrites(record)
            if rewritten and self._rewriting is not None:
                self._state = self._rewriting.rewrite(turn.read, record)
            else:
                self._fold.apply(self._state, record)
            reply = command.reply(self._state, event)
            self._position, self._broken = position, False
            self._events += 1
            if rewritten or position - self._snapshot_position >= max(self._snapshot_every, position // self._growth):
                self._save_snapshot_if_possible(turn)
            return reply

    def _catch_up(self, turn: Turn) -> None:
        with self._lock:
            if self._broken or self._position > turn.head or self._failures != turn.failures:
                self._rebuild(turn)
            if self._position == turn.head:
                return
            self._broken = True
            for record in turn.read(self._position):
                self._apply(turn, record)
                self._position = record.position
                self._replayed += 1
            self._broken = False

    def _apply(self, turn: Turn, record: Record) -> None:
        if self._rewriting is not None and self._rewriting.rewrites(record):
            self._state = self._rewriting.rewrite(turn.read, record)
        else:
            self._fold.apply(self._state, record)

    def _rebuild(self, turn: Turn) -> None:
        self._broken = True
        snapshot, state, position = turn.latest_snapshot(), None, 0
        read: set[str] = set()

        def piece(name: str) -> bytes | None:
            read.add(name)
            return turn.piece(name)

        # One ahead of the journal belongs to events that are gone, as after a restored copy: it is no state of this journal.
        if snapshot is not None and snapshot.position <= turn.head:
            # A snapshot is a cache: one that this version cannot read is left alone, and the whole journal replayed instead.
            with contextlib.suppress(SavedStateError):
                load, data = self._rewriting, join_chunks(snapshot.data, snapshot.position, turn.piece)
                state = load.load_from_pieces(data, piece) if load else self._fold.load(data)
                position = snapshot.position
        self._state = self._fold.new() if state is None else state
        self._position = self._snapshot_position = position
        self._failures, self._pieces = turn.failures, frozenset() if state is None else read
        self._rebuilt += 1
        self._broken = False

    def _save_snapshot(self, turn: Turn) -> None:
        with self._lock:
            self._catch_up(turn)
            step = self._start_saving(turn, keep_events=self._keep_events)
            while step(turn):
                pass

    def _compact(self, turn: Turn) -> None:
        with self._lock:
            self._catch_up(turn)
            step = self._start_saving(turn, keep_events=False)
            while step(turn):
                pass

    def _save_snapshot_if_possible(self, turn: Turn) -> None:
        """Save a snapshot of this moment, in steps while commands go on; not while another is being saved.

        A state that cannot be saved makes restarts slow. That is no reason to lose a vote: say so, and try again later.
        """
        if self._saving is not None:
            return
        position = self._position

        def attempt(step: Callable[[Turn], bool], turn: Turn) -> bool:
            try:
                with self._lock:
                    return step(turn)
            except Exception as error:
                self._saving = None
                self._unsaved = f"no snapshot could be saved at event {position} ({type(error).__name__}: {error})."
                return False

        def start(turn: Turn) -> bool:
            step = self._start_saving(turn, keep_events=self._keep_events)
            if self._rewriting is None:
                return step(turn)
            turn.afterwards(partial(attempt, step))
            return False

        attempt(start, turn)

    def _start_saving(self, turn: Turn, *, keep_events: bool) -> Callable[[Turn], bool]:
        """The steps that save the state as it is now. Whatever is being saved gives way."""
        if not keep_events and self._rewriting is None:
            raise InvalidInputError("this journal cannot be compacted: what its events add up to is no event of its own.")
        saving = self._saving = object()
        position, failures = self._position, turn.failures
        self._snapshot_position = position
        steps: Generator[Mapping[str, bytes] | None, None, Any]
        if self._rewriting is None:
            steps = _dump_at_once(self._fold.dump(self._state))
        elif keep_events:
            steps = save_in_chunks(self._rewriting.dump_in_steps(self._state, self._pieces), position)
        else:
            steps = self._rewriting.base_in_steps(self._state, position)

        def step(turn: Turn) -> bool:
            if self._saving is not saving:
                return False
            if turn.failures != failures or turn.has_compacted(position):
                self._saving = None  # this state never was, or nothing of it may be left
                return False
            try:
                pieces = next(steps)
                if pieces:
                    turn.save_pieces(pieces)
            except StopIteration as end:
                if keep_events:
                    data, self._pieces = end.value
                    turn.save_snapshot(data, position)
                else:
                    body, blob = end.value
                    turn.compact(body, blob, position)
                    self._pieces = frozenset()
                self._saving, self._unsaved = None, ""
                self._snapshots += 1
                return False
            return True

        return step


def _dump_at_once(data: bytes) -> DumpInSteps:
    """What is saved in one step."""
    yield from ()
    return data, frozenset()
