"""Votes and exploration over time, for the dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from duelist.service.decisions import ASKED
from duelist.service.outcomes import Outcome

if TYPE_CHECKING:
    from duelist.service.arena import Arena

_BUCKETS = 60
_WIDTHS_MS = (1, 5, 15, 60, 300, 900, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400)


class Bucket(NamedTuple):
    """One stretch of time.

    Attributes:
        start: when it began, milliseconds since 1970.
        votes: answers given in it, skips left out.
        asks: pairs shown in it.
        explored: mean share of exploration of those pairs; 0 where none was shown.
    """

    start: int
    votes: int
    asks: int
    explored: float


def timeline(arena: Arena) -> tuple[int, list[Bucket]]:
    """Width of a bucket in milliseconds, and at most 60 buckets from the first ask to the last event. Imports do not count."""
    mine = arena.log.column("source") == ASKED
    asked_at, told_at = arena.log.column("asked_at")[mine], arena.log.column("told_at")[mine]
    outcome, explored = arena.log.column("outcome")[mine], arena.log.column("explored")[mine]
    if not len(asked_at):
        return 1000, []
    voted = (outcome != Outcome.OPEN) & (outcome != Outcome.SKIP)
    begin, end = int(asked_at.min()), int(max(asked_at.max(), told_at.max()))
    width = next((1000 * w for w in _WIDTHS_MS if (end - begin) < 1000 * w * (_BUCKETS - 1)), 1000 * _WIDTHS_MS[-1])
    begin -= begin % width
    n = (end - begin) // width + 1
    place = (asked_at - begin) // width
    asks = np.bincount(place, minlength=n)
    shares = np.bincount(place, weights=explored, minlength=n) / np.maximum(asks, 1)
    votes = np.bincount((told_at[voted] - begin) // width, minlength=n)
    return width, [Bucket(begin + i * width, int(votes[i]), int(asks[i]), float(shares[i])) for i in range(n)]
