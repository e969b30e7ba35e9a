"""Items: what is compared. They are numbered in the order in which they were added and never removed, only retired."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from duelist.service.errors import NotFoundError
from duelist.typing import FloatArray


def slug(name: str, length: int) -> str:
    """The letters and digits of a name with hyphens between, at most that long; empty where it has none.

    Example:
        >>> slug("Réponse  n° 1", 40)
        'Reponse-n-1'
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    return re.sub(r"[^A-Za-z0-9]+", "-", plain).strip("-")[:length].strip("-")


def with_ids(items: Sequence[Item], *, taken: set[str]) -> list[Item]:
    """The items, each without an id given one that is not taken."""
    taken = taken | {item.id for item in items if item.id}
    named = []
    for item in items:
        named.append(item if item.id else replace(item, id=_free_id(item.name, taken)))
        taken.add(named[-1].id)
    return named


def _free_id(name: str, taken: set[str]) -> str:
    stem = slug(name, 32).lower() or "item"
    candidate, n = stem, 1
    while candidate in taken:
        n += 1
        candidate = f"{stem}-{n}"
    return candidate


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
