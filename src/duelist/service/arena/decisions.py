"""Decisions: every pair that was asked for or imported, in columns. A few dozen bytes each, so a million fit in memory."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from duelist.service.arena.outcomes import Outcome

ASKED, IMPORTED = 0, 1
WAITING, UNDOABLE, SETTLED = 0, 1, 2
NO_VOTER = -1
_OUTCOMES = tuple(Outcome)
_NO_DRAWS = (math.nan,) * 4
_COLUMNS = {
    "token": "Q",  # the unguessable part of a decision's id
    "first": "l",
    "second": "l",
    "flipped": "b",
    "source": "b",
    "outcome": "b",
    "stage": "b",  # WAITING for an answer, UNDOABLE while the voter may take it back, SETTLED for good
    "asked_at": "q",  # milliseconds since 1970, UTC
    "told_at": "q",
    "roster": "l",
    "voter": "l",  # who answered
    "probability": "d",  # of the unordered pair; NaN where unknown
    "explored": "d",  # share of the two candidates that were not among the two leading items; NaN where unknown
    "draw_1_first": "d",  # utilities of both candidates under the two posterior draws; NaN where there were none
    "draw_1_second": "d",
    "draw_2_first": "d",
    "draw_2_second": "d",
    "asker": "l",  # who was asked; since 0.2.0
    "teller": "l",  # through which key the answer came; since 0.2.0
}
_SINCE = ("asker", "teller")  # columns that a snapshot of before does not have


class NewDecision(NamedTuple):
    """A pair without an answer, as it enters the log.

    Attributes:
        token: the unguessable part of its id.
        first: number of the first item.
        second: number of the second item.
        flipped: whether the first item is shown on the right.
        source: ASKED or IMPORTED.
        asked_at: milliseconds since 1970.
        roster: number of the roster that it was chosen from.
        probability: of the unordered pair; NaN where unknown.
        explored: share of the pair that was not among the two leading items; NaN where unknown.
        drawn: utilities of both candidates under each posterior draw; empty where there were none.
        asker: number of the voter who was asked.
    """

    token: int
    first: int
    second: int
    flipped: bool
    source: int
    asked_at: int
    roster: int
    probability: float = math.nan
    explored: float = math.nan
    drawn: Sequence[Sequence[float]] = ()
    asker: int = NO_VOTER


class Decision(NamedTuple):
    """One row of the log."""

    number: int
    token: int
    first: int
    second: int
    flipped: bool
    source: int
    outcome: Outcome
    stage: int
    asked_at: int
    told_at: int
    roster: int
    voter: int
    probability: float
    explored: float
    draw_1_first: float
    draw_1_second: float
    draw_2_first: float
    draw_2_second: float
    asker: int
    teller: int

    @property
    def id(self) -> str:
        """The name of the decision in requests."""
        return f"{self.number}-{self.token:016x}"

    @property
    def left(self) -> int:
        """Number of the item shown on the left."""
        return self.second if self.flipped else self.first

    @property
    def right(self) -> int:
        """Number of the item shown on the right."""
        return self.first if self.flipped else self.second


class DecisionLog:
    """A growing table of decisions; numbers are row numbers."""

    def __init__(self) -> None:
        self._columns: dict[str, array[Any]] = {name: array(code) for name, code in _COLUMNS.items()}
        self._counts = [0] * len(Outcome)

    def __len__(self) -> int:
        return len(self._columns["token"])

    def append(self, new: NewDecision) -> int:
        """Add a decision that waits for its answer. Returns its number."""
        *pair, asked_at, roster, probability, explored, drawn, asker = new
        utilities = (*drawn[0], *drawn[1]) if drawn else _NO_DRAWS
        values = (
            *pair,
            Outcome.OPEN,
            WAITING,
            asked_at,
            0,
            roster,
            NO_VOTER,
            probability,
            explored,
            *utilities,
            asker,
            NO_VOTER,
        )
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)
        self._counts[Outcome.OPEN] += 1
        return len(self._columns["token"]) - 1

    def __getitem__(self, number: int) -> Decision:
        row: list[Any] = [number, *map(itemgetter(number), self._columns.values())]
        row[4], row[6] = bool(row[4]), _OUTCOMES[row[6]]
        return Decision._make(row)

    def set_told(self, number: int, outcome: Outcome, told_at: int, voter: int, stage: int, teller: int = NO_VOTER) -> None:
        """Write down an answer, or take it back with Outcome.OPEN."""
        columns = self._columns
        self._counts[columns["outcome"][number]] -= 1
        self._counts[outcome] += 1
        columns["outcome"][number], columns["told_at"][number] = outcome, told_at
        columns["voter"][number], columns["stage"][number], columns["teller"][number] = voter, stage, teller

    def asker_of(self, number: int) -> int:
        """Number of the voter who was asked; NO_VOTER where there was none."""
        asker: int = self._columns["asker"][number]
        return asker

    def set_settled(self, number: int) -> None:
        """The answer can no longer be undone."""
        self._columns["stage"][number] = SETTLED

    def count(self, *outcomes: Outcome) -> int:
        """How many decisions have one of these outcomes. They are counted as they come."""
        return sum(self._counts[outcome] for outcome in outcomes)

    def column(self, name: str) -> npt.NDArray[Any]:
        """A copy of one column: readers must not hold on to a buffer that the next vote wants to grow."""
        return np.array(self._columns[name])

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything, for a snapshot."""
        return {name: self.column(name) for name in _COLUMNS}

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> DecisionLog:
        """The inverse of `to_arrays`."""
        log = cls()
        nobody = np.full(len(arrays["token"]), NO_VOTER)
        for name, column in log._columns.items():
            known = arrays.get(name, nobody) if name in _SINCE else arrays[name]
            column.frombytes(np.ascontiguousarray(known).tobytes())
        log._counts = np.bincount(log.column("outcome"), minlength=len(Outcome)).tolist()
        return log
