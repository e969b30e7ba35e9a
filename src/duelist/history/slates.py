"""Slates: q candidates shown together, one slate per lane; and the table of those that were answered."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.stored_names import stored
from duelist.typing import FloatArray, IntArray

# Places in the slate, best first, or that none was better than another. Of two candidates also +1, -1 or 0, as in a duel.
Answer = Sequence[int] | IntArray | Literal["tie"] | int
_FIRST_ROUNDS = 64


class Slates(NamedTuple):
    """One slate per lane.

    Attributes:
        rows: (lanes, choices) row of each candidate in the action set; a row may be there twice.
        features: (lanes, choices, dim).
    """

    rows: IntArray
    features: FloatArray


def slates_of(actions: FiniteActions, rows: IntArray) -> Slates:
    """The slates of those rows (lanes, choices) of a finite action set."""
    lanes, n_arms = actions.lanes, actions.n_arms
    if rows.ndim != 2 or len(rows) != lanes or rows.shape[1] < 2 or (rows < 0).any() or (rows >= n_arms).any():
        raise InvalidInputError(
            f"rows must be (lanes, choices) with {lanes} lane(s), at least 2 choices, and rows below {n_arms}; got {rows}."
        )
    return Slates(rows, actions.features[np.arange(lanes)[:, None], rows])


def _upgrade(version: int, fields: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG001 - there is one older version
    """Version 1 knew slates of one size only."""
    _, capacity, choices, _ = fields["features"].shape
    return {**fields, "sizes": np.full(capacity, choices, dtype=np.int64)}


@stored("slate-table", version=2, upgrade=_upgrade)
class SlateTable(NamedTuple):
    """Answered slates; a value, never changed in place.

    Attributes:
        features: (lanes, capacity, choices, dim) candidates in the order of the answer, best first, the unranked last.
        placed: (lanes, capacity) how many candidates the answer ranks; 0 for a tie.
        sizes: (capacity,) how many candidates were shown: `choices`, or fewer, as in a vote on a pair from elsewhere.
        sets: (lanes, n_sets, n_arms, dim) the distinct sets; smaller ones are filled up with copies of their first arm.
        repeats: (n_sets,) rounds that offered the set.
        adversary: (lanes, choices, dim) for every draw, the sum over rounds of the mean of the other draws' candidates.
        digests: fingerprints of the sets, in order, as hexadecimal digits.
        rounds: answered slates per lane.
    """

    features: FloatArray
    placed: IntArray
    sizes: IntArray
    sets: FloatArray
    repeats: FloatArray
    adversary: FloatArray
    digests: tuple[str, ...]
    rounds: int

    @classmethod
    def start(cls, *, lanes: int, choices: int, dim: int) -> SlateTable:
        """No answers yet."""
        return cls(
            features=np.zeros((lanes, _FIRST_ROUNDS, choices, dim)),
            placed=np.zeros((lanes, _FIRST_ROUNDS), dtype=np.int64),
            sizes=np.zeros(_FIRST_ROUNDS, dtype=np.int64),
            sets=np.zeros((lanes, 0, 2, dim)),
            repeats=np.zeros(0),
            adversary=np.zeros((lanes, choices, dim)),
            digests=(),
            rounds=0,
        )

    def append(self, actions: FiniteActions, slates: Slates, orders: IntArray, placed: IntArray) -> SlateTable:
        """The table with one more slate per lane.

        Args:
            actions: what was offered.
            slates: what was shown: `choices` candidates or fewer.
            orders: (lanes, size) all places of the slate, the ranked ones first.
            placed: (lanes,) how many of them the answer ranks.
        """
        lanes, capacity, choices, dim = self.features.shape
        shown, size = slates.features, slates.features.shape[1]
        if shown.shape != (lanes, size, dim) or size > choices or (actions.lanes, actions.features.shape[2]) != (lanes, dim):
            raise InvalidInputError(
                f"slates must be (lanes, choices, dim) = {(lanes, choices, dim)}, or of fewer choices; got {shown.shape}."
            )
        t = self.rounds
        features, ranked, sizes = self.features.copy(), self.placed.copy(), self.sizes.copy()
        if t == capacity:
            features = np.concatenate([features, np.zeros_like(features)], axis=1)
            ranked = np.concatenate([ranked, np.zeros_like(ranked)], axis=1)
            sizes = np.concatenate([sizes, np.zeros_like(sizes)])
        features[:, t, :size] = shown[np.arange(lanes)[:, None], orders]
        ranked[:, t], sizes[t] = placed, size
        # A draw without a candidate of its own in a smaller slate plays against the mean of all.
        others = np.repeat(shown.mean(axis=1, keepdims=True), choices, axis=1)
        others[:, :size] = (shown.sum(axis=1, keepdims=True) - shown) / (size - 1)
        sets, repeats, digests = self._count(actions)
        return SlateTable(features, ranked, sizes, sets, repeats, self.adversary + others, digests, t + 1)

    def _count(self, actions: FiniteActions) -> tuple[FloatArray, FloatArray, tuple[str, ...]]:
        """The sets with one more round for this one."""
        digest = actions.digest.hex()
        if digest in self.digests:
            repeats = self.repeats.copy()
            repeats[self.digests.index(digest)] += 1.0
            return self.sets, repeats, self.digests
        widest = max(self.sets.shape[2], actions.n_arms)
        sets = np.concatenate([_widen(self.sets, widest), _widen(actions.features[:, None], widest)], axis=1)
        return sets, np.append(self.repeats, 1.0), (*self.digests, digest)


def _widen(sets: FloatArray, n_arms: int) -> FloatArray:
    """Sets (lanes, n_sets, fewer, dim) filled up to n_arms arms with copies of the first, which leave the maximum alone."""
    copies = np.repeat(sets[:, :, :1], n_arms - sets.shape[2], axis=2)
    return np.concatenate([sets, copies], axis=2)
