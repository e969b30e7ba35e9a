"""Compiled draws of distinct arms from the corners of a cube."""

from __future__ import annotations

import numpy as np

from duelist.core.checks import FloatArray
from duelist.core.compiled import kernel
from duelist.core.philox import first_block, only_substream, philox
from duelist.core.streams import Keys

_ONE = np.uint64(1)


@kernel
def draw_corners(arms: FloatArray, keys: Keys, round_: int, scale: float) -> None:
    """Fill arms (lanes, n_arms, dim) with distinct uniform corners of {-scale, scale}^dim, drawn again where they repeat."""
    lanes, n_arms, dim = arms.shape
    for lane in range(lanes):
        block = first_block()
        for k in range(n_arms):
            repeated = True
            while repeated:
                for i in range(dim):
                    if i % 64 == 0:
                        word, _w1, _w2, _w3 = philox(keys[lane], block, round_, only_substream())
                        block += 1
                    arms[lane, k, i] = scale if (word >> np.uint64(i % 64)) & _ONE else -scale
                repeated = False
                for other in range(k):
                    same = True
                    for i in range(dim):
                        if arms[lane, other, i] != arms[lane, k, i]:
                            same = False
                            break
                    if same:
                        repeated = True
                        break
