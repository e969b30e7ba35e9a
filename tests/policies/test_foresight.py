"""Foresight against plain integration: the gain of a pair, the worth of a duel, and the scale of the prior."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, optimize, stats

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.kernels.actions import sort_into
from duelist.kernels.linalg.factors import LARGE
from duelist.kernels.rules.foresight import Envelope, envelope_gain, expected_excess
from duelist.policies.parts.prior_scale import FACTORS, LOG_PRIOR, base_ridge
from duelist.typing import FloatArray
from tests.support.kernels import from_python

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
    order, spare, stack = np.empty((3, n), dtype=np.int64)
    lines = Envelope(slopes, order, spare, stack, np.empty(n))
    call_sort_into(lines.order, slopes, n, lines.spare)
    return call_envelope_gain(heights, lines, n, scale)


def test_expected_excess_is_the_integral_of_the_upper_tail() -> None:
    for x in (-3.0, 0.0, 0.5, 4.0):
        exact, _ = integrate.quad(lambda z, x=x: (z - x) * stats.norm.pdf(z), x, 40.0)
        assert call_expected_excess(x) == pytest.approx(exact, rel=1e-7)


@pytest.mark.slow
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


def worth_by_hand(features: FloatArray, base: float, remaining: int, optimism: float, i: int, j: int) -> float:
    """Worth of a pair before any duel: utilities 0, a mixture of covariances I / ridge, no cost."""
    z = features[i] - features[j]
    weights = np.exp(LOG_PRIOR)
    weights = np.where(weights < 0.01 * weights.sum(), 0.0, weights)

    def mean_gain(m: float) -> float:
        gains = []
        for ridge in base * FACTORS:
            slopes, spread = features @ z / ridge, float(z @ z) / ridge
            gains.append(gain_by_integration(np.zeros(len(features)), slopes * math.sqrt(m / 4 / (1 + m / 4 * spread))))
        return float(np.average(gains, weights=weights))

    batches = [m for m in (1.0, 4.0, 16.0, 64.0, 256.0) if m < remaining]
    return max(optimism * math.pow(remaining, 1 / 3) * mean_gain(m) * (remaining - m) / m for m in batches)


@pytest.mark.slow
def test_the_first_pair_is_the_one_of_the_highest_worth_by_hand() -> None:
    features = np.array([[1.0, 0.0], [-0.4, 0.3], [0.1, -0.9], [0.2, 0.2]])
    base = float(base_ridge(FiniteActions(features))[0])
    worth = {(i, j): worth_by_hand(features, base, 100, 1.75, i, j) for i in range(4) for j in range(i)}
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


def test_a_question_about_arms_that_do_not_come_back_is_worth_its_gain_once() -> None:
    arms = np.array([[2.0, 0.0], [0.0, 0.0], [0.0, -3.0]])
    policy, streams = duelist.Foresight(horizon=200), Streams(0, [0])
    _, state = policy.choose(policy.start(Problem(dim=2), streams), FiniteActions(arms), streams)
    # Believed for certain: the scale of the prior. Known well: theta = (0.1, 1), with a deviation of 0.1 in each coordinate.
    sure = np.eye(len(FACTORS))[:1]
    theta = np.zeros_like(state.scales.theta) + np.array([0.1, 1.0])
    whitener = np.zeros_like(state.scales.whitener) + 0.1 * np.eye(2)
    state = state._replace(scales=state.scales._replace(theta=theta, whitener=whitener, weights=sure))
    # The leader by 0.2 against the second: what 1, 4, ... plays would add, less what one costs.
    win = 1.0 / (1.0 + math.exp(-0.2))
    spread, information = 0.01 * 4.0, win * (1.0 - win)

    def worth(factor: float) -> float:
        slope = [math.sqrt(m * information / (1.0 + m * information * spread)) * spread for m in (1.0, 4.0, 16.0, 64.0)]
        gains = [gain_by_integration(np.array([0.2, 0.0]), np.array([one, 0.0])) for one in slope]
        return max(factor * g * (199 - m) / m for g, m in zip(gains, (1.0, 4.0, 16.0, 64.0), strict=True)) - 0.1

    # Arms that moved together have the same contrasts, and none of them was there before.
    for optimism, moved in ((0.01, 0.0), (100.0, 0.0), (100.0, 50.0)):
        factor = optimism * 199 ** (1 / 3) if moved == 0.0 else 1.0
        hopeful = state._replace(settings=state.settings._replace(optimism=np.array([optimism])))
        duels, _ = policy.choose(hopeful, FiniteActions(arms + moved), streams)
        assert (duels.first[0] != duels.second[0]) == (worth(factor) > 0.0)
    assert worth(1.0) < 0.0 < worth(100.0 * 199 ** (1 / 3))


@pytest.mark.slow
def test_what_an_answer_is_worth_to_other_arms_is_the_gain_on_those() -> None:
    rng, policy, streams = np.random.default_rng(8), duelist.Foresight(horizon=50), Streams(0, [0])
    before, now = rng.standard_normal((2, 5, 2))
    _, state = policy.choose(policy.start(Problem(dim=2), streams), FiniteActions(before), streams)
    # Far away the same contrasts, and nothing learnt: before is worth as much as now.
    _, moved = policy.choose(state, FiniteActions(before + 100.0), streams)
    own, other, rounds = moved.arms.gained[0]
    assert rounds == 1.0
    assert own == pytest.approx(other, rel=1e-9)
    duels, state = policy.choose(state, FiniteActions(now), streams)
    z = now[duels.first[0]] - now[duels.second[0]]
    base = float(base_ridge(FiniteActions(before))[0])
    per_play = {}
    for name, arms in (("own", now), ("other", before)):
        weights = np.where(np.exp(LOG_PRIOR) < 0.01 * np.exp(LOG_PRIOR).sum(), 0.0, np.exp(LOG_PRIOR))
        by_plays = []
        for m in (1.0, 4.0, 16.0):
            scales = [math.sqrt(m / 4 / (1 + m / 4 * float(z @ z) / ridge)) / ridge for ridge in base * FACTORS]
            gains = [gain_by_integration(np.zeros(5), scale * (arms @ z)) for scale in scales]
            by_plays.append(float(np.average(gains, weights=weights)) / m)
        per_play[name] = by_plays
    chosen = int(np.argmax([g * (49 - m) for g, m in zip(per_play["own"], (1.0, 4.0, 16.0), strict=True)]))
    assert state.arms.gained[0, 0] == pytest.approx(per_play["own"][chosen], rel=1e-5)
    assert state.arms.gained[0, 1] == pytest.approx(per_play["other"][chosen], rel=1e-5)


def evidence_of(ridge: float, base: float, signed: FloatArray) -> tuple[float, FloatArray]:
    """Laplace's log evidence of a ridge with its prior, and the fit, by a general minimiser."""
    dim = signed.shape[1]

    def objective(theta: FloatArray) -> float:
        return float(np.logaddexp(0.0, -signed @ theta).sum() + 0.5 * ridge * theta @ theta)

    theta = optimize.minimize(objective, np.zeros(dim), method="BFGS", options={"gtol": 1e-10}).x
    chance = 1 / (1 + np.exp(-signed @ theta))
    hessian = (signed.T * chance * (1 - chance)) @ signed + ridge * np.eye(dim)
    log_prior = -0.5 * (math.log(ridge / base) / math.log(4.0)) ** 2
    volume = 0.5 * dim * math.log(ridge) - 0.5 * float(np.linalg.slogdet(hessian)[1])
    return -objective(theta) + volume + log_prior, theta


