from __future__ import annotations

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.service.embedding import HashingEmbedder


def test_rows_have_length_one_and_the_same_text_the_same_row() -> None:
    rows = HashingEmbedder(dim=32).embed(["one two three", "one two three", "", "ein Satz mit Ümlaut"])
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1.0, 1.0, 0.0, 1.0])
    assert (rows[0] == rows[1]).all()


def test_similar_texts_are_nearer_than_different_ones() -> None:
    rows = HashingEmbedder(dim=256).embed(
        ["restart the router and wait a minute", "restart the router and wait two minutes", "bake the bread until it is brown"]
    )
    assert rows[0] @ rows[1] > rows[0] @ rows[2] + 0.3


def test_the_hash_does_not_depend_on_the_process() -> None:
    # Features stored by one process must mean the same in another.
    expected = [0.0, 0.0, 0.0, 0.894427, -0.447214, 0.0, 0.0, 0.0]
    assert HashingEmbedder(dim=8).embed(["hello world"])[0] == pytest.approx(expected, abs=1e-6)


def test_a_dimension_of_one_is_refused() -> None:
    with pytest.raises(InvalidInputError):
        HashingEmbedder(dim=1)
