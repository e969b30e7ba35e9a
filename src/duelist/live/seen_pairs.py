"""Who was shown which pair, so that nobody is asked the same thing twice while there is something else to ask.

A pair is known by what its two candidates are, in either order, and never by rows: 8 bytes, mixed from a number of 8 bytes
for each candidate, such as the fingerprint of its features. A voter is known by 8 bytes of a digest of the name. Kept are the
latest `MOST_SHOWN` pairs of the latest `MOST_VOTERS` voters, at 8 bytes a pair and some 250 a voter: 24 MB at most. Beyond
that, who was asked longest ago counts as new.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.uint64]
MOST_SHOWN = 2**20
MOST_VOTERS = 2**16
_NONE: Codes = np.empty(0, dtype=np.uint64)
# All pairs of up to so many candidates are looked up one by one. Of more, every pair that the voter has seen is refused, until
# it could be that there is no other.
_LISTED = 128


def name_code(name: str) -> int:
    """A number of 8 bytes for a name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")


def pair_codes(one: Codes, other: Codes) -> Codes:
    """A number for every pair of candidates, the same in either order.

    Example:
        >>> a, b = np.array([3, 5], dtype=np.uint64), np.array([5, 3], dtype=np.uint64)
        >>> len(set(pair_codes(a, b).tolist()))
        1
    """
    # The finaliser of splitmix64, on the smaller number and then on the sum with the larger.
    return _mix(_mix(np.minimum(one, other)) + np.maximum(one, other))


def all_pair_codes(contents: Codes) -> Codes:
    """The numbers of all pairs of different candidates."""
    distinct = np.unique(contents)
    first, second = np.triu_indices(len(distinct), 1)
    return pair_codes(distinct[first], distinct[second])


def _mix(numbers: Codes) -> Codes:
    mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))


class SeenPairs:
    """The pairs that each voter was shown.

    Example:
        >>> seen, items = SeenPairs(), np.array([1, 2, 3], dtype=np.uint64)
        >>> seen.add("ann", 1, 2)
        >>> len(seen.refused("ann", items)), len(seen.refused("bob", items))
        (1, 0)
    """

    def __init__(self) -> None:
        self._shown: dict[int, array[int]] = {}  # by voter, who was asked last comes last; a pair as often as it was shown
        self._total = 0

    def add(self, voter: str, first: int, second: int) -> None:
        """A voter is shown a pair of candidates, each given by its number."""
        name = name_code(voter)
        pair = pair_codes(np.array([first], dtype=np.uint64), np.array([second], dtype=np.uint64))
        shown = self._shown.pop(name, None) or array("Q")
        shown.append(int(pair[0]))
        self._shown[name] = shown
        self._total += 1
        while len(self._shown) > MOST_VOTERS or (self._total > MOST_SHOWN and len(self._shown) > 1):
            self._total -= len(self._shown.pop(next(iter(self._shown))))
        if self._total > MOST_SHOWN:
            del shown[: MOST_SHOWN // 2]
            self._total = len(shown)

    def refused(self, voter: str, contents: Codes) -> Codes:
        """The pairs of these candidates (n,) that the voter must not be shown: all but those that were shown least often."""
        shown = self._shown.get(name_code(voter))
        if shown is None:
            return _NONE
        codes, counts = np.unique(np.array(shown, dtype=np.uint64), return_counts=True)
        distinct = len(np.unique(contents))
        if distinct > _LISTED and len(codes) < distinct * (distinct - 1) // 2:
            return codes
        pairs = all_pair_codes(contents)
        if not len(pairs):
            return _NONE
        places = np.minimum(np.searchsorted(codes, pairs), len(codes) - 1)
        times = np.where(codes[places] == pairs, counts[places], 0)
        return np.asarray(np.sort(pairs[times > times.min()]))

    def forget(self, voter: str) -> None:
        """Drop what a voter was shown."""
        self._total -= len(self._shown.pop(name_code(voter), ()))

    def to_saved(self) -> dict[str, Any]:
        """Everything, as a value that `duelist.core.serialize` takes."""
        shown = self._shown.values()
        return {
            "voters": np.array(list(self._shown), dtype=np.uint64),
            "lengths": np.array([len(one) for one in shown], dtype=np.int64),
            "pairs": np.frombuffer(b"".join(one.tobytes() for one in shown), dtype=np.uint64),
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go to where `to_saved` was called."""
        ends = np.cumsum(saved["lengths"]).tolist()
        parts = np.split(saved["pairs"].astype(np.uint64), ends[:-1])
        self._shown = {voter: array("Q", part.tobytes()) for voter, part in zip(saved["voters"].tolist(), parts, strict=False)}
        self._total = sum(len(one) for one in self._shown.values())
