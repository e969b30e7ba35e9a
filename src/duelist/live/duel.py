"""A duel as its asker sees it: a number, and the two candidates to show."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from duelist.core.checks import one_of
from duelist.core.errors import InvalidInputError
from duelist.history.duels import Duels
from duelist.live.lane import LiveLane, Proposal
from duelist.live.pending import Parts
from duelist.typing import FloatArray, IntArray

Winner = int | Literal["first", "second", "tie"]
_INTEGERS = (int, np.integer)
_ANSWERS: dict[str, tuple[int, ...]] = {"first": (0,), "second": (1,), "tie": ()}
_NAMES = {answer: name for name, answer in _ANSWERS.items()}
_WORDS = {(0,): "first candidate won", (1,): "second candidate won", (): "a tie"}
_OUTCOMES = {(0,): np.array([1]), (1,): np.array([-1]), (): np.array([0])}


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

    @property
    def rows(self) -> tuple[int, int]:
        """Both rows."""
        return self.first, self.second


class DuelKind:
    """Questions that are duels."""

    noun, question, choices = "duel", Duel, 2

    def __init__(self, lane: LiveLane) -> None:
        self.lane = lane

    def view(self, number: int, shown: Duels) -> Duel:
        """The duel."""
        features = shown.features[0].copy()
        features.setflags(write=False)
        return Duel(number, int(shown.first[0]), int(shown.second[0]), features)

    def to_parts(self, shown: Duels) -> Parts:
        """The pair of the one lane."""
        rows = np.array([shown.first[0], shown.second[0]], dtype=np.int64)
        return Parts(rows, shown.features[0], None if shown.note is None else shown.note[0])

    def from_parts(self, parts: Parts) -> Duels:
        """The pair as one lane."""
        note = None if parts.note is None else parts.note[None]
        return Duels(parts.rows[:1].copy(), parts.rows[1:].copy(), parts.features[None], note)

    def read_answer(self, number: int, rows: tuple[int, ...], answer: Winner) -> tuple[int, ...]:
        """A winner is a row of the duel, or "first", "second" or "tie"."""
        if isinstance(answer, str):
            return _ANSWERS[one_of("winner", answer, _ANSWERS)]
        first, second = rows
        if isinstance(answer, _INTEGERS) and not isinstance(answer, bool):
            if first < 0:
                raise InvalidInputError(
                    f'duel {number} has arms without rows; got winner {answer}. Say "first", "second" or "tie".'
                )
            if answer == first:
                return (0,)
            if answer == second:
                return (1,)
        raise InvalidInputError(
            f'winner must be {first} or {second}, the rows of duel {number}, or "first", "second" or "tie"; got {answer!r}. '
            f"Use agent.skip(duel) when there is no answer."
        )

    def describe(self, answer: tuple[int, ...]) -> str:
        """Who won."""
        return _WORDS[answer]

    def for_policy(self, answer: tuple[int, ...]) -> IntArray:
        """(1,) of +1, -1 or 0."""
        return _OUTCOMES[answer]

    def asked_facts(self, proposal: Proposal[Duels]) -> dict[str, Any]:
        """Both rows, and how likely this pair was, in this order."""
        first, second = int(proposal.shown.first[0]), int(proposal.shown.second[0])
        known = self.lane.pair_probability(proposal)
        return {"first": first, "second": second, "probability": known if math.isfinite(known) else None}

    def rows_from(self, body: dict[str, Any]) -> list[int]:
        """Both rows."""
        return [body["first"], body["second"]]

    def told_facts(self, answer: tuple[int, ...]) -> dict[str, Any]:
        """The winner's name."""
        return {"winner": _NAMES[answer]}

    def answer_from(self, body: dict[str, Any]) -> tuple[int, ...]:
        """What the winner's name means."""
        return _ANSWERS[body["winner"]]
