"""Offline sampling from a table of comparisons, checked against plain numerical integration on a grid."""

from __future__ import annotations

import math

import numpy as np
import pytest

from duelist.core.errors import DuelistError, InvalidInputError
from duelist.posteriors.priors import Gaussian, GaussianBall, Prior, UniformBall
from duelist.preferences.logistic import log_loss
from duelist.samplers.diagnostics import PoorSamplingWarning
from duelist.samplers.langevin import Langevin
from duelist.samplers.mala import MALA
from duelist.samplers.posterior import FeelGood, sample_posterior
from duelist.typing import FloatArray

CONTRASTS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0], [-0.5, 1.5], [2.0, 0.3]])
OUTCOMES = np.array([1, -1, 1, 1, 1])
SETS = np.array([[[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]], [[2.0, 0.1], [0.3, -1.0], [0.0, 1.0]]])[[0, 1, 0, 1, 1]]
ADVERSARIES = SETS[:, 1]


def grid_moments(
    prior: Prior, *, eta: float = 1.0, mu: float = 0.0, counts: tuple[int, ...] = (1, 1, 1, 1, 1)
) -> tuple[FloatArray, FloatArray]:
    """Mean and sd of the two-dimensional posterior by summing exp(-potential), written term by term, over a fine grid."""
    side = np.linspace(-6, 6, 601)
    theta = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1).reshape(-1, 2)
    energy = 0.5 * prior.precision * (theta**2).sum(axis=1)
    for z, y, arms, adversary, n in zip(CONTRASTS, OUTCOMES, SETS, ADVERSARIES, counts, strict=True):
        energy += n * eta * log_loss(y * (theta @ z))
        energy -= n * mu * ((theta @ arms.T).max(axis=1) - theta @ adversary)
    energy[(theta**2).sum(axis=1) > prior.radius**2] = np.inf
    weight = np.exp(-(energy - energy.min()))
    weight /= weight.sum()
    mean = weight @ theta
    return mean, np.sqrt(weight @ (theta - mean) ** 2)


def tilt(mu: float) -> FeelGood:
    return FeelGood(mu=mu, action_sets=SETS, adversaries=ADVERSARIES)


@pytest.mark.parametrize(
    ("prior", "eta", "mu"),
    [
        (Gaussian(), 1.0, 0.0),
        (Gaussian(1.5), 0.25, 0.0),
        (Gaussian(), 1.0, 0.3),
        (UniformBall(1.5), 1.0, 0.0),
        (GaussianBall(2.0, 1.5), 0.5, 0.2),
    ],
    ids=["plain", "tempered", "feel-good", "ball", "all at once"],
)
def test_draws_have_the_mean_and_sd_of_the_posterior_on_a_grid(prior: Prior, eta: float, mu: float) -> None:
    posterior = sample_posterior(
        CONTRASTS, OUTCOMES, prior=prior, eta=eta, feel_good=tilt(mu) if mu else None, draws=4000, seed=3
    )
    mean, sd = grid_moments(prior, eta=eta, mu=mu)
    # 16,000 draws worth 10,000 or more: five standard errors of a mean are 0.05 sd, of a sd 0.04.
    np.testing.assert_allclose((posterior.mean - mean) / sd, 0.0, atol=0.05)
    np.testing.assert_allclose(posterior.sd / sd, 1.0, atol=0.04)


def test_the_feel_good_tilt_moves_the_posterior_so_its_check_can_fail() -> None:
    plain, plain_sd = grid_moments(Gaussian())
    tilted, _ = grid_moments(Gaussian(), mu=0.3)
    assert np.abs((tilted - plain) / plain_sd).max() > 0.3


