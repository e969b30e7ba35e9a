"""How often each distinct contrast was shown and lost: all that the likelihood needs of a history.

A contrast has a row. Which row a pair of arms has is looked up in an open-addressing table, one a lane; where arms do not
repeat, there is a row a round.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.core.checks import FloatArray
from duelist.core.growing import doubled, grown
from duelist.core.history_kernels import append_round, fade, rehash

Ints = npt.NDArray[np.integer[Any]]


class ContrastCounts:
    """Grows round by round, in place. In layers, a group of rows is a layer of a lane: lanes * layers groups.

    Attributes:
        contrasts: (groups, dim, capacity) distinct contrasts, one a column.
        totals: (groups, capacity) how often each was shown.
        losses: (groups, capacity) how often its first arm lost; half for a tie.
        n_rows: (groups,) distinct contrasts in use.
    """

    def __init__(self, lanes: int, dim: int, n_layers: int) -> None:
        groups = lanes * n_layers
        self.n_layers = n_layers
        self.contrasts = np.zeros((groups, dim, 0))
        self.totals = np.zeros((groups, 0))
        self.losses = np.zeros((groups, 0))
        self.n_rows = np.zeros(groups, dtype=np.int64)
        self._most_rows = 0  # an upper bound of n_rows.max() that needs no pass over the lanes
        self._table = np.full((groups, 16), -1, dtype=np.int64)
        self._table_rows = np.empty((groups, 16), dtype=np.int32)

    def count(
        self,
        slot: int,
        first: Ints,
        second: Ints,
        outcomes: Ints,
        weights: FloatArray,
        layers: Ints,
        features: FloatArray,
        adversary: FloatArray,
        rows: npt.NDArray[np.int32],
    ) -> None:
        """Count one duel a lane, between rows `first` and `second` of the action set numbered `slot`.

        `adversary` (lanes, 2, dim) grows by the features of the arm that the other draw chose, and `rows` (lanes,) is filled
        with the row of each contrast, -1 for a duel of weight 0.
        """
        self._make_room()
        append_round(
            slot,
            first.astype(np.int64),
            second.astype(np.int64),
            outcomes.astype(np.int64),
            weights,
            layers.astype(np.int64),
            self.n_layers,
            features,
            self._table,
            self._table_rows,
            self.contrasts,
            self.totals,
            self.losses,
            self.n_rows,
            adversary,
            rows,
        )

    def fade(self, factor: float) -> None:
        """Multiply everything counted so far, for a history that forgets."""
        fade(self.totals.reshape(-1), factor)
        fade(self.losses.reshape(-1), factor)

    def _make_room(self) -> None:
        capacity = self.totals.shape[1]
        if self._most_rows == capacity:
            self._most_rows = int(self.n_rows.max())
        if self._most_rows == capacity:
            size = doubled(capacity, 16)
            self.contrasts = grown(self.contrasts, 2, size)
            self.totals = grown(self.totals, 1, size)
            self.losses = grown(self.losses, 1, size)
            if 2 * size > self._table.shape[1]:
                old_table, old_rows = self._table, self._table_rows
                self._table = np.full((len(old_table), 2 * size), -1, dtype=np.int64)
                self._table_rows = np.empty((len(old_table), 2 * size), dtype=np.int32)
                rehash(old_table, old_rows, self._table, self._table_rows)
        self._most_rows += 1
