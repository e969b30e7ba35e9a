"""Duels: which two candidates meet, in every lane."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.typing import FloatArray, IntArray


class Duels(NamedTuple):
    """One pair per lane.

    Attributes:
        first: (lanes,) row of the first candidate; -1 where arms have no rows.
        second: (lanes,) row of the second candidate; -1 where arms have no rows.
        features: (lanes, 2, dim) feature vectors of both.
        note: (lanes, n) what the policy wants back when the outcome arrives, however late; None for nothing.
    """

    first: IntArray
    second: IntArray
    features: FloatArray
    note: FloatArray | None = None

    @property
    def contrast(self) -> FloatArray:
        """(lanes, dim) features of the first minus features of the second: the z of the likelihood."""
        return self.features[:, 0] - self.features[:, 1]


def duels_between(actions: FiniteActions, first: IntArray, second: IntArray, note: FloatArray | None = None) -> Duels:
    """Pair up rows of a finite action set."""
    rows = np.empty((actions.lanes, 2), dtype=np.int64)
    rows[:, 0], rows[:, 1] = first, second
    return Duels(first, second, actions.arms_at(rows), note)


_OUTCOMES = frozenset((1, -1, 0))


def are_outcomes(outcomes: object, lanes: int) -> bool:
    """Whether these are (lanes,) of +1, -1 and 0."""
    given = np.asarray(outcomes)
    return given.shape == (lanes,) and _OUTCOMES.issuperset(given.tolist())


def check_outcomes(outcomes: IntArray, lanes: int) -> None:
    """Refuse outcomes other than (lanes,) of +1, -1 and 0."""
    if not are_outcomes(outcomes, lanes):
        raise InvalidInputError(
            f"outcomes must be ({lanes},) of +1 (the first won), -1 (the second won) and 0 (a tie); got {outcomes!r}."
        )
