"""A table of pairs behaves as a value, whatever is written to it and to its ancestors."""

from __future__ import annotations

import tracemalloc

import numpy as np

from duelist.core.serialize import from_bytes, to_bytes
from duelist.policies.parts.pair_table import PairTable

LANES = 2


def test_any_table_of_a_tree_of_writes_is_that_of_plain_copies() -> None:
    rng = np.random.default_rng(0)
    tables = [PairTable.start(LANES, 0.0, 0.5).grow(3)]
    copies = [tables[0].cells.copy()]
    for step in range(300):
        parent = int(rng.integers(len(tables))) if step % 3 == 0 else len(tables) - 1
        if step % 50 == 10:
            size = tables[parent].size + int(rng.integers(1, 3))
            child = tables[parent].grow(size)
            expected = np.empty((2, LANES, size, size))
            expected[0], expected[1] = 0.0, 0.5
            old = copies[parent]
            expected[:, :, : old.shape[2], : old.shape[2]] = old
        else:
            first, second = rng.integers(tables[parent].size, size=(2, LANES))
            cells = rng.standard_normal((2, 2, LANES))
            cells[:, 1] = np.where(first == second, cells[:, 0], cells[:, 1])
            child = tables[parent].write(first, second, cells)
            expected = copies[parent].copy()
            for lane in range(LANES):
                expected[:, lane, first[lane], second[lane]] = cells[:, 0, lane]
                expected[:, lane, second[lane], first[lane]] = cells[:, 1, lane]
        tables.append(child)
        copies.append(expected)
        at = int(rng.integers(len(tables)))
        np.testing.assert_array_equal(tables[at].cells, copies[at])
    for table, copy in zip(tables, copies, strict=True):
        np.testing.assert_array_equal(table.cells, copy)
        np.testing.assert_array_equal(from_bytes(to_bytes(table)).cells, copy)


def test_a_state_that_somebody_holds_does_not_keep_all_later_ones() -> None:
    held = PairTable.start(1, 0.0).grow(4)
    table = held
    tracemalloc.start()
    try:
        for _ in range(5000):
            table = table.write(np.array([0]), np.array([1]), table.read(np.array([0]), np.array([1])) + 1.0)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50_000  # an undo of each write would take a megabyte
    assert held.cells.sum() == 0.0
    assert table.cells[0, 0, 0, 1] == 5000.0
