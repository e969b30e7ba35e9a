"""Containers with a size rule: arrays that grow by doubling, and a dictionary that forgets its oldest entry."""

from __future__ import annotations

import contextlib
import math
import mmap
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, MutableMapping
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from duelist.core.checks import whole_number

_HUGE_PAGE = 2**21
GRADUAL = 512  # elements from which on growing is noticed
_PAGE, _TURNS = 4096, 16  # bytes of memory that are taken at once, and turns in which rows are moved
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

    Its elements along the axis must be final once they are counted as used, for they are copied only once; `changed` says which
    one is not. The memory of the old array is given back a little at a time too, when nobody has a view of it any more.

    Where other axes come first, an element is a number in each of many rows, and lies in as many pages of memory. The first
    number in a page costs some 15 microseconds, so the rows take turns: each is moved, and has its next page taken, at
    another append.

    Args:
        axis: along which the array grows: the first, or the last of those that there are.
    """

    def __init__(self, axis: int) -> None:
        self._axis = axis
        self._longer: npt.NDArray[Any] | None = None
        self._moved = [0] * (_TURNS if axis else 1)  # per turn
        self._memory: mmap.mmap | None = None  # of the present array
        self._next_memory: mmap.mmap | None = None
        self._left: mmap.mmap | None = None  # of the array before

    def make_room(self, array: npt.NDArray[Any], used: int, at_least: int) -> npt.NDArray[Any]:
        """The array with room for one more element; a longer one if it is full. Call it before each append."""
        capacity = array.shape[self._axis]
        if self._left is not None:
            self._give_back(self._left)
        if used < capacity:
            if capacity >= GRADUAL:
                if self._axis:
                    self._touch_ahead(array, used)
                if 16 * used >= 15 * capacity:
                    self._move_some(array, used)
            return array
        longer = self._begin(array, next_capacity(capacity, at_least))
        for turn in range(len(self._moved)):
            self._move(array, turn, used)
        self._longer, self._moved = None, [0] * len(self._moved)
        self._left, self._memory, self._next_memory = self._memory, self._next_memory, None
        return longer

    def changed(self, array: npt.NDArray[Any], element: int) -> None:
        """An element that was used before is another one now."""
        if self._longer is not None:
            place = (slice(None),) * self._axis + (element,)
            self._longer[place] = array[place]

    def changed_all(self) -> None:
        """All elements are: what was moved has to be moved again."""
        self._moved = [0] * len(self._moved)

    def _give_back(self, memory: mmap.mmap) -> None:
        """Shorten memory that is not needed any more: to free 50 MB at once takes 3 ms."""
        with contextlib.suppress(BufferError):  # somebody reads it still, as a snapshot that is being written
            if len(memory) > _HUGE_PAGE:
                memory.resize(len(memory) - _HUGE_PAGE // 2)
            else:
                memory.close()
                self._left = None

    def _move_some(self, array: npt.NDArray[Any], used: int) -> None:
        """Move the next elements: in the last sixteenth 17 per append, so that all are over there when the array is full.

        Not much earlier, for what was moved is in memory twice.
        """
        capacity = array.shape[self._axis]
        turn = used % len(self._moved)
        longer = self._begin(array, next_capacity(capacity, 0))
        ahead = used + len(self._moved) - 15 * capacity // 16
        self._move(array, turn, min(17 * ahead, used))
        if self._axis and used >= capacity - _TURNS:
            self._rows(longer)[turn::_TURNS, capacity] = 0  # the page of the next element

    def _touch_ahead(self, array: npt.NDArray[Any], used: int) -> None:
        """Take the next page of memory for some of the rows, so that all have it before an element gets there."""
        rows, page = self._rows(array), _PAGE // array.itemsize
        phase = used % page
        begin, end = phase * len(rows) // page, (phase + 1) * len(rows) // page
        if begin < end and used + page < rows.shape[1]:
            rows[begin:end, used + page] = 0

    def _rows(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """A view (rows, elements) of an array whose last axis grows."""
        return array.reshape(-1, array.shape[-1])

    def _begin(self, array: npt.NDArray[Any], size: int) -> npt.NDArray[Any]:
        """The longer array."""
        if self._longer is None:
            shape = list(array.shape)
            shape[self._axis] = size
            self._longer, self._next_memory = _untouched_zeros(tuple(shape), array.dtype)
        return self._longer

    def _move(self, array: npt.NDArray[Any], turn: int, stop: int) -> None:
        assert self._longer is not None
        begin = self._moved[turn]
        if begin < stop:
            self._moved[turn] = stop
            if self._axis:
                self._rows(self._longer)[turn::_TURNS, begin:stop] = self._rows(array)[turn::_TURNS, begin:stop]
            else:
                self._longer[begin:stop] = array[begin:stop]


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


class SplitDict(MutableMapping[Key, Value]):
    """A dictionary in many small ones: one large dictionary moves all that it has whenever it is full, 2 ms at 90,000 entries.

    Entries come in the order of their parts, and in each part as they were added.

    Args:
        part: which part has a key.

    Example:
        >>> squares = SplitDict(lambda number: number >> 1)
        >>> for number in range(4):
        ...     squares[number] = number**2
        >>> squares[3], len(squares), list(squares), 4 in squares
        (9, 4, [0, 1, 2, 3], False)
    """

    def __init__(self, part: Callable[[Key], Hashable]) -> None:
        self._part = part
        self._parts: defaultdict[Hashable, dict[Key, Value]] = defaultdict(dict)
        self._length = 0

    def __getitem__(self, key: Key) -> Value:
        return self._parts[self._part(key)][key]

    def __setitem__(self, key: Key, value: Value) -> None:
        part = self._parts[self._part(key)]
        before = len(part)
        part[key] = value
        self._length += len(part) - before

    def __delitem__(self, key: Key) -> None:
        del self._parts[self._part(key)][key]
        self._length -= 1

    def __contains__(self, key: object) -> bool:
        return key in self._parts[self._part(key)]  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Key]:
        for part in self._parts.values():
            yield from part

    def __len__(self) -> int:
        return self._length


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
