"""An arena: a fold over its events.

Two kinds of methods. Those that *decide* (`ask`, `tell`, `undo`, `add`, ...) look at the state, refuse what cannot be, and
return the event that would happen; they change nothing that a replay would not. `apply` lets an event happen. The journal
stands between the two: whoever runs an arena appends the event before acknowledging it, so a restart is the same fold again.

Time is a number in each event and never read here, so replaying needs no clock.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import asdict

from duelist.core.actions import FiniteActions
from duelist.core.errors import NonFiniteError
from duelist.policies.described import policy_from
from duelist.service.arena_spec import ArenaSpec
from duelist.service.decisions import ASKED, HELD, IMPORTED, NO_VOTER, WAITING, Decision, DecisionLog
from duelist.service.errors import ConflictError, NotFoundError, RefusedError
from duelist.service.events import Event
from duelist.service.items import Item, ItemTable
from duelist.service.outcomes import SIGNS, Outcome, from_sides, outcome_of, standing_of
from duelist.service.outlook import Outlook
from duelist.service.player import Considered, Player
from duelist.service.request_features import RequestFeatures
from duelist.version import __version__

MAX_ITEMS = 1024
_REMEMBERED_REQUESTS = 10_000


class Arena:
    """Items, the decisions about them, and the player that learns from those."""

    def __init__(self, spec: ArenaSpec) -> None:
        self.spec = spec
        self.table = ItemTable()
        self.log = DecisionLog()
        self.voters: dict[str, int] = {}
        self.batches: dict[str, int] = {}  # imported batches: name -> number of votes
        self.revision = 0  # grows with every event; caches are keyed by it
        self.learnt: list[int] = []  # decisions in the order in which the player learnt them
        self.held: dict[int, int] = {}  # answers that may still be undone: decision -> when told, oldest first
        self.held_by: dict[int, int] = {}  # the one answer that a voter may still undo
        self.asked_for: dict[str, int] = {}  # request ids of the latest asks: a repeated request gets the same pair
        self.sent = RequestFeatures(spec.dim) if spec.features == "request" else None
        self.player = Player(policy_from(spec.policy), dim=spec.room_for(0), seed=spec.seed)
        self.outlook = Outlook()
        self._actions: dict[int, FiniteActions] = {}
        self._considered: tuple[object, bytes, Considered] | None = None

    # -- deciding -----------------------------------------------------------------------------------------------------------

    def ask(self, *, at: int, token: int, flipped: bool, request: str, features: dict[str, list[float]] | None) -> Event:
        """The event of asking for a pair."""
        self.settle(at)
        actions, members = self._offered(features)
        try:
            considered = self.player.consider(actions)
        except NonFiniteError as error:
            raise ConflictError(
                f"{self.spec.policy['kind']} cannot choose with these features and settings: {error}"
            ) from error
        number = len(self.log)
        self._considered = (self.player.state, actions.digest, considered)
        probability, explored = self.outlook.of_pair(self, actions, considered.first, considered.second)
        event: Event = {
            "kind": "asked",
            "arena": self.spec.id,
            "at": at,
            "number": number,
            "token": token,
            "first": members[considered.first],
            "second": members[considered.second],
            "flipped": flipped,
            "line_up": len(self.table.line_ups) - 1,
            "stream": [self.player.generation, int(getattr(self.player.state, "asked", number))],
            "policy": self.spec.policy["kind"],
            "version": __version__,
            "probability": None if math.isnan(probability) else round(probability, 9),
            "explored": explored,
            "drawn": considered.drawn.tolist(),
        }
        if request:
            event["request"] = request
        if features is not None:
            event["features"] = {
                self.table.items[number].id: list(row)
                for number, row in zip(members, actions.features[0].tolist(), strict=True)
            }
        return event

    def repeated_ask(self, request: str) -> Decision | None:
        """The decision that this request id got before, while it waits for its answer."""
        number = self.asked_for.get(request) if request else None
        return None if number is None else self.log[number]

    def decision(self, decision_id: str) -> Decision:
        """The decision of that id."""
        number, _, token = decision_id.partition("-")
        if number.isdecimal() and number.isascii() and int(number) < len(self.log):
            decision = self.log[int(number)]
            if decision.source == ASKED and decision.id == decision_id and token:
                return decision
        raise NotFoundError(f"arena {self.spec.id!r} has no ask {decision_id!r}. Use the id that the ask returned.")

    def tell(self, decision: Decision, verdict: str, *, at: int, voter: str) -> Event | None:
        """The event of answering; None where the same answer was given before."""
        outcome = from_sides(verdict, flipped=decision.flipped)
        if decision.outcome is outcome:
            return None
        if decision.outcome is not Outcome.OPEN:
            raise ConflictError(
                f"ask {decision.id} was answered before, and differently. Each ask counts once; undo it first, in time."
            )
        if self.sent is not None and decision.number not in self.sent.waiting:
            raise ConflictError(
                f"ask {decision.id} was dropped: more than {self.sent.most_waiting} later asks came without an answer."
            )
        event: Event = {
            "kind": "told",
            "arena": self.spec.id,
            "at": at,
            "number": decision.number,
            "outcome": standing_of(outcome),
        }
        if voter:
            event["voter"] = voter
        return event

    def undo(self, decision: Decision, *, at: int, voter: str) -> Event:
        """The event of taking an answer back."""
        self.settle(at)
        if decision.outcome is Outcome.OPEN:
            raise ConflictError(f"ask {decision.id} has no answer to undo.")
        if decision.number not in self.held:
            raise ConflictError(
                f"the answer to ask {decision.id} can no longer be undone: that is possible for "
                f"{self.spec.undo_ms / 1000:g} s, by a named voter, and until that voter answers another ask."
            )
        if self.voters.get(voter) != decision.voter:
            raise ConflictError(f"the answer to ask {decision.id} was given by another voter, who alone may undo it.")
        return {"kind": "undone", "arena": self.spec.id, "at": at, "number": decision.number}

    def add(self, items: list[Item], *, at: int) -> Event:
        """The event of adding items."""
        self.check_new(items)
        return {"kind": "added", "arena": self.spec.id, "at": at, "items": [item.to_plain() for item in items]}

    def check_new(self, items: list[Item]) -> None:
        """Refuse items that this arena cannot take."""
        if len(self.table.items) + len(items) > MAX_ITEMS:
            raise ConflictError(
                f"an arena holds at most {MAX_ITEMS} items; this would make {len(self.table.items) + len(items)}."
            )
        seen = set(self.table.numbers)
        for item in items:
            if item.id in seen:
                raise ConflictError(f"there is an item {item.id!r} in arena {self.spec.id!r} already. Give each its own id.")
            seen.add(item.id)
            wanted = self.spec.dim if self.spec.features in ("given", "text") else 0
            if len(item.features) != wanted:
                raise RefusedError(
                    f"item {item.id!r} must come with {wanted} features in this arena; got {len(item.features)}. "
                    f"All items of an arena share one kind and one length of features."
                )

    def set_retired(self, item_id: str, *, retired: bool, at: int) -> Event | None:
        """The event of taking an item out or back in; None where it stands like that already."""
        number = self.number_of(item_id)
        if (number in self.table.retired) == retired:
            return None
        if retired and len(self.table.active) <= 2:
            raise ConflictError("an arena needs two active items; add another before retiring this one.")
        return {"kind": "retired" if retired else "returned", "arena": self.spec.id, "at": at, "item": number}

    def number_of(self, item_id: str) -> int:
        """The number of an item."""
        number = self.table.numbers.get(item_id)
        if number is None:
            raise NotFoundError(f"arena {self.spec.id!r} has no item {item_id!r}.")
        return number

    def import_votes(self, batch: str, votes: list[tuple[str, str, str]], *, at: int) -> Event | None:
        """The event of learning past votes (first item, second item, outcome); None where the batch was imported before."""
        if self.sent is not None:
            raise ConflictError("an arena whose features come with each ask cannot import votes: they have no features.")
        if batch in self.batches:
            if self.batches[batch] != len(votes):
                raise ConflictError(
                    f"batch {batch!r} was imported before with {self.batches[batch]} votes; got {len(votes)}. "
                    f"Name the new one differently."
                )
            return None
        rows = []
        for place, (first, second, outcome) in enumerate(votes):
            if first == second:
                raise RefusedError(f"vote {place} compares {first!r} with itself. A vote needs two items.")
            rows.append([self.number_of(first), self.number_of(second), outcome])
        return {"kind": "imported", "arena": self.spec.id, "at": at, "batch": batch, "votes": rows}

    # -- letting events happen ----------------------------------------------------------------------------------------------

    def apply(self, event: Event) -> None:
        """Let an event happen."""
        self.settle(event["at"])
        getattr(self, f"_apply_{event['kind']}")(event)
        self.revision += 1

    def _apply_added(self, event: Event) -> None:
        self.table.add([Item.from_plain(plain) for plain in event["items"]])
        room = self.spec.room_for(len(self.table.items))
        if room != self.player.dim:
            self._start_anew(room)

    def _apply_retired(self, event: Event) -> None:
        self.table.set_retired(event["item"], retired=True)

    def _apply_returned(self, event: Event) -> None:
        self.table.set_retired(event["item"], retired=False)

    def _apply_asked(self, event: Event) -> None:
        actions, members = self._offered(event.get("features"))
        ready, self._considered = self._considered, None
        # The pair in the event is what happened. It is computed again only to move the player's random state along.
        if ready and ready[0] is self.player.state and ready[1] == actions.digest:
            self.player.accept(ready[2])
        else:
            # A newer version may not be able to repeat an old choice; the pair was asked all the same.
            with contextlib.suppress(NonFiniteError):
                self.player.accept(self.player.consider(actions))
        number = self.log.append(
            token=event["token"],
            first=event["first"],
            second=event["second"],
            flipped=event["flipped"],
            source=ASKED,
            asked_at=event["at"],
            line_up=event["line_up"],
            probability=math.nan if event["probability"] is None else event["probability"],
            explored=event["explored"],
            drawn=event["drawn"],
        )
        if "request" in event:
            self.asked_for[event["request"]] = number
            if len(self.asked_for) > _REMEMBERED_REQUESTS:
                del self.asked_for[next(iter(self.asked_for))]
        if self.sent is not None:
            self.sent.wait(number, members, actions)

    def _apply_told(self, event: Event) -> None:
        number, outcome = event["number"], outcome_of(event["outcome"])
        voter = event.get("voter", "")
        index = self.voters.setdefault(voter, len(self.voters)) if voter else NO_VOTER
        if index in self.held_by:
            # A voter's earlier answer stands as soon as the same voter gives another.
            self._settle_one(self.held_by[index])
        self.log.set_told(number, outcome, event["at"], index, HELD)
        if voter and self.spec.undo_ms > 0:
            self.held[number] = event["at"]
            self.held_by[index] = number
        else:
            self._settle_one(number)

    def _apply_undone(self, event: Event) -> None:
        del self.held[event["number"]]
        del self.held_by[self.log[event["number"]].voter]
        self.log.set_told(event["number"], Outcome.OPEN, 0, NO_VOTER, WAITING)

    def _apply_imported(self, event: Event) -> None:
        self.batches[event["batch"]] = len(event["votes"])
        line_up = len(self.table.line_ups) - 1
        for first, second, outcome in event["votes"]:
            number = self.log.append(
                token=0,
                first=first,
                second=second,
                flipped=False,
                source=IMPORTED,
                asked_at=event["at"],
                line_up=line_up,
                probability=math.nan,
                explored=0.0,
                drawn=[],
            )
            self.log.set_told(number, outcome_of(outcome), event["at"], NO_VOTER, HELD)
            self._settle_one(number)

    # -- learning -----------------------------------------------------------------------------------------------------------

    def settle(self, at: int) -> None:
        """Learn the answers whose time for undoing is over. Doing so early or late gives the same state."""
        while self.held:
            number, told_at = next(iter(self.held.items()))
            if told_at + self.spec.undo_ms > at:
                break
            self._settle_one(number)

    def _settle_one(self, number: int) -> None:
        self.log.set_settled(number)
        decision = self.log[number]
        if self.held.pop(number, None) is not None:
            del self.held_by[decision.voter]
        if decision.outcome in self.spec.teaching:
            self._learn(decision)
            self.learnt.append(number)
        if self.sent is not None:
            self.sent.settle(decision)

    def _learn(self, decision: Decision) -> None:
        if self.sent is not None:
            actions, members = self.sent.waiting[decision.number]
        else:
            actions, members = self._line_up_with(decision)
        first, second = members.index(decision.first), members.index(decision.second)
        self.player.learn(actions, first, second, SIGNS[decision.outcome])

    def _start_anew(self, dim: int) -> None:
        """A player of a larger dimension that learns everything again: items without features have one dimension each."""
        old = self.player
        self.player = Player(old.policy, dim=dim, seed=old.seed, generation=old.generation + 1)
        self._actions.clear()
        self._considered = None
        for number in self.learnt:
            self._learn(self.log[number])

    # -- action sets --------------------------------------------------------------------------------------------------------

    def _offered(self, features: dict[str, list[float]] | None) -> tuple[FiniteActions, tuple[int, ...]]:
        """What an ask may choose from, and the item of each row."""
        if self.sent is None:
            if features is not None:
                raise RefusedError("this arena knows its items' features; an ask must not bring its own.")
            return self.line_up(len(self.table.line_ups) - 1), self.table.active
        if features is None:
            raise RefusedError("this arena needs the features of at least two items with every ask.")
        return self.sent.offered(self, features)

    def line_up(self, version: int) -> FiniteActions:
        """The action set of a line-up."""
        if version not in self._actions:
            members = self.table.line_ups[version]
            if len(members) < 2:
                raise ConflictError(
                    f"arena {self.spec.id!r} has {len(members)} active item(s); a duel needs two. Add items first."
                )
            self._actions[version] = FiniteActions(self.table.features(members, self.player.dim))
        return self._actions[version]

    def _line_up_with(self, decision: Decision) -> tuple[FiniteActions, tuple[int, ...]]:
        """The line-up of a decision; an imported vote may be about retired items, which then join in."""
        members = self.table.line_ups[decision.line_up]
        if decision.first in members and decision.second in members:
            return self.line_up(decision.line_up), members
        members = tuple(sorted({*members, decision.first, decision.second}))
        return FiniteActions(self.table.features(members, self.player.dim)), members

    # -- counting -----------------------------------------------------------------------------------------------------------

    @property
    def n_teaching(self) -> int:
        """Answers that something is learnt from, held ones included."""
        return self.log.count(*self.spec.teaching)

    @property
    def n_votes(self) -> int:
        """Answers other than skips."""
        return self.log.count(Outcome.FIRST, Outcome.SECOND, Outcome.TIE, Outcome.BOTH_BAD)

    def creation(self, items: list[Item], *, at: int) -> Event:
        """The event that creates this arena with its first items."""
        return {
            "kind": "created",
            "arena": self.spec.id,
            "at": at,
            "spec": asdict(self.spec),
            "items": [i.to_plain() for i in items],
        }
