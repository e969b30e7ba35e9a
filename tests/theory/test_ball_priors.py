"""Densities and volumes on a ball, against integration and sampling."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate

from duelist.posteriors.priors import Gaussian, GaussianBall, Prior, UniformBall
from duelist.theory.ball_priors import log_ball_volume, log_inverse_mass, log_neighbourhood_volume, prior_log_density


@pytest.mark.parametrize("dim", [1, 2, 3, 7, 30])
@pytest.mark.parametrize("prior", [UniformBall(1.7), GaussianBall(0.6, 1.7), GaussianBall(50.0, 1.7), Gaussian(0.6)])
def test_densities_integrate_to_one(prior: Prior, dim: int) -> None:
    """Over spheres: the area of the sphere of radius r is the derivative of the volume of the ball."""

    def shell(r: float) -> float:
        return math.exp(prior_log_density(prior, dim, r) + log_ball_volume(dim, 1.0)) * dim * r ** (dim - 1)

    edge = prior.radius if math.isfinite(prior.radius) else 30.0
    total, _ = integrate.quad(shell, 0.0, edge, epsabs=1e-12, limit=500)
    assert total == pytest.approx(1.0, rel=1e-8)


def test_outside_the_ball_the_density_is_zero() -> None:
    assert prior_log_density(UniformBall(1.0), 3, 1.0001) == -math.inf


def test_a_hugely_wide_gaussian_on_a_small_ball_is_uniform_even_where_its_mass_underflows() -> None:
    for dim in (2, 300, 1000):
        wide = prior_log_density(GaussianBall(scale=1e4, radius=0.1), dim, 0.1)
        flat = prior_log_density(UniformBall(0.1), dim, 0.1)
        assert wide == pytest.approx(flat, rel=1e-9)


@pytest.mark.parametrize(
    ("delta", "theta_norm", "radius"),
    [(0.5, 1.0, 1.0), (1.5, 1.0, 1.0), (0.9, 0.3, 1.0), (0.4, 0.8, 1.0), (1.9, 0.95, 1.0), (0.7, 1.3, 1.0), (2.5, 0.7, 2.0)],
)
@pytest.mark.parametrize("dim", [1, 2, 3, 6])
def test_the_common_volume_of_two_balls_agrees_with_slicing_it(
    dim: int, delta: float, theta_norm: float, radius: float
) -> None:
    """A slice at x is a ball of dimension d - 1 whose radius is the smaller of the two balls' slices."""

    def slice_volume(x: float) -> float:
        squared = min(radius**2 - x**2, delta**2 - (x - theta_norm) ** 2)
        if squared <= 0.0:
            return 0.0
        return 1.0 if dim == 1 else math.exp(log_ball_volume(dim - 1, math.sqrt(squared)))

    low, high = max(-radius, theta_norm - delta), min(radius, theta_norm + delta)
    plane = (theta_norm**2 + radius**2 - delta**2) / (2 * theta_norm)
    cuts = [low, *([plane] if low < plane < high else []), high]
    total = sum(integrate.quad(slice_volume, a, b, epsabs=1e-13, limit=300)[0] for a, b in pairwise(cuts))
    assert math.exp(log_neighbourhood_volume(dim, delta, theta_norm, radius)) == pytest.approx(total, rel=1e-8)


def test_nested_and_disjoint_balls() -> None:
    assert log_neighbourhood_volume(4, 0.2, 0.5, 1.0) == log_ball_volume(4, 0.2)
    assert log_neighbourhood_volume(4, 3.0, 0.5, 1.0) == log_ball_volume(4, 1.0)
    assert log_neighbourhood_volume(4, 0.2, 1.5, 1.0) == -math.inf


def test_the_volume_survives_dimensions_where_it_underflows() -> None:
    """At the boundary and for tiny delta, nearly half the small ball is inside."""
    for dim in (50, 400):
        inside = log_neighbourhood_volume(dim, 1e-6, 1.0, 1.0)
        assert inside == pytest.approx(log_ball_volume(dim, 1e-6) + math.log(0.5), rel=1e-5)


@given(
    dim=st.integers(1, 80),
    radius=st.floats(0.01, 50.0),
    share=st.floats(0.0, 1.0),
    delta_share=st.floats(1e-6, 2.0),
    scale=st.floats(0.05, 20.0),
)
def test_prior_mass_near_theta_is_at_least_what_the_repaired_lemma_uses(
    dim: int, radius: float, share: float, delta_share: float, scale: float
) -> None:
    """p_0 { |theta - theta*| <= delta } >= p_0(theta*) e^(-L delta) (delta / sqrt(d))^d, for any theta* and delta <= 2B."""
    norm, delta = share * radius, delta_share * radius
    log_volume = log_neighbourhood_volume(dim, delta, norm, radius)
    assert log_volume >= dim * math.log(delta / math.sqrt(dim)) - 1e-9 * dim
    # Moving by delta lowers log p_0 by at most L delta.
    prior = GaussianBall(scale, radius)
    farthest = prior_log_density(prior, dim, min(radius, norm + delta))
    assert farthest >= prior_log_density(prior, dim, norm) - radius / scale**2 * delta - 1e-9 * (1 + abs(farthest))


def test_the_papers_own_cube_does_not_fit_when_theta_is_on_the_boundary() -> None:
    """The paper puts a cube of side 2 delta / sqrt(d) around theta* and forgets that the ball may end there.

    At |theta*| = B in dimension 1 half of the cube carries no prior mass, so the inequality as printed is off by a factor 2;
    in dimension 2, and in 3 for wide ones, the whole neighbourhood, not just the cube, is too small. At the centre it holds,
    and from dimension 4 on the ball has room to spare over its cube.
    """
    B = 1.0
    for dim, delta in ((1, 0.01), (2, 0.01), (3, 1.0)):
        printed = prior_log_density(UniformBall(B), dim, B) + dim * math.log(2 * delta / math.sqrt(dim))
        mass = prior_log_density(UniformBall(B), dim, B) + log_neighbourhood_volume(dim, delta, B, B)
        assert mass < printed
        inside = prior_log_density(UniformBall(B), dim, 0.0) + log_neighbourhood_volume(dim, delta, 0.0, B)
        assert inside >= printed - 1e-12
    for dim in (4, 10, 50):
        for delta in (1e-6, 0.1, 0.5, 1.0):
            assert log_neighbourhood_volume(dim, delta, B, B) >= dim * math.log(2 * delta / math.sqrt(dim))


def test_the_inverse_mass_counts_how_often_prior_draws_land_near_theta() -> None:
    dim, delta, flat = 3, 0.6, UniformBall(1.0)
    rng = np.random.default_rng(0)
    draws = np.array([flat.sample(rng, dim) for _ in range(40_000)])
    share = float((np.linalg.norm(draws - np.array([1.0, 0.0, 0.0]), axis=1) <= delta).mean())
    assert math.exp(-log_inverse_mass(flat, dim, 1.0, delta)) == pytest.approx(share, rel=0.05)
