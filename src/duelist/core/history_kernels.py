"""Compiled bookkeeping of the history: which row a contrast has, and the counts it changes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from duelist.core.checks import FloatArray, IntArray
from duelist.core.compiled import kernel, part

Int32Array = npt.NDArray[np.int32]

_EMPTY = -1
_NOTHING = 1e-100
_ARM_BITS = 20  # up to a million arms a set, and 2^23 distinct sets


@part
def pair_key(slot: int, low: int, high: int) -> int:
    """One number for the unordered pair (low, high) of action set `slot`."""
    return (slot << (2 * _ARM_BITS)) | (low << _ARM_BITS) | high


@part
def find_place(table: IntArray, key: int) -> int:
    """Where `key` is, or should go, in an open-addressing table whose size is a power of two."""
    mask = table.shape[0] - 1
    # Fibonacci hashing: the high bits of the product are well mixed even for consecutive keys.
    place = ((key * 0x9E3779B97F4A7C15) >> 32) & mask
    while table[place] != _EMPTY and table[place] != key:
        place = (place + 1) & mask
    return int(place)


@kernel
def append_round(
    slot: int,
    first: IntArray,
    second: IntArray,
    outcomes: IntArray,
    weights: FloatArray,
    layers: IntArray,
    n_layers: int,
    features: FloatArray,
    table: IntArray,
    table_rows: Int32Array,
    contrasts: FloatArray,
    totals: FloatArray,
    losses: FloatArray,
    n_rows: IntArray,
    adversary: FloatArray,
    log_rows: Int32Array,
) -> None:
    """Count one duel in every lane.

    A contrast is kept as (lower row) - (higher row), so a pair shown in either order shares one row. Pairs whose arms have
    no row number get a new row each. A duel counts by its weight in the statistics of its layer; weight 0 is not counted.
    A tie, outcome 0, is half a loss and half a win.
    """
    dim = contrasts.shape[1]
    for lane in range(first.shape[0]):
        for i in range(dim):
            adversary[lane, 0, i] += features[lane, 1, i]
            adversary[lane, 1, i] += features[lane, 0, i]
        log_rows[lane] = -1
        weight = weights[lane]
        if weight == 0.0:
            continue
        group = lane * n_layers + layers[lane]
        low, high = first[lane], second[lane]
        lost = 0.5 * (1.0 - outcomes[lane])
        upper, lower = 0, 1
        if low > high:
            low, high = high, low
            lost = 1.0 - lost
            upper, lower = 1, 0
        row = n_rows[group]
        if low >= 0:
            key = pair_key(slot, low, high)
            place = find_place(table[group], key)
            if table[group, place] == key:
                row = table_rows[group, place]
            else:
                table[group, place] = key
                table_rows[group, place] = row
        if row == n_rows[group]:
            n_rows[group] += 1
            for i in range(dim):
                contrasts[group, i, row] = features[lane, upper, i] - features[lane, lower, i]
        totals[group, row] += weight
        losses[group, row] += weight * lost
        log_rows[lane] = row


@kernel
def fade(counts: FloatArray, factor: float) -> None:
    """Multiply counts (n,) by a factor below 1. What is too small to matter becomes zero: denormal numbers would be slow."""
    for i in range(counts.shape[0]):
        faded = counts[i] * factor
        counts[i] = faded if abs(faded) > _NOTHING else 0.0


@kernel
def rehash(old_table: IntArray, old_rows: Int32Array, table: IntArray, table_rows: Int32Array) -> None:
    """Move every key of every lane into a larger table."""
    for lane in range(table.shape[0]):
        for i in range(old_table.shape[1]):
            key = old_table[lane, i]
            if key != _EMPTY:
                place = find_place(table[lane], key)
                table[lane, place] = key
                table_rows[lane, place] = old_rows[lane, i]
