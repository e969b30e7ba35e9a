"""How the paper's regret, in utilities, compares with the regret of Yue et al. (2012), in winning probabilities."""

from __future__ import annotations

import math
from typing import NamedTuple

from duelist.core.checks import finite_number


class RegretScale(NamedTuple):
    """Constants with lowest * gap <= s(gap) - 1/2 <= highest * gap for every gap in [0, 2B]."""

    lowest: float
    highest: float


def yue_scale(bound: float) -> RegretScale:
    """Constants between the two regrets of a round: s(z) - 1/2 is concave on z >= 0, with slope 1/4 at 0.

    The paper says Theta(z) and leaves the constants open; the lower one decays like 1 / (4 B).

    Example:
        >>> round(yue_scale(bound=1.0).lowest, 4)
        0.1904
    """
    finite_number("bound", bound, above=0.0)
    # s(z) - 1/2 = tanh(z / 2) / 2, which loses no digits at small z.
    return RegretScale(math.tanh(bound) / (4.0 * bound), 0.25)
