"""A duel as a person sees it: a number, and the two candidates to show."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from duelist.core.checks import FloatArray

Winner = int | Literal["first", "second", "tie"]


@dataclass(frozen=True, slots=True)
class Duel:
    """Two candidates to compare.

    Attributes:
        id: number of the duel, growing from 0: what feedback refers to.
        first: row of the first candidate in the features that were offered; -1 where arms have no rows.
        second: row of the second candidate; -1 where arms have no rows.
        features: (2, dim) feature vectors of both, read-only.
    """

    id: int
    first: int
    second: int
    features: FloatArray = field(compare=False, repr=False)
