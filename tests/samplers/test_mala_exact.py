"""In the plane, draws of MALA match the posterior that numerical integration gives.

Sizes: 100 lanes of 4000 steps a draw. The standard error of the mean, measured between lanes, is asserted to be below a
fifth of the tolerance, so that a false alarm is a five-sigma event (less than once in a million for each comparison).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest

from builders import history_of
from duelist.core.streams import Streams
from duelist.posteriors.potential import LinearPotential, Term
from duelist.posteriors.priors import Gaussian, GaussianBall, UniformBall
from duelist.posteriors.terms import FeelGoodTerm, PreferenceTerm, PriorTerm
from duelist.samplers.langevin import Langevin
from duelist.samplers.mala import MALA
from oracles import Floats, Round, many_potentials, moments_on_grid

LANES, BURN_IN, STEPS = 100, 60, 4000
MEAN_TOLERANCE = 0.05  # posterior standard deviations
DEVIATION_TOLERANCE = 0.03  # relative
STRONG = 0.08


def played_rounds() -> list[Round]:
    """Sixty duels among five arms. The two draws chose from different arms, so their adversaries differ."""
    rng = np.random.default_rng(2)
    truth = np.array([0.8, -0.6])
    arms = rng.normal(size=(5, 2))
    rounds = []
    for _ in range(60):
        first, second = int(rng.integers(0, 3)), int(rng.integers(2, 5))
        chance = 1 / (1 + math.exp(-float(truth @ (arms[first] - arms[second]))))
        rounds.append(Round(arms, first, second, 1 if rng.random() < chance else -1))
    return rounds


ROUNDS = played_rounds()
AnyPrior = Gaussian | UniformBall | GaussianBall


@dataclass(frozen=True)
class Moments:
    """Mean and standard deviation (2,) of one draw."""

    mean: Floats
    deviation: Floats


@cache
def exact(prior: AnyPrior, mu: float, eta: float, draw: int, points: int = 160) -> Moments:
    def potential(thetas: Floats) -> Floats:
        return many_potentials(thetas, ROUNDS, draw=draw, eta=eta, mu=mu, precision=prior.precision, radius=prior.radius)

    return Moments(*moments_on_grid(potential, reach=min(prior.radius, 12.0), points=points))


def potential_for(prior: AnyPrior, mu: float, eta: float) -> LinearPotential:
    statistics = history_of([ROUNDS] * LANES).statistics
    terms: list[Term] = [PriorTerm(prior), PreferenceTerm(statistics, np.full(LANES, eta))]
    if mu:
        terms.append(FeelGoodTerm.of(statistics, np.full(LANES, mu)))
    return LinearPotential(*terms, lanes=LANES, chains=2, dim=2, observations=len(ROUNDS))


def mala_path(prior: AnyPrior, mu: float, eta: float) -> Floats:
    """(lanes, 2, steps, 2): every lane samples the same two posteriors with its own random numbers."""
    potential, streams, sampler = potential_for(prior, mu, eta), Streams(0, range(LANES)), MALA()
    chains = sampler.start(prior, streams, chains=2, dim=2)
    for round_ in range(BURN_IN):
        chains = sampler.advance(potential, chains, streams, round_)
    _, trace = MALA(steps=1).trace(potential, chains, streams, BURN_IN, STEPS)
    return trace.path


CASES = [
    pytest.param(Gaussian(1.0), 0.0, 1.0, id="Gaussian, plain"),
    pytest.param(Gaussian(1.0), STRONG, 1.0, id="Gaussian, strong Feel-Good"),
    pytest.param(Gaussian(1.0), STRONG, 0.5, id="Gaussian, strong Feel-Good, tempered"),
    pytest.param(UniformBall(1.2), 0.0, 1.0, id="ball, plain"),
    pytest.param(UniformBall(1.2), STRONG, 1.0, id="ball, strong Feel-Good"),
    pytest.param(GaussianBall(0.8, 1.2), STRONG, 1.0, id="Gaussian in a ball, strong Feel-Good"),
]


@pytest.mark.parametrize(("prior", "mu", "eta"), CASES)
def test_draws_match_numerical_integration(prior: AnyPrior, mu: float, eta: float) -> None:
    path = mala_path(prior, mu, eta)
    assert (np.linalg.norm(path, axis=-1) <= prior.radius).all()
    for draw in (1, 2):
        truth = exact(prior, mu, eta, draw)
        drawn = path[:, draw - 1]
        error = drawn.mean(axis=1).std(axis=0, ddof=1) / math.sqrt(LANES) / truth.deviation
        assert error.max() < MEAN_TOLERANCE / 5
        assert np.abs((drawn.mean(axis=(0, 1)) - truth.mean) / truth.deviation).max() < MEAN_TOLERANCE
        assert np.abs(drawn.std(axis=(0, 1)) / truth.deviation - 1).max() < DEVIATION_TOLERANCE


@pytest.mark.parametrize(("prior", "mu", "eta"), [case for case in CASES if case.values[1]])
def test_strong_feel_good_moves_both_means_by_a_standard_deviation_and_apart(prior: AnyPrior, mu: float, eta: float) -> None:
    plain = exact(prior, 0.0, eta, 1)
    tilted = [exact(prior, mu, eta, draw) for draw in (1, 2)]
    for moments in tilted:
        assert np.abs((moments.mean - plain.mean) / plain.deviation).max() > 1.0
    assert np.abs((tilted[0].mean - tilted[1].mean) / plain.deviation).max() > 0.25


@pytest.mark.parametrize(("prior", "mu", "eta"), [CASES[1], CASES[4]])
def test_a_finer_grid_says_the_same(prior: AnyPrior, mu: float, eta: float) -> None:
    coarse, fine = exact(prior, mu, eta, 1), exact(prior, mu, eta, 1, points=320)
    assert np.abs((coarse.mean - fine.mean) / fine.deviation).max() < 0.003
    assert np.abs(coarse.deviation / fine.deviation - 1).max() < 0.003


def test_unadjusted_langevin_with_a_large_step_is_caught_by_the_same_comparison() -> None:
    prior = Gaussian(1.0)
    potential, streams = potential_for(prior, STRONG, 1.0), Streams(0, range(LANES))
    sampler = Langevin(steps=20, step_size=0.05, decay=1.0)
    chains = sampler.start(prior, streams, chains=2, dim=2)
    kept = []
    for round_ in range(120):
        chains = sampler.advance(potential, chains, streams, round_)
        if round_ >= 20:
            kept.append(chains.position[:, 0])
    off = np.abs(np.concatenate(kept).std(axis=0) / exact(prior, STRONG, 1.0, 1).deviation - 1).max()
    assert off > 2 * DEVIATION_TOLERANCE
