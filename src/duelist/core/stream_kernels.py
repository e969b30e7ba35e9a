"""Compiled draws that several rooms need, one number or pair a lane."""

from __future__ import annotations

from duelist.core.checks import FloatArray, IntArray
from duelist.core.compiled import kernel
from duelist.core.philox import philox, to_unit
from duelist.core.streams import Keys


@kernel
def uniforms(out: FloatArray, keys: Keys, round_: int) -> None:
    """One uniform in (0, 1) a lane."""
    for lane in range(out.shape[0]):
        w0, _w1, _w2, _w3 = philox(keys[lane], 1, round_, 0)
        out[lane] = to_unit(w0)


@kernel
def distinct_pairs(first: IntArray, second: IntArray, keys: Keys, round_: int, n_arms: int) -> None:
    """Two different arms a lane, every ordered pair equally likely."""
    for lane in range(first.shape[0]):
        w0, w1, _w2, _w3 = philox(keys[lane], 1, round_, 0)
        i = int(to_unit(w0) * n_arms)
        j = int(to_unit(w1) * (n_arms - 1))
        first[lane] = i
        second[lane] = j if j < i else j + 1
