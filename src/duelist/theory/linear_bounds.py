"""Bounds on the expected regret with linear rewards: the upper bound of FGTS from its two lemmas, and the lower bound.

Upper bounds: |theta| <= B for every theta that the prior allows and for theta*, |phi| <= 1, draws from the exact posterior.
B is the radius of the prior's ball. All bounds are on the expected cumulative *average* regret over T rounds. The lower bound
says that no rule for duels on the unit ball does better than d sqrt(T) / (24 sqrt(2)) on every instance, and next to nothing
less where the winner of q options is learnt instead of that of a duel.

Reference: Li, Zhao & Gu, Feel-Good Thompson Sampling for Contextual Dueling Bandits, Theorem 2, Appendices A.1 and B.
"""

from __future__ import annotations

import math

from duelist.core.checks import finite_number, whole_number
from duelist.theory.ball_priors import BallPrior, prior_lipschitz, prior_log_density
from duelist.theory.conditions import Bound, Condition


def potential_floor(
    *, dim: int, horizon: int, prior: BallPrior, eta: float, mu: float, theta_norm: float | None = None
) -> Bound:
    """The Z_T lemma: Z_T >= log p_0(theta*) - d - d log[ (L + 2 (mu + eta) T) / sqrt(d) ].

    The paper states it without a condition on T, and without any it is false. The condition checked here is enough for every
    theta* of the ball: delta = d / (L + 2 (mu + eta) T) <= min(2 B, 2), for then the prior has a mass of at least
    p_0(theta*) e^(-L delta) (delta / sqrt(d))^d within delta of theta*. It is not necessary: where the cube of the printed
    proof fits into the ball, as around theta* = 0, that proof reaches delta = 4.31 min(B, 2).

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


def hard_gap(dim: int, horizon: int, options: int = 2) -> float:
    """The D of the hard class {-D, D}^d, sqrt(d / (2 c T)) / 6: small enough that T answers barely distinguish the signs.

    c is 1 for duels, and near 1 for the winner of q `options`; see `lower_bound`.

    Example:
        >>> round(hard_gap(dim=2, horizon=100), 6)
        0.016667
    """
    whole_number("dim", dim, at_least=1)
    whole_number("horizon", horizon, at_least=1)
    return math.sqrt(dim / (2.0 * _information(dim, horizon, options) * horizon)) / 6.0


def lower_bound(*, dim: int, horizon: int, bound: float, options: int = 2) -> Bound:
    """Regret on average over the hard class, at least d sqrt(T) / (24 sqrt(2 c)), for T >= max(72 d^2 / B^2, d).

    c is 1 for duels, which is the paper's theorem.

    The proof averages over the class, so the mean regret over a uniform draw of theta* obeys the bound, and hence some
    theta* of the class does. It uses the first condition only for |theta*| = D sqrt(d) <= B, for which T >= d^2 / (72 B^2)
    would be enough; the condition checked here is the printed one.

    More options do not help. The paper cites that for every q the order stays d sqrt(T), if q options are shown, their winner
    is learnt (Plackett-Luce) and the regret is that of their mean. Its own proof gives this with a constant, once sums over
    two arms are means over q. All that changes is what an answer tells: if w_j is by how much two parameters of the class
    differ at option j, the divergence of one answer is Var_p(w) / 2 under the choice probabilities p of a parameter between
    them. That is at most c / (2 q) sum_j w_j^2 with

        c = min( q / 2, exp( d / (3 sqrt(2 T)) ) ),

    the first because a variance is at most a quarter of the squared range, the second because no option has a chance above
    e^(2 D sqrt(d)) / q. Under the conditions c is at most e^(B / 36). A full ranking tells more, and is not covered.

    Args:
        dim: d.
        horizon: T, the number of rounds, known to the class.
        bound: B, the largest |theta| allowed.
        options: q, how many options are shown in a round; 2 for duels.

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
    value = dim * math.sqrt(horizon) / (24.0 * math.sqrt(2.0 * _information(dim, horizon, options)))
    return Bound("lower bound", value, conditions)


def _information(dim: int, horizon: int, options: int) -> float:
    """The c of `lower_bound`: how much the winner of q options may tell, in units of what a duel may."""
    whole_number("options", options, at_least=2)
    # The gap of duels is the largest, so exp(2 D sqrt(d)) with it is on the safe side.
    return min(options / 2.0, _exp(dim / (3.0 * math.sqrt(2.0 * horizon))))


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
    # Rounding may leave a unit vector slightly longer than 1, which changes only the last digits of a bound.
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


# The restated main theorem prints "mu = 0.25" where its proof substitutes eta = 0.25.
THEORY_ETA = 0.25


def theory_mu(bound: float, horizon: int) -> float:
    """The mu of the main theorem, 1 / (10 e^B sqrt(T)), for |theta| <= B and T rounds.

    Example:
        >>> round(theory_mu(bound=1.0, horizon=2500), 6)
        0.000736
    """
    finite_number("bound", bound, above=0.0)
    whole_number("horizon", horizon, at_least=1)
    return 1.0 / (10.0 * math.exp(bound) * math.sqrt(horizon))


def experiment_mu(alpha: float, horizon: int) -> float:
    """The mu of the experiments, alpha / sqrt(T).

    Example:
        >>> experiment_mu(alpha=0.1, horizon=2500)
        0.002
    """
    finite_number("alpha", alpha, at_least=0.0)
    whole_number("horizon", horizon, at_least=1)
    return alpha / math.sqrt(horizon)
