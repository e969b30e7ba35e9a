"""What duels that wait for an answer will tell: their information, added to what was learnt before a pair is chosen.

How sharply theta will be known does not depend on who wins, or hardly. So an open duel counts in the matrix behind the widths

    H + sum over open duels of  weight z z^T

as if it were answered, and the estimate stays where it is. Who asks twenty people at once then gets twenty questions that add
up, and not one question twenty times.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import expit

from duelist.history.duels import Duels
from duelist.typing import FloatArray


def open_contrasts(pending: Sequence[Duels]) -> FloatArray:
    """(lanes, n, dim) contrasts of the n duels that are open."""
    return np.stack([duels.contrast for duels in pending], axis=1)


def logistic_slope(differences: FloatArray) -> FloatArray:
    """s'(x) = s(x) (1 - s(x)): how much a duel between utilities so far apart says."""
    chance = expit(differences)
    return np.asarray(chance * (1.0 - chance))


def add_information(whitener: FloatArray, contrasts: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """The whitener of a matrix to which weight z z^T of every contrast was added.

    Args:
        whitener: (..., dim, dim) inverse of the lower Cholesky factor of the matrix H.
        contrasts: (..., n, dim) z.
        weights: (..., n) at least 0; None for 1 each.

    Example:
        >>> import numpy as np
        >>> add_information(np.eye(2), np.array([[0.0, 2.0], [0.0, 2.0]]), np.array([1.0, 0.75])).round(3).tolist()
        [[1.0, 0.0], [0.0, 0.354]]
    """
    # The factor of H on the left of scaled contrasts: H + sum w z z^T is this times its own transpose.
    scaled = contrasts if weights is None else contrasts * np.sqrt(weights)[..., None]
    root = np.concatenate([np.linalg.inv(whitener), np.swapaxes(scaled, -1, -2)], axis=-1)
    factor = np.linalg.cholesky(root @ np.swapaxes(root, -1, -2))
    return np.ascontiguousarray(np.tril(np.linalg.inv(factor)))
