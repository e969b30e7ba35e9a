"""The ledger: the one way to change the hall. What happens is in the journal before anybody hears of it.

A command decides, in its turn at the end of the journal, which event happens; the event is appended and applied, and the
caller's future is done when it is durable. Other processes on the same journal are caught up with at the start of every turn,
so several services may share it. Memory is ahead of the disk only by what waits for the present commit; should that fail, the
hall is built again from what the journal really holds.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import NamedTuple, TypeVar

from duelist.core.errors import SavedStateError
from duelist.journal.base import Journal, Turn
from duelist.service.events import Event
from duelist.service.hall import Hall

Result = TypeVar("Result")
Decide = Callable[[Hall, int], Event | None]
Outcome = Callable[[Hall, Event | None], Result]

SNAPSHOT_EVERY = 5000
_NEVER = -1
_GROWTH = 10


class Counters(NamedTuple):
    """What the ledger did since it was opened, for metrics."""

    events: int
    replayed: int
    snapshots: int
    rebuilt: int


def wall_clock() -> int:
    """Milliseconds since 1970, UTC."""
    return time.time_ns() // 1_000_000


class Ledger:
    """A hall on a journal.

    Args:
        journal: where events go.
        snapshot_every: events after which a snapshot is kept, so that a restart need not replay them; in a long journal the
            next comes when it has grown by a tenth.
        clock: milliseconds since 1970.
    """

    def __init__(
        self, journal: Journal, *, snapshot_every: int = SNAPSHOT_EVERY, clock: Callable[[], int] = wall_clock
    ) -> None:
        self._journal, self._snapshot_every, self._clock = journal, snapshot_every, clock
        self._lock = threading.RLock()
        self._hall = Hall()
        self._position = _NEVER
        self._snapshot_position = 0
        self._failures = 0
        self._counters = Counters(0, 0, 0, 0)
        self._journal.transact(self._catch_up)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person should know about how the journal was found."""
        return self._journal.notes

    @property
    def counters(self) -> Counters:
        """What the ledger did so far."""
        return self._counters

    @property
    def hall(self) -> Hall:
        """The hall as it is now, without waiting: for a single look-up. Whoever needs facts that fit together uses `read`."""
        return self._hall

    @property
    def position(self) -> int:
        """Position of the last event that the hall includes."""
        return self._position

    def submit(self, decide: Decide, outcome: Outcome[Result]) -> Future[Result]:
        """Let an event happen.

        Args:
            decide: looks at the hall and returns the event, or None where there is nothing to do. It may raise, and must not
                change anything that a replay would not change as well.
            outcome: the caller's result, from the hall after the event. The future has it once the event is durable.
        """

        def work(turn: Turn) -> Result:
            with self._lock:
                self._catch_up(turn)
                event = decide(self._hall, max(self._clock(), self._hall.latest))
                if event is None:
                    return outcome(self._hall, None)
                return self._happen(turn, event, outcome)

        return self._journal.submit(work)

    def change(self, decide: Decide, outcome: Outcome[Result]) -> Result:
        """`submit`, and wait."""
        return self.submit(decide, outcome).result()

    def read(self, question: Callable[[Hall], Result]) -> Result:
        """Ask something of the hall while nothing changes. Keep it short: votes wait meanwhile."""
        with self._lock:
            return question(self._hall)

    def refresh(self) -> None:
        """Catch up with what other processes did."""
        self._journal.transact(self._catch_up_alone)

    def keep_snapshot(self) -> None:
        """Keep a snapshot now, if there is anything new."""
        if self._position > self._snapshot_position:
            self._journal.transact(self._snapshot)

    def close(self) -> None:
        """Keep a last snapshot and close the journal. What was submitted before is finished first."""
        self.keep_snapshot()
        self._journal.close()

    def _happen(self, turn: Turn, event: Event, outcome: Outcome[Result]) -> Result:
        body = {name: value for name, value in event.items() if name != "kind"}
        position = turn.append(event["kind"], body)
        try:
            self._hall.apply(event)
            result = outcome(self._hall, event)
        except BaseException:
            # The journal forgets the event again, so the hall has to as well.
            self._position = _NEVER
            raise
        self._position = position
        self._counters = self._counters._replace(events=self._counters.events + 1)
        # A snapshot costs as much as the state is large: taken at every tenth of growth, it never becomes the main work.
        if position - self._snapshot_position >= max(self._snapshot_every, position // _GROWTH):
            self._snapshot(turn)
        return result

    def _catch_up_alone(self, turn: Turn) -> None:
        with self._lock:
            self._catch_up(turn)

    def _catch_up(self, turn: Turn) -> None:
        if turn.failures != self._failures or self._position == _NEVER or self._position > turn.head:
            self._rebuild(turn)
        if self._position == turn.head:
            return
        for record in turn.read(self._position):
            self._hall.apply({"kind": record.kind, **record.body})
            self._position = record.position
            self._counters = self._counters._replace(replayed=self._counters.replayed + 1)

    def _rebuild(self, turn: Turn) -> None:
        snapshot = turn.latest_snapshot()
        self._hall, self._position = Hall(), 0
        if snapshot is not None:
            # A snapshot is a cache: one of another version is left alone, and the whole journal replayed instead.
            with contextlib.suppress(SavedStateError):
                self._hall = Hall.from_bytes(snapshot.data)
                self._position = snapshot.position
        self._snapshot_position = self._position
        self._failures = turn.failures
        self._counters = self._counters._replace(rebuilt=self._counters.rebuilt + 1)

    def _snapshot(self, turn: Turn) -> None:
        with self._lock:
            self._catch_up(turn)
            turn.keep(self._hall.to_bytes())
            self._snapshot_position = self._position
            self._counters = self._counters._replace(snapshots=self._counters.snapshots + 1)
