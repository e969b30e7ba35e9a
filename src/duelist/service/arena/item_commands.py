"""What an administrator may want of the items of an arena, and past votes on them, as values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from duelist.journal.base import Event
from duelist.service.arena.arena import Arena
from duelist.service.arena.commands import Arenas
from duelist.service.arena.items import Item, with_ids
from duelist.service.arena.summary import ListedItem
from duelist.service.errors import ConflictError, RefusedError

MAX_ITEMS = 1024


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
        arena.check_open()
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
