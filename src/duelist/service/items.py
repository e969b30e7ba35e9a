"""Items: what is compared. They are numbered in the order they came and never removed, only retired."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from duelist.core.checks import FloatArray

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
    """The items of an arena, and which of them take part.

    Every change of who takes part makes a new line-up; a decision remembers the number of the line-up it was drawn from.
    """

    items: list[Item] = field(default_factory=list)
    retired: set[int] = field(default_factory=set)
    line_ups: list[tuple[int, ...]] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)

    def add(self, items: list[Item]) -> None:
        """Append items and make the line-up that includes them."""
        for item in items:
            self.numbers[item.id] = len(self.items)
            self.items.append(item)
        self._line_up()

    def set_retired(self, number: int, *, retired: bool) -> None:
        """Take an item out, or back in."""
        if retired:
            self.retired.add(number)
        else:
            self.retired.discard(number)
        self._line_up()

    def _line_up(self) -> None:
        self.line_ups.append(tuple(n for n in range(len(self.items)) if n not in self.retired))

    @property
    def active(self) -> tuple[int, ...]:
        """Numbers of the items that take part, ascending."""
        return self.line_ups[-1]

    def features(self, numbers: tuple[int, ...], dim: int) -> FloatArray:
        """Features (len(numbers), dim): the items' own, or one indicator an item where they have none."""
        rows = np.zeros((len(numbers), dim))
        for row, number in zip(rows, numbers, strict=True):
            own = self.items[number].features
            if own:
                row[:] = own
            else:
                row[number] = 1.0
        return rows
