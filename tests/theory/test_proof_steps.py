"""The steps between the lemmas: every inequality inside the paper's proofs, on random and extreme inputs.

What does not hold as printed has a test that shows the counterexample, and one for the form that does hold.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from duelist.typing import FloatArray

BOUNDS = st.floats(1e-3, 60.0)
UNIT = st.floats(0.0, 1.0)


def sigma(z: Decimal) -> Decimal:
    """The paper's sigma, the loss log(1 + e^-z)."""
    return (1 + (-z).exp()).ln()


def sigmoid(z: Decimal) -> Decimal:
    return 1 / (1 + (-z).exp())


# --- Inside the proof of the potential step


@given(u=st.floats(-80, 80), v=st.floats(-80, 80), eta=st.floats(0.01, 0.99))
def test_the_expected_likelihood_ratio_is_a_second_difference(u: float, v: float, eta: float) -> None:
    """E_y exp(-eta [sigma(y u) - sigma(y v)]) = exp( sigma((1-eta) v + eta u) - (1-eta) sigma(v) - eta sigma(u) )."""
    with localcontext() as context:
        context.prec = 60
        a, b, h = Decimal(u), Decimal(v), Decimal(eta)
        left = sum(sigmoid(y * b) * (-h * (sigma(y * a) - sigma(y * b))).exp() for y in (1, -1))
        right = (sigma((1 - h) * b + h * a) - (1 - h) * sigma(b) - h * sigma(a)).exp()
        assert abs(left - right) <= Decimal(10) ** -40 * (1 + right)


@given(z=st.floats(-700.0, 0.0))
def test_the_exponential_is_below_its_second_order_expansion_at_and_below_zero(z: float) -> None:
    assert math.exp(z) <= 1 + z + z * z / 2 + 1e-12


def test_the_expansion_fails_above_zero() -> None:
    assert math.exp(0.5) > 1 + 0.5 + 0.5**2 / 2


@given(z=st.floats(-1.0, 1e6, exclude_min=True))
def test_the_logarithm_is_below_its_tangent(z: float) -> None:
    assert math.log1p(z) <= z + 1e-15


@given(B=st.floats(1e-6, 700.0))
def test_b_times_exp_minus_b_is_at_most_one_over_e(B: float) -> None:
    assert B * math.exp(-B) <= 1 / math.e + 1e-15


@given(bound=BOUNDS, share=UNIT, eta=st.floats(1e-3, 0.5))
def test_the_chain_that_turns_an_eighth_into_a_ninth(bound: float, share: float, eta: float) -> None:
    """exp(-c LS) <= 1 - (8/9) c LS for c = eta e^(-2B) / 8 and LS <= (4B)^2, eta <= 1/2: the steps of the LS bound."""
    LS = share * (4 * bound) ** 2
    c = eta * math.exp(-2 * bound) / 8
    assert -math.expm1(-c * LS) >= 8 / 9 * c * LS * (1 - 1e-12)


def test_the_numerical_constants_of_the_proofs() -> None:
    assert 1 / 8 * (1 - 1 / 2 / math.e**2) >= 1 / 9
    assert 9 / 2 * (1 + 32 / math.e**2) <= 25
    assert 18 + 32 / math.e**2 <= 25


@given(B=st.floats(1e-3, 50.0), d=st.integers(1, 200), eta=st.floats(1e-6, 0.5))
def test_the_chain_of_the_main_theorem_up_to_its_25(B: float, d: int, eta: float) -> None:
    """9 d e^(2B) / (2 eta) + 32 B^2 <= each line of the theorem's proof, for eta <= 1/2."""
    scale = d * math.exp(2 * B) / eta
    lemma = 4.5 * scale + 32 * B**2
    first = 4.5 * scale * (1 + 64 * B**2 * eta / (d * math.exp(2 * B)))
    second = 4.5 * scale * (1 + 32 / math.e**2)
    assert lemma <= first * (1 + 1e-12)
    assert first <= second * (1 + 1e-12)
    assert second <= 25 * scale


def test_the_first_line_of_the_theorems_proof_is_nine_times_looser_than_needed() -> None:
    """Factoring 9 d e^(2B) / (2 eta) out of 32 B^2 leaves 64 B^2 eta / (9 d e^(2B)); the 9 is missing in print, harmlessly."""
    B, d, eta = 1.0, 1, 0.5
    factor = 4.5 * d * math.exp(2 * B) / eta
    assert factor * 64 * B**2 * eta / (9 * d * math.exp(2 * B)) == pytest.approx(32 * B**2)


