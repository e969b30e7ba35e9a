"""A prior with a mean and a covariance against sums over a grid, and what a result of sampling can be asked."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.core.errors import InvalidInputError
from duelist.posteriors.priors import MultivariateNormal
from duelist.samplers.diagnostics import PosteriorDraws
from duelist.samplers.posterior import FeelGood, sample_posterior
from duelist.typing import FloatArray

MEAN = np.array([1.5, -0.8])
COVARIANCE = np.array([[0.5, 0.35], [0.35, 0.4]])
CONTRASTS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, -1.0], [-0.5, 1.5]])
COUNTS = np.array([[1.0, 3.0], [2.0, 0.0], [0.5, 0.5], [1.0, 2.0]])
SETS = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
ADVERSARIES = SETS[[0, 1, 1, 2]]


def moments_on_a_grid(eta: float, mu: float, dim: int) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance by summing exp(-potential), written term by term; with one dimension only the first coordinate."""
    side = np.linspace(-6.0, 6.0, 1001)
    theta = np.stack(np.meshgrid(*[side] * dim, indexing="ij"), axis=-1).reshape(-1, dim)
    away = theta - MEAN[:dim]
    energy = 0.5 * np.einsum("ni,ij,nj->n", away, np.linalg.inv(COVARIANCE[:dim, :dim]), away)
    for z, (won, lost), adversary in zip(CONTRASTS[:, :dim], COUNTS, ADVERSARIES[:, :dim], strict=True):
        u = theta @ z
        energy += eta * (won * np.log1p(np.exp(-u)) + lost * np.log1p(np.exp(u)))
        energy -= (won + lost) * mu * ((theta @ SETS[:, :dim].T).max(axis=1) - theta @ adversary)
    weight = np.exp(-(energy - energy.min()))
    weight /= weight.sum()
    mean = weight @ theta
    return mean, np.einsum("n,ni,nj->ij", weight, theta - mean, theta - mean)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "eta", "mu", "dim"),
    [
        ("mala", 1.0, 0.0, 2),
        ("mala", 0.4, 0.0, 1),
        ("mala", 1.0, 0.15, 2),
        ("polya_gamma", 1.0, 0.0, 2),
        ("polya_gamma", 0.4, 0.15, 1),
    ],
)
def test_a_prior_with_mean_and_covariance_gives_the_posterior_of_the_grid(
    sampler: str, eta: float, mu: float, dim: int
) -> None:
    posterior = sample_posterior(
        CONTRASTS[:, :dim],
        COUNTS,
        prior=MultivariateNormal(MEAN[:dim], COVARIANCE[:dim, :dim]),
        eta=eta,
        feel_good=FeelGood(mu=mu, action_sets=SETS[:, :dim], adversaries=ADVERSARIES[:, :dim]) if mu else None,
        sampler=sampler,
        draws=5000,
        seed=1,
    )
    mean, covariance = moments_on_a_grid(eta, mu, dim)
    # 20,000 draws that are worth at least 4,000: five standard errors of a mean are 0.08 sd, of a covariance about twice that.
    sd = np.sqrt(np.diag(covariance))
    assert posterior.diagnostics.smallest_ess > 4000
    np.testing.assert_allclose((posterior.mean - mean) / sd, 0.0, atol=0.08)
    found = np.atleast_2d(np.cov(posterior.flat, rowvar=False))
    np.testing.assert_allclose((found - covariance) / np.outer(sd, sd), 0.0, atol=0.16)


def test_a_long_table_is_sampled_with_the_same_prior() -> None:
    generator = np.random.default_rng(0)
    contrasts = generator.normal(size=(1500, 2))
    outcomes = np.where(generator.random(1500) < 1 / (1 + np.exp(-contrasts @ [0.5, 0.0])), 1, -1)
    first, rest = slice(0, 750), slice(750, None)
    everything = sample_posterior(contrasts, outcomes, seed=2)
    yesterday = sample_posterior(contrasts[first], outcomes[first], seed=2)
    today = sample_posterior(contrasts[rest], outcomes[rest], prior=yesterday.as_prior(), seed=2)
    # 750 comparisons make a posterior all but Gaussian, so that learning in two halves is learning all at once.
    np.testing.assert_allclose((today.mean - everything.mean) / everything.sd, 0.0, atol=0.25)
    np.testing.assert_allclose(today.sd / everything.sd, 1.0, atol=0.1)


