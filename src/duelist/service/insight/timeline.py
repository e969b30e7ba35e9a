"""Votes and exploration over time, for the dashboard."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duelist.service.arena.arena import Arena
from duelist.service.arena.decisions import ASKED
from duelist.service.arena.outcomes import Outcome

_BUCKETS = 60
_WIDTHS_SECONDS = (1, 5, 15, 60, 300, 900, 3600, 6 * 3600, 86_400, 7 * 86_400, 30 * 86_400, 365 * 86_400)


class Bucket(NamedTuple):
    """One stretch of time.

    Attributes:
        start: when it began, milliseconds since 1970.
        votes: answers given in it, skips left out.
        asks: pairs shown in it.
        explored: mean share of exploration of those pairs; 0 where none was shown, None where it is unknown for all of them.
    """

    start: int
    votes: int
    asks: int
    explored: float | None


def timeline(arena: Arena) -> tuple[int, list[Bucket]]:
    """Width of a bucket in milliseconds, and at most 60 buckets from the first ask to the last event. Imports do not count."""
    mine = arena.log.column("source") == ASKED
    asked_at, told_at = arena.log.column("asked_at")[mine], arena.log.column("told_at")[mine]
    outcome, explored = arena.log.column("outcome")[mine], arena.log.column("explored")[mine]
    if not len(asked_at):
        return 1000, []
    voted = ~np.isin(outcome, (Outcome.OPEN, Outcome.SKIP, Outcome.REMOVED))
    begin, end = int(asked_at.min()), int(max(asked_at.max(), told_at.max()))
    width = next((1000 * w for w in _WIDTHS_SECONDS if (end - begin) < 1000 * w * (_BUCKETS - 1)), 1000 * _WIDTHS_SECONDS[-1])
    begin -= begin % width
    n = (end - begin) // width + 1
    place = (asked_at - begin) // width
    asks = np.bincount(place, minlength=n)
    known = ~np.isnan(explored)
    n_known = np.bincount(place[known], minlength=n)
    shares = np.bincount(place[known], weights=explored[known], minlength=n) / np.maximum(n_known, 1)
    votes = np.bincount((told_at[voted] - begin) // width, minlength=n)
    return width, [
        Bucket(begin + i * width, int(votes[i]), int(asks[i]), float(shares[i]) if n_known[i] or not asks[i] else None)
        for i in range(n)
    ]


def mean_explored(arena: Arena) -> float | None:
    """Mean share of exploration of all asks; 0 where there are none, None where it is unknown for all of them."""
    shares = arena.log.column("explored")[arena.log.column("source") == ASKED]
    known = shares[~np.isnan(shares)]
    if not len(known):
        return None if len(shares) else 0.0
    return float(known.mean())
