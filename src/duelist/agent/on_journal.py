"""A lane on a journal: what was asked and told is durable before anybody hears of it.

The rule of replay. A lane is a deterministic fold over these events, and an uninterrupted run and a restart are the same fold:

    opened     policy, dim, seed, horizon, max_pending, version   comes first, and again when the version changes
    set        blob: an action set                                before the first duel from it since the last snapshot
    asked      id, set, pair, stream, policy, probability         the policy's `choose` runs again and moves the chains
    told       id, winner                                         the policy's `learn` runs again
    skipped    id
    snapshot   with the bytes of the whole lane beside it         a restart starts here and replays what follows

Random numbers are named by the seed and the number of the duel (`stream`), so running `choose` again gives the same chains,
bit for bit, on the same version and machine. Elsewhere arithmetic may differ in the last digit; the pair in the journal is
what somebody saw, so it stands, and the chains remain valid draws of the same posterior. Snapshots every few events bound the
work of a restart; they are a cache, and folding the whole journal gives the same lane.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from duelist.agent.duel import Duel, Winner
from duelist.agent.lane import ENDINGS, SKIPPED, Lane, identity
from duelist.core.actions import ActionSet, FiniteActions
from duelist.core.duels import Duels, duels_between
from duelist.core.errors import DuelistError, InvalidInputError, SavedStateError
from duelist.core.saved import from_bytes, to_bytes
from duelist.journal.base import Journal, Record, Turn
from duelist.version import __version__

Result = TypeVar("Result")

_FORMAT = 1
_NOWHERE = -1
_WINNERS = {ending: name for name, ending in ENDINGS.items()}
_REMEMBERED_SETS = 64
# A snapshot grows with the votes, so they are taken further apart: their cost a vote stays bounded, and so does a restart's.
_GROWTH = 50


class OnJournal:
    """Keeps a lane in step with a journal, which other processes may append to as well.

    Args:
        new_lane: makes the lane before the first event.
        journal: where the events are.
        snapshot_every: events between two snapshots.
    """

    def __init__(self, new_lane: Callable[[], Lane], journal: Journal, snapshot_every: int) -> None:
        self._new_lane, self._journal, self._snapshot_every = new_lane, journal, snapshot_every
        self.lock = threading.RLock()
        self.lane = new_lane()
        self._identity: dict[str, Any] = json.loads(json.dumps(identity(self.lane)))
        self._position = _NOWHERE
        self._failures = 0
        self._snapshot_at = 0
        self._opened_at = 0
        self._version = ""
        self._offered: dict[str, ActionSet] = {}
        to_bytes(self.lane.to_saved())  # a state that no snapshot can hold is refused now and not in the middle of the votes
        self._in_turn(self._open)

    def choose(self, actions: ActionSet) -> Duel:
        """Ask, and write down what was asked."""
        return self._in_turn(lambda turn: self._asked(turn, actions))

    def learn(self, duel: Duel | int, winner: Winner) -> None:
        """Tell. The same answer again changes nothing; another is refused."""

        def work(turn: Turn) -> None:
            number = self.lane.number_of(duel)
            ending = self.lane.ending_of(number, winner)
            if self.lane.endings[number] != ending:
                self.lane.learn(number, ending)
                self._append(turn, "told", {"id": number, "winner": _WINNERS[ending]})

        self._in_turn(work)

    def skip(self, duel: Duel | int) -> None:
        """Tell that nobody will."""

        def work(turn: Turn) -> None:
            number = self.lane.number_of(duel)
            if self.lane.endings[number] != SKIPPED:
                self.lane.skip(number)
                self._append(turn, "skipped", {"id": number})

        self._in_turn(work)

    def refresh(self) -> None:
        """Catch up with other processes."""
        self._in_turn(lambda _turn: None)

    def _in_turn(self, act: Callable[[Turn], Result]) -> Result:
        def work(turn: Turn) -> Result:
            with self.lock:
                before = turn.head
                try:
                    self._catch_up(turn)
                    result = act(turn)
                    if turn.head - self._snapshot_at >= max(self._snapshot_every, self.lane.rounds // _GROWTH):
                        self._snapshot(turn)
                except BaseException as error:
                    # The journal forgets what this work appended, so the lane must as well. An error about bad input comes
                    # before anything is appended and leaves the lane as it was.
                    if not isinstance(error, DuelistError) or not self._position == before == turn.head:
                        self._position = _NOWHERE
                    raise
                return result

        return self._journal.transact(work)

    def _open(self, turn: Turn) -> None:
        if self._version != __version__:
            self._append(turn, "opened", {**self._identity, "version": __version__})
            self._opened_at, self._version = turn.head, __version__

    def _asked(self, turn: Turn, actions: ActionSet) -> Duel:
        digest = actions.digest.hex()
        blob = None if digest in self._offered else to_bytes(actions)  # refuses a set that cannot be stored, before asking
        lane = self.lane
        duel = lane.choose(actions)
        self._position = _NOWHERE  # until it is written down, the lane is ahead of the journal
        if blob is not None:
            self._append(turn, "set", {"set": digest}, blob)
            self._offer(digest, actions)
        body = {
            "id": duel.id,
            "set": digest,
            "first": duel.first,
            "second": duel.second,
            "stream": duel.id,
            "policy": self._opened_at,
            "probability": _probability(lane, actions, duel),
        }
        self._append(turn, "asked", body, _blob(lane.waiting[duel.id].duels))
        return duel

    def _append(self, turn: Turn, kind: str, body: dict[str, Any], blob: bytes = b"") -> None:
        self._position = turn.append(kind, body, blob)

    def _offer(self, digest: str, actions: ActionSet) -> None:
        if len(self._offered) >= _REMEMBERED_SETS:
            del self._offered[next(iter(self._offered))]
        self._offered[digest] = actions

    def _snapshot(self, turn: Turn) -> None:
        data = to_bytes(
            {"agent": _FORMAT, "version": self._version, "opened_at": self._opened_at, "lane": self.lane.to_saved()}
        )
        self._append(turn, "snapshot", {})
        self._offered.clear()
        turn.keep(data)
        self._snapshot_at = turn.head

    def _catch_up(self, turn: Turn) -> None:
        # A commit that failed took events along which this lane has seen; one that is ahead of the journal has too.
        if self._position == _NOWHERE or self._position > turn.head or self._failures != turn.failures:
            self._start_again(turn)
        if self._position < turn.head:
            for record in turn.read(self._position):
                self._happened(record)
                self._position = record.position

    def _start_again(self, turn: Turn) -> None:
        self.lane = self._new_lane()
        self._offered.clear()
        self._failures = turn.failures
        self._position = self._snapshot_at = self._opened_at = 0
        self._version = ""
        snapshot = turn.latest_snapshot()
        if snapshot is None:
            return
        self._check_identity(next(turn.read()))
        saved = from_bytes(snapshot.data)
        if not isinstance(saved, dict) or saved.get("agent") != _FORMAT:
            raise SavedStateError(f"the snapshot at event {snapshot.position} is not one of an agent of format {_FORMAT}.")
        self.lane.restore(saved["lane"])
        self._version, self._opened_at = saved["version"], saved["opened_at"]
        self._position = self._snapshot_at = snapshot.position

    def _happened(self, record: Record) -> None:
        """Fold one event into the lane."""
        body = record.body
        if record.kind == "asked":
            actions = self._offered[body["set"]]
            self.lane.choose(actions, _recorded(actions, record))
        elif record.kind == "told":
            self.lane.learn(body["id"], ENDINGS[body["winner"]])
        elif record.kind == "skipped":
            self.lane.skip(body["id"])
        elif record.kind == "set":
            self._offer(body["set"], from_bytes(record.blob))
        elif record.kind == "snapshot":
            self._offered.clear()
            self._snapshot_at = record.position
        else:
            self._check_identity(record)
            self._opened_at, self._version = record.position, body["version"]

    def _check_identity(self, record: Record) -> None:
        if record.kind != "opened":
            raise SavedStateError(
                f"event {record.position} of the journal is {record.kind!r}, which an agent did not write. Use another journal."
            )
        for name, mine in self._identity.items():
            theirs = record.body.get(name)
            if theirs != mine:
                raise InvalidInputError(
                    f"the journal belongs to an agent with {name} {theirs!r}; got {mine!r}. Make the agent as it was made "
                    f"first, or use another journal."
                )


def _blob(duels: Duels) -> bytes:
    """What rows do not say about a pair: the features, where arms have no rows, and then the policy's note, if it left one."""
    features = b"" if duels.first[0] >= 0 else duels.features.tobytes()
    return features + (b"" if duels.note is None else duels.note.tobytes())


def _recorded(actions: ActionSet, record: Record) -> Duels:
    """The pair that was asked, from its event."""
    first, second = np.array([record.body["first"]]), np.array([record.body["second"]])
    numbers = np.frombuffer(record.blob).copy()
    shown = 0 if first[0] >= 0 else 2 * actions.dim
    note = numbers[None, shown:] if len(numbers) > shown else None
    if shown:
        return Duels(first, second, numbers[:shown].reshape(1, 2, actions.dim), note)
    if not isinstance(actions, FiniteActions):
        raise SavedStateError(f"event {record.position} names rows of a set that has none.")
    return duels_between(actions, first, second, note)


def _probability(lane: Lane, actions: ActionSet, duel: Duel) -> float | None:
    """The probability of this pair, in this order, where the policy has a method `pair_probability` that can tell it."""
    tell = getattr(lane.policy, "pair_probability", None)
    known = math.nan if tell is None else float(tell(lane.state, actions, lane.waiting[duel.id].duels)[0])
    return known if math.isfinite(known) else None
