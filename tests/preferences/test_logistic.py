"""The Bradley-Terry-Luce likelihood: right, differentiable, and stable far out."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelist.kernels.logistic import LaneCounts, add_loss_gradient, add_loss_hessian
from duelist.preferences.logistic import (
    log_loss,
    log_loss_curvature,
    log_loss_slope,
    preference_gradient,
    preference_hessian,
    preference_loss,
    win_probability,
)
from duelist.typing import FloatArray, IntArray
from tests.support.kernels import uncached_kernel
from tests.support.oracles import finite_difference


@uncached_kernel
def loss_with_derivatives(
    gradient: FloatArray,
    hessian: FloatArray,
    theta: FloatArray,
    columns: FloatArray,
    counts: FloatArray,
    lost: FloatArray,
    weight: float,
) -> float:
    """The weighted loss; its gradient and Hessian are added to `gradient` and `hessian`."""
    logits, scratch = np.empty(len(counts)), np.empty(len(counts))
    rows = LaneCounts(columns, counts, lost, weight)
    value = add_loss_gradient(gradient, theta, rows, logits, scratch)
    add_loss_hessian(hessian, theta, rows, logits, scratch)
    return value


def table(seed: int, n: int, dim: int) -> tuple[FloatArray, FloatArray, IntArray]:
    rng = np.random.default_rng(seed)
    return rng.normal(size=dim), 2 * rng.normal(size=(n, dim)), rng.choice([-1, 1], size=n)


@pytest.mark.parametrize("logit", [-700.0, -50.0, -1.0, 0.0, 1.0, 50.0, 700.0])
def test_loss_slope_and_curvature_of_one_duel(logit: float) -> None:
    assert float(log_loss(logit)) == pytest.approx(math.log1p(math.exp(-logit)), rel=1e-14)
    assert float(win_probability(logit)) == pytest.approx(1 / (1 + math.exp(-logit)), rel=1e-14)
    assert float(log_loss_slope(logit)) == pytest.approx(-1 / (1 + math.exp(logit)), rel=1e-14)
    assert float(log_loss_curvature(logit)) == pytest.approx(1 / ((1 + math.exp(logit)) * (1 + math.exp(-logit))), rel=1e-14)


def test_far_beyond_the_range_of_the_exponential_values_stay_finite_and_right() -> None:
    logits = np.array([-1e6, 1e6])
    np.testing.assert_array_equal(log_loss(logits), [1e6, 0.0])
    np.testing.assert_array_equal(log_loss_slope(logits), [-1.0, 0.0])
    np.testing.assert_array_equal(log_loss_curvature(logits), [0.0, 0.0])


def test_the_winner_is_the_arm_with_the_larger_utility_more_often() -> None:
    assert float(win_probability(2.0)) > 0.5 > float(win_probability(-2.0))
    theta, contrasts = np.array([1.0]), np.array([[2.0]])
    assert preference_loss(theta, contrasts, np.array([1])) < preference_loss(theta, contrasts, np.array([-1]))


@given(seed=st.integers(0, 999), n=st.integers(1, 30), dim=st.integers(1, 6))
def test_gradient_and_hessian_match_finite_differences(seed: int, n: int, dim: int) -> None:
    theta, contrasts, outcomes = table(seed, n, dim)
    slopes = finite_difference(lambda at: preference_loss(at, contrasts, outcomes), theta)
    np.testing.assert_allclose(preference_gradient(theta, contrasts, outcomes), slopes, rtol=1e-6, atol=1e-6)
    for i in range(dim):
        column = finite_difference(lambda at, i=i: float(preference_gradient(at, contrasts, outcomes)[i]), theta)  # type: ignore[misc]
        np.testing.assert_allclose(preference_hessian(theta, contrasts)[i], column, rtol=1e-6, atol=1e-6)


@given(seed=st.integers(0, 999), n=st.integers(1, 30), dim=st.integers(1, 6))
def test_swapping_the_pair_and_flipping_the_outcome_changes_nothing(seed: int, n: int, dim: int) -> None:
    theta, contrasts, outcomes = table(seed, n, dim)
    assert preference_loss(theta, -contrasts, -outcomes) == preference_loss(theta, contrasts, outcomes)
    np.testing.assert_array_equal(
        preference_gradient(theta, -contrasts, -outcomes), preference_gradient(theta, contrasts, outcomes)
    )


@pytest.mark.slow
@given(seed=st.integers(0, 999), n=st.integers(1, 20), dim=st.integers(1, 6), reach=st.sampled_from([1.0, 30.0, 700.0]))
def test_kernels_over_counts_equal_the_sum_over_duels(seed: int, n: int, dim: int, reach: float) -> None:
    rng = np.random.default_rng(seed)
    contrasts, theta = rng.normal(size=(n, dim)), rng.normal(size=dim)
    theta *= reach / max(np.abs(contrasts @ theta).max(), 1e-3)
    totals = rng.integers(1, 6, size=n)
    losses = np.array([rng.integers(0, total + 1) for total in totals])
    duels = np.repeat(contrasts, totals, axis=0)
    outcomes = np.concatenate([[-1] * lost + [1] * (total - lost) for total, lost in zip(totals, losses, strict=True)])
    weight = 0.6

    gradient, columns = np.zeros(dim), np.ascontiguousarray(contrasts.T)
    counts, lost = totals.astype(np.float64), losses.astype(np.float64)
    hessian = np.zeros((dim, dim))
    value = loss_with_derivatives(gradient, hessian, theta, columns, counts, lost, weight)

    assert value == pytest.approx(weight * preference_loss(theta, duels, outcomes), rel=1e-12, abs=1e-12 * reach)
    np.testing.assert_allclose(gradient, weight * preference_gradient(theta, duels, outcomes), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(hessian, weight * preference_hessian(theta, duels), rtol=1e-10, atol=1e-12)