# --- Inside the proof of the potential lemma


@given(u=st.floats(-300, 300), v=st.floats(-300, 300))
def test_loss_differences_are_symmetric_up_to_a_linear_term(u: float, v: float) -> None:
    """sigma(y p) - sigma(y q) = sigma(p) - sigma(q) + (1 - y)/2 (p - q): nothing at y = 1, and p - q at y = -1."""

    def loss(z: float) -> float:
        return max(-z, 0.0) + math.log1p(math.exp(-abs(z)))

    assert loss(-u) - loss(-v) == pytest.approx(loss(u) - loss(v) + (u - v), abs=1e-9)


def test_the_printed_identity_for_losses_has_its_sign_reversed() -> None:
    """Printed: sigma(y p) - sigma(y q) = sigma(p) - sigma(q) + (y - 1)/2 (p - q). At y = -1 the last term is + (p - q)."""

    def loss(z: float) -> float:
        return math.log1p(math.exp(-z))

    p, q, y = 2.0, -1.0, -1
    left = loss(y * p) - loss(y * q)
    assert left != pytest.approx(loss(p) - loss(q) + (y - 1) / 2 * (p - q))
    assert left == pytest.approx(loss(p) - loss(q) - (y - 1) / 2 * (p - q))


@given(u=st.floats(-300, 300))
def test_the_noise_is_at_most_one_half_on_average(u: float) -> None:
    """epsilon = |1{y = -1} - s(-u)| has mean 2 s(u) s(-u) <= 1/2."""
    with localcontext() as context:
        context.prec = 60
        win = sigmoid(Decimal(u))
        lose = sigmoid(-Decimal(u))
        mean = win * lose + lose * win
        assert mean <= Decimal(1) / 2


def test_the_noise_is_not_at_most_one_half_for_certain() -> None:
    """The nonlinear lemma prints |I_2| <= eta/2 |difference| without an expectation; one upset refutes it."""
    u = 5.0
    epsilon = abs(1 - 1 / (1 + math.exp(u)))
    assert epsilon > 0.99


@given(
    truth=arrays(np.float64, 3, elements=st.floats(-5, 5)),
    theta=arrays(np.float64, 3, elements=st.floats(-5, 5)),
    arms=arrays(np.float64, (4, 3), elements=st.floats(-1, 1)),
    eta=st.floats(0.01, 1.0),
    mu=st.floats(0.0, 1.0),
)
def test_the_expected_loss_difference_is_bounded_by_distance(
    truth: FloatArray, theta: FloatArray, arms: FloatArray, eta: float, mu: float
) -> None:
    """E_y Delta L <= eta/2 |theta - theta*|^2 + 2 mu |theta - theta*|, the statement that the lemma goes on with."""
    arms = arms / np.maximum(1.0, np.linalg.norm(arms, axis=1, keepdims=True))
    distance = float(np.linalg.norm(theta - truth))
    for first in arms:
        for second in arms:
            u, v = float(theta @ (first - second)), float(truth @ (first - second))
            loss = sum((np.logaddexp(0, -y * u) - np.logaddexp(0, -y * v)) / (1 + math.exp(-y * v)) for y in (1, -1))
            feel_good = (arms @ theta).max() - second @ theta - ((arms @ truth).max() - second @ truth)
            assert eta * loss - mu * feel_good <= eta / 2 * distance**2 + 2 * mu * distance + 1e-9
            # Both directions of the Feel-Good bound: the proof shows the upper one and uses the lower one.
            assert abs(feel_good) <= 2 * distance + 1e-9


def test_the_feel_good_term_enters_the_loss_difference_with_a_minus() -> None:
    """The proof prints I_1 - mu FG for what is I_1 + mu FG: with theta = 2 theta*, I_1 alone shows which."""
    arms = np.array([[1.0, 0.0], [0.0, 1.0]])
    truth = np.array([1.0, 0.0])
    theta, eta, mu = 2 * truth, 0.25, 0.1
    u, v = float(theta @ (arms[0] - arms[1])), float(truth @ (arms[0] - arms[1]))
    loss = sum((np.logaddexp(0, -y * u) - np.logaddexp(0, -y * v)) / (1 + math.exp(-y * v)) for y in (1, -1))
    feel_good = (arms @ theta).max() - arms[1] @ theta - ((arms @ truth).max() - arms[1] @ truth)
    expected_difference = eta * loss - mu * feel_good  # I_1
    taylor = eta * (np.logaddexp(0, -u) - np.logaddexp(0, -v) + (u - v) / (1 + math.exp(v)))
    assert expected_difference + mu * feel_good == pytest.approx(taylor)
    assert expected_difference - mu * feel_good != pytest.approx(taylor)


