"""Exact samplers pass simulation-based calibration, Geweke's joint test and the Stein test; planted defects do not.

False alarms: a check of an exact sampler fails when one of its p-values is below 0.001 / (number of p-values), so each test
here would fail by chance once in a thousand seeds; the seeds are fixed. A planted defect must be seen at the same threshold.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import stats

from duelist.core.streams import Streams
from duelist.posteriors.linear import LinearPotential
from duelist.samplers.base import Sampler
from duelist.samplers.calibration.checks import joint_test, stein_test, truth_ranks, uniformity
from duelist.samplers.calibration.joint_model import JointModel
from duelist.samplers.curvature import refresh_curvature, unknown_curvature
from duelist.samplers.mala import MALA
from duelist.samplers.polya_gamma import PolyaGamma
from duelist.typing import FloatArray
from tests.support.sampler_defects import (
    TOO_LARGE_A_STEP,
    LatePaperSchedule,
    PlainSGLD,
    with_the_wrong_sign,
    without_the_adversary,
)

ALARM = 0.001
EXACT = {"mala": MALA(), "polya_gamma": PolyaGamma(steps=3)}
DRAWS = 63
# So many simulated truths that every planted defect below is seen. Exact samplers get as many.
LANES = 500


def passes(p_values: FloatArray) -> bool:
    return bool(p_values.min() > ALARM / p_values.size)


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.0, 0.15], ids=["feel-good off", "feel-good on"])
@pytest.mark.parametrize("sampler", EXACT.values(), ids=EXACT)
def test_the_truth_ranks_uniformly_among_exact_draws(sampler: Sampler, mu: float) -> None:
    ranks = truth_ranks(sampler, JointModel(lanes=LANES, mu=mu), draws=DRAWS)
    assert passes(uniformity(ranks, DRAWS))


@pytest.mark.slow
@pytest.mark.parametrize("sampler", [TOO_LARGE_A_STEP, LatePaperSchedule()], ids=["too large a step", "late paper schedule"])
def test_ranks_see_a_sampler_that_is_wrong(sampler: Sampler) -> None:
    ranks = truth_ranks(sampler, JointModel(lanes=LANES), draws=DRAWS)
    assert not passes(uniformity(ranks, DRAWS))


@pytest.mark.slow
def test_ranks_see_plain_sgld_with_batches_of_32() -> None:
    ranks = truth_ranks(PlainSGLD(), JointModel(lanes=300, rounds=600), draws=31, warmup=10)
    assert not passes(uniformity(ranks, 31, bins=8))


@pytest.mark.slow
@pytest.mark.parametrize("believe", [with_the_wrong_sign, without_the_adversary])
def test_ranks_see_a_tilt_that_is_wrong_though_the_sampler_is_exact(believe: object) -> None:
    ranks = truth_ranks(MALA(), JointModel(lanes=LANES, mu=0.15), draws=DRAWS, believe=believe)  # type: ignore[arg-type]
    assert not passes(uniformity(ranks, DRAWS))


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.0, 0.15], ids=["feel-good off", "feel-good on"])
@pytest.mark.parametrize("sampler", EXACT.values(), ids=EXACT)
def test_exact_samplers_leave_the_joint_law_as_it_is(sampler: Sampler, mu: float) -> None:
    assert passes(joint_test(sampler, JointModel(lanes=LANES, mu=mu)))


@pytest.mark.slow
def test_the_joint_test_sees_too_large_a_step() -> None:
    assert not passes(joint_test(TOO_LARGE_A_STEP, JointModel(lanes=LANES), turns=20))


@pytest.mark.slow
def test_the_joint_test_sees_plain_sgld_with_batches_of_32() -> None:
    assert not passes(joint_test(PlainSGLD(), JointModel(lanes=400, rounds=600), turns=20))


@cache
def one_posterior(lanes: int, mu: float, rounds: int = 30) -> LinearPotential:
    """The same posterior in every lane, so that lanes give independent draws of it."""
    model = JointModel(lanes=1, dim=4, rounds=rounds, mu=mu, seed=5)
    generator = np.random.default_rng(0)
    outcomes = model.draw_outcomes(model.draw_theta(generator), generator)
    wide = JointModel(lanes=lanes, dim=4, rounds=rounds, mu=mu, seed=5)
    wide.__dict__["sets"] = np.repeat(model.sets, lanes, axis=0)
    return wide.potential(np.repeat(outcomes, lanes, axis=0))


def independent_draws(sampler: Sampler, potential: LinearPotential, calls: int = 60, seed: int = 0) -> FloatArray:
    """(lanes, dim) one draw per lane."""
    streams = Streams(seed, range(potential.lanes))
    chains = sampler.start(potential.prior, streams, chains=1, dim=potential.dim)
    for call in range(calls):
        chains = sampler.advance(potential, chains, streams, call)
    return np.asarray(chains.position[:, 0])


def stein_p_value(sampler: Sampler, potential: LinearPotential) -> float:
    draws = independent_draws(sampler, potential)
    gradients = potential.gradient(draws[:, None])[:, 0]
    whitener = refresh_curvature(unknown_curvature(potential.lanes, potential.dim), potential).whitener[0]
    return stein_test(draws, gradients, whitener).p_value


@pytest.mark.slow
@pytest.mark.parametrize("sampler", EXACT.values(), ids=EXACT)
def test_exact_draws_pass_the_stein_test(sampler: Sampler) -> None:
    assert stein_p_value(sampler, one_posterior(LANES, 0.0)) > ALARM


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sampler", "rounds"),
    [(TOO_LARGE_A_STEP, 30), (LatePaperSchedule(), 30), (PlainSGLD(), 600)],
    ids=["too large a step", "late paper schedule", "plain sgld"],
)
def test_the_stein_test_sees_biased_draws(sampler: Sampler, rounds: int) -> None:
    assert stein_p_value(sampler, one_posterior(LANES, 0.0, rounds)) <= ALARM


@cache
def draws_by_mala(mu: float) -> FloatArray:
    return independent_draws(MALA(), one_posterior(750, mu))


@pytest.mark.slow
@pytest.mark.parametrize("mu", [0.0, 0.1], ids=["feel-good off", "feel-good on"])
def test_two_exact_samplers_of_unrelated_construction_agree(mu: float) -> None:
    potential = one_posterior(750, mu)
    one = draws_by_mala(mu)
    other = independent_draws(PolyaGamma(steps=3), potential, seed=1)
    energies = (potential.value(draws[:, None])[:, 0] for draws in (one, other))
    columns = zip([*one.T, next(energies)], [*other.T, next(energies)], strict=True)
    assert passes(np.array([stats.ks_2samp(a, b).pvalue for a, b in columns]))


@pytest.mark.slow
def test_their_agreement_would_not_survive_a_wrong_sign() -> None:
    right = one_posterior(750, 0.1)
    one, other = draws_by_mala(0.1), independent_draws(PolyaGamma(steps=3), with_the_wrong_sign(right))
    assert not passes(np.array([stats.ks_2samp(a, b).pvalue for a, b in zip(one.T, other.T, strict=True)]))
