"""A journal in memory: for tests, and for trying things out. Durable for as long as the process is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from duelist.journal.base import Snapshot
from duelist.journal.writer import GroupedJournal, Row


class MemoryStore:
    """Lists. Appending to a list is atomic in Python, so readers need no lock."""

    notes: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._snapshot: Snapshot | None = None

    def begin(self) -> int:
        """Nothing to open: there is one writer."""
        return len(self._rows)

    def commit(self, rows: Sequence[Row], snapshot: Snapshot | None) -> None:
        """Append."""
        self._rows.extend(rows)
        self._snapshot = snapshot or self._snapshot

    def rollback(self) -> None:
        """Nothing to undo."""

    def rows(self, after: int, *, in_turn: bool) -> Iterator[Row]:  # noqa: ARG002 - a store's signature
        """Rows behind `after`."""
        return iter(self._rows[max(after, 0) :])

    def snapshot(self, *, in_turn: bool) -> Snapshot | None:  # noqa: ARG002 - a store's signature
        """The newest snapshot."""
        return self._snapshot

    def close(self) -> None:
        """Nothing to release."""


class MemoryJournal(GroupedJournal):
    """A journal in memory.

    Example:
        >>> journal = MemoryJournal()
        >>> journal.transact(lambda turn: turn.append("told", {"id": 0, "winner": "first"}))
        1
        >>> [record.kind for record in journal.read()]
        ['told']
        >>> journal.close()
    """

    def __init__(self) -> None:
        super().__init__(MemoryStore())
