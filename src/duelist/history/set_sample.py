"""A sample of the action sets of a long run: what the Feel-Good maximum is estimated from when sets are too many to keep.

Sum_i max_{a in A_i} <theta, phi(a)> over n rounds becomes

    <theta, sum_i b_i> + (n / m) sum_{i in sample} ( max_{a in A_i} <theta, phi(a)> - <theta, b_i> ),

b_i the mean of the two arms that met in round i: a control variate whose sum over *all* rounds is known exactly. Both arms
were the best under a draw of that time, so what is left to estimate is small where it matters, near the posterior. The
estimate is unbiased over the choice of the sample.

The sample is stratified in time: one round from every block of `stride` consecutive ones, chosen by a fixed hash so that
no period of the contexts can be in step with it. When the sample is full, neighbouring blocks merge and one of their two
members stays; choosing is recursive, so that it comes to the same whether blocks merge before or after a round is seen.

Of a set with very many arms every n-th is kept, and b_i, which lies between two of them: the estimate of its maximum is then
too low by what the best arm has over those, and never below <theta, b_i>.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.typing import FloatArray

MOST_ARMS = 256  # of a set in the sample
_MASK = (1 << 64) - 1


def _coin(block: int, stride: int) -> int:
    """0 or 1 for a block of a given length: the finaliser of SplitMix64 on their mixture."""
    word = (block * 0x9E3779B97F4A7C15 + stride * 0xD1342543DE82EF95) & _MASK
    word = ((word ^ (word >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    word = ((word ^ (word >> 27)) * 0x94D049BB133111EB) & _MASK
    return (word >> 31) & 1


def chosen_from(block: int, stride: int) -> int:
    """The round that stands for rounds block * stride, ..., (block + 1) * stride - 1; stride is a power of two."""
    while stride > 1:
        block = 2 * block + _coin(block, stride)
        stride //= 2
    return block


class SetSample:
    """At most `size` action sets out of all that were offered. It grows in place.

    Attributes:
        sets: (lanes, size, dim, n_arms) the first `count` are in use.
        middles: (lanes, size, dim) the b_i of those rounds.
        rounds: the rounds they are from.
        stride: how many rounds each stands for.
        offered: rounds seen.
        total: (lanes, dim) sum of b_i over all of them.
    """

    def __init__(self, lanes: int, dim: int, size: int) -> None:
        self.size = size
        self.sets = np.zeros((lanes, size, dim, 0))
        self.middles = np.zeros((lanes, size, dim))
        self.rounds: list[int] = []
        self.stride = 1
        self.offered = 0
        self.total = np.zeros((lanes, dim))

    @property
    def count(self) -> int:
        """Sets in the sample."""
        return len(self.rounds)

    def wants(self) -> bool:
        """Whether the next round to be offered is the one chosen from its block."""
        return chosen_from(self.offered // self.stride, self.stride) == self.offered

    def offer(self, columns: FloatArray | None, middle: FloatArray) -> None:
        """One more round with arms `columns` (lanes, dim, n_arms), None unless wanted, and b_i `middle` (lanes, dim)."""
        if self.wants():
            if self.count == self.size:
                self._merge()
            # Merging may leave this round to the other half of its new block.
            if columns is not None and self.wants():
                self._insert(columns, middle)
        self.total += middle
        self.offered += 1

    def _merge(self) -> None:
        self.stride *= 2
        kept = [2 * block + _coin(block, self.stride) for block in range(self.count // 2)]
        self.sets[:, : len(kept)] = self.sets[:, kept]
        self.middles[:, : len(kept)] = self.middles[:, kept]
        self.rounds = [self.rounds[i] for i in kept]

    def _insert(self, columns: FloatArray, middle: FloatArray) -> None:
        if columns.shape[2] > MOST_ARMS:
            some = columns[:, :, :: -(-columns.shape[2] // (MOST_ARMS - 1))]
            columns = np.concatenate([some, middle[:, :, None]], axis=2)
        place, arms = self.count, columns.shape[2]
        if arms > self.sets.shape[3]:
            old = self.sets
            self.sets = np.zeros((*old.shape[:3], arms))
            self.sets[..., : old.shape[3]] = old
            # A set with fewer arms is padded with copies of its first arm, which leave its maximum as it is.
            self.sets[..., old.shape[3] :] = old[..., :1] if old.shape[3] else 0.0
        self.sets[:, place, :, :arms] = columns
        self.sets[:, place, :, arms:] = columns[:, :, :1]
        self.middles[:, place] = middle
        self.rounds.append(self.offered)

    def weights(self) -> FloatArray:
        """(count,) how many rounds each set of the sample stands for."""
        return np.full(self.count, self.offered / max(self.count, 1))

    def correction(self) -> FloatArray:
        """(lanes, dim) sum of b_i over all rounds, less its estimate from the sample."""
        estimate = self.middles[:, : self.count].sum(axis=1) * (self.offered / max(self.count, 1))
        return np.asarray(self.total - estimate)

    @classmethod
    def of(cls, middles: FloatArray, columns: Callable[[int], FloatArray], size: int) -> SetSample:
        """The sample that offering rounds one by one would have given, from middles (rounds, lanes, dim) and their arms."""
        rounds, lanes, dim = middles.shape
        sample = cls(lanes, dim, size)
        while -(-rounds // sample.stride) > size:
            sample.stride *= 2
        for block in range(-(-rounds // sample.stride)):
            sample.offered = chosen_from(block, sample.stride)
            if sample.offered < rounds:
                sample._insert(columns(sample.offered), middles[sample.offered])
        sample.offered, sample.total = rounds, middles.sum(axis=0)
        return sample

    def until(self, offered: int, total: FloatArray) -> SetSample:
        """The sample of the first `offered` rounds, at the stride of this one: thinner than it was then."""
        shorter = SetSample(self.sets.shape[0], self.sets.shape[2], self.size)
        shorter.rounds = [t for t in self.rounds if t < offered]
        shorter.sets, shorter.middles = self.sets.copy(), self.middles.copy()
        shorter.stride, shorter.offered, shorter.total = self.stride, offered, total
        return shorter

    def to_arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Everything needed to rebuild this sample, as plain arrays."""
        return {
            "sample": np.array([self.size, self.stride, self.offered]),
            # Copies, for what follows is written into the same arrays.
            "sample_sets": self.sets[:, : self.count].copy(),
            "sample_middles": self.middles[:, : self.count].copy(),
            "sample_rounds": np.array(self.rounds, dtype=np.int64),
            "sample_total": self.total.copy(),
        }

    @classmethod
    def from_arrays(cls, arrays: dict[str, npt.NDArray[Any]]) -> SetSample:
        """Rebuild a sample from `to_arrays`."""
        size, stride, offered = (int(v) for v in arrays["sample"])
        sets, rounds = arrays["sample_sets"], arrays["sample_rounds"]
        sample = cls(sets.shape[0], sets.shape[2], size)
        sample.sets = np.zeros((sets.shape[0], size, *sets.shape[2:]))
        sample.sets[:, : len(rounds)] = sets
        sample.middles[:, : len(rounds)] = arrays["sample_middles"]
        sample.rounds = [int(t) for t in rounds]
        sample.stride, sample.offered, sample.total = stride, offered, arrays["sample_total"].copy()
        return sample
