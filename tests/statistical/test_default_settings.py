"""At its default settings an exact sampler mixes: R-hat below 1.01 and an effective size of 400, for dimensions up to 50."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from duelist.posteriors.priors import Gaussian, Prior, UniformBall
from duelist.samplers.diagnostics import PoorSamplingWarning, PosteriorDraws
from duelist.samplers.mala import MALA
from duelist.samplers.posterior import FeelGood, sample_posterior
from tests.support.reference_problems import Reference

# mu = alpha / sqrt(rows). The paper's experiments have alpha = 0.1. At 1 and with ten duels in dimension 50, the slices of
# the Polya-Gamma sampler are too narrow for 1,000 draws, also when they are thinned, and it says so.
STRONGEST = {"mala": 1.0, "polya_gamma": 0.3}

DIMS, ROWS = (2, 10, 50), (10, 2500)


def drawn(sampler: str | MALA, dim: int, rows: int, alpha: float, prior: Prior, max_thin: int = 32) -> PosteriorDraws:
    """Draws at the default settings; the few duels have fresh arms, the many share one set of six."""
    problem = Reference(name="", dim=dim, rows=rows, mu=alpha / math.sqrt(rows), fixed_arms=rows > 100)
    contrasts, outcomes, sets, adversaries = problem.table()
    tilt = FeelGood(mu=problem.mu, action_sets=sets if len(sets) > 1 else sets[0], adversaries=adversaries) if alpha else None
    return sample_posterior(contrasts, outcomes, sampler=sampler, feel_good=tilt, prior=prior, max_thin=max_thin)


@pytest.mark.slow
@pytest.mark.parametrize("tilted", [False, True], ids=["plain", "Feel-Good"])
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("dim", DIMS)
@pytest.mark.parametrize("sampler", ["mala", "polya_gamma"])
def test_chains_agree_and_are_worth_400_draws(sampler: str, dim: int, rows: int, tilted: bool) -> None:
    found = drawn(sampler, dim, rows, STRONGEST[sampler] if tilted else 0.0, Gaussian()).diagnostics
    assert found.worst_rhat < 1.01
    assert found.smallest_ess >= 400


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.0, 1.0], ids=["plain", "Feel-Good"])
def test_on_a_ball_in_high_dimension_too_where_the_mass_is_at_the_wall(alpha: float) -> None:
    found = drawn("mala", 50, 10, alpha, UniformBall(2.0)).diagnostics
    assert found.worst_rhat < 1.01
    assert found.smallest_ess >= 400


@pytest.mark.slow
def test_chains_that_mix_slowly_are_thinned_and_others_are_left_alone() -> None:
    slow = MALA(steps=1)
    with pytest.warns(PoorSamplingWarning):
        once = drawn(slow, 10, 10, 0.0, UniformBall(2.0), max_thin=1)
    thinned = drawn(slow, 10, 10, 0.0, UniformBall(2.0))
    assert thinned.draws.shape == once.draws.shape
    assert thinned.diagnostics.smallest_ess > 2 * once.diagnostics.smallest_ess
    easy, free_to_thin = (drawn("mala", 2, 10, 0.0, Gaussian(), max_thin=n).draws for n in (1, 32))
    np.testing.assert_array_equal(easy, free_to_thin)


@pytest.mark.slow
def test_a_biased_sampler_is_not_thinned_for_the_sake_of_its_diagnostics() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PoorSamplingWarning)
        runs = [drawn("paper", 2, 10, 0.0, Gaussian(), max_thin=n) for n in (1, 32)]
    np.testing.assert_array_equal(runs[0].draws, runs[1].draws)
    assert runs[1].diagnostics.complaints
