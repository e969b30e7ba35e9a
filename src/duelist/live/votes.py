"""Votes from elsewhere: pairs of feature vectors with who won, learnt without having been asked about.

A policy learns them in order through its `learn_many`, with the pair as the action set: nobody knows what else was on offer, so
the Feel-Good maximum of such a vote is that over its two candidates. A pair is put in one order, whichever way round it was
voted on, so that votes on the same pair are counted together.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from duelist.actions.finite import FiniteActions
from duelist.core.arrays import BoundedDict
from duelist.core.checks import finite_array
from duelist.core.errors import InvalidInputError
from duelist.core.serialize import from_bytes, to_bytes
from duelist.history.duels import Duels
from duelist.live.lane import LiveLane
from duelist.policies.base import Round
from duelist.typing import FloatArray, IntArray

_WORDS = {"first": 1, "second": -1, "tie": 0}
_REMEMBERED_PAIRS = 4096
_ROWS = np.array([0]), np.array([1])
_OUTCOMES = {outcome: np.array([outcome]) for outcome in (1, -1, 0)}


class Votes(NamedTuple):
    """Votes in the order in which they are learnt.

    Attributes:
        first: (n, dim) features of the first candidates, in the precision in which they were given.
        second: (n, dim) features of the second.
        outcomes: (n,) +1 where the first won, -1 where the second did, 0 for a tie.
        repeats: (n,) how often each counts.
        times: (n,) when each was given; NaN where it is not known.
        voters: (n,) who gave it; empty where it is not known.
    """

    first: npt.NDArray[np.floating[Any]]
    second: npt.NDArray[np.floating[Any]]
    outcomes: npt.NDArray[np.int8]
    repeats: IntArray
    times: FloatArray
    voters: npt.NDArray[np.str_]

    @property
    def total(self) -> int:
        """How many votes there are, each as often as it counts."""
        return int(self.repeats.sum())

    def select(self, keep: npt.NDArray[np.bool_]) -> Votes:
        """Some of the votes."""
        return Votes(**{name: column[keep] for name, column in self._asdict().items()})

    def to_bytes(self) -> bytes:
        """The votes as bytes, for a journal or a file."""
        return to_bytes(self._asdict())

    @classmethod
    def from_bytes(cls, data: bytes) -> Votes:
        """The inverse of `to_bytes`."""
        return cls(**from_bytes(data))


def check_votes(
    dim: int,
    first: npt.ArrayLike,
    second: npt.ArrayLike,
    outcomes: npt.ArrayLike | Sequence[str],
    weights: npt.ArrayLike | None,
    times: npt.ArrayLike | None,
    voters: Sequence[str] | None,
) -> Votes:
    """The votes that these arguments mean; see `Agent.import_votes`."""
    sides = [_features(name, value, dim) for name, value in (("first", first), ("second", second))]
    n = len(sides[0])
    numbers = np.array([_outcome(outcome) for outcome in _listed("outcomes", outcomes)], dtype=np.int8)
    counts = np.ones(n) if weights is None else finite_array("weights", weights, "(n,)", 1)
    odd = np.flatnonzero((counts < 0.0) | (counts != np.floor(counts)))
    if len(odd):
        raise InvalidInputError(
            f"weights must be whole numbers from 0 on, how often a vote counts; got {counts[odd[0]]:g} at {odd[0]}. Policies "
            f"learn whole votes: round the weights, or multiply all of them until they are whole."
        )
    known = np.full(n, np.nan) if times is None else finite_array("times", times, "(n,)", 1)
    names = np.array([""] * n if voters is None else [str(voter) for voter in voters], dtype=np.str_)
    lengths = {
        "second": len(sides[1]), "outcomes": len(numbers), "weights": len(counts), "times": len(known), "voters": len(names),
    }  # fmt: skip
    for name, length in lengths.items():
        if length != n:
            raise InvalidInputError(f"{name} must be as long as first, which has {n} votes; got {length}.")
    return Votes(sides[0], sides[1], numbers, counts.astype(np.int64), known, names)


def learn_votes(lane: LiveLane, votes: Votes) -> None:
    """Learn the votes. Where one cannot be learnt, none is."""
    lane.learn_many([*_rounds(votes)], np.repeat(votes.voters, votes.repeats).tolist())


def _rounds(votes: Votes) -> Iterator[Round]:
    known = BoundedDict[bytes, tuple[FiniteActions, Duels, Duels]](limit=_REMEMBERED_PAIRS)
    pairs = np.stack([votes.first, votes.second], axis=1).astype(np.float64)
    for pair, outcome, repeats in zip(pairs, votes.outcomes.tolist(), votes.repeats.tolist(), strict=True):
        first, second = pair[0].tobytes(), pair[1].tobytes()
        key = min(first + second, second + first)
        if key not in known:
            actions = FiniteActions(np.frombuffer(key).reshape(pair.shape))
            turned = np.ascontiguousarray(actions.features[:, ::-1])
            known[key] = (actions, Duels(*_ROWS, actions.features), Duels(*_ROWS[::-1], turned))
        actions, as_given, the_other_way = known[key]
        for _ in range(repeats):
            yield actions, as_given if key.startswith(first) else the_other_way, _OUTCOMES[outcome]


def _features(name: str, value: npt.ArrayLike, dim: int) -> npt.NDArray[np.floating[Any]]:
    array = finite_array(name, value, "(n, dim)", 2)
    if array.shape[1] != dim or not len(array):
        raise InvalidInputError(
            f"{name} must be (n, {dim}) with n >= 1, one row per vote; got {array.shape}. Give the candidates' own features."
        )
    return array.astype(np.float32) if getattr(value, "dtype", None) == np.float32 else array.copy()


def _listed(name: str, value: Any) -> list[Any]:
    if isinstance(value, str) or np.ndim(value) != 1:
        raise InvalidInputError(f'{name} must be (n,), one per vote; got {value!r}. For one vote write ["first"].')
    return list(value)


def _outcome(value: Any) -> int:
    if isinstance(value, str) and value in _WORDS:
        return _WORDS[value]
    if isinstance(value, int | float | np.number) and not isinstance(value, bool) and value in (1, -1, 0):
        return int(value)
    raise InvalidInputError(f'outcomes must be +1, -1, 0, "first", "second" or "tie"; got {value!r}.')
