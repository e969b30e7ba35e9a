"""Short runs on long tables step in NumPy: the same draws as the kernels', with nothing of them compiled."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.history.statistics import Statistics
from duelist.kernels.philox import RandomSource, mala_randomness
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Gaussian, GaussianBall, Prior, UniformBall
from duelist.posteriors.table import TablePotential, table_loss
from duelist.samplers import posterior as offline
from duelist.samplers.curvature import curvature_of_table, refresh_curvature, unknown_curvature
from duelist.samplers.diagnostics import PosteriorDraws
from duelist.samplers.generic_mala import randomness_in_numpy
from duelist.samplers.mala import MALA
from duelist.samplers.posterior import sample_posterior

PRIORS = [Gaussian(), UniformBall(0.6), GaussianBall(1.0, 0.6)]
RNG = np.random.default_rng(5)
ROWS = RNG.normal(size=(1200, 4))
THETA = np.array([0.4, -0.3, 0.2, 0.1])
COUNTS = np.stack([RNG.binomial(3, 1.0 / (1.0 + np.exp(-ROWS @ THETA))), np.zeros(1200)], axis=1)
COUNTS[:, 1] = 3 - COUNTS[:, 0]


def statistics() -> Statistics:
    nothing = np.zeros((1, 0, 4, 0)), np.zeros(0), np.zeros((1, 2, 4))
    columns, total, lost = np.ascontiguousarray(ROWS.T)[None], COUNTS.sum(axis=1)[None], COUNTS[:, 1].copy()[None]
    return Statistics(columns, total, lost, np.array([1200]), *nothing)


def both_potentials(prior: Prior) -> tuple[LinearPotential, TablePotential]:
    compiled = LinearPotential.of(prior, statistics(), eta=np.array([0.5]), chains=1, observations=3600)
    return compiled, TablePotential(table_loss(statistics(), 0.5), prior, lanes=3, dim=4, observations=3600)


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_the_potential_in_numpy_is_the_compiled_one(prior: Prior) -> None:
    compiled, table = both_potentials(prior)
    theta = 0.3 * RNG.normal(size=(3, 1, 4))
    theta[2] *= 20.0  # outside the balls
    values, gradients = table.value_and_gradient(theta)
    for lane in range(3):
        value, gradient = compiled.value_and_gradient(theta[lane][None])
        np.testing.assert_allclose(values[lane], value[0], rtol=1e-12)
        if np.isfinite(value).all():
            np.testing.assert_allclose(gradients[lane], gradient[0], rtol=1e-10)


def test_a_kernel_is_refused_the_potential_of_a_table_rather_than_given_its_prior() -> None:
    _, table = both_potentials(Gaussian())
    with pytest.raises(InvalidInputError, match="evaluated by NumPy"):
        _ = table.compiled_terms


@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_the_curvature_in_numpy_is_the_compiled_one(prior: Prior) -> None:
    compiled, _ = both_potentials(prior)
    expected = refresh_curvature(unknown_curvature(1, 4), compiled)
    found = curvature_of_table(table_loss(statistics(), 0.5), compiled)
    np.testing.assert_allclose(found.mode, expected.mode, rtol=1e-9)
    np.testing.assert_allclose(found.whitener, expected.whitener, rtol=1e-9, atol=1e-15)
    assert found.observations == expected.observations


@pytest.mark.parametrize("dim", [1, 4, 10])
def test_random_numbers_in_numpy_are_those_of_the_kernel(dim: int) -> None:
    source = RandomSource(Streams(7, [0, 5]).keys("sampler"), 11, 2)
    (noise, uniforms), (plain_noise, plain_uniforms) = ((np.empty((2, 3, 6, dim)), np.empty((2, 3, 6))) for _ in range(2))
    mala_randomness(noise, uniforms, source)
    randomness_in_numpy(plain_noise, plain_uniforms, source)
    np.testing.assert_allclose(plain_noise, noise, rtol=1e-12, atol=1e-15)
    np.testing.assert_array_equal(plain_uniforms, uniforms)


def drawn(prior: Prior, seed: int = 2) -> PosteriorDraws:
    return sample_posterior(ROWS, COUNTS, prior=prior, eta=0.5, sampler=MALA(steps=2), draws=800, warmup=50, seed=seed)


@pytest.mark.slow
@pytest.mark.parametrize("prior", PRIORS, ids=repr)
def test_draws_in_numpy_are_those_of_the_kernels(prior: Prior, monkeypatch: pytest.MonkeyPatch) -> None:
    in_numpy = drawn(prior)
    monkeypatch.setattr(offline, "_SHORT_RUN", 0)
    compiled = drawn(prior)
    np.testing.assert_allclose(in_numpy.draws, compiled.draws, atol=1e-9)
    np.testing.assert_allclose(in_numpy.energy, compiled.energy, rtol=1e-9)
    np.testing.assert_allclose(in_numpy.diagnostics.acceptance, compiled.diagnostics.acceptance, rtol=1e-9)
    assert np.abs(drawn(prior, seed=3).draws - compiled.draws).max() > 0.01, "another seed is another path"