# --- Inside the proof of the lower bound


@given(
    d=st.integers(1, 8),
    T=st.integers(1, 30),
    sign=st.sampled_from([-1, 1]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_stopped_sums_of_the_lower_bound(d: int, T: int, sign: int, seed: int) -> None:
    """Squared errors up to tau_i are at most 8T/d + 4 for one sign, and at least 4T/d for both signs together."""
    rng = np.random.default_rng(seed)
    phi = rng.standard_normal((T, 2, d))
    phi *= rng.random((T, 2, 1)) ** (1 / d) / np.linalg.norm(phi, axis=2, keepdims=True)
    # Some arms at the extremes: on an axis, or at a corner.
    phi[rng.random((T, 2)) < 0.2] = np.eye(d)[0]
    phi[rng.random((T, 2)) < 0.2] = np.ones(d) / math.sqrt(d)
    coordinate = phi[:, :, 0]
    energy = np.cumsum((coordinate**2).sum(axis=1))
    reached = np.flatnonzero(energy >= 2 * T / d)
    tau = int(reached[0]) + 1 if len(reached) else T

    def squared_errors(x: int) -> float:
        return float(((1 / math.sqrt(d) - x * coordinate[:tau]) ** 2).sum())

    assert squared_errors(sign) <= 8 * T / d + 4 + 1e-9
    assert squared_errors(1) + squared_errors(-1) >= 4 * T / d - 1e-9


@given(signs=arrays(np.int8, 6, elements=st.sampled_from([-1, 1])), phi=arrays(np.float64, 6, elements=st.floats(-1, 1)))
def test_linear_errors_dominate_squared_errors_in_the_ball(signs: FloatArray, phi: FloatArray) -> None:
    """sum_i (1/sqrt(d) - phi_i s_i) >= sqrt(d)/2 sum_i (1/sqrt(d) - phi_i s_i)^2 for |phi| <= 1."""
    d = 6
    phi = phi / max(1.0, float(np.linalg.norm(phi)))
    errors = 1 / math.sqrt(d) - phi * signs
    assert errors.sum() >= math.sqrt(d) / 2 * (errors**2).sum() - 1e-12


@given(d=st.integers(1, 100), extra=st.integers(0, 10**6), gap=st.floats(1e-6, 1.0))
def test_the_last_step_on_i1_uses_t_at_least_d(d: int, extra: int, gap: float) -> None:
    """4 D (2T/d + 1) sqrt(T/d + 1) <= 12 sqrt(2) D (T/d)^1.5 for T >= d."""
    ratio = (d + extra) / d
    assert 4 * gap * (2 * ratio + 1) * math.sqrt(ratio + 1) <= 12 * math.sqrt(2) * gap * ratio**1.5 * (1 + 1e-12)


def test_the_last_step_on_i1_fails_for_t_below_d() -> None:
    ratio = 0.5
    assert 4 * (2 * ratio + 1) * math.sqrt(ratio + 1) > 12 * math.sqrt(2) * ratio**1.5


# --- Inside the proof of the nonlinear lemma


@given(T=st.integers(1, 10**6), eta=st.floats(1e-6, 0.5), mu=st.floats(0.0, 10.0), L0=st.floats(0.01, 100.0))
def test_the_nonlinear_radius_leaves_at_most_four_eta_plus_mu(T: int, eta: float, mu: float, L0: float) -> None:
    delta = 2 / (L0 * T)
    left = L0**2 * T * eta * delta**2 / 2 + L0 * T * (eta + 2 * mu) * delta
    assert left <= 4 * (eta + mu) * (1 + 1e-12)


# --- In the description of the experiments


def test_the_lambda_of_the_fokker_planck_equation_is_one() -> None:
    """The equation of d theta = -grad I ds + sqrt(2) dW has 1 where the paper prints lambda: only then is e^-I at rest."""
    x = np.linspace(-3.0, 3.0, 2001)
    step = x[1] - x[0]
    energy = x**4 / 4 - x**2 / 2 + x / 5
    density = np.exp(-energy)

    def change(lam: float) -> FloatArray:
        flow = density * np.gradient(energy, step) + lam * np.gradient(density, step)
        return np.asarray(np.gradient(flow, step)[5:-5])

    assert np.abs(change(1.0)).max() < 1e-3
    assert np.abs(change(0.5)).max() > 0.1
