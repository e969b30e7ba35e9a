"""Upper bounds for general rewards bounded by B: the nonlinear theorem, and the direct bound for a finite list of models.

The prior enters through one number, Lambda = log 1 / [ p_0(theta*) mu({ theta : d(theta, theta*) <= 2 / (L_0 T) }) ], the price
in nats of finding theta*; see `duelist.theory.ball_priors.log_inverse_mass` for a ball, and log N for N models.

Reference: Li, Zhao & Gu, Feel-Good Thompson Sampling for Contextual Dueling Bandits, Section 6 and Appendix A.3.
"""

from __future__ import annotations

import math

from duelist.core.checks import finite_number, whole_number
from duelist.theory.conditions import Bound, Condition


def nonlinear_mu(*, bound: float, horizon: int, decoupling: float, log_inverse_mass: float) -> float:
    """The mu of the nonlinear theorem, e^-B / 5 sqrt( Lambda / (T dc) ), to go with eta = 1/4.

    Args:
        bound: B, the largest |reward|.
        horizon: T, the number of rounds.
        decoupling: dc; see `duelist.theory.decoupling`.
        log_inverse_mass: Lambda, above 0.

    Example:
        >>> round(nonlinear_mu(bound=1.0, horizon=2500, decoupling=10.0, log_inverse_mass=math.log(1000)), 6)
        0.001223
    """
    finite_number("bound", bound, above=0.0)
    whole_number("horizon", horizon, at_least=1)
    finite_number("decoupling", decoupling, above=0.0)
    finite_number("log_inverse_mass", log_inverse_mass, above=0.0)
    return math.exp(-bound) / 5.0 * math.sqrt(log_inverse_mass / (horizon * decoupling))


def nonlinear_upper_bound(
    *,
    bound: float,
    horizon: int,
    decoupling: float,
    log_inverse_mass: float,
    prior_lipschitz: float = 0.0,
    reward_lipschitz: float = 1.0,
) -> Bound:
    """The nonlinear theorem as restated in the appendix, at eta = 1/4 and its own mu.

    4 + 5 e^B sqrt(T dc Lambda) [ 2 + (1 + 2 L / (L_0 T)) / Lambda ].

    Args:
        bound: B, the largest |reward|.
        horizon: T, the number of rounds.
        decoupling: dc; the proof uses dc >= 1.
        log_inverse_mass: Lambda, at the neighbourhood of radius 2 / (L_0 T).
        prior_lipschitz: L of log p_0 in the metric of the parameters.
        reward_lipschitz: L_0 of the reward in theta; 1 for linear rewards with |phi| <= 1.

    Example:
        >>> bound = nonlinear_upper_bound(bound=1.0, horizon=2500, decoupling=10.0, log_inverse_mass=math.log(1000))
        >>> round(bound.require().value)
        12118
    """
    finite_number("bound", bound, above=0.0)
    whole_number("horizon", horizon, at_least=1)
    finite_number("decoupling", decoupling, above=0.0)
    finite_number("log_inverse_mass", log_inverse_mass)
    finite_number("prior_lipschitz", prior_lipschitz, at_least=0.0)
    finite_number("reward_lipschitz", reward_lipschitz, above=0.0)
    conditions = (
        Condition("Lambda > 0", log_inverse_mass > 0.0, {"Lambda": log_inverse_mass}),
        Condition("dc >= 1", decoupling >= 1.0, {"dc": decoupling}),
    )
    if log_inverse_mass <= 0.0:
        return Bound("nonlinear upper bound", math.inf, conditions)
    scale = 5.0 * math.exp(bound) * math.sqrt(horizon * decoupling * log_inverse_mass)
    extra = (1.0 + 2.0 * prior_lipschitz / (reward_lipschitz * horizon)) / log_inverse_mass
    return Bound("nonlinear upper bound", 4.0 + scale * (2.0 + extra), conditions)


def finite_class_log_inverse_mass(models: int, *, models_near_truth: int = 1) -> float:
    """Lambda of a uniform prior over N models, log( N / n ), n of them within 2 / (L_0 T) of the truth, itself included.

    For T large enough n = 1, and Lambda = log N as the paper says.

    Example:
        >>> round(finite_class_log_inverse_mass(1000), 4)
        6.9078
    """
    whole_number("models", models, at_least=1)
    whole_number("models_near_truth", models_near_truth, at_least=1, at_most=models)
    return math.log(models / models_near_truth)


def finite_class_upper_bound(*, models: int, bound: float, horizon: int, decoupling: float) -> Bound:
    """A direct bound for N models under a uniform prior: 10 e^B sqrt(T dc log N), for any T.

    With theta* itself in place of its neighbourhood, -Z_T <= log N with nothing to add, so the theorem's steps leave
    25 e^(2B) dc mu T + log N / mu at eta = 1/4. It is below the theorem's value and needs no T "large enough".

    Args:
        models: N, at least 2.
        bound: B, the largest |reward|.
        horizon: T, the number of rounds.
        decoupling: dc; d for linear rewards.

    Example:
        >>> round(finite_class_upper_bound(models=1000, bound=1.0, horizon=2500, decoupling=10.0).value)
        11296
    """
    whole_number("models", models, at_least=2)
    finite_number("bound", bound, above=0.0)
    whole_number("horizon", horizon, at_least=1)
    finite_number("decoupling", decoupling, above=0.0)
    value = 10.0 * math.exp(bound) * math.sqrt(horizon * decoupling * math.log(models))
    return Bound("finite class upper bound", value, (Condition("dc >= 1", decoupling >= 1.0, {"dc": decoupling}),))
