"""How much of an action set was there in the round before: all of a fixed set, nothing of one that is drawn anew."""

from __future__ import annotations

import numpy as np

from duelist.core.checks import FloatArray

_CLOSE = 0.1  # of the typical distance between two arms: nearer than that an arm counts as the same


def share_seen(now: FloatArray, before: FloatArray) -> FloatArray:
    """(lanes,) the share of the arms (lanes, n_arms, dim) that have one of those before, (lanes, m, dim), close by.

    Close, not equal: contexts that hardly vary offer the same arms for every purpose. With nothing before, all count as seen,
    for nothing says that arms change.

    Example:
        >>> import numpy as np
        >>> before = np.array([[[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]]])
        >>> now = np.array([[[0.0, 0.0], [4.0, 0.1], [9.0, 9.0]]])
        >>> share_seen(now, before).round(2).tolist()
        [0.67]
    """
    if before.shape[1] == 0:
        return np.ones(len(now))
    squares, squares_before = (now**2).sum(axis=2), (before**2).sum(axis=2)
    apart = squares[:, :, None] + squares_before[:, None, :] - 2.0 * now @ np.swapaxes(before, 1, 2)
    centred = now - now.mean(axis=1, keepdims=True)
    typical = 2.0 * (centred**2).sum(axis=2).mean(axis=1)  # mean squared distance between two arms
    return np.asarray((apart.min(axis=2) <= _CLOSE**2 * typical[:, None]).mean(axis=1))
