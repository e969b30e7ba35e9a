"""Arrays that grow by doubling, so that appending costs the same however long they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt


def doubled(size: int, at_least: int) -> int:
    """The next capacity after `size`."""
    return max(2 * size, at_least)


def grown(array: npt.NDArray[Any], axis: int, size: int) -> npt.NDArray[Any]:
    """The array with `size` places along an axis, new ones zero."""
    shape = list(array.shape)
    shape[axis] = size
    longer = np.zeros(shape, dtype=array.dtype)
    longer[tuple(slice(n) for n in array.shape)] = array
    return longer


def with_room(array: npt.NDArray[Any], used: int) -> npt.NDArray[Any]:
    """The array, with room for one more row if it is full."""
    return grown(array, 0, doubled(used, 64)) if used == len(array) else array
