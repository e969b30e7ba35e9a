"""Upper bounds on the expected regret of FGTS with linear rewards: two lemmas, and the theorem they add up to.

Setting: |theta| <= B for every theta that the prior allows and for theta*, |phi| <= 1, draws from the exact posterior.
B is the radius of the prior's ball. All bounds are on the expected cumulative *average* regret over T rounds.

Reference: Li, Zhao & Gu, Feel-Good Thompson Sampling for Contextual Dueling Bandits, Appendix A.1 and B.
"""

from __future__ import annotations

import math

from duelist.core.checks import finite_number, whole_number
from duelist.theory.ball_priors import BallPrior, prior_lipschitz, prior_log_density
from duelist.theory.conditions import Bound, Condition
from duelist.theory.schedules import THEORY_ETA, theory_mu


def potential_floor(
    *, dim: int, horizon: int, prior: BallPrior, eta: float, mu: float, theta_norm: float | None = None
) -> Bound:
    """The Z_T lemma: Z_T >= log p_0(theta*) - d - d log[ (L + 2 (mu + eta) T) / sqrt(d) ].

    The paper states it without a condition on T. It needs delta = d / (L + 2 (mu + eta) T) <= min(2 B, 2): the proof gives up
    a prior mass around theta* of at least p_0(theta*) e^(-L delta) (delta / sqrt(d))^d, which is false once the ball of
    radius delta outgrows the prior's own.

    Args:
        dim: d.
        horizon: T, the number of rounds.
        prior: p_0, with its ball.
        eta: temper of the likelihood.
        mu: Feel-Good weight.
        theta_norm: |theta*|; None for the prior's radius, where its density is lowest.
    """
    _check_shape(dim, horizon, eta, mu)
    norm = _norm(theta_norm, prior)
    growth = prior_lipschitz(prior) + 2.0 * (mu + eta) * horizon
    conditions = (*_in_the_ball(prior, norm), _neighbourhood(dim, growth, prior))
    if not math.isfinite(growth):
        return Bound("potential lemma", -math.inf, conditions)
    value = prior_log_density(prior, dim, norm) - dim - dim * math.log(growth / math.sqrt(dim))
    return Bound("potential lemma", value, conditions)


def regret_from_potential(
    *, dim: int, horizon: int, bound: float, eta: float, mu: float, potential: float, feature_norm: float = 1.0
) -> Bound:
    """The main lemma: regret <= ( 9 d e^(2B) / (2 eta) + 32 B^2 ) mu T - Z_T / mu, for Z_T^1, Z_T^2 >= `potential`.

    Args:
        dim: d, the decoupling coefficient of linear rewards.
        horizon: T, the number of rounds.
        bound: B.
        eta: temper of the likelihood, at most 1/2.
        mu: Feel-Good weight, above 0.
        potential: a lower bound on Z_T.
        feature_norm: the largest |phi|.
    """
    _check_shape(dim, horizon, eta, mu)
    finite_number("bound", bound, above=0.0)
    conditions = (
        Condition("eta <= 1/2", eta <= 0.5, {"eta": eta}),
        Condition("mu > 0", mu > 0.0, {"mu": mu}),
        _features(feature_norm),
    )
    if mu == 0.0:
        return Bound("main lemma", math.inf, conditions)
    per_mu = 4.5 * dim * _exp(2.0 * bound) / eta + 32.0 * bound**2
    return Bound("main lemma", per_mu * mu * horizon - potential / mu, conditions)


def general_upper_bound(
    *,
    dim: int,
    horizon: int,
    prior: BallPrior,
    eta: float,
    mu: float,
    theta_norm: float | None = None,
    feature_norm: float = 1.0,
) -> Bound:
    """Both lemmas together, for any eta <= 1/2 and mu > 0; see them for the arguments.

    Example:
        >>> from types import SimpleNamespace
        >>> prior = SimpleNamespace(precision=0.0, radius=1.0)
        >>> bound = general_upper_bound(dim=5, horizon=2500, prior=prior, eta=1.0, mu=0.002)
        >>> [str(condition) for condition in bound.failing]
        ['eta <= 1/2 fails (eta = 1)']
    """
    floor = potential_floor(dim=dim, horizon=horizon, prior=prior, eta=eta, mu=mu, theta_norm=theta_norm)
    if not math.isfinite(prior.radius):
        return Bound("general upper bound", math.inf, floor.conditions)
    regret = regret_from_potential(
        dim=dim, horizon=horizon, bound=prior.radius, eta=eta, mu=mu, potential=floor.value, feature_norm=feature_norm
    )
    return Bound("general upper bound", regret.value, (*regret.conditions, *floor.conditions))


