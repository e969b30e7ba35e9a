"""Draws of many chains against integrals: on posteriors that are far from normal, from scratch and after renewals."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.core.errors import NonFiniteError
from duelist.history.statistics import Statistics
from duelist.live import ensemble as ensembles
from duelist.live.ensemble import renew_ensemble, start_ensemble
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Gaussian, GaussianBall, Prior, UniformBall
from duelist.samplers.diagnostics import PoorSamplingWarning
from duelist.typing import FloatArray

DRAWS = 4000


def potential_of(contrast: float, wins: int, prior: Prior) -> LinearPotential:
    """One parameter, and `wins` votes that all went one way: a skew posterior."""
    statistics = Statistics(
        contrasts=np.full((1, 1, 1), contrast),
        totals=np.full((1, 1), float(wins)),
        losses=np.zeros((1, 1)),
        n_rows=np.ones(1, dtype=np.int64),
        sets=np.zeros((1, 0, 1, 0)),
        repeats=np.zeros(0),
        adversary=np.zeros((1, 2, 1)),
    )
    return LinearPotential.of(prior, statistics, eta=np.ones(1), chains=1, observations=wins)


def quantiles_by_quadrature(contrast: float, wins: int, prior: Prior, draws: FloatArray) -> FloatArray:
    """P(theta < draw) of every draw: uniform, if the draws are from the posterior."""
    edge = min(float(prior.radius), 250.0)
    grid = np.linspace(-edge, edge, 400_001)
    density = np.exp(-0.5 * float(prior.precision) * grid**2 - wins * np.logaddexp(0.0, -contrast * grid))
    cumulative = np.cumsum(density)
    return np.asarray(np.interp(draws, grid, cumulative / cumulative[-1]))


def distance(quantiles: FloatArray) -> float:
    """The Kolmogorov-Smirnov distance to the uniform law, times sqrt(n): above 2.5 with a probability of 8e-6."""
    ordered, n = np.sort(quantiles), len(quantiles)
    steps = np.arange(n + 1) / n
    return float(np.sqrt(n) * max((steps[1:] - ordered).max(), (ordered - steps[:-1]).max()))


CASES = [
    (4.0, 3, Gaussian(3.0)),
    (4.0, 3, Gaussian(8.0)),
    (4.0, 3, UniformBall(2.0)),
    (-2.0, 5, GaussianBall(2.0, 3.0)),
    (1.0, 0, UniformBall(1.0)),
]


@pytest.mark.parametrize(("contrast", "wins", "prior"), CASES)
def test_draws_from_scratch_are_from_the_posterior(contrast: float, wins: int, prior: Prior) -> None:
    made = start_ensemble(potential_of(contrast, wins, prior), n_draws=DRAWS, seed=0)
    assert distance(quantiles_by_quadrature(contrast, wins, prior, made.theta[:, 0])) < 2.5


def test_the_normal_approximation_would_be_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ensembles, "_MOST_STEPS", 1)
    with pytest.warns(PoorSamplingWarning, match="still drift after 2 steps"):
        made = start_ensemble(potential_of(4.0, 3, Gaussian(3.0)), n_draws=DRAWS, seed=0)
    assert distance(quantiles_by_quadrature(4.0, 3, Gaussian(3.0), made.theta[:, 0])) > 5.0


@pytest.mark.parametrize("prior", [Gaussian(3.0), UniformBall(2.0)], ids=["gaussian", "ball"])
def test_draws_that_follow_growing_data_stay_from_the_posterior(prior: Prior) -> None:
    made = start_ensemble(potential_of(1.0, 20, prior), n_draws=DRAWS, seed=0)
    for wins in range(21, 41):  # a twentieth at a time, and a little less
        made = renew_ensemble(made, potential_of(1.0, wins, prior), news=1, seed=0)
    assert made.renewals == 21
    assert distance(quantiles_by_quadrature(1.0, 40, prior, made.theta[:, 0])) < 2.5


def test_much_news_is_followed_as_well() -> None:
    made = start_ensemble(potential_of(1.0, 0, Gaussian(3.0)), n_draws=DRAWS, seed=0)
    made = renew_ensemble(made, potential_of(1.0, 60, Gaussian(3.0)), news=60, seed=0)
    assert distance(quantiles_by_quadrature(1.0, 60, Gaussian(3.0), made.theta[:, 0])) < 2.5


def test_the_same_seed_gives_the_same_draws() -> None:
    one, same, other = (start_ensemble(potential_of(1.0, 5, Gaussian()), n_draws=16, seed=seed).theta for seed in (0, 0, 1))
    assert one.tolist() == same.tolist()
    assert one.tolist() != other.tolist()


def test_features_that_overflow_are_refused() -> None:
    with pytest.raises(NonFiniteError, match="large overflow"):
        start_ensemble(potential_of(1e200, 5, Gaussian()), n_draws=16, seed=0)


def crowd(n: int) -> LinearPotential:
    """Two parameters and the first n votes on distinct contrasts: close to normal, and not quite."""
    rng = np.random.default_rng(0)
    contrasts = rng.standard_normal((2, 1000))
    lost = rng.random(1000) > 1.0 / (1.0 + np.exp(-np.array([1.0, -0.5]) @ contrasts))
    contrasts, lost = np.ascontiguousarray(contrasts[:, :n]), lost[:n]
    nothing = np.zeros((1, 0, 2, 0)), np.zeros(0), np.zeros((1, 2, 2))
    statistics = Statistics(contrasts[None], np.ones((1, n)), lost[None].astype(np.float64), np.array([n]), *nothing)
    return LinearPotential.of(Gaussian(), statistics, eta=np.ones(1), chains=1, observations=n)


def test_beyond_the_exact_rows_draws_agree_with_those_that_read_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = start_ensemble(crowd(600), n_draws=DRAWS, seed=0)
    exact_later = renew_ensemble(exact, crowd(630), news=30, seed=0)
    monkeypatch.setattr(ensembles, "_EXACT_ROWS", 100)
    known = start_ensemble(crowd(600), n_draws=DRAWS, seed=0)
    later = renew_ensemble(known, crowd(630), news=30, seed=0)
    for found, wanted in ((known.theta, exact.theta), (later.theta, exact_later.theta)):
        # Five standard errors of the difference of two means of DRAWS draws are 0.11; the skewness left out moves a mean too.
        assert np.abs((found.mean(axis=0) - wanted.mean(axis=0)) / wanted.std(axis=0)).max() < 0.2
        assert np.abs(found.std(axis=0) / wanted.std(axis=0) - 1.0).max() < 0.1


def test_after_little_news_some_chains_step_in_turn_and_all_follow_the_mode() -> None:
    known = start_ensemble(crowd(600), n_draws=500, seed=0)
    first = renew_ensemble(known, crowd(630), news=30, seed=0)
    second = renew_ensemble(first, crowd(660), news=30, seed=0)
    stood = [(before.whitened == after.whitened).all(axis=1) for before, after in ((known, first), (first, second))]
    assert 0.1 < stood[0].mean() < 0.95
    assert (stood[0] != stood[1]).any()
    shifts = second.theta.mean(axis=0) - second.curvature.mode[0]
    assert np.abs(shifts / second.theta.std(axis=0)).max() < 0.3
