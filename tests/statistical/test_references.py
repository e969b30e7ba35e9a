"""Exact samplers reproduce the stored reference posteriors: means within 0.1 sd, widths within 5 %.

With an effective size of 3,000 or more, a mean has a standard error of 0.018 sd and a width one of 1.3 %: the limits
are five and four of those, for some 150 coordinates in all.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from duelist.posteriors.priors import Gaussian, GaussianBall, Prior, UniformBall
from duelist.samplers.diagnostics import PosteriorDraws
from duelist.samplers.gaussian import Laplace
from duelist.samplers.mala import MALA
from duelist.samplers.polya_gamma import PolyaGamma
from duelist.samplers.posterior import FeelGood, sample_posterior
from duelist.typing import FloatArray
from tests.support.reference_problems import REFERENCES, STORED, Reference, stored

EXACT = {"mala": MALA(), "polya_gamma": PolyaGamma(steps=3)}


def prior_of(problem: Reference) -> Prior:
    if not problem.radius:
        return Gaussian(problem.precision**-0.5)
    if not problem.precision:
        return UniformBall(problem.radius)
    return GaussianBall(problem.precision**-0.5, problem.radius)


def sampled(problem: Reference, sampler: MALA | PolyaGamma | Laplace) -> PosteriorDraws:
    contrasts, outcomes, sets, adversaries = problem.table()
    tilt = FeelGood(mu=problem.mu, action_sets=sets[0] if problem.fixed_arms else sets, adversaries=adversaries)
    return sample_posterior(
        contrasts,
        outcomes,
        prior=prior_of(problem),
        eta=problem.eta,
        feel_good=tilt if problem.mu else None,
        sampler=sampler,
        draws=1200,
        warmup=100,
    )


def errors(problem: Reference, draws: PosteriorDraws) -> tuple[FloatArray, FloatArray]:
    """How many sd each mean is off, and the ratio of each sd to the reference's."""
    answer = stored()[problem.name]
    mean, sd = np.array(answer["mean"]), np.array(answer["sd"])
    return np.abs(draws.mean - mean) / sd, draws.sd / sd


# The slowest of all, for the Polya-Gamma sampler looks at every duel. The same tables with a Feel-Good term take the same
# path and a longer one; without one, it is compared on the other tables.
LEFT_OUT = {("polya_gamma", "the paper's size"), ("polya_gamma", "tempered")}
PAIRS = [
    pytest.param(problem, sampler, id=f"{problem.name}-{name}")
    for problem in REFERENCES
    for name, sampler in EXACT.items()
    if (name, problem.name) not in LEFT_OUT
]


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "sampler"), PAIRS)
def test_exact_draws_have_the_mean_and_width_of_the_reference(problem: Reference, sampler: MALA | PolyaGamma) -> None:
    off, ratio = errors(problem, sampled(problem, sampler))
    assert off.max() < 0.1
    assert ratio.min() > 0.95
    assert ratio.max() < 1.05


def test_a_gaussian_at_the_mode_is_seen_to_be_only_that() -> None:
    off, ratio = errors(REFERENCES[1], sampled(REFERENCES[1], Laplace()))
    assert off.max() > 0.1 or ratio.min() < 0.95


def test_the_stored_answers_are_those_of_the_problems_in_the_code_and_are_precise() -> None:
    answers = stored()
    assert list(answers) == [problem.name for problem in REFERENCES]
    for problem in REFERENCES:
        answer = answers[problem.name]
        assert Reference(**answer["problem"]) == problem
        assert answer["effective"] >= 10_000
    assert "importance sampling" in json.loads(STORED.read_text())["recipe"]