def test_win_counts_are_the_same_as_writing_every_comparison_out() -> None:
    wins = np.array([[2, 1], [0, 3], [1, 0], [0, 0], [4, 1]])
    rows = [(z, y) for z, (w, lost) in zip(CONTRASTS, wins, strict=True) for y in [1] * w + [-1] * lost]
    counted = sample_posterior(CONTRASTS, wins, draws=500, seed=1)
    written = sample_posterior(np.array([z for z, _ in rows]), np.array([y for _, y in rows]), draws=500, seed=1)
    # The row without a single comparison stays in the counted table, so sums may differ in the last digit.
    np.testing.assert_allclose(counted.mean, written.mean, atol=4 * written.sd.max() / math.sqrt(1000))
    np.testing.assert_allclose(counted.energy.mean(), written.energy.mean(), rtol=0.05)


def test_counts_weigh_the_feel_good_term_too() -> None:
    counts = (3, 1, 2, 5, 1)
    signs = np.array([[n, 0] if y > 0 else [0, n] for n, y in zip(counts, OUTCOMES, strict=True)])
    posterior = sample_posterior(CONTRASTS, signs, feel_good=tilt(0.2), draws=4000, seed=5)
    mean, sd = grid_moments(Gaussian(), mu=0.2, counts=counts)
    np.testing.assert_allclose((posterior.mean - mean) / sd, 0.0, atol=0.05)
    np.testing.assert_allclose(posterior.sd / sd, 1.0, atol=0.04)


def test_a_contrast_and_its_negative_are_one_row_of_the_table() -> None:
    forward = sample_posterior(CONTRASTS, OUTCOMES, draws=500, seed=2)
    turned = np.array([1, -1, 1, -1, 1])
    backward = sample_posterior(CONTRASTS * turned[:, None], OUTCOMES * turned, draws=500, seed=2)
    np.testing.assert_array_equal(forward.draws, backward.draws)


def test_one_shared_action_set_is_the_same_as_repeating_it_in_every_row() -> None:
    shared = FeelGood(mu=0.3, action_sets=SETS[0], adversaries=ADVERSARIES)
    repeated = FeelGood(mu=0.3, action_sets=np.repeat(SETS[:1], 5, axis=0), adversaries=ADVERSARIES)
    one, other = (sample_posterior(CONTRASTS, OUTCOMES, feel_good=tilt, draws=400, seed=4) for tilt in (shared, repeated))
    np.testing.assert_allclose(one.draws, other.draws, rtol=1e-9)


def test_a_table_without_rows_gives_the_prior() -> None:
    posterior = sample_posterior(np.zeros((0, 3)), np.zeros(0), prior=Gaussian(2.0), draws=2000, seed=0)
    np.testing.assert_allclose(posterior.mean, 0.0, atol=0.15)
    np.testing.assert_allclose(posterior.sd, 2.0, rtol=0.05)


def test_shapes_follow_chains_and_draws_and_the_default_run_raises_no_warning() -> None:
    posterior = sample_posterior(CONTRASTS, OUTCOMES, chains=3, draws=600, seed=0)
    assert posterior.draws.shape == (3, 600, 2)
    assert posterior.energy.shape == (3, 600)
    assert posterior.diagnostics.rhat.shape == posterior.diagnostics.ess_bulk.shape == posterior.mean.shape == (2,)
    assert posterior.diagnostics.acceptance.shape == (3,)
    assert posterior.exact
    assert posterior.interval(0.9).shape == (2, 2)


def test_a_chain_gives_the_same_draws_whatever_the_number_of_chains() -> None:
    few = sample_posterior(CONTRASTS, OUTCOMES, chains=2, draws=400, seed=7)
    many = sample_posterior(CONTRASTS, OUTCOMES, chains=5, draws=400, seed=7)
    np.testing.assert_array_equal(few.draws, many.draws[:2])
    other = sample_posterior(CONTRASTS, OUTCOMES, chains=2, draws=400, seed=8)
    assert not np.array_equal(few.draws, other.draws)


