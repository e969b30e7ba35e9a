"""The arm that an estimate likes best, in NumPy: ties go by an arm's content and never by its row."""

from __future__ import annotations

import numpy as np

from duelist.kernels.actions import TIE
from duelist.typing import FloatArray, IntArray


def leading_arm(scores: FloatArray, priority: FloatArray) -> IntArray:
    """(lanes,) the arm of the largest score (lanes, n_arms); among equals that of the largest priority. -inf is never picked.

    Example:
        >>> leading_arm(np.array([[1.0, 3.0, 3.0]]), np.array([[0.9, 0.2, 0.4]])).tolist()
        [2]
    """
    best = scores.max(axis=1, keepdims=True)
    return np.asarray(np.where(scores >= best - TIE * (1.0 + np.abs(best)), priority, -1.0).argmax(axis=1))
