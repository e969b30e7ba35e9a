"""Sufficient statistics of a history: all that the likelihood and the Feel-Good term need to know of it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from duelist.actions.support import Support
from duelist.typing import FloatArray, Int32Array, IntArray


class Newest(NamedTuple):
    """The newest duel of every lane, as it was logged; few readers need it, so it is worked out when it is read.

    Attributes:
        first: (lanes,) row of the first candidate.
        second: (lanes,) row of the second.
        outcomes: (lanes,) +1 where the first won, -1 where it lost, 0 where they tied.
        rows: (lanes,) row of its contrast.
    """

    first: Int32Array
    second: Int32Array
    outcomes: npt.NDArray[np.int8]
    rows: Int32Array

    @property
    def row(self) -> IntArray:
        """(lanes,) row of the contrast."""
        return self.rows.astype(np.int64)

    @property
    def lost(self) -> FloatArray:
        """(lanes,) how far the contrast's first arm lost: 1, 0, or a half for a tie."""
        # A contrast is (lower row) - (higher row): flipped where the first candidate had the higher row.
        sign = np.where(self.first > self.second, -1.0, 1.0)
        return np.asarray(0.5 * (1.0 - sign * self.outcomes))


class Statistics(NamedTuple):
    """Sufficient statistics of a history. Arrays must not be written to.

    From `History.statistics` they may be kept; from `History.live_statistics` they are valid until the next `append`.

    A history in layers keeps separate statistics for every layer: the leading axis of contrasts, totals, losses and n_rows is
    then lanes * layers, layers of a lane side by side.

    Attributes:
        contrasts: (lanes, dim, capacity) distinct contrasts, one per column; columns from `n_rows` on are unused.
        totals: (lanes, capacity) how often each contrast was shown.
        losses: (lanes, capacity) how often its first arm lost; half for a tie.
        n_rows: (lanes,) distinct contrasts in use.
        sets: (lanes, capacity, dim, n_arms) distinct action sets, arms last; those from `len(repeats)` on are unused.
        repeats: (n_sets,) how often each set was offered, or how many rounds it stands for in a sample; empty if the history
            does not keep sets.
        adversary: (lanes, 2, dim) sum over rounds of phi(a^{3-j}), the arm that draw j did not choose, for j = 1, 2. With a
            sample of sets, less what its control variate knows exactly, so that the same formula gives the estimate.
        ball_reach: sum of the radii of the balls that were offered; 0 if the history does not keep sets.
        support: sum of the support functions of other continuous sets; None if there were none, or they are not kept.
        newest: which contrast the newest duel was of, and whether its first arm lost; None without duels, or in layers.
    """

    contrasts: FloatArray
    totals: FloatArray
    losses: FloatArray
    n_rows: IntArray
    sets: FloatArray
    repeats: FloatArray
    adversary: FloatArray
    ball_reach: float = 0.0
    support: Support | None = None
    newest: Newest | None = None
