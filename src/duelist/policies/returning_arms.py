"""Do arms come back? How much of an action set was there a round before, and what an answer is worth to other arms."""

from __future__ import annotations

import numpy as np

from duelist.core.checks import FloatArray

_CLOSE = 0.1  # of the typical distance between two arms: nearer than that an arm counts as the same
_BELIEF = 10.0  # rounds that speak for a gain being worth as much to other arms, before any were seen


def share_seen(now: FloatArray, before: FloatArray, spread: FloatArray) -> FloatArray:
    """(lanes,) the share of the arms (lanes, dim, n_arms) that have one of those before, (lanes, dim, m), close by.

    spread (lanes,) is the mean squared distance of the arms now to their centre. Close, not equal: contexts that hardly vary
    offer the same arms for every purpose. With nothing before, all count as seen, for nothing says that arms change.

    Example:
        >>> import numpy as np
        >>> before = np.array([[[0.0, 4.0, 0.0], [0.0, 0.0, 4.0]]])
        >>> now = np.array([[[0.0, 4.0, 9.0], [0.0, 0.1, 9.0]]])
        >>> share_seen(now, before, np.array([24.0])).round(2).tolist()
        [0.67]
    """
    if before.shape[2] == 0:
        return np.ones(len(now))
    squares, squares_before = (now**2).sum(axis=1), (before**2).sum(axis=1)
    apart = squares[:, :, None] + squares_before[:, None, :] - 2.0 * np.swapaxes(now, 1, 2) @ before
    typical = 2.0 * spread[:, None]  # mean squared distance between two arms
    return np.asarray((apart.min(axis=2) <= _CLOSE**2 * typical).mean(axis=1))


def carried_over(gained: FloatArray) -> FloatArray:
    """(lanes,) how much of a gain on the arms of a round is a gain on those of another, from 0 to 1.

    gained (lanes, 3) sums up what pairs were worth to their own arms, to others, and how many pairs there were. The ratio of
    the first two is drawn towards 1 by ten rounds: after few rounds it may be 0 by chance, and who does not explore learns no
    better.

    Example:
        >>> import numpy as np
        >>> carried_over(np.array([[0.0, 0.0, 0.0], [5.0, 1.0, 90.0]])).tolist()
        [1.0, 0.28]
    """
    own, other, rounds = gained.T
    ratio = np.divide(other, own, out=np.ones_like(own), where=own > 0.0)
    return np.asarray((_BELIEF + rounds * np.minimum(ratio, 1.0)) / (_BELIEF + rounds))