def linear_upper_bound(
    *, dim: int, horizon: int, prior: BallPrior, theta_norm: float | None = None, feature_norm: float = 1.0
) -> Bound:
    """The main theorem as restated in the appendix, at eta = 1/4 and mu = 1 / (10 e^B sqrt(T)).

    10 e^B d sqrt(T) [ 2 - log p_0(theta*) / d + log( L / sqrt(d) + sqrt(T/d) / (5 e^B) + T / (2 sqrt(d)) ) ].

    Args:
        dim: d.
        horizon: T, the number of rounds.
        prior: p_0; its radius is B.
        theta_norm: |theta*|; None for B, where the density of the prior is lowest.
        feature_norm: the largest |phi|. Features of norm R with |theta*| <= B are features of norm 1 with bound R B.

    Example:
        >>> from types import SimpleNamespace
        >>> prior = SimpleNamespace(precision=0.0, radius=1.0)
        >>> round(linear_upper_bound(dim=5, horizon=2500, prior=prior).require().value)
        58860
    """
    whole_number("dim", dim, at_least=1)
    whole_number("horizon", horizon, at_least=1)
    norm = _norm(theta_norm, prior)
    name = "linear upper bound"
    if not math.isfinite(prior.radius):
        return Bound(name, math.inf, _in_the_ball(prior, norm))
    bound = prior.radius
    root_d, lipschitz = math.sqrt(dim), prior_lipschitz(prior)
    growth = lipschitz / root_d + math.sqrt(horizon / dim) * math.exp(-bound) / 5.0 + horizon / (2.0 * root_d)
    bracket = 2.0 - prior_log_density(prior, dim, norm) / dim + math.log(growth)
    conditions = (
        _features(feature_norm),
        *_in_the_ball(prior, norm),
        _neighbourhood(dim, lipschitz + 2.0 * (theory_mu(bound, horizon) + THEORY_ETA) * horizon, prior),
    )
    return Bound(name, 10.0 * _exp(bound) * dim * math.sqrt(horizon) * bracket, conditions)


def trivial_upper_bound(*, horizon: int, bound: float) -> Bound:
    """2 B T: no duel costs more, whatever is played. An upper bound says something only below it.

    Example:
        >>> trivial_upper_bound(horizon=2500, bound=1.0).value
        5000.0
    """
    whole_number("horizon", horizon, at_least=1)
    finite_number("bound", bound, above=0.0)
    return Bound("trivial upper bound", 2.0 * bound * horizon, ())


def _neighbourhood(dim: int, growth: float, prior: BallPrior) -> Condition:
    delta = dim / growth
    return Condition(
        "d / (L + 2 (mu + eta) T) <= min(2 B, 2)",
        delta <= min(2.0 * prior.radius, 2.0),
        {"d / (L + 2 (mu + eta) T)": delta, "2 B": 2.0 * prior.radius},
    )


def _in_the_ball(prior: BallPrior, theta_norm: float) -> tuple[Condition, ...]:
    return (
        Condition("the prior lives on a ball", math.isfinite(prior.radius), {"B": prior.radius}),
        Condition("|theta*| <= B", theta_norm <= prior.radius, {"|theta*|": theta_norm, "B": prior.radius}),
    )


def _features(norm: float) -> Condition:
    # Rounding may leave a unit vector a hair longer than 1; that changes no bound by more than its last digits.
    return Condition("|phi| <= 1", norm <= 1.0 + 1e-12, {"max |phi|": norm})


def _norm(theta_norm: float | None, prior: BallPrior) -> float:
    if theta_norm is None:
        return prior.radius if math.isfinite(prior.radius) else 0.0
    return finite_number("theta_norm", theta_norm, at_least=0.0)


def _check_shape(dim: int, horizon: int, eta: float, mu: float) -> None:
    whole_number("dim", dim, at_least=1)
    whole_number("horizon", horizon, at_least=1)
    finite_number("eta", eta, above=0.0)
    finite_number("mu", mu, at_least=0.0)


def _exp(exponent: float) -> float:
    """e^x, infinite where it overflows: the bounds are exponential in B."""
    return math.exp(exponent) if exponent < 709.0 else math.inf
