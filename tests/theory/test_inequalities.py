"""The auxiliary lemmas of the paper's appendix, on random and extreme inputs; `test_proof_steps` has the steps between them.

Where doubles cannot tell the two sides apart, they are computed to 150 digits.
"""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from duelist.theory.decoupling import finite_decoupling
from duelist.typing import FloatArray

DIGITS = 150
BOUNDS = st.floats(1e-3, 60.0)
SHARES = st.floats(-1.0, 1.0)
UNIT = st.floats(0.0, 1.0)


def sigma(z: Decimal) -> Decimal:
    """The paper's sigma, the loss log(1 + e^-z)."""
    return (1 + (-z).exp()).ln()


def sigmoid(z: Decimal) -> Decimal:
    return 1 / (1 + (-z).exp())


# --- Lemma: second difference of sigma


@given(bound=BOUNDS, p=SHARES, q=SHARES, eta=st.floats(1e-6, 1 - 1e-6))
def test_second_difference_of_sigma(bound: float, p: float, q: float, eta: float) -> None:
    """sigma((1-eta) p + eta q) - (1-eta) sigma(p) - eta sigma(q) <= -e^(-2B)/8 eta (1-eta) (q-p)^2 on [-2B, 2B]."""
    with localcontext() as context:
        context.prec = DIGITS
        B, h = Decimal(bound), Decimal(eta)
        u, v = 2 * B * Decimal(p), 2 * B * Decimal(q)
        left = sigma((1 - h) * u + h * v) - (1 - h) * sigma(u) - h * sigma(v)
        right = -(-2 * B).exp() / 8 * h * (1 - h) * (v - u) ** 2
        assert left <= right + Decimal(10) ** (20 - DIGITS)


def test_the_second_difference_needs_arguments_within_twice_the_bound() -> None:
    """Beyond 2B sigma is flatter than e^(-2B)/4 and the inequality fails, so the range is not decoration."""
    B, p, q, eta = 0.5, 8.0, 9.0, 0.5
    left = math.log1p(math.exp(-(p + q) / 2)) - 0.5 * math.log1p(math.exp(-p)) - 0.5 * math.log1p(math.exp(-q))
    assert left > -math.exp(-2 * B) / 8 * eta * (1 - eta) * (q - p) ** 2


@given(bound=BOUNDS, share=SHARES)
def test_curvature_of_sigma_on_the_range(bound: float, share: float) -> None:
    """e^(-2B)/4 <= sigma'' <= 1/4 on [-2B, 2B]."""
    with localcontext() as context:
        context.prec = DIGITS
        B = Decimal(bound)
        xi = 2 * B * Decimal(share)
        curvature = 1 / (xi.exp() + 2 + (-xi).exp())
        assert (-2 * B).exp() / 4 <= curvature <= Decimal(1) / 4


# --- Lemma: KL divergence of two duels


@given(u=st.floats(-120.0, 120.0), v=st.floats(-120.0, 120.0))
def test_kl_of_two_duels_is_at_most_an_eighth_of_the_squared_difference(u: float, v: float) -> None:
    with localcontext() as context:
        context.prec = DIGITS
        a, b = Decimal(u), Decimal(v)
        p, q = sigmoid(a), sigmoid(b)
        kl = p * (p / q).ln() + (1 - p) * (sigmoid(-a) / sigmoid(-b)).ln()
        assert kl <= (a - b) ** 2 / 8 + Decimal(10) ** (20 - DIGITS)


@given(p=st.floats(0.01, 0.99), q=st.floats(0.01, 0.99))
def test_pinsker_for_two_coins(p: float, q: float) -> None:
    kl = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    assert abs(p - q) <= math.sqrt(max(kl, 0.0) / 2) + 1e-8


# --- Lemma: decoupling

POINTS = st.integers(1, 6).flatmap(
    lambda d: st.tuples(
        arrays(np.float64, (8, d), elements=st.floats(-10, 10)), arrays(np.float64, (8, d), elements=st.floats(-10, 10))
    )
)
WEIGHTS = arrays(np.float64, 8, elements=st.floats(0.01, 1.0))


@given(points=POINTS, weights=WEIGHTS, exponent=st.floats(-4, 4))
def test_linear_decoupling_with_coefficient_d(
    points: tuple[FloatArray, FloatArray], weights: FloatArray, exponent: float
) -> None:
    """E <theta, phi> <= d lambda + E E <theta', phi>^2 / (4 lambda) for every law on pairs and every lambda."""
    theta, phi = points
    chance, lam = weights / weights.sum(), 10.0**exponent
    joint = float(chance @ np.einsum("id,id->i", theta, phi))
    independent = float(np.einsum("i,j,ij->", chance, chance, (theta @ phi.T) ** 2))
    right = theta.shape[1] * lam + independent / (4 * lam)
    assert joint <= right + 1e-9 * (1 + right)


def test_linear_decoupling_is_tight() -> None:
    """theta = phi uniform over the axes of R^d: both sides are 1 at lambda = 1 / (2 d), so no coefficient below d would do."""
    for d in (1, 3, 10):
        lam = 1 / (2 * d)
        independent = np.mean(np.eye(d) ** 2)
        assert d * lam + independent / (4 * lam) == pytest.approx(1.0)


