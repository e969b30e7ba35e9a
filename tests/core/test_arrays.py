"""Containers with a size rule: arrays grow by doubling and keep their content, a bounded dictionary forgets its oldest key."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.core.arrays import BoundedDict, enlarge, ensure_row, next_capacity
from duelist.core.errors import InvalidInputError


def test_an_enlarged_array_keeps_its_content_and_is_zero_beyond() -> None:
    array = np.arange(6.0).reshape(2, 3)
    longer = enlarge(array, axis=1, size=5)
    np.testing.assert_array_equal(longer, [[0, 1, 2, 0, 0], [3, 4, 5, 0, 0]])
    assert longer.dtype == array.dtype


def test_a_row_is_added_only_to_a_full_array_and_doubles_it() -> None:
    array = np.ones((100, 2))
    assert ensure_row(array, used=99) is array
    assert ensure_row(array, used=100).shape == (200, 2)
    assert ensure_row(array[:3], used=3).shape == (64, 2)
    assert next_capacity(0, at_least=16) == 16


def test_a_full_dictionary_drops_the_key_that_was_added_first() -> None:
    recent: BoundedDict[str, int] = BoundedDict(limit=2)
    recent["a"], recent["b"] = 1, 2
    recent["a"] = 3  # keeps its age
    recent["c"] = 4
    assert recent == {"b": 2, "c": 4}


def test_a_dictionary_without_places_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="limit must be a whole number of at least 1; got 0"):
        BoundedDict(limit=0)
