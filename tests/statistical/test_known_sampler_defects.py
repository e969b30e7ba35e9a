"""What is known to be wrong with a sampler is shown to be caught."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from duelist.actions.finite import FiniteActions
from duelist.core.streams import Streams
from duelist.history.duels import duels_between
from duelist.history.history import History
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Gaussian
from duelist.samplers.base import Sampler
from duelist.samplers.langevin import Langevin
from duelist.samplers.mala import MALA
from tests.support.oracles import Floats, Round, many_potentials, moments_on_grid

LANES, ROUNDS = 100, 2000
CORNERS = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]) / math.sqrt(2)  # of norm 1, as the theory asks


def duels_at_random() -> list[Round]:
    """Duels between random different corners of a square, decided by a unit theta*."""
    rng = np.random.default_rng(0)
    theta = np.array([0.8, -0.6])
    rounds = []
    for _ in range(ROUNDS):
        first, second = (int(row) for row in rng.choice(4, size=2, replace=False))
        chance = 1 / (1 + math.exp(-float(theta @ (CORNERS[first] - CORNERS[second]))))
        rounds.append(Round(CORNERS, first, second, 1 if rng.random() < chance else -1))
    return rounds


def last_draws(sampler: Sampler, rounds: list[Round], *, asked_from: int) -> Floats:
    """(2 * lanes, 2) draws after the last round: every lane saw the same duels and moved by its own random numbers.

    Draws are asked for in every round from `asked_from` on.
    """
    streams = Streams(0, range(LANES))
    actions = FiniteActions(np.tile(CORNERS, (LANES, 1, 1)))
    history = History.start(lanes=LANES, dim=2)
    chains = sampler.start(Gaussian(), streams, chains=2, dim=2)
    for t, played in enumerate(rounds):
        duels = duels_between(actions, np.full(LANES, played.first), np.full(LANES, played.second))
        history = history.append(actions, duels, np.full(LANES, played.outcome))
        if t >= asked_from:
            potential = LinearPotential.of(Gaussian(), history.statistics, eta=np.ones(LANES), observations=history.rounds)
            chains = sampler.advance(potential, chains, streams, t)
    return np.asarray(chains.position.reshape(-1, 2))


@pytest.mark.slow
def test_the_papers_schedule_stops_sampling_and_mala_does_not() -> None:
    rounds = duels_at_random()
    kinds = {(r.first, r.second, r.outcome): r for r in rounds}
    counts = Counter((r.first, r.second, r.outcome) for r in rounds)

    def potential(thetas: Floats) -> Floats:
        total = 0.5 * (thetas**2).sum(axis=1)
        for kind, count in counts.items():
            total += count * many_potentials(thetas, [kinds[kind]], draw=1, eta=1.0, mu=0.0, precision=0.0, radius=math.inf)
        return np.asarray(total)

    mean, deviation = moments_on_grid(potential, reach=3.0, points=300)
    exact = last_draws(MALA(), rounds, asked_from=ROUNDS - 50)
    # 200 independent draws: the relative standard error of a deviation is 5 %, so 25 % is five of them.
    assert np.abs(exact.std(axis=0) / deviation - 1).max() < 0.25
    assert np.abs((exact.mean(axis=0) - mean) / deviation).max() < 5 / math.sqrt(len(exact))

    recipe = Langevin()
    frozen = last_draws(recipe, rounds, asked_from=0)
    assert recipe.step_size * recipe.decay**ROUNDS < 1e-10
    assert (frozen.std(axis=0) / deviation).min() > 1.3
