"""Foresight against plain integration: the gain of a pair, the worth of a duel, and the scale of the prior."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import duelist
from duelist.core.actions import FiniteActions
from duelist.core.checks import FloatArray
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.policies.foresight_kernels import envelope_gain, expected_excess, sort_into
from duelist.policies.prior_scale import FACTORS, base_ridge
from uncached import from_python

call_envelope_gain = from_python(envelope_gain)
call_expected_excess = from_python(expected_excess)
call_sort_into = from_python(sort_into)


def gain_by_integration(heights: FloatArray, slopes: FloatArray) -> float:
    """E max (heights + slopes Z) - max heights, on a fine grid."""
    z = np.linspace(-10, 10, 400_001)
    best = (heights[:, None] + slopes[:, None] * z).max(axis=0)
    return float(integrate.trapezoid(best * stats.norm.pdf(z), z) - heights.max())


def gain(heights: FloatArray, slopes: FloatArray, scale: float = 1.0) -> float:
    n = len(heights)
    order, stack, cuts = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty(n)
    call_sort_into(order, slopes, n)
    return call_envelope_gain(heights, slopes, order, n, scale, stack, cuts)


def test_expected_excess_is_the_integral_of_the_upper_tail() -> None:
    for x in (-3.0, 0.0, 0.5, 4.0):
        exact, _ = integrate.quad(lambda z, x=x: (z - x) * stats.norm.pdf(z), x, 40.0)
        assert call_expected_excess(x) == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize("n", [2, 3, 8, 20])
def test_the_gain_is_the_integral_of_the_upper_envelope(n: int) -> None:
    rng = np.random.default_rng(n)
    for _ in range(5):
        heights, slopes = rng.standard_normal(n), rng.standard_normal(n)
        assert gain(heights, slopes, 0.7) == pytest.approx(gain_by_integration(heights, 0.7 * slopes), abs=1e-8)


def test_parallel_and_equal_lines_add_nothing() -> None:
    heights, slopes = np.array([0.0, -1.0, -0.2, -0.2]), np.array([1.0, 1.0, -0.5, -0.5])
    assert gain(heights, slopes) == pytest.approx(gain(heights[[0, 2]], slopes[[0, 2]]), rel=1e-12)
    assert gain(np.array([1.0, 0.0, 1.0]), np.array([2.0, 2.0, 2.0])) == 0.0


def worth_by_hand(features: FloatArray, ridge: float, remaining: int, optimism: float, i: int, j: int) -> float:
    """Worth of a pair before any duel: utilities 0, covariance I / ridge, no cost."""
    z = features[i] - features[j]
    spread = float(z @ z) / ridge
    slopes = features @ z / ridge
    return max(
        optimism
        * gain_by_integration(np.zeros(len(features)), slopes * math.sqrt(m / 4 / (1 + m / 4 * spread)))
        * (remaining - m)
        / m
        for m in (1.0, 4.0, 16.0, 64.0, 256.0)
        if m < remaining
    )


def test_the_first_pair_is_the_one_of_the_highest_worth_by_hand() -> None:
    features = np.array([[1.0, 0.0], [-0.4, 0.3], [0.1, -0.9], [0.2, 0.2]])
    ridge = float(base_ridge(FiniteActions(features))[0])
    worth = {(i, j): worth_by_hand(features, ridge, 100, 8.0, i, j) for i in range(4) for j in range(i)}
    best = max(worth, key=worth.__getitem__)
    policy, streams = duelist.Foresight(), Streams(0, [0])
    duels, _ = policy.choose(policy.start(Problem(dim=2, horizon=100), streams), FiniteActions(features), streams)
    assert {int(duels.first[0]), int(duels.second[0])} == set(best)


def test_with_no_rounds_left_the_leader_meets_itself_and_live_it_meets_another() -> None:
    features = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    for live in (False, True):
        policy, streams = duelist.Foresight(horizon=1), Streams(0, [0])
        state = policy.start(Problem(dim=2, live=live), streams)
        duels, _ = policy.choose(state, FiniteActions(features), streams)
        assert (duels.first[0] == duels.second[0]) is np.bool_(not live)


def test_the_scale_has_the_highest_laplace_evidence_on_the_grid() -> None:
    rng = np.random.default_rng(3)
    actions = FiniteActions(rng.standard_normal((6, 3)))
    policy, streams = duelist.Foresight(horizon=500), Streams(0, [0])
    state = policy.start(Problem(dim=3), streams)
    contrasts, outcomes = [], []
    for _ in range(20):
        duels, state = policy.choose(state, actions, streams)
        outcome = np.array([1 if rng.random() < 0.8 else -1])
        contrasts.append(duels.contrast[0])
        outcomes.append(int(outcome[0]))
        state = policy.learn(state, actions, duels, outcome)
    signed = np.array(contrasts) * np.array(outcomes)[:, None]
    base = base_ridge(actions)[0]

    def evidence(ridge: float) -> float:
        def objective(theta: FloatArray) -> float:
            return float(np.logaddexp(0.0, -signed @ theta).sum() + 0.5 * ridge * theta @ theta)

        theta = optimize.minimize(objective, np.zeros(3), method="BFGS", options={"gtol": 1e-10}).x
        chance = 1 / (1 + np.exp(-signed @ theta))
        hessian = (signed.T * chance * (1 - chance)) @ signed + ridge * np.eye(3)
        log_prior = -0.5 * (math.log(ridge / base) / math.log(4.0)) ** 2
        return -objective(theta) + 1.5 * math.log(ridge) - 0.5 * float(np.linalg.slogdet(hessian)[1]) + log_prior

    assert state.scaled_at == 20
    assert state.fit.ridge[0] == pytest.approx(max(base * FACTORS, key=evidence))


def test_a_scale_is_learnt_for_large_and_for_small_thetas() -> None:
    ridges = [
        duelist.simulate(
            duelist.Foresight(), duelist.LinearDuels(dim=5, arms=16, theta_norm=norm), rounds=600, trials=6, seed=0
        ).info["ridge"]
        for norm in (0.3, 4.0)
    ]
    assert np.median(ridges[0]) > 4 * np.median(ridges[1])


def test_bad_settings_are_refused() -> None:
    for settings in ({"optimism": 0.0}, {"candidates": 1}, {"horizon": 0}, {"same_arm": "never"}):
        with pytest.raises(InvalidInputError):
            duelist.Foresight(**settings)
