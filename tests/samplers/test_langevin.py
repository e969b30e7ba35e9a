"""The paper's recipe does exactly what the paper says, and what is wrong with it is seen."""

from __future__ import annotations

import math

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError, NonFiniteError
from duelist.core.streams import Streams
from duelist.history.history import History
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Gaussian, Prior, UniformBall
from duelist.samplers.langevin import Langevin
from duelist.samplers.mala import MALA
from duelist.samplers.registry import SAMPLERS, sampler_named
from tests.support.builders import history_of, random_rounds
from tests.support.oracles import Floats, Round, box_muller, philox_words

MU = 0.2


def potential_of(history: History, prior: Prior, mu: float) -> LinearPotential:
    statistics, lanes = history.statistics, history.lanes
    return LinearPotential.of(prior, statistics, eta=np.ones(lanes), mu=np.full(lanes, mu), observations=history.rounds)


def paper_gradient(theta: Floats, rounds: list[Round], draw: int, precision: float) -> Floats:
    """The gradient as the paper's formula has it, round by round."""
    total = precision * theta
    for r in rounds:
        lose = 1 / (1 + math.exp(r.outcome * float(theta @ r.contrast)))
        best = r.arms[int(np.argmax(r.arms @ theta))]
        adversary = r.arms[r.second if draw == 1 else r.first]
        total = total - r.outcome * lose * r.contrast - MU * (best - adversary)
    return total


@pytest.mark.parametrize("prior", [Gaussian(1.0), UniformBall(0.7)])
def test_it_is_the_papers_recursion_step_by_step(prior: Prior) -> None:
    rng = np.random.default_rng(0)
    rounds = random_rounds(rng, 15, [rng.normal(size=(4, 3)), rng.normal(size=(3, 3))])
    potential, streams = potential_of(history_of([rounds]), prior, MU), Streams(5, [8])
    sampler = Langevin(steps=6, step_size=0.02, decay=0.9)
    chains = sampler.start(prior, streams, chains=2, dim=3)
    theta = chains.position[0].copy()
    key = streams.keys("sampler")[0]
    for round_ in range(4):
        chains = sampler.advance(potential, chains, streams, round_)
        delta = 0.02 * 0.9**round_
        for chain in range(2):
            for step in range(6):
                # Each step uses one block of normals and one block for the uniform that MALA would need.
                noise = np.array(box_muller(philox_words(key, 1 + 2 * step, round_, chain), 3))
                slope = paper_gradient(theta[chain], rounds, chain + 1, prior.precision)
                theta[chain] = theta[chain] - delta * slope + math.sqrt(2 * delta) * noise
                length = float(np.linalg.norm(theta[chain]))
                if length > prior.radius:
                    theta[chain] *= prior.radius / length
        np.testing.assert_allclose(chains.position[0], theta, rtol=1e-9)
    assert chains.calls == 4


def test_chains_never_leave_the_ball() -> None:
    rng = np.random.default_rng(0)
    lanes = 50
    history = history_of([random_rounds(rng, 5, [rng.normal(size=(3, 2))]) for _ in range(lanes)])
    prior, streams, sampler = UniformBall(0.2), Streams(0, range(lanes)), Langevin(steps=3, step_size=0.1, decay=1.0)
    potential = potential_of(history, prior, MU)
    chains = sampler.start(prior, streams, chains=2, dim=2)
    at_the_wall = 0
    for round_ in range(20):
        chains = sampler.advance(potential, chains, streams, round_)
        lengths = np.linalg.norm(chains.position, axis=2)
        assert (lengths <= 0.2).all()
        at_the_wall += int((lengths > 0.2 * (1 - 1e-9)).sum())
    assert at_the_wall > 100
    assert np.isfinite(potential.value(chains.position)).all()


def test_a_cold_start_forgets_the_round_before() -> None:
    rng = np.random.default_rng(0)
    potential = potential_of(history_of([random_rounds(rng, 5, [rng.normal(size=(3, 2))])]), Gaussian(), MU)
    streams = Streams(0, [0])
    cold, warm = Langevin(warm_start=False), Langevin()
    begun = cold.start(Gaussian(), streams, chains=2, dim=2)
    elsewhere = begun._replace(position=begun.position + 1.0)
    np.testing.assert_array_equal(
        cold.advance(potential, begun, streams, 0).position, cold.advance(potential, elsewhere, streams, 0).position
    )
    assert not np.array_equal(
        warm.advance(potential, begun, streams, 0).position, warm.advance(potential, elsewhere, streams, 0).position
    )


def test_a_step_too_large_for_the_curvature_is_reported() -> None:
    arms = np.array([[1e3, 0.0], [0.0, 1e3]])
    potential = potential_of(history_of([[Round(arms, 0, 1, 1)]]), Gaussian(0.001), MU)
    sampler, streams = Langevin(steps=200, step_size=1.0, decay=1.0), Streams(0, [0])
    chains = sampler.start(Gaussian(), streams, chains=2, dim=2)
    with pytest.raises(NonFiniteError, match="too large"):
        sampler.advance(potential, chains, streams, 0)


def test_names_lead_to_samplers() -> None:
    assert isinstance(sampler_named("mala"), MALA)
    assert isinstance(sampler_named("paper"), Langevin)
    assert sampler_named("paper") == Langevin(step_size=0.005, decay=0.99)
    assert {"mala", "paper"} <= set(SAMPLERS)
    with pytest.raises(InvalidInputError, match="Did you mean 'mala'"):
        sampler_named("malla")


@pytest.mark.parametrize(
    ("name", "value"),
    [("steps", 0), ("step_size", 0.0), ("step_size", -1.0), ("decay", 0.0), ("decay", 1.1), ("decay", math.nan)],
)
def test_settings_that_make_no_sense_are_refused(name: str, value: float) -> None:
    with pytest.raises(InvalidInputError, match=name):
        Langevin(**{name: value})  # type: ignore[arg-type]