@given(
    arms=st.integers(2, 5),
    data=st.data(),
    exponent=st.floats(-4, 4),
)
def test_finite_decoupling_with_one_less_than_the_arms(arms: int, data: st.DataObject, exponent: float) -> None:
    """K - 1 serves every reward function over K arms: the errors here are arbitrary numbers."""
    models = 4
    errors = data.draw(arrays(np.float64, (models, arms), elements=st.floats(-5, 5)))
    weights = data.draw(arrays(np.float64, (models, arms, arms), elements=st.floats(0.0, 1.0))) + 1e-3
    chance, lam = weights / weights.sum(), 10.0**exponent
    joint, independent = enumerated_errors(chance, errors)
    right = lam * finite_decoupling(arms) + independent / (4 * lam)
    assert joint <= right + 1e-9 * (1 + right)


def enumerated_errors(chance: FloatArray, errors: FloatArray) -> tuple[float, float]:
    """Mean error under a joint law (models, arms, arms), and its mean square with the model and the pair independent."""
    models, arms = errors.shape
    triples = list(itertools.product(range(models), range(arms), range(arms)))
    joint = sum(chance[m, a, b] * (errors[m, a] - errors[m, b]) for m, a, b in triples)
    independent = sum(chance[m].sum() * chance[:, a, b].sum() * (errors[m, a] - errors[m, b]) ** 2 for m, a, b in triples)
    return float(joint), float(independent)


@pytest.mark.parametrize("arms", [2, 3, 4, 6])
def test_no_random_law_needs_more_than_finite_decoupling(arms: int) -> None:
    """The best lambda turns the inequality into E f <= sqrt(dc EE f^2); the laws range from spread out to nearly one point."""
    rng = np.random.default_rng(arms)
    largest = 0.0
    for _ in range(400):
        models = int(rng.integers(1, 7))
        errors = rng.standard_normal((models, arms)) * 10.0 ** rng.uniform(-2, 2)
        spread = np.full(models * arms**2, 10.0 ** rng.uniform(-2, 1))
        chance = rng.dirichlet(spread).reshape(models, arms, arms)
        if rng.random() < 0.5:  # a law made to break it: every model plays the pair on which it errs most
            pairs = (errors[:, :, None] - errors[:, None, :]).reshape(models, -1)
            chance = np.zeros_like(pairs)
            chance[np.arange(models), pairs.argmax(axis=1)] = rng.dirichlet(np.ones(models))
            chance = chance.reshape(models, arms, arms)
        joint, independent = enumerated_errors(chance, errors)
        if joint > 0.0:
            largest = max(largest, joint**2 / independent)
    assert 0.5 < largest <= finite_decoupling(arms) * (1 + 1e-9)


@pytest.mark.parametrize("arms", [2, 3, 5, 12])
def test_finite_decoupling_is_tight(arms: int) -> None:
    """Model a errs by 1 at arm a alone and plays it against the last arm: E f = 1, and EE f^2 = 1 / (K - 1)."""
    models = arms - 1
    errors = np.eye(models, arms)
    chance = np.zeros((models, arms, arms))
    chance[np.arange(models), np.arange(models), arms - 1] = 1 / models
    joint, independent = enumerated_errors(chance, errors)
    assert joint**2 / independent == pytest.approx(finite_decoupling(arms))


# --- Lemma: Hoeffding


@given(
    values=arrays(np.float64, 7, elements=st.floats(-50, 50)),
    lam=st.floats(-5, 5),
    weights=arrays(np.float64, 7, elements=UNIT),
)
def test_hoeffdings_lemma(values: FloatArray, lam: float, weights: FloatArray) -> None:
    """E e^(lambda X) <= exp(lambda E X + lambda^2 (b-a)^2 / 8), compared in logarithms."""
    chance = (weights + 1e-6) / (weights + 1e-6).sum()
    exponents = lam * values
    top = exponents.max()
    left = top + math.log(float(chance @ np.exp(exponents - top)))
    right = float(chance @ exponents) + lam**2 * (values.max() - values.min()) ** 2 / 8
    assert left <= right + 1e-9 * (1 + abs(right))


def test_hoeffding_on_the_papers_own_range_gives_half_of_what_it_prints() -> None:
    """lambda = 2 mu on [-4B, 4B] leaves 32 mu^2 B^2, printed as 64; on [-2B, 2B] it leaves 8. The lemma has half of that."""
    B, mu = 1.7, 0.03

    def left_over(low: float, high: float) -> float:
        return (2 * mu) ** 2 * (high - low) ** 2 / 8

    assert left_over(-4 * B, 4 * B) == pytest.approx(32 * mu**2 * B**2)
    assert left_over(-2 * B, 2 * B) == pytest.approx(8 * mu**2 * B**2)


@given(theta=arrays(np.float64, (2, 3), elements=st.floats(-1, 1)), arms=arrays(np.float64, (5, 3), elements=st.floats(-1, 1)))
def test_the_feel_good_term_lies_within_twice_the_bound(theta: FloatArray, arms: FloatArray) -> None:
    """The paper applies Hoeffding on [-4B, 4B]; the term never leaves [-2B, 2B], so its 32 mu B^2 has room to spare."""
    arms = arms / np.maximum(1.0, np.linalg.norm(arms, axis=1, keepdims=True))
    truth, other = theta
    bound = max(float(np.linalg.norm(truth)), float(np.linalg.norm(other)), 1e-9)
    for adversary in arms:
        feel_good = (arms @ other).max() - adversary @ other - ((arms @ truth).max() - adversary @ truth)
        assert abs(feel_good) <= 2 * bound + 1e-12
