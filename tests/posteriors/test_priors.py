"""Priors draw from the law they state, and refuse to be improper."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from duelist.core.errors import ImproperPosteriorError, InvalidInputError
from duelist.posteriors.priors import Gaussian, GaussianBall, Prior, UniformBall
from tests.support.oracles import Floats

DRAWS = 4000  # a Kolmogorov-Smirnov p-value below 1e-6 is a false alarm once in a million seeds; the seed is fixed


def draws(prior: Prior, dim: int, n: int = DRAWS) -> Floats:
    rng = np.random.default_rng(0)
    return np.array([prior.sample(rng, dim) for _ in range(n)])


def assert_directions_are_uniform(theta: Floats) -> None:
    unit = theta / np.linalg.norm(theta, axis=1, keepdims=True)
    assert np.abs(unit.mean(axis=0)).max() < 5 / math.sqrt(len(unit))
    assert np.abs(len(unit.T) * unit.T @ unit / len(unit) - np.eye(unit.shape[1])).max() < 0.15


@pytest.mark.parametrize("dim", [1, 3])
def test_gaussian_draws_are_gaussian(dim: int) -> None:
    theta = draws(Gaussian(0.5), dim)
    assert stats.kstest(theta.ravel() / 0.5, "norm").pvalue > 1e-6


@pytest.mark.parametrize("dim", [1, 2, 7])
def test_ball_draws_fill_the_ball_uniformly(dim: int) -> None:
    theta = draws(UniformBall(2.0), dim)
    fraction = (np.linalg.norm(theta, axis=1) / 2.0) ** dim
    assert fraction.max() <= 1.0
    assert stats.kstest(fraction, "uniform").pvalue > 1e-6
    assert_directions_are_uniform(theta)


@pytest.mark.parametrize(
    ("dim", "scale", "radius"),
    [(1, 1.0, 0.01), (1, 1.0, 0.9), (1, 1.0, 3.0), (2, 1.0, 0.8), (2, 1.0, 1.2), (5, 1.0, 2.0), (5, 2.0, 9.0), (60, 1.0, 7.0)],
)
def test_restricted_gaussian_draws_have_the_law_of_a_gaussian_inside_the_ball(dim: int, scale: float, radius: float) -> None:
    theta = draws(GaussianBall(scale, radius), dim)
    # |theta|^2 / scale^2 is chi-squared cut off at the ball.
    law = stats.chi2(dim)
    inside = law.cdf((theta**2).sum(axis=1) / scale**2) / law.cdf(radius**2 / scale**2)
    assert (theta**2).sum(axis=1).max() <= radius**2 * (1 + 1e-12)
    assert stats.kstest(inside, "uniform").pvalue > 1e-6
    if dim < 10:
        assert_directions_are_uniform(theta)


@pytest.mark.parametrize("scale_of_dim", [0.1, 0.5, 0.9, 0.99, 1.0, 1.01, 1.5])
@pytest.mark.parametrize("dim", [40, 200, 3000])
def test_a_draw_in_a_high_dimension_does_not_search_for_ever(dim: int, scale_of_dim: float) -> None:
    # Rejection from the uniform ball would accept about exp(-dim/2) of its proposals here.
    radius = scale_of_dim * math.sqrt(dim)
    assert np.linalg.norm(draws(GaussianBall(1.0, radius), dim, 5), axis=1).max() <= radius * (1 + 1e-12)


def test_precision_and_radius_say_what_the_density_is() -> None:
    assert (Gaussian(0.5).precision, Gaussian(0.5).radius) == (4.0, math.inf)
    assert (UniformBall(3.0).precision, UniformBall(3.0).radius) == (0.0, 3.0)
    assert (GaussianBall(0.5, 3.0).precision, GaussianBall(0.5, 3.0).radius) == (4.0, 3.0)


def test_a_flat_prior_on_all_space_is_refused_by_every_name_it_could_have() -> None:
    with pytest.raises(ImproperPosteriorError, match="UniformBall"):
        Gaussian(math.inf)
    with pytest.raises(ImproperPosteriorError, match="Gaussian"):
        UniformBall(math.inf)
    with pytest.raises(InvalidInputError, match="scale"):
        GaussianBall(math.inf, 1.0)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, "1"])
def test_a_scale_or_radius_that_is_not_positive_is_refused(value: float) -> None:
    for make in (Gaussian, UniformBall, GaussianBall, lambda v: GaussianBall(1.0, v)):
        with pytest.raises(InvalidInputError, match="above 0"):
            make(value)
