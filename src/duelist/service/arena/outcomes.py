"""What a person may say about two candidates, or about several.

Every outcome is kept in the journal. A win teaches who is better; a tie that the two are close, and counts as half a win each
way (see `duelist.history`). "Both bad" says something about both and nothing about their order, and a skip nothing at all:
utilities here are relative to each other, so nothing is learnt from either. The answer to a slate of several names the best, or
the best few in order.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Literal

Verdict = Literal["left", "right", "tie", "both_bad", "skip"]
Strength = Literal["much", "slightly"]
Said = Literal["left", "right", "tie", "both_bad", "skip", "ranked", "removed"]


class Outcome(IntEnum):
    """The answer to a decision. The numbers are stored in snapshots: never renumber them."""

    OPEN = 0
    FIRST = 1
    SECOND = 2
    TIE = 3
    BOTH_BAD = 4
    SKIP = 5
    RANKED = 6  # of a slate: the items in order, or the best of them alone
    REMOVED = 7  # taken back by an administrator, with all other answers of its voter

    @property
    def is_win(self) -> bool:
        """Whether one of the two was preferred."""
        return self in (Outcome.FIRST, Outcome.SECOND)


# What a policy is told: +1 where the first won, -1 where the second did, 0 for a tie.
SIGNS = {Outcome.FIRST: 1, Outcome.SECOND: -1, Outcome.TIE: 0}
# Names in events, in terms of first and second.
OUTCOMES = {
    "first": Outcome.FIRST,
    "second": Outcome.SECOND,
    "tie": Outcome.TIE,
    "both_bad": Outcome.BOTH_BAD,
    "skip": Outcome.SKIP,
    "ranked": Outcome.RANKED,
    "removed": Outcome.REMOVED,
}
OUTCOME_NAMES = {outcome: name for name, outcome in OUTCOMES.items()}


def from_sides(verdict: str, *, flipped: bool) -> Outcome:
    """The outcome behind what a person saw: `flipped` when the first candidate stood on the right.

    Example:
        >>> from_sides("left", flipped=True).name
        'SECOND'
    """
    if verdict not in ("left", "right"):
        return OUTCOMES[verdict]
    return Outcome.SECOND if (verdict == "left") == flipped else Outcome.FIRST


def to_sides(outcome: Outcome, *, flipped: bool) -> str:
    """The inverse of `from_sides`."""
    if not outcome.is_win:
        return OUTCOME_NAMES[outcome]
    return "right" if (outcome is Outcome.FIRST) == flipped else "left"
