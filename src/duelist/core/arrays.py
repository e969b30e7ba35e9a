"""Containers with a size rule: arrays that grow by doubling, and a dictionary that forgets its oldest entry."""

from __future__ import annotations

import contextlib
import math
import mmap
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from duelist.core.checks import whole_number

_HUGE_PAGE = 2**21
GRADUAL = 512  # elements from which on growing is noticed
Key = TypeVar("Key")
Value = TypeVar("Value")


def next_capacity(size: int, at_least: int) -> int:
    """Return the capacity after `size`: twice as much, so that appending costs the same however long an array is."""
    return max(2 * size, at_least)


def capacity_for(size: int) -> int:
    """The capacity that doubling gives to `size` elements: the next power of two."""
    return 1 << max(size - 1, 0).bit_length() if size else 0


def enlarge(array: npt.NDArray[Any], axis: int, size: int) -> npt.NDArray[Any]:
    """Return a copy of the array with length `size` along one axis; the new elements are zero."""
    shape = list(array.shape)
    shape[axis] = size
    longer = np.zeros(shape, dtype=array.dtype)
    longer[tuple(slice(n) for n in array.shape)] = array
    return longer


def ensure_row(array: npt.NDArray[Any], used: int) -> npt.NDArray[Any]:
    """Return the array if a row is left beyond the `used` ones, else a longer copy."""
    return enlarge(array, 0, next_capacity(used, 64)) if used == len(array) else array


class GradualGrowth:
    """Moves an array to a longer one a little at a time, so that no single append waits for a copy of everything.

    Its elements along the axis must be final once they are counted as used: they are copied only once. The memory of the old
    array is given back a little at a time too, when nobody has a view of it any more.

    Args:
        axis: along which the array grows.
    """

    def __init__(self, axis: int) -> None:
        self._axis = axis
        self._longer: npt.NDArray[Any] | None = None
        self._moved = 0
        self._memory: mmap.mmap | None = None  # of the present array
        self._next_memory: mmap.mmap | None = None
        self._left: mmap.mmap | None = None  # of the array before

    def make_room(self, array: npt.NDArray[Any], used: int, at_least: int) -> npt.NDArray[Any]:
        """The array with room for one more element; a longer one if it is full. Call it before each append."""
        capacity = array.shape[self._axis]
        if self._left is not None:
            self._give_back(self._left)
        if used < capacity:
            # In the last sixteenth every 16 appends move 272 elements, 16 for each and 16 more: all are over there when the
            # array is full, and not much earlier, for what was moved is in memory twice.
            if capacity >= GRADUAL and 16 * used >= 15 * capacity and used % 16 == 0:
                self._move(array, min(self._moved + 272, used))
            return array
        self._move(array, used, next_capacity(capacity, at_least))
        longer, self._longer, self._moved = self._longer, None, 0
        self._left, self._memory, self._next_memory = self._memory, self._next_memory, None
        assert longer is not None
        return longer

    def _give_back(self, memory: mmap.mmap) -> None:
        """Shorten memory that is not needed any more: to free 50 MB at once takes 3 ms."""
        with contextlib.suppress(BufferError):  # somebody reads it still, as a snapshot that is being written
            if len(memory) > _HUGE_PAGE:
                memory.resize(len(memory) - _HUGE_PAGE // 2)
            else:
                memory.close()
                self._left = None

    def _move(self, array: npt.NDArray[Any], stop: int, size: int | None = None) -> None:
        if self._longer is None:
            shape = list(array.shape)
            shape[self._axis] = size or next_capacity(shape[self._axis], 0)
            self._longer, self._next_memory = _untouched_zeros(tuple(shape), array.dtype)
        part = (slice(None),) * self._axis + (slice(self._moved, stop),)
        self._longer[part] = array[part]
        self._moved = stop


def _untouched_zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[npt.NDArray[Any], mmap.mmap | None]:
    """Zeros whose memory is taken page by page, as it is written to; and that memory, unless NumPy has it.

    NumPy asks for pages of 2 MB. A few elements along the last axis touch one page in every row, so the first of them would
    wait until all of the array is zeroed: 100 ms at 100 MB.
    """
    size = math.prod(shape) * dtype.itemsize
    if size < _HUGE_PAGE or not hasattr(mmap, "MADV_NOHUGEPAGE"):
        return np.zeros(shape, dtype=dtype), None
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)  # private: a forked child has its own
    with contextlib.suppress(OSError):  # a kernel without huge pages has no advice to take
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype=dtype).reshape(shape), memory


class NewestWithin(dict[Key, Value]):
    """A dictionary of the newest entries, at most `limit` of them and of `most_bytes` together; the newest always stays.

    Example:
        >>> recent = NewestWithin(limit=3, most_bytes=10)
        >>> recent.add("a", 1, 6)
        >>> recent.add("b", 2, 6)
        >>> recent
        {'b': 2}
    """

    def __init__(self, *, limit: int, most_bytes: int | None) -> None:
        super().__init__()
        self.limit, self.most_bytes = whole_number("limit", limit, at_least=1), most_bytes
        self._sizes: dict[Key, int] = {}

    def add(self, key: Key, value: Value, size: int) -> None:
        """Add an entry of that many bytes, and drop the oldest that are too many."""
        self.pop(key, None)
        self._sizes.pop(key, None)
        self[key], self._sizes[key] = value, size
        self.trim()

    def trim(self) -> None:
        """Drop the oldest entries that are too many, after a change of the limits."""
        while len(self) > 1 and (
            len(self) > self.limit or (self.most_bytes is not None and sum(self._sizes.values()) > self.most_bytes)
        ):
            oldest = next(iter(self))
            del self[oldest], self._sizes[oldest]


class BoundedDict(dict[Key, Value]):
    """A dictionary of at most `limit` entries: a new key removes the oldest one when the dictionary is full.

    The oldest entry is the one whose key was added first. Assigning to a key that exists keeps its age.

    Example:
        >>> recent = BoundedDict(limit=2)
        >>> recent["a"], recent["b"], recent["c"] = 1, 2, 3
        >>> recent
        {'b': 2, 'c': 3}
    """

    def __init__(self, *, limit: int) -> None:
        super().__init__()
        self.limit = whole_number("limit", limit, at_least=1)

    def __setitem__(self, key: Key, value: Value) -> None:
        if key not in self and len(self) >= self.limit:
            del self[next(iter(self))]
        super().__setitem__(key, value)
