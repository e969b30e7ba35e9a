"""Counter-based random numbers inside kernels: Philox-4x64-10 of Salmon et al. (2011), and normals from it.

A counter-based generator is a pure function of (key, counter), so a draw needs no stored state: the key says which stream
and which trial, the counter says which round, which chain and which number of that round. The words are the same as those
of `numpy.random.Philox`, which the tests use as the oracle.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types, uint64
from numba.extending import intrinsic

from duelist.kernels.compile import entry, inner, maker
from duelist.typing import FloatArray, IntArray, Keys

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


@inner
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


@inner
def to_unit(word: Any) -> float:
    """A uniform in (0, 1) that is never 0 or 1, so its logarithm is finite."""
    return (float(word >> SHIFT) + 0.5) * TO_UNIT


@inner
def first_block() -> int:
    """Where every stream begins: block 0 would be NumPy's counter before its first increment.

    Not a plain 1, for which any function that takes it would be compiled once for that constant and again for other numbers.
    """
    return int(np.int64(1))


@inner
def only_substream() -> int:
    """The substream of a stream that has no others; see `first_block`."""
    return int(np.int64(0))


@inner
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


@entry
def uniforms(out: FloatArray, keys: Keys, round_: int) -> None:
    """One uniform in (0, 1) per lane."""
    for lane in range(out.shape[0]):
        w0, _w1, _w2, _w3 = philox(keys[lane], first_block(), round_, only_substream())
        out[lane] = to_unit(w0)


@entry
def arm_uniforms(out: FloatArray, prints: npt.NDArray[np.uint64], keys: Keys, round_: int) -> None:
    """One uniform in (0, 1) per arm, out (lanes, n_arms), named by the arm's content: equal arms get equal numbers."""
    for lane in range(out.shape[0]):
        for k in range(out.shape[1]):
            w0, _w1, _w2, _w3 = philox(keys[lane], first_block(), round_, prints[lane, k])
            out[lane, k] = to_unit(w0)


class RandomSource(NamedTuple):
    """Names the random numbers of a call: chain c of lane l reads the stream (keys[l], round_, first_substream + c)."""

    keys: Keys  # (lanes, 2)
    round_: int
    first_substream: int


class RandomStream(NamedTuple):
    """A stream of random words that remembers how far it was read: `place` and `buffer` change."""

    key: Keys  # (2,)
    round_: int
    substream: int
    place: IntArray  # (2,) next block, words of the buffer already used
    buffer: FloatArray  # (4,)


@maker
def open_stream(key: Keys, round_: int, substream: int) -> RandomStream:
    """The stream at its beginning."""
    place = np.empty(2, dtype=np.int64)
    place[0] = 1  # block 0 would be NumPy's counter before its first increment
    place[1] = 4
    return RandomStream(key, round_, substream, place, np.empty(4))


@inner
def uniform(stream: RandomStream) -> float:
    """A uniform in (0, 1), never 0 or 1."""
    if stream.place[1] == 4:
        w0, w1, w2, w3 = philox(stream.key, stream.place[0], stream.round_, stream.substream)
        stream.buffer[0], stream.buffer[1] = to_unit(w0), to_unit(w1)
        stream.buffer[2], stream.buffer[3] = to_unit(w2), to_unit(w3)
        stream.place[0] += 1
        stream.place[1] = 0
    value: float = stream.buffer[stream.place[1]]
    stream.place[1] += 1
    return value


@inner
def exponential(stream: RandomStream) -> float:
    """A standard exponential."""
    return -math.log(uniform(stream))


@inner
def normal(stream: RandomStream) -> float:
    """A standard normal (Box-Muller, one of the pair)."""
    return math.sqrt(-2.0 * math.log(uniform(stream))) * math.cos(2.0 * math.pi * uniform(stream))


@inner
def gamma(stream: RandomStream, shape: float) -> float:
    """A gamma variate of unit scale, by Marsaglia & Tsang (2000); a shape below 1 is raised by one and scaled back."""
    raised = shape if shape >= 1.0 else shape + 1.0
    d = raised - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(stream)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        if math.log(uniform(stream)) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
            break
    if shape < 1.0:
        return d * v * math.exp(math.log(uniform(stream)) / shape)
    return d * v


@entry
def mala_randomness(noise: FloatArray, uniforms: FloatArray, source: RandomSource) -> None:
    """Fill noise (lanes, chains, steps, dim) and uniforms (lanes, chains, steps) with the numbers that `mala_lanes` uses."""
    lanes, chains, steps, _ = noise.shape
    for lane in range(lanes):
        for chain in range(chains):
            block = first_block()
            for step in range(steps):
                block, uniforms[lane, chain, step] = fill_normals(
                    noise[lane, chain, step], source.keys[lane], block, source.round_, source.first_substream + chain
                )
