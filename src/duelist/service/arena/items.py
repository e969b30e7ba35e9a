"""Items: what is compared. They are numbered in the order in which they were added and never removed, only retired."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from duelist.service.errors import NotFoundError
from duelist.typing import FloatArray

Format = Literal["text", "markdown", "image"]


@dataclass(frozen=True)
class Item:
    """One candidate.

    Attributes:
        id: its name in requests, unique in the arena.
        name: what the leaderboard calls it. Voters see the content, never the name.
        content: what voters see: text, Markdown, or the address of an image.
        format: which of the three.
        features: its feature vector where the arena keeps one; empty otherwise.
    """

    id: str
    name: str
    content: str
    format: Format = "text"
    features: tuple[float, ...] = ()

    def to_plain(self) -> dict[str, Any]:
        """The item as the journal keeps it."""
        plain: dict[str, Any] = {"id": self.id, "name": self.name, "content": self.content, "format": self.format}
        if self.features:
            plain["features"] = list(self.features)
        return plain

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> Item:
        """The inverse of `to_plain`."""
        return cls(plain["id"], plain["name"], plain["content"], plain["format"], tuple(plain.get("features", ())))


@dataclass
class ItemTable:
    """The items of an arena, and which of them are active.

    Every change of the active items makes a new roster. A decision remembers the number of the roster it was chosen from.

    Attributes:
        arena: id of the arena, for messages.
        items: all of them, retired ones included.
        retired: numbers of the retired ones.
        rosters: numbers of the active items, ascending, for every version.
        numbers: item id -> number.
    """

    arena: str
    items: list[Item] = field(default_factory=list)
    retired: set[int] = field(default_factory=set)
    rosters: list[tuple[int, ...]] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def add(self, items: list[Item]) -> None:
        """Append items and make the roster that includes them."""
        for item in items:
            self.numbers[item.id] = len(self.items)
            self.items.append(item)
        self._add_roster()

    def set_retired(self, number: int, *, retired: bool) -> None:
        """Retire an item, or bring it back."""
        if retired:
            self.retired.add(number)
        else:
            self.retired.discard(number)
        self._add_roster()

    def _add_roster(self) -> None:
        self.rosters.append(tuple(n for n in range(len(self.items)) if n not in self.retired))

    @property
    def active(self) -> tuple[int, ...]:
        """Numbers of the active items, ascending."""
        return self.rosters[-1]

    def number_of(self, item_id: str) -> int:
        """The number of an item."""
        number = self.numbers.get(item_id)
        if number is None:
            raise NotFoundError(f"arena {self.arena!r} has no item {item_id!r}.")
        return number

    def features(self, numbers: tuple[int, ...], dim: int) -> FloatArray:
        """Features (len(numbers), dim): the items' own, or an indicator per item where they have none."""
        rows = np.zeros((len(numbers), dim))
        for row, number in zip(rows, numbers, strict=True):
            own = self.items[number].features
            if own:
                row[:] = own
            else:
                row[number] = 1.0
        return rows
