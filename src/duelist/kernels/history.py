"""Compiled bookkeeping of the history: which row a contrast has, and the counts it changes."""

from __future__ import annotations

from typing import NamedTuple

from duelist.kernels.compile import entry, inner
from duelist.typing import FloatArray, Int32Array, IntArray

NO_KEY = -1
_NOTHING = 1e-100
_ARM_BITS = 20  # up to a million arms per set, and 2^23 distinct sets


@inner
def pair_key(slot: int, low: int, high: int) -> int:
    """One number for the unordered pair (low, high) of action set `slot`."""
    return (slot << (2 * _ARM_BITS)) | (low << _ARM_BITS) | high


@inner
def find_place(table: Int32Array, keys: IntArray, key: int) -> int:
    """Where the row of `key` is, or should go, in an open-addressing table whose size is a power of two."""
    mask = table.shape[0] - 1
    # Fibonacci hashing: the high bits of the product are well mixed even for consecutive keys.
    place = ((key * 0x9E3779B97F4A7C15) >> 32) & mask
    while table[place] != 0 and keys[table[place] - 1] != key:
        place = (place + 1) & mask
    return int(place)


class RoundOfDuels(NamedTuple):
    """One duel per lane, between rows of the action set that has the number `slot`."""

    slot: int
    first: IntArray  # (lanes,) row of the first candidate; -1 where arms have no rows
    second: IntArray  # (lanes,)
    outcomes: IntArray  # (lanes,) +1, -1, or 0 for a tie
    weights: FloatArray  # (lanes,) by how much each duel counts
    layers: IntArray  # (lanes,) where it counts
    features: FloatArray  # (lanes, 2, dim)


class CountedContrasts(NamedTuple):
    """Distinct contrasts with their counts, and the tables that find the row of a pair. A group is a layer of a lane."""

    table: Int32Array  # (groups, size) rows of pairs, counted from 1, by open addressing; 0 where there is none
    keys: IntArray  # (groups, capacity) the pair of each row; NO_KEY where its arms have no rows
    contrasts: FloatArray  # (groups, dim, capacity)
    totals: FloatArray  # (groups, capacity)
    losses: FloatArray  # (groups, capacity)
    n_rows: IntArray  # (groups,)


@entry
def append_round(
    duels: RoundOfDuels, counted: CountedContrasts, n_layers: int, adversary: FloatArray, log_rows: Int32Array
) -> None:
    """Count one duel in every lane; fill `log_rows` (lanes,) with the row of each contrast, -1 for a duel of weight 0.

    A contrast is kept as (lower row) - (higher row), so a pair shown in either order shares one row. Pairs whose arms have
    no row number get a new row each. A duel counts by its weight in the statistics of its layer; weight 0 is not counted.
    A tie, outcome 0, is half a loss and half a win. `adversary` (lanes, 2, dim) grows by the features of the arm that the
    other draw chose.
    """
    features, n_rows = duels.features, counted.n_rows
    dim = features.shape[2]
    for lane in range(duels.first.shape[0]):
        for i in range(dim):
            adversary[lane, 0, i] += features[lane, 1, i]
            adversary[lane, 1, i] += features[lane, 0, i]
        log_rows[lane] = -1
        weight = duels.weights[lane]
        if weight == 0.0:
            continue
        group = lane * n_layers + duels.layers[lane]
        low, high = duels.first[lane], duels.second[lane]
        lost = 0.5 * (1.0 - duels.outcomes[lane])
        upper, lower = 0, 1
        if low > high:
            low, high = high, low
            lost = 1.0 - lost
            upper, lower = 1, 0
        row, key = n_rows[group], NO_KEY
        if low >= 0:
            key = pair_key(duels.slot, low, high)
            place = find_place(counted.table[group], counted.keys[group], key)
            if counted.table[group, place] == 0:
                counted.table[group, place] = row + 1
            row = counted.table[group, place] - 1
        if row == n_rows[group]:
            n_rows[group] += 1
            counted.keys[group, row] = key
            for i in range(dim):
                counted.contrasts[group, i, row] = features[lane, upper, i] - features[lane, lower, i]
        counted.totals[group, row] += weight
        counted.losses[group, row] += weight * lost
        log_rows[lane] = row


@entry
def fade(counts: FloatArray, factor: float) -> None:
    """Multiply counts (n,) by a factor below 1. What is too small to matter becomes zero: denormal numbers would be slow."""
    for i in range(counts.shape[0]):
        faded = counts[i] * factor
        counts[i] = faded if abs(faded) > _NOTHING else 0.0


@entry
def index_rounds(counted: CountedContrasts, slots: IntArray, first: Int32Array, second: Int32Array, rows: Int32Array) -> None:
    """Fill the keys from slots (rounds,), arms (rounds, lanes) and the rows (rounds, lanes) of their contrasts."""
    for t in range(rows.shape[0]):
        for lane in range(rows.shape[1]):
            low, high = min(first[t, lane], second[t, lane]), max(first[t, lane], second[t, lane])
            if rows[t, lane] >= 0:
                counted.keys[lane, rows[t, lane]] = pair_key(slots[t], low, high) if low >= 0 else NO_KEY


@entry
def index_keys(table: Int32Array, keys: IntArray, begin: IntArray, end: IntArray) -> None:
    """Enter the rows from `begin` (groups,) to `end` (groups,) of every group into its table."""
    for group in range(table.shape[0]):
        for row in range(begin[group], end[group]):
            if keys[group, row] != NO_KEY:
                table[group, find_place(table[group], keys[group], keys[group, row])] = row + 1
