"""The fit finds the minimiser, stays finite on separable data, and says when it did not get there."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelist.history.statistics import Statistics
from duelist.preferences.fit import Fit, fit
from duelist.preferences.logistic import preference_gradient, preference_hessian
from duelist.typing import FloatArray, IntArray
from tests.support.oracles import naive_fit


def statistics_of(contrasts: FloatArray, outcomes: IntArray) -> Statistics:
    """One lane that saw every contrast (n, dim) once, in arrays with unused room at the end."""
    n, dim = contrasts.shape
    columns, totals, losses = np.zeros((1, dim, n + 3)), np.zeros((1, n + 3)), np.zeros((1, n + 3))
    columns[0, :, :n], totals[0, :n], losses[0, :n] = contrasts.T, 1.0, outcomes < 0
    no_sets, no_adversary = np.zeros((1, 0, dim, 0)), np.zeros((1, 2, dim))
    return Statistics(columns, totals, losses, np.array([n]), no_sets, np.zeros(0), no_adversary)


def fitted(contrasts: FloatArray, outcomes: IntArray, *, ridge: float, weight: float = 1.0, max_iterations: int = 100) -> Fit:
    return fit(
        statistics_of(contrasts, outcomes),
        ridge=np.array([ridge]),
        weight=np.array([weight]),
        start=np.zeros((1, contrasts.shape[1])),
        max_iterations=max_iterations,
    )


@pytest.mark.slow
@given(
    seed=st.integers(0, 999),
    n=st.integers(1, 80),
    dim=st.integers(1, 6),
    ridge=st.sampled_from([0.01, 1.0, 10.0]),
    weight=st.sampled_from([0.25, 1.0]),
)
def test_the_fit_is_where_a_general_optimiser_ends(seed: int, n: int, dim: int, ridge: float, weight: float) -> None:
    rng = np.random.default_rng(seed)
    contrasts, outcomes = rng.normal(size=(n, dim)), rng.choice([-1, 1], size=n)
    result = fitted(contrasts, outcomes, ridge=ridge, weight=weight)
    assert result.converged.all()
    np.testing.assert_allclose(
        result.theta[0], naive_fit(contrasts, outcomes, ridge=ridge, weight=weight), rtol=1e-4, atol=1e-5
    )
    slope = ridge * result.theta[0] + weight * preference_gradient(result.theta[0], contrasts, outcomes)
    curvature = ridge * np.eye(dim) + weight * preference_hessian(result.theta[0], contrasts)
    np.testing.assert_allclose(slope, 0.0, atol=1e-5)
    np.testing.assert_allclose(result.hessian[0], curvature, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("ridge", [1e-6, 1e-3, 1.0])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3, 1e4])
@pytest.mark.parametrize("n", [1, 5, 200])
def test_separable_data_end_at_a_finite_minimiser_however_extreme_the_features(ridge: float, scale: float, n: int) -> None:
    rng = np.random.default_rng(0)
    truth = rng.normal(size=4)
    contrasts = scale * rng.normal(size=(n, 4))
    outcomes = np.where(contrasts @ truth > 0, 1, -1)
    result = fitted(contrasts, outcomes, ridge=ridge)
    assert result.converged.all()
    assert np.isfinite(result.theta).all()
    # At the minimum the ridge costs no more than the loss it saves: ridge/2 |theta|^2 <= n log 2.
    assert ridge / 2 * float(result.theta[0] @ result.theta[0]) <= n * np.log(2)
    assert (outcomes * (contrasts @ result.theta[0]) > 0).mean() > 0.9


def test_a_curvature_beyond_double_precision_is_reported_and_the_fit_stays_finite() -> None:
    # |z|^2 / ridge = 1e18: one duel leaves three directions to a ridge that rounding swallows.
    result = fitted(1e6 * np.ones((1, 4)), np.array([1]), ridge=1e-6)
    assert result.converged.tolist() == [False]
    assert np.isfinite(result.theta).all()


def test_without_duels_the_fit_is_zero() -> None:
    result = fitted(np.zeros((0, 3)), np.zeros(0, dtype=np.int64), ridge=2.0)
    np.testing.assert_array_equal(result.theta, np.zeros((1, 3)))
    np.testing.assert_array_equal(result.hessian[0], 2.0 * np.eye(3))
    assert result.converged.all()


def test_a_bad_start_is_recovered_from_and_left_as_it_was() -> None:
    rng = np.random.default_rng(0)
    contrasts, outcomes = rng.normal(size=(50, 3)), rng.choice([-1, 1], size=50)
    start = np.full((1, 3), 300.0)
    result = fit(statistics_of(contrasts, outcomes), ridge=np.array([0.5]), weight=np.array([1.0]), start=start)
    assert result.converged.all()
    np.testing.assert_allclose(result.theta[0], naive_fit(contrasts, outcomes, ridge=0.5), atol=1e-5)
    np.testing.assert_array_equal(start, np.full((1, 3), 300.0))


def test_a_start_at_the_answer_needs_one_iteration() -> None:
    rng = np.random.default_rng(0)
    contrasts, outcomes = rng.normal(size=(50, 3)), rng.choice([-1, 1], size=50)
    answer = fitted(contrasts, outcomes, ridge=1.0)
    again = fit(statistics_of(contrasts, outcomes), ridge=np.ones(1), weight=np.ones(1), start=answer.theta)
    assert again.iterations.tolist() == [1]


def test_a_fit_that_ran_out_of_iterations_says_so() -> None:
    rng = np.random.default_rng(0)
    contrasts = rng.normal(size=(100, 4))
    outcomes = np.where(contrasts[:, 0] > 0, 1, -1)
    result = fitted(contrasts, outcomes, ridge=1e-4, max_iterations=2)
    assert result.converged.tolist() == [False]
    assert result.iterations.tolist() == [2]
    assert np.isfinite(result.theta).all()


def test_lanes_are_fitted_apart() -> None:
    rng = np.random.default_rng(0)
    tables = [(rng.normal(size=(n, 2)), rng.choice([-1, 1], size=n)) for n in (3, 30)]
    parts = [statistics_of(z, y) for z, y in tables]
    width = max(part.totals.shape[1] for part in parts)

    def padded(name: str) -> FloatArray:
        arrays = [getattr(part, name)[0] for part in parts]
        return np.stack([np.pad(a, [(0, 0)] * (a.ndim - 1) + [(0, width - a.shape[-1])]) for a in arrays])

    together = parts[0]._replace(
        contrasts=padded("contrasts"), totals=padded("totals"), losses=padded("losses"), n_rows=np.array([3, 30])
    )
    result = fit(together, ridge=np.array([1.0, 0.1]), weight=np.ones(2), start=np.zeros((2, 2)))
    for lane, ridge in enumerate((1.0, 0.1)):
        alone = fitted(*tables[lane], ridge=ridge)
        np.testing.assert_array_equal(result.theta[lane], alone.theta[0])
        np.testing.assert_array_equal(result.hessian[lane], alone.hessian[0])
