"""Named random streams: every number is a pure function of (seed, stream name, trial, round).

No generator is stored and none is global, so the same seed gives the same numbers whatever the number of lanes or
workers, and after any restart. Give every purpose a name of its own: one name and round give the same numbers in
every call. Numbers that belong to an arm are named by its content: see `FiniteActions.random_priority`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from duelist.core.checks import whole_number
from duelist.kernels.philox import RandomSource, mala_randomness, uniforms
from duelist.typing import FloatArray, IntArray, Keys


class Streams:
    """The random streams of a block of lanes.

    Args:
        seed: the seed of the whole experiment.
        trials: one trial number per lane. A lane's numbers depend on its trial number, never on its place in the block.

    Example:
        >>> streams = Streams(seed=0, trials=[0, 1, 2])
        >>> streams.keys("policy").shape
        (3, 2)
        >>> alone = Streams(seed=0, trials=[2])
        >>> bool((alone.keys("policy")[0] == streams.keys("policy")[2]).all())
        True
    """

    def __init__(self, seed: int, trials: Sequence[int]) -> None:
        self.seed = whole_number("seed", seed)
        self.trials = tuple(whole_number("trial", trial) for trial in trials)

    @cached_property
    def _keys(self) -> dict[str, Keys]:
        return {}

    def keys(self, name: str) -> Keys:
        """One Philox key per lane for the named stream, (lanes, 2): what kernels draw from."""
        if name not in self._keys:
            words = [hashlib.blake2b(f"{self.seed}/{name}/{trial}".encode(), digest_size=16).digest() for trial in self.trials]
            self._keys[name] = np.frombuffer(b"".join(words), dtype="<u8").reshape(-1, 2).astype(np.uint64)
        return self._keys[name]

    def uniforms(self, name: str, round_: int) -> FloatArray:
        """(lanes,) one uniform number in (0, 1) per lane for a round of the named stream.

        Example:
            >>> Streams(seed=0, trials=[0, 1]).uniforms("coin", 5).round(3).tolist()
            [0.146, 0.06]
        """
        numbers = np.empty(len(self.trials))
        uniforms(numbers, self.keys(name), round_)
        return numbers

    def integers(self, name: str, round_: int, high: int) -> IntArray:
        """(lanes,) one whole number from 0 to high - 1 per lane for a round of the named stream, each equally likely.

        Example:
            >>> Streams(seed=0, trials=[0, 1]).integers("arm", 5, 10).tolist()
            [4, 8]
        """
        most = whole_number("high", high, at_least=1)
        return np.minimum((self.uniforms(name, round_) * most).astype(np.int64), most - 1)

    def normals(self, name: str, round_: int, size: int) -> FloatArray:
        """(lanes, size) standard normal numbers for a round of the named stream.

        Example:
            >>> Streams(seed=0, trials=[0, 1]).normals("noise", 5, 3).shape
            (2, 3)
        """
        noise = np.empty((len(self.trials), 1, 1, whole_number("size", size, at_least=1)))
        mala_randomness(noise, np.empty(noise.shape[:3]), RandomSource(self.keys(name), round_, 0))
        return noise[:, 0, 0]

    def generator(self, name: str, lane: int, round_: int = 0) -> np.random.Generator:
        """A NumPy generator for one lane and round of the named stream: for code outside kernels."""
        counter = np.array([0, round_, 0, 0], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=self.keys(name)[lane], counter=counter))

    def __len__(self) -> int:
        return len(self.trials)

    def select(self, lanes: slice) -> Streams:
        """The streams of some of the lanes, with the same numbers."""
        return Streams(self.seed, self.trials[lanes])
