"""Compiled draws that several rooms need, one number or pair a lane."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from duelist.core.checks import FloatArray
from duelist.core.compiled import kernel
from duelist.core.philox import first_block, only_substream, philox, to_unit
from duelist.core.streams import Keys


@kernel
def uniforms(out: FloatArray, keys: Keys, round_: int) -> None:
    """One uniform in (0, 1) a lane."""
    for lane in range(out.shape[0]):
        w0, _w1, _w2, _w3 = philox(keys[lane], first_block(), round_, only_substream())
        out[lane] = to_unit(w0)


@kernel
def arm_uniforms(out: FloatArray, prints: npt.NDArray[np.uint64], keys: Keys, round_: int) -> None:
    """One uniform in (0, 1) an arm, out (lanes, n_arms), named by the arm's content: equal arms get equal numbers."""
    for lane in range(out.shape[0]):
        for k in range(out.shape[1]):
            w0, _w1, _w2, _w3 = philox(keys[lane], first_block(), round_, prints[lane, k])
            out[lane, k] = to_unit(w0)
