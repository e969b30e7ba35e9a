"""Draws that need an unknown number of uniforms, inside kernels: a tape of Philox words read one by one.

`fill_normals` uses a fixed number of words a draw; rejection methods cannot. A tape is (next block, words used of the
current block) with a buffer of four uniforms, and is again a pure function of (key, round, substream).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from duelist.core.checks import FloatArray, IntArray
from duelist.core.compiled import part
from duelist.core.philox import philox, to_unit
from duelist.core.streams import Keys


class Tape(NamedTuple):
    """Where a tape of random words stands; `place` and `buffer` change as it is read."""

    key: Keys  # (2,)
    round_: int
    substream: int
    place: IntArray  # (2,) next block, words of the buffer already used
    buffer: FloatArray  # (4,)


@part
def tape_from(key: Keys, round_: int, substream: int) -> Tape:
    """A tape at its beginning."""
    place = np.empty(2, dtype=np.int64)
    place[0] = 1  # block 0 would be NumPy's counter before its first increment
    place[1] = 4
    return Tape(key, round_, substream, place, np.empty(4))


@part
def uniform(tape: Tape) -> float:
    """A uniform in (0, 1), never 0 or 1."""
    if tape.place[1] == 4:
        w0, w1, w2, w3 = philox(tape.key, tape.place[0], tape.round_, tape.substream)
        tape.buffer[0], tape.buffer[1] = to_unit(w0), to_unit(w1)
        tape.buffer[2], tape.buffer[3] = to_unit(w2), to_unit(w3)
        tape.place[0] += 1
        tape.place[1] = 0
    value: float = tape.buffer[tape.place[1]]
    tape.place[1] += 1
    return value


@part
def exponential(tape: Tape) -> float:
    """A standard exponential."""
    return -math.log(uniform(tape))


@part
def normal(tape: Tape) -> float:
    """A standard normal (Box-Muller, one of the pair)."""
    return math.sqrt(-2.0 * math.log(uniform(tape))) * math.cos(2.0 * math.pi * uniform(tape))


@part
def gamma(tape: Tape, shape: float) -> float:
    """A gamma variate of unit scale, by Marsaglia & Tsang (2000); a shape below 1 is raised by one and scaled back."""
    raised = shape if shape >= 1.0 else shape + 1.0
    d = raised - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = normal(tape)
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        if math.log(uniform(tape)) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
            break
    if shape < 1.0:
        return d * v * math.exp(math.log(uniform(tape)) / shape)
    return d * v
