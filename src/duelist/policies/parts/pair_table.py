"""Numbers of every pair of arms, (layers, lanes, K, K), as a value that costs a few cells to change.

A state is a value, and a table of K x K numbers is too large to copy for one duel. So the newest table of a line owns the
array and changes it in place; the one before it keeps what stood in the changed cells. If somebody still holds that one when
the next change comes, it gets a copy with the change taken back. Whoever drops old states, as a simulation does, never pays for
one. A table belongs to one thread at a time.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from duelist.core.stored_names import stored
from duelist.typing import FloatArray, IntArray


@stored("pair-table")
class PairTable:
    """One number per layer, lane and ordered pair of arms.

    Args:
        cells: (layers, lanes, K, K).
        blank: (layers,) what a pair has that nobody wrote to.

    Example:
        >>> table = PairTable(np.zeros((1, 1, 2, 2)), np.zeros(1))
        >>> newer = table.write(np.array([0]), np.array([1]), np.array([[[3.0], [4.0]]]))
        >>> newer.cells[0, 0].tolist(), table.cells[0, 0].tolist()
        ([[0.0, 3.0], [4.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
    """

    __slots__ = ("__weakref__", "_array", "_newer", "_older", "_undo", "blank", "size")

    def __init__(self, cells: FloatArray, blank: FloatArray) -> None:
        self._array: FloatArray | None = cells
        self._newer: PairTable | None = None
        self._older: weakref.ref[PairTable] | None = None
        self._undo: tuple[IntArray, FloatArray] | None = None
        self.blank, self.size = blank, cells.shape[2]

    @classmethod
    def start(cls, lanes: int, *blank: float) -> PairTable:
        """No arms yet; one layer for each value of `blank`."""
        return cls(np.empty((len(blank), lanes, 0, 0)), np.array(blank))

    @property
    def cells(self) -> FloatArray:
        """(layers, lanes, K, K): to read, and valid until the next `write`."""
        return self._own()[:, :, : self.size, : self.size]

    @property
    def room(self) -> FloatArray:
        """(layers, lanes, room, room) the same for kernels, with room for arms to come behind the K known ones."""
        return self._own()

    def read(self, first: IntArray, second: IntArray) -> FloatArray:
        """(layers, 2, lanes) the cells of (first, second) and of (second, first)."""
        array = self._own()
        return np.asarray(array.reshape(len(array), -1)[:, _places(array, first, second)])

    def write(self, first: IntArray, second: IntArray, cells: FloatArray) -> PairTable:
        """The table with other cells (layers, 2, lanes) at (first, second) and at (second, first)."""
        array = self._own()
        self._let_go()
        places, flat = _places(array, first, second), array.reshape(len(array), -1)
        undo = (places, flat[:, places])
        flat[:, places] = cells
        return self._hand_over(array, self.size, undo)

    def grow(self, size: int) -> PairTable:
        """The table with more arms, whose pairs are blank."""
        array = self._own()
        capacity = array.shape[2]
        if size > capacity:
            # The first arms come together and get what they need; later ones come one by one, and room is doubled.
            room = size if capacity == 0 else max(size, 2 * capacity)
            larger = np.empty((*array.shape[:2], room, room))
            larger[:] = self.blank[:, None, None, None]
            larger[:, :, : self.size, : self.size] = array[:, :, : self.size, : self.size]
            return PairTable._sized(larger, self.blank, size)
        self._let_go()
        return self._hand_over(array, size, None)

    def fork(self) -> PairTable:
        """A table of its own with the same numbers: writing to it leaves this one the newest of its line."""
        return PairTable(self.cells.copy(), self.blank)

    def to_arrays(self) -> dict[str, Any]:
        """What `from_arrays` needs to make the same table again."""
        return {"cells": self.cells.copy(), "blank": self.blank}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> PairTable:
        """The table that `to_arrays` took apart."""
        return cls(arrays["cells"], arrays["blank"])

    @classmethod
    def _sized(cls, array: FloatArray, blank: FloatArray, size: int) -> PairTable:
        table = cls(array, blank)
        table.size = size
        return table

    def _hand_over(self, array: FloatArray, size: int, undo: tuple[IntArray, FloatArray] | None) -> PairTable:
        newer = PairTable._sized(array, self.blank, size)
        newer._older = weakref.ref(self)
        self._array, self._newer, self._undo = None, newer, undo
        return newer

    def _let_go(self) -> None:
        """Give the table before this one, if anybody holds it, an array of its own."""
        older = None if self._older is None else self._older()
        if older is not None:
            older._own()

    def _own(self) -> FloatArray:
        """The array with the numbers of this table, taken back from the newer one where that has it."""
        if self._array is None:
            assert self._newer is not None
            cells = self._newer._own().copy()
            if self._undo is not None:
                places, before = self._undo
                cells.reshape(len(cells), -1)[:, places] = before
            self._array, self._newer, self._undo = cells, None, None
        return self._array


def _places(array: FloatArray, first: IntArray, second: IntArray) -> IntArray:
    """(2, lanes) where the cells of (first, second) and (second, first) are in a flat layer."""
    room = array.shape[2]
    start = np.arange(0, array.shape[1] * room * room, room * room)
    places = np.empty((2, len(start)), dtype=np.int64)
    places[0], places[1] = start + first * room + second, start + second * room + first
    return places
