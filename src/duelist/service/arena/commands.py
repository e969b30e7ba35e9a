"""What a caller may want of an arena, as values.

A command *decides* which event happens, refuses what cannot be, and *replies* from the state after the event. Deciding changes
nothing that a replay would not change as well. Nothing here knows of HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from duelist.journal.base import Event
from duelist.service.arena.arena import Arena, Body, ListedItem
from duelist.service.arena.decisions import UNDOABLE, Decision
from duelist.service.arena.items import Item, with_ids
from duelist.service.arena.learner import RequestedFeatures
from duelist.service.arena.outcomes import OUTCOME_NAMES, Outcome, from_sides
from duelist.service.arena.slates import SlateLearner, places_of
from duelist.service.errors import ConflictError, RefusedError
from duelist.version import __version__

MAX_ITEMS = 1024


class Arenas(Protocol):
    """The state that commands are decided on."""

    arenas: dict[str, Arena]

    def arena(self, arena_id: str) -> Arena:
        """The arena of that id. Raises `NotFoundError` where there is none."""
        ...


class Asked(NamedTuple):
    """A pair to show, or a slate.

    Attributes:
        decision: with the answer, if there is one.
        left: the item on the left.
        right: the item on the right.
        repeated: whether the same request had got this pair before.
        slate: instead of left and right, the items in the order of the screen; empty for a pair.
        ranking: the items that the answer names, best first.
    """

    decision: Decision
    left: Item
    right: Item
    repeated: bool
    slate: tuple[Item, ...] = ()
    ranking: tuple[Item, ...] = ()


class Told(NamedTuple):
    """What became of an answer.

    Attributes:
        repeated: whether the same answer had been given before.
        undo_until: until when it can be undone, milliseconds since 1970; None where it cannot.
    """

    repeated: bool
    undo_until: int | None


@dataclass(frozen=True, slots=True)
class Ask:
    """Choose a pair, or a slate where the arena shows those.

    Attributes:
        arena: id of the arena.
        token: random, the unguessable part of the decision's id.
        flipped: random, whether the first item is shown on the right.
        request: id of the request; empty for none. The same id again gets the same pair.
        features: item id -> features, in arenas whose features come with each ask.
        voter: any name; empty for none. A named voter gets no pair twice while there are others.
    """

    arena: str
    token: int
    flipped: bool
    request: str = ""
    features: RequestedFeatures | None = None
    voter: str = ""

    def decide(self, state: Arenas, at: int) -> Event | None:
        """The event `asked`."""
        arena = state.arena(self.arena)
        if self.request and self.request in arena.asked_for:
            return None
        if arena.undoable:
            arena.settle(at)
        spec, learner = arena.spec, arena.learner
        offer = learner.offer(self.features)
        limits = learner.unseen(offer, arena.seen, self.voter) if self.voter else None
        proposal = learner.propose(offer, limits)
        actions, members = offer
        body: Body = {
            "arena": spec.id,
            "at": at,
            "number": len(arena.log),
            "token": self.token,
            "line_up": len(arena.table.rosters) - 1,
            "stream": [learner.lane.generation, learner.asks],
            "policy": spec.policy["kind"],
            "version": __version__,
        }
        if isinstance(learner, SlateLearner):
            body |= learner.slate_facts(proposal, offer, self.token)
        else:
            body |= {
                "first": members[proposal.shown.first[0]],
                "second": members[proposal.shown.second[0]],
                "flipped": self.flipped,
                "probability": learner.probability(proposal),
                "explored": learner.explored(proposal, offer),
                "drawn": learner.lane.drawn_utilities(proposal).tolist(),
            }
        if proposal.exploration:
            body["exploration"] = proposal.exploration
            if proposal.proposed is not None:
                body["proposed"] = [members[proposal.proposed.first[0]], members[proposal.proposed.second[0]]]
        if self.request:
            body["request"] = self.request
        if self.voter:
            body["voter"] = self.voter
        if self.features is not None:
            rows = zip(members, actions.features[0].tolist(), strict=True)
            body["features"] = {arena.table.items[number].id: row for number, row in rows}
        return Event("asked", body)

    def reply(self, state: Arenas, event: Event | None) -> Asked:
        """The pair, new or as before."""
        arena = state.arenas[self.arena]
        number = arena.asked_for[self.request] if event is None else event.body["number"]
        return shown_pair(arena, arena.log[number], repeated=event is None)


@dataclass(frozen=True, slots=True)
class Tell:
    """Answer an ask.

    Attributes:
        arena: id of the arena.
        ask: id of the decision.
        verdict: left, right, tie, both_bad or skip.
        voter: any name; empty for the voter who was asked, if there was one.
        ranking: instead of a verdict, ids of items that were shown, best first: the best alone, or more.
    """

    arena: str
    ask: str
    verdict: str
    voter: str = ""
    ranking: tuple[str, ...] = ()

    def decide(self, state: Arenas, at: int) -> Event | None:
        """The event `told`; None where the same answer was given before."""
        arena = state.arena(self.arena)
        decision = arena.decision(self.ask)
        if self.ranking or isinstance(arena.learner, SlateLearner):
            outcome, places = self._read(arena, decision)
        else:
            outcome, places = from_sides(self.verdict, flipped=decision.flipped), None
        if decision.outcome is outcome and (places is None or arena.learner.rankings[decision.number] == places):
            return None
        if decision.outcome is not Outcome.OPEN:
            raise ConflictError(
                f"ask {self.ask} was answered before, and differently. Each ask counts once; undo it first, in time."
            )
        kept = arena.learner.request_features
        if kept is not None and decision.number not in kept.waiting:
            raise ConflictError(f"ask {self.ask} was dropped: more than {kept.most_waiting} later asks came without an answer.")
        body: Body = {"arena": self.arena, "at": at, "number": decision.number, "outcome": OUTCOME_NAMES[outcome]}
        if places is not None:
            body["ranking"] = places
        if self.voter:
            body["voter"] = self.voter
        return Event("told", body)

    def _read(self, arena: Arena, decision: Decision) -> tuple[Outcome, tuple[int, ...] | None]:
        """The outcome, and of a slate the places in it that the answer names."""
        is_slate = decision.number in arena.learner.slates
        if not self.ranking:
            if self.verdict in ("left", "right"):
                raise RefusedError(f"ask {self.ask} shows a slate, without sides: say best or ranking; got {self.verdict!r}.")
            return from_sides(self.verdict, flipped=False), None
        numbers = [arena.table.number_of(item) for item in self.ranking]
        places = places_of(arena.learner, decision, numbers, self.ranking)
        if is_slate:
            return Outcome.RANKED, places
        return (Outcome.FIRST if places[0] == 0 else Outcome.SECOND), None

    def reply(self, state: Arenas, event: Event | None) -> Told:
        """Whether it counts now, and until when it can be undone."""
        arena = state.arenas[self.arena]
        told_at = arena.undoable.get(int(self.ask.partition("-")[0]))
        return Told(event is None, None if told_at is None else told_at + arena.spec.undo_ms)


@dataclass(frozen=True, slots=True)
class Undo:
    """Take an answer back, in time and by the voter who gave it.

    Attributes:
        arena: id of the arena.
        ask: id of the decision.
        voter: who gave the answer.
    """

    arena: str
    ask: str
    voter: str

    def decide(self, state: Arenas, at: int) -> Event:
        """The event `undone`."""
        arena = state.arena(self.arena)
        number = arena.decision(self.ask).number
        arena.settle(at)
        decision = arena.log[number]
        if decision.outcome is Outcome.OPEN:
            raise ConflictError(f"ask {self.ask} has no answer to undo.")
        if decision.stage != UNDOABLE:
            raise ConflictError(
                f"the answer to ask {self.ask} can no longer be undone: that is possible for "
                f"{arena.spec.undo_ms / 1000:g} s, by a named voter, and until that voter answers another ask."
            )
        if arena.voters.get(self.voter) != decision.voter:
            raise ConflictError(f"the answer to ask {self.ask} was given by another voter, who alone may undo it.")
        return Event("undone", {"arena": self.arena, "at": at, "number": number})

    def reply(self, state: Arenas, event: Event | None) -> Asked:  # noqa: ARG002 - a command's signature
        """The pair, which waits for an answer again."""
        arena = state.arenas[self.arena]
        return shown_pair(arena, arena.decision(self.ask), repeated=True)


@dataclass(frozen=True, slots=True)
class AddItems:
    """Add items while votes come in. Votes on pairs shown before still count.

    Attributes:
        arena: id of the arena.
        items: with their features. An empty id stands for one made from the name.
    """

    arena: str
    items: Sequence[Item]

    def decide(self, state: Arenas, at: int) -> Event:
        """The event `added`."""
        arena = state.arena(self.arena)
        items = with_ids(self.items, taken=set(arena.table.numbers))
        check_items(arena, items)
        return Event("added", {"arena": self.arena, "at": at, "items": [item.to_plain() for item in items]})

    def reply(self, state: Arenas, event: Event | None) -> list[ListedItem]:  # noqa: ARG002 - a command's signature
        """All items."""
        return state.arenas[self.arena].listed_items()


@dataclass(frozen=True, slots=True)
class SetRetired:
    """Retire an item, or bring it back. Nothing that was learnt is forgotten.

    Attributes:
        arena: id of the arena.
        item: id of the item.
        retired: whether it is to be retired.
    """

    arena: str
    item: str
    retired: bool

    def decide(self, state: Arenas, at: int) -> Event | None:
        """The event `retired` or `returned`; None where nothing changes."""
        table = state.arena(self.arena).table
        number = table.number_of(self.item)
        if (number in table.retired) == self.retired:
            return None
        least = state.arena(self.arena).learner.choices
        if self.retired and len(table.active) <= least:
            raise ConflictError(f"this arena needs {least} active items; add another before retiring this one.")
        return Event("retired" if self.retired else "returned", {"arena": self.arena, "at": at, "item": number})

    def reply(self, state: Arenas, event: Event | None) -> ListedItem:  # noqa: ARG002 - a command's signature
        """The item."""
        arena = state.arenas[self.arena]
        return arena.listed_item(arena.table.number_of(self.item))


@dataclass(frozen=True, slots=True)
class ImportVotes:
    """Learn past votes.

    Attributes:
        arena: id of the arena.
        batch: any name. A batch of the same name and size is imported once.
        votes: first item, second item, and outcome (first, second, tie or both_bad).
    """

    arena: str
    batch: str
    votes: Sequence[tuple[str, str, str]]

    def decide(self, state: Arenas, at: int) -> Event | None:
        """The event `imported`; None where the batch was imported before."""
        arena = state.arena(self.arena)
        if arena.learner.request_features is not None:
            raise ConflictError("an arena whose features come with each ask cannot import votes: they have no features.")
        known = arena.batches.get(self.batch)
        if known is not None:
            if known != len(self.votes):
                raise ConflictError(
                    f"batch {self.batch!r} was imported before with {known} votes; got {len(self.votes)}. "
                    f"Name the new one differently."
                )
            return None
        rows = []
        for place, (first, second, outcome) in enumerate(self.votes):
            if first == second:
                raise RefusedError(f"vote {place} compares {first!r} with itself. A vote needs two items.")
            rows.append([arena.table.number_of(first), arena.table.number_of(second), outcome])
        return Event("imported", {"arena": self.arena, "at": at, "batch": self.batch, "votes": rows})

    def reply(self, state: Arenas, event: Event | None) -> bool:  # noqa: ARG002 - a command's signature
        """Whether the batch had been imported before."""
        return event is None


def shown_pair(arena: Arena, decision: Decision, *, repeated: bool) -> Asked:
    """A decision with its two items, left and right as drawn; of a slate, with all."""
    items, learner = arena.table.items, arena.learner
    if decision.number in learner.slates:
        slate, ranking = learner.slates[decision.number], learner.rankings.get(decision.number, ())
        shown = tuple(items[number] for number in slate.screen)
        return Asked(decision, shown[0], shown[1], repeated, shown, tuple(items[slate.items[place]] for place in ranking))
    first, second = items[decision.first], items[decision.second]
    return Asked(decision, second, first, repeated) if decision.flipped else Asked(decision, first, second, repeated)


def check_items(arena: Arena, items: Sequence[Item]) -> None:
    """Refuse items that an arena cannot take."""
    total = len(arena.table.items) + len(items)
    if total > MAX_ITEMS:
        raise ConflictError(f"an arena holds at most {MAX_ITEMS} items; this would make {total}.")
    wanted = arena.spec.dim if arena.spec.features in ("given", "text") else 0
    seen = set(arena.table.numbers)
    for item in items:
        if item.id in seen:
            raise ConflictError(f"there is an item {item.id!r} in arena {arena.spec.id!r} already. Give each its own id.")
        seen.add(item.id)
        if len(item.features) != wanted:
            raise RefusedError(
                f"item {item.id!r} must come with {wanted} features in this arena; got {len(item.features)}. "
                f"All items of an arena share one kind and one length of features."
            )
