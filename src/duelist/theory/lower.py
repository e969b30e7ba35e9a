"""The lower bound: no rule for duels on the unit ball does better than d sqrt(T) / (24 sqrt(2)) on every instance.

Reference: Li, Zhao & Gu, Feel-Good Thompson Sampling for Contextual Dueling Bandits, Theorem 2 and its proof.
"""

from __future__ import annotations

import math

from duelist.core.checks import finite_number, whole_number
from duelist.theory.conditions import Bound, Condition


def hard_gap(dim: int, horizon: int) -> float:
    """The D of the hard class {-D, D}^d, sqrt(d / (2 T)) / 6: small enough that T duels barely tell the signs apart.

    Example:
        >>> round(hard_gap(dim=2, horizon=100), 6)
        0.016667
    """
    whole_number("dim", dim, at_least=1)
    whole_number("horizon", horizon, at_least=1)
    return math.sqrt(dim / (2.0 * horizon)) / 6.0


def lower_bound(*, dim: int, horizon: int, bound: float) -> Bound:
    """Regret on average over the hard class, at least d sqrt(T) / (24 sqrt(2)), for T >= max(72 d^2 / B^2, d).

    The proof averages over the class, so the mean regret over a uniform draw of theta* obeys the bound, and hence some
    theta* of the class does. It uses the first condition only for |theta*| = D sqrt(d) <= B, for which T >= d^2 / (72 B^2)
    would be enough; the condition checked here is the printed one.

    Args:
        dim: d.
        horizon: T, the number of rounds, known to the class.
        bound: B, the largest |theta| allowed.

    Example:
        >>> round(lower_bound(dim=5, horizon=2500, bound=1.0).require().value, 3)
        7.366
        >>> [str(condition) for condition in lower_bound(dim=10, horizon=2500, bound=1.0).failing]
        ['T >= 72 d^2 / B^2 fails (T = 2500, 72 d^2 / B^2 = 7200)']
    """
    whole_number("dim", dim, at_least=1)
    whole_number("horizon", horizon, at_least=1)
    finite_number("bound", bound, above=0.0)
    needed = 72.0 * (dim / bound) ** 2
    conditions = (
        Condition("T >= 72 d^2 / B^2", horizon >= needed, {"T": horizon, "72 d^2 / B^2": needed}),
        Condition("T >= d", horizon >= dim, {"T": horizon, "d": dim}),
    )
    return Bound("lower bound", dim * math.sqrt(horizon) / (24.0 * math.sqrt(2.0)), conditions)
