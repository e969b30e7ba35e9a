"""Decoupling coefficients: the price of treating the drawn parameter and the played pair as independent.

A class of rewards has coefficient dc if, for every lambda > 0 and every joint law of (theta, a1, a2), with f_theta the error
Delta r_theta - Delta r_theta* on the pair,

    E f_theta(a1, a2) <= lambda dc + 1 / (4 lambda) E_theta E_(a1, a2) f_theta(a1, a2)^2,

where on the right theta and the pair are independent with the same marginals.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from duelist.core.checks import finite_number, whole_number


def linear_decoupling(dim: int) -> float:
    """d, for rewards linear in d features."""
    return float(whole_number("dim", dim, at_least=1))


def finite_decoupling(arms: int) -> float:
    """K - 1, for any rewards over K arms: the dimension in which errors on pairs live.

    Let g in R^K be the error r_theta - r_theta* at every arm. The error on a pair is <g, e_a - e_b>, linear in e_a - e_b, and
    all those differences lie in the K - 1 dimensions orthogonal to (1, ..., 1). The linear lemma there has coefficient K - 1.

    The paper counts pairs instead and has K (K - 1) / 2, the same at K = 2 and K / 2 times as much from there on. No number
    below K - 1 serves every reward: draw a uniformly from the first K - 1 arms, play it against the last, and let theta err
    by 1 at arm a alone. The error is always 1, its square with theta and the pair independent is 1 / (K - 1) on average, and
    at lambda = 1 / (2 (K - 1)) both sides are equal.

    Example:
        >>> finite_decoupling(arms=32)
        31.0
    """
    return float(whole_number("arms", arms, at_least=2) - 1)


def decoupling_coefficient(dim: int, arms: int | None = None) -> float:
    """The better of the two for linear rewards, min(d, K - 1); arms None for infinitely many.

    Example:
        >>> decoupling_coefficient(dim=10, arms=4)
        3.0
    """
    return linear_decoupling(dim) if arms is None else min(linear_decoupling(dim), finite_decoupling(arms))


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
