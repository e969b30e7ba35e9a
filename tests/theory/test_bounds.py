"""The paper's bounds: their values against direct transcriptions, and the conditions they name."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from duelist.posteriors.priors import Gaussian, GaussianBall, UniformBall
from duelist.theory.ball_priors import prior_lipschitz, prior_log_density
from duelist.theory.conditions import Bound, BoundDoesNotApplyError, Condition
from duelist.theory.decoupling import decoupling_coefficient, finite_decoupling, linear_decoupling, yue_scale
from duelist.theory.linear_bounds import (
    THEORY_ETA,
    general_upper_bound,
    hard_gap,
    linear_upper_bound,
    lower_bound,
    potential_floor,
    regret_from_potential,
    theory_mu,
    trivial_upper_bound,
)
from duelist.theory.nonlinear_bounds import (
    finite_class_log_inverse_mass,
    finite_class_upper_bound,
    nonlinear_mu,
    nonlinear_upper_bound,
)

DIMS = st.integers(1, 60)
HORIZONS = st.integers(1, 10**7)
RADII = st.floats(0.01, 20.0)
SCALES = st.floats(0.05, 20.0)


def test_a_bound_whose_conditions_hold_hands_itself_back() -> None:
    bound = Bound("test bound", 3.0, (Condition("T >= d", True, {"T": 10, "d": 2}),))
    assert bound.holds
    assert bound.require() is bound
    assert str(bound) == "test bound: 3\n  T >= d holds (T = 10, d = 2)"


def test_a_bound_says_which_condition_fails_and_with_which_numbers() -> None:
    bound = Bound("test bound", 3.0, (Condition("T >= d", False, {"T": 1, "d": 2}), Condition("B > 0", True, {"B": 1})))
    with pytest.raises(BoundDoesNotApplyError, match=r"T >= d fails \(T = 1, d = 2\)") as error:
        bound.require()
    assert "B > 0" not in str(error.value)


def test_the_linear_upper_bound_is_the_restated_theorem() -> None:
    d, T, B, scale = 7, 900, 1.3, 0.8
    prior = GaussianBall(scale, B)
    log_p0 = prior_log_density(prior, d, B)
    L = B / scale**2
    inside = L / math.sqrt(d) + 1 / (5 * math.e**B) * math.sqrt(T / d) + T / (2 * math.sqrt(d))
    expected = 10 * math.e**B * d * math.sqrt(T) * (2 - log_p0 / d + math.log(inside))
    assert linear_upper_bound(dim=d, horizon=T, prior=prior).require().value == pytest.approx(expected, rel=1e-12)


@given(dim=DIMS, horizon=HORIZONS, radius=RADII, scale=SCALES)
def test_the_two_lemmas_are_never_above_the_theorem_they_prove(dim: int, horizon: int, radius: float, scale: float) -> None:
    prior = GaussianBall(scale, radius)
    lemmas = general_upper_bound(
        dim=dim, horizon=horizon, prior=prior, eta=THEORY_ETA, mu=theory_mu(radius, horizon), theta_norm=radius
    )
    theorem = linear_upper_bound(dim=dim, horizon=horizon, prior=prior)
    assert lemmas.holds == theorem.holds
    assert lemmas.value <= theorem.value + 1e-9 * abs(theorem.value)


def test_the_main_lemma_is_the_printed_formula() -> None:
    d, T, B, eta, mu, z = 4, 100, 0.7, 0.3, 0.01, -25.0
    expected = (9 * d * math.e ** (2 * B) / (2 * eta) + 32 * B**2) * mu * T - (z + z) / (2 * mu)
    value = regret_from_potential(dim=d, horizon=T, bound=B, eta=eta, mu=mu, potential=z).require().value
    assert value == pytest.approx(expected, rel=1e-12)


def test_the_potential_lemma_is_the_printed_formula() -> None:
    d, T, B, eta, mu = 4, 100, 0.7, 0.3, 0.01
    prior = UniformBall(B)
    expected = prior_log_density(prior, d, B) - d - d * math.log((0 + 2 * (mu + eta) * T) / math.sqrt(d))
    value = potential_floor(dim=d, horizon=T, prior=prior, eta=eta, mu=mu).require().value
    assert value == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("bound", "named"),
    [
        (general_upper_bound(dim=5, horizon=2500, prior=UniformBall(1.0), eta=1.0, mu=0.002), "eta <= 1/2"),
        (general_upper_bound(dim=5, horizon=2500, prior=UniformBall(1.0), eta=0.25, mu=0.0), "mu > 0"),
        (general_upper_bound(dim=5, horizon=2500, prior=Gaussian(), eta=0.25, mu=0.01), "the prior lives on a ball"),
        (linear_upper_bound(dim=5, horizon=2500, prior=Gaussian()), "the prior lives on a ball"),
        (linear_upper_bound(dim=5, horizon=2500, prior=UniformBall(1.0), theta_norm=1.5), r"|theta*| <= B"),
        (linear_upper_bound(dim=5, horizon=2500, prior=UniformBall(1.0), feature_norm=math.sqrt(5)), "|phi| <= 1"),
        (linear_upper_bound(dim=50, horizon=20, prior=UniformBall(1.0)), "d / (L + 2 (mu + eta) T) <= min(2 B, 2)"),
        (lower_bound(dim=10, horizon=2500, bound=1.0), "T >= 72 d^2 / B^2"),
        (lower_bound(dim=10, horizon=9, bound=1000.0), "T >= d"),
        (nonlinear_upper_bound(bound=1.0, horizon=10, decoupling=2.0, log_inverse_mass=0.0), "Lambda > 0"),
        (nonlinear_upper_bound(bound=1.0, horizon=10, decoupling=0.5, log_inverse_mass=1.0), "dc >= 1"),
    ],
)
def test_exactly_the_failing_condition_is_named(bound: Bound, named: str) -> None:
    assert [condition.name for condition in bound.failing] == [named]
    with pytest.raises(BoundDoesNotApplyError):
        bound.require()


def test_the_lower_bound_is_a_quarter_of_what_knowing_nothing_costs() -> None:
    """Playing the centre of the ball pays |theta*| = D sqrt(d) per round."""
    for dim, horizon in [(1, 100), (5, 2500), (20, 10**6)]:
        ignorance = hard_gap(dim, horizon) * math.sqrt(dim) * horizon
        assert lower_bound(dim=dim, horizon=horizon, bound=10.0).value == pytest.approx(ignorance / 4, rel=1e-12)


def test_the_lower_bounds_proof_needs_far_fewer_rounds_than_its_condition_prints() -> None:
    """D sqrt(d) <= B is T >= d^2 / (72 B^2); the theorem asks for 72 d^2 / B^2, 5184 times as many."""
    dim, bound = 36, 0.5
    enough = math.ceil(dim**2 / (72 * bound**2))
    assert hard_gap(dim, enough) * math.sqrt(dim) <= bound < hard_gap(dim, enough - 1) * math.sqrt(dim)
    assert not lower_bound(dim=dim, horizon=enough, bound=bound).holds
    assert lower_bound(dim=dim, horizon=5184 * enough, bound=bound).holds


@given(dim=st.integers(1, 40), horizon=HORIZONS, radius=RADII)
def test_the_lower_bound_never_exceeds_the_upper_bound_where_both_hold(dim: int, horizon: int, radius: float) -> None:
    low = lower_bound(dim=dim, horizon=horizon, bound=radius)
    high = linear_upper_bound(dim=dim, horizon=horizon, prior=UniformBall(radius))
    assume(low.holds and high.holds)
    assert low.value <= high.value


def test_the_theorem_without_its_unstated_condition_would_promise_negative_regret() -> None:
    bound = linear_upper_bound(dim=10, horizon=10, prior=UniformBall(0.01))
    assert bound.value < 0
    assert [condition.name for condition in bound.failing] == ["d / (L + 2 (mu + eta) T) <= min(2 B, 2)"]


@pytest.mark.parametrize("dim", [1, 2, 5, 30])
def test_the_condition_of_the_potential_lemma_is_enough_but_not_necessary(dim: int) -> None:
    """At theta* = 0 the cube fits, and the printed proof with delta = B reaches d / (2 (mu + eta) T) = 4.31 B, not only 2 B."""
    radius, eta, mu = 0.01, 0.25, 0.1

    def proved_minus_printed(reach: float) -> tuple[float, bool]:
        horizon = round(dim / (2 * (mu + eta) * reach * radius))
        floor = potential_floor(dim=dim, horizon=horizon, prior=UniformBall(radius), eta=eta, mu=mu, theta_norm=0.0)
        log_p0 = prior_log_density(UniformBall(radius), dim, 0.0)
        proved = -2 * (mu + eta) * horizon * radius + log_p0 + dim * math.log(2 * radius / math.sqrt(dim))
        return proved - floor.value, floor.holds

    within, holds = proved_minus_printed(4.2)
    assert within > 0
    assert not holds
    beyond, _ = proved_minus_printed(4.5)
    assert beyond < 0


@given(dim=DIMS, horizon=HORIZONS, radius=RADII, scale=SCALES)
def test_where_its_conditions_hold_the_upper_bound_is_positive(dim: int, horizon: int, radius: float, scale: float) -> None:
    for prior in (UniformBall(radius), GaussianBall(scale, radius)):
        bound = linear_upper_bound(dim=dim, horizon=horizon, prior=prior)
        assert not bound.holds or bound.value > 0


def test_at_the_papers_own_size_the_upper_bound_says_less_than_the_trivial_one() -> None:
    upper = linear_upper_bound(dim=5, horizon=2500, prior=UniformBall(1.0)).require().value
    assert upper > 10 * trivial_upper_bound(horizon=2500, bound=1.0).value
    later = linear_upper_bound(dim=5, horizon=10**8, prior=UniformBall(1.0)).require().value
    assert later < trivial_upper_bound(horizon=10**8, bound=1.0).value


def test_the_nonlinear_bound_is_its_proofs_last_line_at_its_mu() -> None:
    B, T, dc, Lambda, L, L0 = 0.9, 700, 12.0, 5.5, 0.4, 1.7
    mu = nonlinear_mu(bound=B, horizon=T, decoupling=dc, log_inverse_mass=Lambda)
    assert mu == pytest.approx(math.e**-B / 5 * math.sqrt(Lambda / (T * dc)), rel=1e-12)
    expected = 25 * math.e ** (2 * B) * dc * mu * T + 1 / mu + 2 * L / (L0 * T * mu) + 4 + Lambda / mu
    bound = nonlinear_upper_bound(
        bound=B, horizon=T, decoupling=dc, log_inverse_mass=Lambda, prior_lipschitz=L, reward_lipschitz=L0
    )
    assert bound.require().value == pytest.approx(expected, rel=1e-12)


@given(models=st.integers(2, 10**6), horizon=HORIZONS, radius=st.floats(0.01, 5.0), dim=DIMS)
def test_the_direct_finite_class_bound_is_below_the_theorems(models: int, horizon: int, radius: float, dim: int) -> None:
    direct = finite_class_upper_bound(models=models, bound=radius, horizon=horizon, decoupling=dim)
    theorem = nonlinear_upper_bound(
        bound=radius, horizon=horizon, decoupling=dim, log_inverse_mass=finite_class_log_inverse_mass(models)
    )
    assert direct.require().value < theorem.require().value
    mu = nonlinear_mu(bound=radius, horizon=horizon, decoupling=dim, log_inverse_mass=math.log(models))
    steps = 25 * math.exp(2 * radius) * dim * mu * horizon + math.log(models) / mu
    assert direct.value == pytest.approx(steps, rel=1e-9)


def test_models_close_to_the_truth_make_a_finite_class_cheaper_to_search() -> None:
    assert finite_class_log_inverse_mass(1000) == pytest.approx(math.log(1000))
    assert finite_class_log_inverse_mass(1000, models_near_truth=10) == pytest.approx(math.log(100))


def test_decoupling_coefficients() -> None:
    assert linear_decoupling(7) == 7
    assert finite_decoupling(32) == 31
    assert decoupling_coefficient(dim=7, arms=3) == 2
    assert decoupling_coefficient(dim=7) == decoupling_coefficient(dim=7, arms=32) == 7


def test_lipschitz_constants_of_the_papers_priors() -> None:
    assert prior_lipschitz(UniformBall(3.0)) == 0.0
    assert prior_lipschitz(GaussianBall(scale=0.5, radius=3.0)) == pytest.approx(3.0 / 0.25)
    assert prior_lipschitz(Gaussian()) == math.inf


@given(bound=st.floats(0.01, 30.0), share=st.floats(0.0, 1.0))
def test_the_regret_of_yue_lies_between_its_multiples_of_the_gap(bound: float, share: float) -> None:
    gap = 2 * bound * share
    low, high = yue_scale(bound)
    yue = 0.5 * np.tanh(gap / 2)
    assert low * gap <= yue * (1 + 1e-12)
    assert yue <= high * gap * (1 + 1e-12)
