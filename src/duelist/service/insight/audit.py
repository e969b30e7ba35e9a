"""Who did what: events of the journal in a few words, without secrets and contents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from duelist.journal.base import Record

VOTES = frozenset(("asked", "told", "undone"))
_WINDOW = 5000  # events that one page looks through at most
_PART = 500


class AuditedEvent(NamedTuple):
    """One event.

    Attributes:
        position: in the journal.
        at: milliseconds since 1970.
        kind: what happened, a word.
        arena: where; empty for the whole service.
        by: id of the key or session behind it; empty before 0.2.0.
        about: what it was about.
    """

    position: int
    at: int
    kind: str
    arena: str
    by: str
    about: str


def audit(
    read: Callable[[int], Iterable[Record]], before: int, *, arena: str, votes: bool, limit: int
) -> tuple[list[AuditedEvent], int | None]:
    """The latest events before a position, newest first, and where the next page begins; None at the start of the journal.

    A page may be shorter than `limit`, and even empty, while there are more: it looks through some thousand events at most.

    Args:
        read: the events behind a position.
        before: position of the first event that is not wanted.
        arena: id of the arena; empty for all, and for what belongs to none.
        votes: whether asks, answers and undone answers are wanted too.
        limit: most events.
    """
    found: list[AuditedEvent] = []
    end, least = before, max(before - _WINDOW, 1)
    while end > least and len(found) < limit:
        start = max(end - _PART, least)
        part = []
        for record in read(start - 1):
            if record.position >= end:
                break
            if (votes or record.kind not in VOTES) and (not arena or _arena_of(record) == arena):
                part.append(_audited(record))
        found += reversed(part)
        end = start
    if len(found) > limit:
        return found[:limit], found[limit - 1].position
    return found, end if end > 1 else None


def _arena_of(record: Record) -> str:
    return str(record.body.get("arena") or record.body.get("scope") or "")


def _audited(record: Record) -> AuditedEvent:
    body = record.body
    return AuditedEvent(
        record.position, body.get("at", 0), record.kind, _arena_of(record), str(body.get("by", "")), _about(record.kind, body)
    )


def _about(kind: str, body: dict[str, Any]) -> str:
    told = {
        "created": lambda: f"{len(body['items'])} items",
        "added": lambda: ", ".join(item["id"] for item in body["items"])[:200],
        "retired": lambda: f"item {body['item']}",
        "returned": lambda: f"item {body['item']}",
        "asked": lambda: f"ask {body['number']}",
        "told": lambda: f"ask {body['number']}: {body['outcome']}",
        "undone": lambda: f"ask {body['number']}",
        "imported": lambda: f"{len(body['votes'])} votes, batch {body['batch']}",
        "prompts": lambda: f"{len(body['rows'])} prompts, batch {body['batch']}",
        "goal": lambda: "none" if body["goal"] is None else f"{body['goal']['kind']}, delta {body['goal']['delta']:g}",
        "removed": lambda: f"answers of voter {body['voter']}",
        "erased": lambda: f"name of voter {body['voter']}",
        "key": lambda: f"{body['role']} key {body['id']}: {body['label']}",
        "revoked": lambda: f"key {body['id']}",
    }
    return told[kind]() if kind in told else ""
