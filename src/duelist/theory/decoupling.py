"""Decoupling coefficients: the price of treating the drawn parameter and the played pair as independent.

A class of rewards has coefficient dc if, for every lambda > 0 and every joint law of (theta, a1, a2), with f_theta the error
Delta r_theta - Delta r_theta* on the pair,

    E f_theta(a1, a2) <= lambda dc + 1 / (4 lambda) E_theta E_(a1, a2) f_theta(a1, a2)^2,

where on the right theta and the pair are independent with the same marginals.
"""

from __future__ import annotations

from duelist.core.checks import whole_number


def linear_decoupling(dim: int) -> float:
    """d, for rewards linear in d features."""
    return float(whole_number("dim", dim, at_least=1))


def finite_decoupling(arms: int) -> float:
    """K (K - 1) / 2, for any rewards over K arms: one for each pair that can disagree.

    Example:
        >>> finite_decoupling(arms=32)
        496.0
    """
    whole_number("arms", arms, at_least=2)
    return arms * (arms - 1) / 2


def decoupling(dim: int, arms: int | None = None) -> float:
    """The better of the two for linear rewards; arms None for infinitely many.

    Example:
        >>> decoupling(dim=10, arms=4)
        6.0
    """
    return linear_decoupling(dim) if arms is None else min(linear_decoupling(dim), finite_decoupling(arms))