def test_standard_deviations_stand_for_a_diagonal_covariance_and_a_plain_scale() -> None:
    scaled = sample_posterior(CONTRASTS, COUNTS, prior=duelist.Gaussian(2.0), draws=3000, seed=4)
    listed = sample_posterior(CONTRASTS, COUNTS, prior=MultivariateNormal([0.0, 0.0], [2.0, 2.0]), draws=3000, seed=4)
    np.testing.assert_allclose((scaled.mean - listed.mean) / scaled.sd, 0.0, atol=0.1)
    np.testing.assert_allclose(listed.sd / scaled.sd, 1.0, atol=0.08)


@pytest.mark.parametrize(
    ("mean", "covariance", "says"),
    [
        ([0.0, 0.0], [1.0, 1.0, 1.0], r"\(2,\) standard deviations"),
        ([0.0, 0.0], [1.0, 0.0], "above 0"),
        ([0.0, 0.0], [[1.0, 0.5], [0.0, 1.0]], "symmetric"),
        ([0.0, 0.0], [[1.0, 1.0], [1.0, 1.0]], "positive definite"),
        ([0.0, np.nan], [1.0, 1.0], "mean"),
    ],
)
def test_what_is_no_gaussian_is_refused(mean: Any, covariance: Any, says: str) -> None:
    with pytest.raises(InvalidInputError, match=says):
        MultivariateNormal(mean, covariance)


def test_a_policy_says_which_priors_it_takes() -> None:
    with pytest.raises(InvalidInputError, match=r"A policy takes Gaussian\(scale\)"):
        duelist.FGTS(prior=MultivariateNormal([0.0, 0.0], [1.0, 1.0]))  # type: ignore[arg-type]


def test_a_prior_or_names_of_another_length_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="length of a contrast, 2; got 3"):
        sample_posterior(CONTRASTS, COUNTS, prior=MultivariateNormal(np.zeros(3), np.eye(3)))
    with pytest.raises(InvalidInputError, match="names must be 2 different"):
        sample_posterior(CONTRASTS, COUNTS, names=["a"])


@pytest.fixture(scope="module")
def posterior() -> PosteriorDraws:
    return sample_posterior(CONTRASTS, COUNTS, draws=500, seed=0, names=["length", "tone"])


def test_printing_says_what_was_drawn_and_how_far_to_trust_it(posterior: PosteriorDraws) -> None:
    head, columns, *rows = str(posterior).splitlines()
    assert head.startswith("4 chains of 500 draws by 'mala' (exact)")
    assert columns.split() == ["theta", "mean", "sd", "5", "%", "95", "%", "R-hat", "ESS", "bulk", "ESS", "tail"]
    for row, name, mean, sd in zip(rows, ("length", "tone"), posterior.mean, posterior.sd, strict=True):
        assert row.split()[:3] == [name, f"{mean:.3f}", f"{sd:.3f}"]
    many = sample_posterior(np.eye(25), np.ones(25), draws=1000, seed=0)
    assert "and 5 more coordinates" in str(many)
    assert len(repr(many)) < 400


def test_predictions_and_rankings_are_means_over_draws(posterior: PosteriorDraws) -> None:
    arms = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5]])
    chances = [np.mean([1 / (1 + np.exp(-(theta @ (arm - arms[0])))) for theta in posterior.flat]) for arm in arms]
    np.testing.assert_allclose(posterior.predict(arms, arms[0]), chances)
    assert float(posterior.predict(arms[1], arms[1])) == 0.5
    ranked = posterior.ranking(arms)
    utilities = np.array([[theta @ arm for arm in arms] for theta in posterior.flat])
    assert [one.row for one in ranked] == list(np.argsort(-utilities.mean(axis=0)))
    for one in ranked:
        assert one.mean == pytest.approx(utilities[:, one.row].mean())
        assert (one.low, one.high) == pytest.approx(tuple(np.quantile(utilities[:, one.row], [0.05, 0.95])))
        assert one.probability_best == pytest.approx((utilities.argmax(axis=1) == one.row).mean())
    with pytest.raises(InvalidInputError, match="length 2"):
        posterior.predict([1.0], [0.0])


def test_numpy_and_arviz_have_the_same_draws(posterior: PosteriorDraws, monkeypatch: pytest.MonkeyPatch) -> None:
    np.testing.assert_array_equal(np.asarray(posterior), posterior.draws)
    assert np.asarray(posterior, dtype=np.float32).dtype == np.float32
    pytest.importorskip("arviz_base")
    tree = posterior.to_arviz()
    theta = tree["posterior"]["theta"]
    assert theta.dims == ("chain", "draw", "feature")
    np.testing.assert_array_equal(theta.sel(feature="tone"), posterior.draws[:, :, 1])
    np.testing.assert_array_equal(tree["sample_stats"]["energy"], posterior.energy)
    monkeypatch.setitem(sys.modules, "arviz_base", None)
    with pytest.raises(ImportError, match=r"duelist\[arviz\]"):
        posterior.to_arviz()