def test_scales_are_weighted_by_their_laplace_evidence() -> None:
    rng = np.random.default_rng(3)
    actions = FiniteActions(rng.standard_normal((6, 3)))
    policy, streams = duelist.Foresight(horizon=500), Streams(0, [0])
    state = policy.start(Problem(dim=3), streams)
    signed = []
    for _ in range(19):  # up to 20 duels every one has all scales fitted again
        duels, state = policy.choose(state, actions, streams)
        outcome = np.array([1 if rng.random() < 0.8 else -1])
        signed.append(duels.contrast[0] * outcome[0])
        state = policy.learn(state, actions, duels, outcome)
    base = float(base_ridge(actions)[0])
    evidence, fits = zip(*(evidence_of(ridge, base, np.array(signed)) for ridge in base * FACTORS), strict=True)
    weights = np.exp(np.array(evidence) - max(evidence))
    weights[weights < 0.01 * weights.sum()] = 0.0
    np.testing.assert_allclose(state.scales.weights[0], weights / weights.sum(), atol=1e-4)
    assert 2 <= np.count_nonzero(weights) < len(FACTORS)
    np.testing.assert_allclose(state.scales.theta[0], fits, atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("rounds", [150, 300])  # with all curvatures renewed at once, and one after the other
def test_in_large_dimensions_the_scales_that_count_follow_the_duels(rounds: int) -> None:
    """Between two renewals fits are exact; the curvature, and with it the evidence, has weights of a twentieth before."""
    rng, dim = np.random.default_rng(5), LARGE
    policy, streams = duelist.Foresight(horizon=500), Streams(0, [0])
    state, signed, truth = policy.start(Problem(dim=dim), streams), [], rng.standard_normal(dim) / 5
    sets = [FiniteActions(rng.standard_normal((6, dim)) / 5) for _ in range(rounds)]
    base = float(base_ridge(sets[0])[0])
    for actions in sets:
        duels, state = policy.choose(state, actions, streams)
        outcome = np.array([1 if rng.random() < 1 / (1 + np.exp(-duels.contrast[0] @ truth)) else -1])
        signed.append(duels.contrast[0] * outcome[0])
        state = policy.learn(state, actions, duels, outcome)
    scales = state.scales
    assert scales.fitted_at + 3 < state.history.rounds  # several duels were followed
    counted = np.flatnonzero(scales.weights[0])
    assert 2 <= len(counted) < len(FACTORS)
    evidence, fits = zip(*(evidence_of(ridge, base, np.array(signed)) for ridge in base * FACTORS[counted]), strict=True)
    np.testing.assert_allclose(scales.theta[0, counted], fits, atol=1e-4)
    weights = np.exp(np.array(evidence) - max(evidence))
    np.testing.assert_allclose(scales.weights[0, counted], weights / weights.sum(), atol=0.01)
    chances = 1 / (1 + np.exp(-np.array(fits) @ np.array(signed).T))
    for g, chance in zip(counted, chances, strict=True):
        hessian = (np.array(signed).T * chance * (1 - chance)) @ np.array(signed) + base * FACTORS[g] * np.eye(dim)
        whitener = scales.whitener[0, g]
        np.testing.assert_allclose(whitener @ hessian @ whitener.T, np.eye(dim), atol=0.02)


@pytest.mark.slow
def test_a_settled_lane_plays_as_if_it_were_worked_out_again() -> None:
    """Forgetting what was settled before every round changes no pair, in known and unknown horizons."""
    environment = duelist.LinearDuels(dim=3, arms=6)
    for horizon in (150, None):
        played = []
        for forget in (False, True):
            policy, streams = duelist.Foresight(), Streams(4, range(5))
            instance = environment.instance(streams)
            state = policy.start(Problem(dim=3, lanes=5, horizon=horizon), streams)
            pairs = []
            for t in range(150):
                state = state._replace(arms=state.arms._replace(settled=np.full(5, -1))) if forget else state
                duels, state = policy.choose(state, instance.actions(t), streams)
                state = policy.learn(state, instance.actions(t), duels, instance.outcomes(t, duels))
                pairs.append((duels.first, duels.second))
            played.append(np.array(pairs))
        np.testing.assert_array_equal(played[0], played[1])
        assert horizon is None or (state.arms.settled >= 0).all()


@pytest.mark.slow
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


@pytest.mark.slow
def test_live_a_clear_leader_meets_the_runner_up() -> None:
    """Late regret over that of the best against the second: 0.1.0 had 1.9, and showed the least sampled bad arms for ever."""
    ratios = []
    for seed in range(4):
        rng = np.random.default_rng(500 + seed)
        utilities = np.sort(rng.normal(0.0, 0.8, 12))
        utilities[-1] = utilities[-2] + 0.6
        agent, lost = duelist.Agent(duelist.Foresight(), dim=12, seed=seed), []
        for _ in range(1200):
            duel = agent.choose(np.eye(12))
            one, other = utilities[[duel.first, duel.second]]
            lost.append(utilities[-1] - 0.5 * (one + other))
            agent.learn(duel, "first" if rng.random() < 1.0 / (1.0 + math.exp(other - one)) else "second")
        ratios.append(np.mean(lost[-300:]) / 0.3)
    assert np.mean(ratios) < 1.3
