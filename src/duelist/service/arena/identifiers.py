"""Ids made from names: ASCII letters, digits and hyphens."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import replace

from duelist.service.arena.items import Item


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
