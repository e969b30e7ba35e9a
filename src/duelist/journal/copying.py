"""Copying a journal, from any backend to any other, while the original is in use.

Events never change, so a copy is right whenever it is a beginning of the original. Every event is checked on the way. A copy
that was interrupted is continued: what it holds already must be what the original holds there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

from duelist.core.errors import InvalidInputError
from duelist.journal.writer import Row, Saved, Store, checked_rows

_PAGE = 2000  # events per commit


class Copied(NamedTuple):
    """What a copy did.

    Attributes:
        events: how many were copied now.
        head: position of the last event of the copy.
        continued: whether the copy held a beginning already.
    """

    events: int
    head: int
    continued: bool


def copy_journal(source: Store, target: Store, on_events: Callable[[int], None] = lambda _: None) -> Copied:
    """Copy every event, and the newest snapshot, which spares the next start a replay.

    Args:
        source: is only read, and may be in use.
        target: empty, or an interrupted copy of the same.
        on_events: called with how many events were copied since the last call.
    """
    snapshot, head = source.snapshot(in_turn=False), target.begin()
    target.rollback()
    if head:
        _check_beginning(source, target, head)
    rows = checked_rows(source.rows(head, in_turn=False), head)
    events, last = 0, head
    while page := list(islice(rows, _PAGE)):
        target.begin()
        try:
            target.commit(page, Saved())
        except BaseException:
            target.rollback()
            raise
        events, last = events + len(page), page[-1].position
        on_events(len(page))
    if snapshot is not None and head <= snapshot.position <= last:
        target.begin()
        try:
            target.commit([], Saved(snapshot=snapshot, pieces=dict(source.pieces())))
        except BaseException:
            target.rollback()
            raise
    return Copied(events, last, head > 0)


def _check_beginning(source: Store, target: Store, head: int) -> None:
    """Refuse to append to anything but a beginning of the source: its first and its last event must be the same."""
    for after in (0, head - 1):
        theirs, own = _next(source.rows(after, in_turn=False)), _next(target.rows(after, in_turn=False))
        if theirs != own:
            raise InvalidInputError(
                f"the target holds {head} events that are not the beginning of the source. Copy to a new file, or to a "
                "database without a journal."
            )


def _next(rows: Iterator[Row]) -> Row | None:
    return next(rows, None)