def test_energy_is_the_potential_of_each_draw() -> None:
    posterior = sample_posterior(CONTRASTS, OUTCOMES, eta=0.5, draws=400, seed=7)
    theta = posterior.draws[2, 17]
    expected = 0.5 * theta @ theta + 0.5 * log_loss(OUTCOMES * (CONTRASTS @ theta)).sum()
    assert posterior.energy[2, 17] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("sampler", "complaint"),
    [
        (Langevin(steps=1, step_size=1e-4, decay=1.0), "R-hat"),
        (MALA(steps=1, step_size=1e-3), "effective sample size"),
        (MALA(steps=1, step_size=1e9), "accepted"),
    ],
    ids=["crawling Langevin", "tiny steps", "huge steps"],
)
def test_a_run_that_should_not_be_used_says_so(sampler: Langevin | MALA, complaint: str) -> None:
    with pytest.warns(PoorSamplingWarning, match=complaint):
        sample_posterior(CONTRASTS, OUTCOMES, sampler=sampler, draws=50, warmup=0, seed=0)


def test_ties_given_as_half_a_win_and_half_a_loss_have_the_posterior_of_numerical_integration() -> None:
    counts = [[3.0, 1.0], [1.5, 2.5], [0.5, 0.5]]  # in the second row one of four was a tie, in the third the only one
    contrasts = np.array([[1.0], [0.6], [2.0]])
    grid = np.linspace(-8.0, 8.0, 4001)
    energy = 0.5 * grid**2
    for (z,), (wins, losses) in zip(contrasts, counts, strict=True):
        energy += wins * log_loss(grid * z) + losses * log_loss(-grid * z)
    weight = np.exp(-energy)
    weight /= weight.sum()
    mean = weight @ grid
    posterior = sample_posterior(contrasts, counts, draws=4000, seed=0)
    assert posterior.mean[0] == pytest.approx(mean, abs=0.03)
    assert posterior.flat.std() == pytest.approx(np.sqrt(weight @ (grid - mean) ** 2), rel=0.03)


@pytest.mark.parametrize(
    ("contrasts", "outcomes", "message"),
    [
        ([[1.0, math.nan]], [1], "contrasts must be finite"),
        ([1.0, 2.0], [1, 1], r"contrasts must be \(n, dim\)"),
        ([[], []], [1, 1], "dim >= 1"),
        ([[1.0], [2.0]], [1], r"outcomes must be \(2,\) signs"),
        ([[1.0], [2.0]], [1, 0], r"\+1 \(the first won\)"),
        ([[1.0], [2.0]], [[1, 0]], r"got \(1, 2\)"),
        ([[1.0]], [[1, -1]], r"at least 0, .* got \[ 1. -1.\]"),
        ([[1.0]], [[0.5, 1]], "half a loss for a tie"),
        ([[1.0]], [[0.25, 0.75]], "half a loss for a tie"),
    ],
)
def test_impossible_tables_are_refused_with_words(contrasts: list[float], outcomes: list[float], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        sample_posterior(contrasts, outcomes)


@pytest.mark.parametrize(
    ("feel_good", "message"),
    [
        (FeelGood(mu=-1.0, action_sets=SETS, adversaries=ADVERSARIES), "mu must be"),
        (FeelGood(mu=1.0, action_sets=SETS[:3], adversaries=ADVERSARIES), "one set per comparison"),
        (FeelGood(mu=1.0, action_sets=SETS[..., :1], adversaries=ADVERSARIES), "arms of dimension 2"),
        (FeelGood(mu=1.0, action_sets=SETS, adversaries=ADVERSARIES[:2]), r"adversaries must be \(5, 2\)"),
    ],
)
def test_a_feel_good_term_that_does_not_fit_the_table_is_refused(feel_good: FeelGood, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        sample_posterior(CONTRASTS, OUTCOMES, feel_good=feel_good)


def test_features_that_overflow_raise_a_named_error_instead_of_returning_nan() -> None:
    with pytest.raises(DuelistError, match="overflow"):
        sample_posterior(np.full((4, 8), 1e308), [1, -1, 1, 1], draws=20)
