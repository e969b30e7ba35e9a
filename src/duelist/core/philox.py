"""Counter-based random numbers inside kernels: Philox-4x64-10 of Salmon et al. (2011), and normals from it.

A counter-based generator is a pure function of (key, counter), so a draw needs no stored state: the key says which stream
and which trial, the counter says which round, which chain and which number of that round. The words are the same as those
of `numpy.random.Philox`, which the tests use as the oracle.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types, uint64
from numba.extending import intrinsic

from duelist.core.checks import FloatArray
from duelist.core.compiled import part

_MULTIPLIER_0 = np.uint64(0xD2E7470EE14C6C93)
_MULTIPLIER_1 = np.uint64(0xCA5A826395121157)
_WEYL_0 = np.uint64(0x9E3779B97F4A7C15)
_WEYL_1 = np.uint64(0xBB67AE8584CAA73B)
_ROUNDS = 10
# 52 bits and a half: with 53 the largest word would round up to exactly 1.
TO_UNIT = 2.0**-52
SHIFT = np.uint64(12)


def _typed_high_word(_context: Any, _left: Any, _right: Any) -> Any:
    """Upper 64 bits of a 64 x 64 bit product: one instruction, which plain integer code cannot say."""

    def generate(_ctx: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


_high_word: Any = intrinsic(_typed_high_word)


@part
def philox(key: Any, block: Any, round_: Any, substream: Any) -> tuple[Any, Any, Any, Any]:
    """Four 64-bit words for counter (block, round, substream, 0) under a (2,) key."""
    k0, k1 = uint64(key[0]), uint64(key[1])
    c0, c1, c2, c3 = uint64(block), uint64(round_), uint64(substream), uint64(0)
    for _ in range(_ROUNDS):
        low0, high0 = _MULTIPLIER_0 * c0, _high_word(_MULTIPLIER_0, c0)
        low1, high1 = _MULTIPLIER_1 * c2, _high_word(_MULTIPLIER_1, c2)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0 += _WEYL_0
        k1 += _WEYL_1
    return c0, c1, c2, c3


@part
def to_unit(word: Any) -> float:
    """A uniform in (0, 1) that is never 0 or 1, so its logarithm is finite."""
    return (float(word >> SHIFT) + 0.5) * TO_UNIT


@part
def first_block() -> int:
    """Where every stream begins: block 0 would be NumPy's counter before its first increment.

    Not a plain 1, for which whatever takes it would be compiled once for that constant and again for other numbers.
    """
    return int(np.int64(1))


@part
def only_substream() -> int:
    """The substream of a stream that has no others; see `first_block`."""
    return int(np.int64(0))


@part
def fill_normals(out: FloatArray, key: Any, block: int, round_: int, substream: int) -> tuple[int, float]:
    """Fill `out` with standard normals and return (next free block, one uniform) of the same stream.

    Box-Muller on pairs of words: no rejection, so every draw uses the same number of blocks whatever its values.
    """
    size = out.shape[0]
    position = 0
    while position < size:
        w0, w1, w2, w3 = philox(key, block, round_, substream)
        block += 1
        radius = math.sqrt(-2.0 * math.log(to_unit(w0)))
        angle = 2.0 * math.pi * to_unit(w1)
        out[position] = radius * math.cos(angle)
        if position + 1 < size:
            out[position + 1] = radius * math.sin(angle)
        if position + 2 < size:
            radius = math.sqrt(-2.0 * math.log(to_unit(w2)))
            angle = 2.0 * math.pi * to_unit(w3)
            out[position + 2] = radius * math.cos(angle)
            if position + 3 < size:
                out[position + 3] = radius * math.sin(angle)
        position += 4
    w0, _w1, _w2, _w3 = philox(key, block, round_, substream)
    return block + 1, to_unit(w0)
