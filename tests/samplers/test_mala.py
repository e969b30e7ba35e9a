"""How MALA behaves as a sampler: chains are values, numbers are named, trouble is reported."""

from __future__ import annotations

import math

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError, NonFiniteError
from duelist.core.streams import Streams
from duelist.posteriors.linear import LinearPotential, empty_likelihood
from duelist.posteriors.priors import Gaussian, UniformBall
from duelist.samplers.mala import MALA
from tests.support.builders import history_of, random_rounds
from tests.support.oracles import Round


def potential_of(lanes: list[list[Round]], *, chains: int = 2) -> LinearPotential:
    history = history_of(lanes)
    statistics, n = history.statistics, len(lanes)
    mu = np.full(n, 0.05)
    return LinearPotential.of(Gaussian(), statistics, eta=np.ones(n), mu=mu, chains=chains, observations=history.rounds)


def some_lanes(n: int, dim: int = 3) -> list[list[Round]]:
    return [random_rounds(rng := np.random.default_rng(seed), 30, [rng.normal(size=(5, dim))]) for seed in range(n)]


def test_the_two_chains_are_independent_given_the_history() -> None:
    # Without data both chains sample the prior: 4000 lanes give a correlation with standard error 0.016.
    lanes = 4000
    potential = LinearPotential(Gaussian(), empty_likelihood(lanes, 1), chains=2)
    streams, sampler = Streams(0, range(lanes)), MALA()
    chains = sampler.start(Gaussian(), streams, chains=2, dim=1)
    for round_ in range(3):
        chains = sampler.advance(potential, chains, streams, round_)
    first, second = chains.position[:, 0, 0], chains.position[:, 1, 0]
    assert abs(np.corrcoef(first, second)[0, 1]) < 5 / math.sqrt(lanes)


def test_the_path_ends_where_the_chain_stands() -> None:
    potential, streams, sampler = potential_of(some_lanes(2)), Streams(0, [0, 1]), MALA()
    chains = sampler.start(Gaussian(), streams, chains=2, dim=3)
    moved, trace = sampler.trace(potential, chains, streams, 0, 25)
    assert trace.path.shape == (2, 2, 25, 3)
    np.testing.assert_array_equal(trace.path[:, :, -1], moved.position)
    np.testing.assert_allclose(trace.energy[:, :, -1], potential.value(moved.position), rtol=1e-12)
    unrecorded = MALA(steps=25 * sampler.steps).advance(potential, chains, streams, 0)
    np.testing.assert_array_equal(unrecorded.position, moved.position)


@pytest.mark.parametrize("start", [0.01, 30.0])
def test_the_step_size_adapts_towards_the_target_acceptance_from_far_off(start: float) -> None:
    potential, streams, sampler = potential_of(some_lanes(3)), Streams(0, range(3)), MALA(step_size=start)
    chains = sampler.start(Gaussian(), streams, chains=2, dim=3)
    for round_ in range(400):
        chains = sampler.advance(potential, chains, streams, round_)
    before = chains.info
    for round_ in range(400, 800):
        chains = sampler.advance(potential, chains, streams, round_)
    recent = (chains.info.accepted - before.accepted) / (chains.info.proposed - before.proposed)
    assert np.abs(recent - 0.574).max() < 0.1
    assert sampler.report(chains)["acceptance"].shape == (3,)


def test_chains_start_at_draws_from_the_prior_and_stay_in_its_ball() -> None:
    prior, lanes = UniformBall(0.3), 200
    streams, sampler = Streams(0, range(lanes)), MALA()
    chains = sampler.start(prior, streams, chains=2, dim=2)
    potential = LinearPotential(prior, empty_likelihood(lanes, 2), chains=2)
    for round_ in range(5):
        assert (np.linalg.norm(chains.position, axis=2) <= 0.3).all()
        chains = sampler.advance(potential, chains, streams, round_)
    assert len({tuple(theta) for theta in chains.position.reshape(-1, 2)}) == 2 * lanes


def test_features_that_overflow_are_reported_with_their_lane() -> None:
    calm, wild = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1e200, 0.0], [0.0, 1e200]])
    potential = potential_of([[Round(calm, 0, 1, 1)], [Round(wild, 0, 1, 1)]])
    streams, sampler = Streams(0, [0, 1]), MALA()
    chains = sampler.start(Gaussian(), streams, chains=2, dim=2)
    with pytest.raises(NonFiniteError, match="lane 1"):
        sampler.advance(potential, chains, streams, 0)


@pytest.mark.parametrize(
    ("name", "value"), [("steps", 0), ("steps", 1.5), ("step_size", 0.0), ("step_size", -0.1), ("step_size", math.nan)]
)
def test_settings_that_make_no_sense_are_refused(name: str, value: float) -> None:
    with pytest.raises(InvalidInputError, match=name):
        MALA(**{name: value})  # type: ignore[arg-type]
