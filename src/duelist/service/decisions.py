"""Decisions: every pair that was asked for or imported, in columns. A few dozen bytes each, so a million fit in memory."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from duelist.service.outcomes import Outcome

ASKED, IMPORTED = 0, 1
WAITING, HELD, SETTLED = 0, 1, 2
NO_VOTER = -1
_COLUMNS = {
    "token": "Q",  # the unguessable part of a decision's id
    "first": "l",
    "second": "l",
    "flipped": "b",
    "source": "b",
    "outcome": "b",
    "stage": "b",  # WAITING for an answer, HELD while it may be undone, SETTLED for good
    "asked_at": "q",  # milliseconds since 1970, UTC
    "told_at": "q",
    "line_up": "l",
    "voter": "l",
    "probability": "d",  # of the unordered pair; NaN where the policy does not say
    "explored": "d",  # share of the two candidates that were not among the two leading items
    "draw_1_first": "d",  # utilities of both candidates under the two posterior draws; NaN where there were none
    "draw_1_second": "d",
    "draw_2_first": "d",
    "draw_2_second": "d",
}


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
    line_up: int
    voter: int
    probability: float
    explored: float
    draw_1_first: float
    draw_1_second: float
    draw_2_first: float
    draw_2_second: float

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

    def append(
        self,
        *,
        token: int,
        first: int,
        second: int,
        flipped: bool,
        source: int,
        asked_at: int,
        line_up: int,
        probability: float,
        explored: float,
        drawn: Sequence[Sequence[float]],
    ) -> int:
        """A new decision that waits for its answer. Returns its number."""
        utilities = [value for draw in drawn for value in draw] or [math.nan] * 4
        pair = (token, first, second, flipped, source)
        values = (*pair, Outcome.OPEN, WAITING, asked_at, 0, line_up, NO_VOTER, probability, explored, *utilities)
        for column, value in zip(self._columns.values(), values, strict=True):
            column.append(value)
        self._counts[Outcome.OPEN] += 1
        return len(self) - 1

    def __getitem__(self, number: int) -> Decision:
        values = [column[number] for column in self._columns.values()]
        row = Decision(number, *values)
        return row._replace(flipped=bool(row.flipped), outcome=Outcome(row.outcome))

    def set_told(self, number: int, outcome: Outcome, told_at: int, voter: int, stage: int) -> None:
        """Write down an answer, or take it back with Outcome.OPEN."""
        self._counts[self._columns["outcome"][number]] -= 1
        self._counts[outcome] += 1
        for name, value in (("outcome", outcome), ("told_at", told_at), ("voter", voter), ("stage", stage)):
            self._columns[name][number] = value

    def set_settled(self, number: int) -> None:
        """The answer can no longer be undone."""
        self._columns["stage"][number] = SETTLED

    def count(self, *outcomes: Outcome) -> int:
        """How many decisions stand like that. Every ask needs such a number, so they are counted as they come."""
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
        for name, column in log._columns.items():
            column.frombytes(np.ascontiguousarray(arrays[name]).tobytes())
        log._counts = np.bincount(log.column("outcome"), minlength=len(Outcome)).tolist()
        return log
