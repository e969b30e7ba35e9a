"""A journal in memory: for tests, and for trying things out. Durable for as long as the process is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from duelist.journal.base import COMPACTED, Snapshot
from duelist.journal.chunks import PREFIX, first_chunk
from duelist.journal.writer import GroupedJournal, Row, Saved


class MemoryStore:
    """Lists. Appending to a list is atomic in Python, so readers need no lock."""

    notes: tuple[str, ...] = ()

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._snapshot: Snapshot | None = None
        self._pieces: dict[str, bytes] = {}

    def begin(self) -> int:
        """Nothing to open: there is one writer."""
        return self._rows[-1].position if self._rows else 0

    def commit(self, rows: Sequence[Row], saved: Saved) -> None:
        """Append."""
        self._rows.extend(rows)
        base = saved.base
        if base is not None:
            self._rows = [base, *(row for row in self._rows if row.position > base.position)]
            self._pieces = {}
            if self._snapshot is not None and self._snapshot.position <= base.position:
                self._snapshot = None
        self._snapshot = saved.snapshot or self._snapshot
        self._pieces.update(saved.pieces)
        if saved.snapshot is not None:
            oldest = first_chunk(saved.snapshot.position)
            for name in [name for name in self._pieces if PREFIX <= name < oldest]:
                del self._pieces[name]

    def piece(self, name: str) -> bytes | None:
        """A piece by its name."""
        return self._pieces.get(name)

    def pieces(self) -> Iterator[tuple[str, bytes]]:
        """All pieces."""
        return iter(list(self._pieces.items()))

    def has_compacted(self, position: int) -> bool:
        """Whether the first row stands for all up to there."""
        return bool(self._rows) and self._rows[0].kind == COMPACTED and self._rows[0].position >= position

    def room(self) -> None:
        """Not known."""

    def erase(self) -> None:
        """Nothing is left of what was dropped."""

    def rollback(self) -> None:
        """Nothing to undo."""

    def rows(self, after: int, *, in_turn: bool) -> Iterator[Row]:  # noqa: ARG002 - a store's signature
        """Rows behind `after`."""
        rows = self._rows
        start = max(after - rows[0].position + 1, 0) if rows else 0  # positions have no gaps, but need not begin at 1
        return iter(rows[start:])

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
