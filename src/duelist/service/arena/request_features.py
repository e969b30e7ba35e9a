"""Arenas whose features come with each ask: every ask has its own action set, kept until the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.service.arena.decisions import Decision
from duelist.service.arena.items import ItemTable
from duelist.service.errors import ConflictError, RefusedError
from duelist.typing import FloatArray

MOST_WAITING = 10_000


class RequestFeatures:
    """Features of the asks that wait, of the pairs that were answered, and the mean features of every item."""

    def __init__(self, dim: int, most_waiting: int = MOST_WAITING) -> None:
        self.dim, self.most_waiting = dim, most_waiting
        self.waiting: dict[int, tuple[FiniteActions, tuple[int, ...]]] = {}
        self.pairs: dict[int, FloatArray] = {}  # answered decision -> (2, dim) features of its first and second item
        self.sums: dict[int, FloatArray] = {}
        self.counts: dict[int, int] = {}
        self.members: dict[int, tuple[int, ...]] = {}  # decision -> the items that it was chosen from
        self._known: dict[tuple[int, ...], tuple[int, ...]] = {}  # asks offer the same items again and again: one tuple for all

    def offered(self, table: ItemTable, features: Mapping[str, Sequence[float]]) -> tuple[FiniteActions, tuple[int, ...]]:
        """The action set of these features, rows in the order of the items' numbers."""
        if len(features) < 2:
            raise RefusedError(f"an ask needs the features of at least two items; got {len(features)}.")
        by_number = {table.number_of(item_id): row for item_id, row in features.items()}
        members = tuple(sorted(by_number))
        for number in members:
            item = table.items[number]
            if number in table.retired:
                raise ConflictError(f"item {item.id!r} is retired. Leave it out, or bring it back first.")
            if len(by_number[number]) != self.dim:
                raise RefusedError(f"features of item {item.id!r} must have length {self.dim}; got {len(by_number[number])}.")
        return FiniteActions([by_number[number] for number in members]), members

    def keep(self, number: int, members: tuple[int, ...], actions: FiniteActions) -> None:
        """Keep what an ask offered; beyond `most_waiting` the oldest is dropped."""
        self.waiting[number] = (actions, members)
        self.members[number] = self._known.setdefault(members, members)
        if len(self.waiting) > self.most_waiting:
            del self.waiting[next(iter(self.waiting))]
        for item, row in zip(members, actions.features[0], strict=True):
            self.sums[item] = self.sums[item] + row if item in self.sums else row.copy()
            self.counts[item] = self.counts.get(item, 0) + 1

    def settle(self, decision: Decision) -> None:
        """Keep only the pair of an answered ask."""
        self.pairs[decision.number] = self.pair_of(decision)
        del self.waiting[decision.number]

    def pair_of(self, decision: Decision) -> FloatArray:
        """Features (2, dim) of the first and the second item; zeros where the ask was dropped."""
        if decision.number in self.pairs:
            return self.pairs[decision.number]
        if decision.number not in self.waiting:
            return np.zeros((2, self.dim))
        actions, members = self.waiting[decision.number]
        rows: FloatArray = actions.features[0]
        return rows[[members.index(decision.first), members.index(decision.second)]]

    def means(self, numbers: tuple[int, ...]) -> FloatArray:
        """Mean features (len(numbers), dim) with which each item was offered; zeros for an item that never was."""
        nothing = np.zeros(self.dim)
        return np.array([self.sums.get(n, nothing) / max(self.counts.get(n, 0), 1) for n in numbers]).reshape(-1, self.dim)

    def to_saved(self) -> dict[str, Any]:
        """Everything, as a value that `duelist.core.serialize` takes."""
        places = {members: place for place, members in enumerate(dict.fromkeys(self.members.values()))}
        return {
            "waiting": [[number, actions, list(members)] for number, (actions, members) in self.waiting.items()],
            "answered": np.array(list(self.pairs), dtype=np.int64),
            "pairs": np.array(list(self.pairs.values())).reshape(-1, 2, self.dim),
            "items": np.array(list(self.sums), dtype=np.int64),
            "sums": np.array(list(self.sums.values())).reshape(-1, self.dim),
            "counts": np.array([self.counts[item] for item in self.sums], dtype=np.int64),
            "members": [list(members) for members in places],
            "asked": np.array(list(self.members), dtype=np.int64),
            "members_of": np.array([places[members] for members in self.members.values()], dtype=np.int64),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """The inverse of `to_saved`."""
        self.waiting = {number: (actions, tuple(members)) for number, actions, members in saved["waiting"]}
        self.pairs = {int(n): pair for n, pair in zip(saved["answered"], saved["pairs"], strict=True)}
        self.sums = {int(n): row for n, row in zip(saved["items"], saved["sums"], strict=True)}
        self.counts = {int(n): int(c) for n, c in zip(saved["items"], saved["counts"], strict=True)}
        if "members" in saved:  # version 0.1.0 did not keep them
            known = [tuple(members) for members in saved["members"]]
            self._known = {members: members for members in known}
            places = zip(saved["asked"], saved["members_of"], strict=True)
            self.members = {int(n): known[place] for n, place in places}
