"""EUBO plays the pair whose better arm has the highest expected utility."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.stats import norm as normal

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.policies import EUBO
from tests.support.oracles import Floats
from tests.support.reference_policies import Choice, Taught, better_first, norm, play_beside, slow_fit, slow_matrix


def slow_expected_best(x: Floats, y: Floats, theta: Floats, matrix: Floats) -> float:
    """E max(u_x, u_y) as Clark (1961) has it."""
    s, gap = norm(x - y, matrix), float(theta @ (x - y))
    if s == 0.0:
        return float(max(theta @ x, theta @ y))
    t = gap / s
    return float(theta @ x * normal.cdf(t) + theta @ y * normal.cdf(-t) + s * normal.pdf(t))


def test_every_round_agrees_with_the_rule_in_plain_python() -> None:
    def rule(record: list[Taught], actions: FiniteActions, _streams: Streams, _asked: int) -> Choice:
        theta, arms = slow_fit(record, 3, 0.5), actions.features[0]
        matrix = slow_matrix(record, 3, 0.5, theta)
        pairs = combinations_with_replacement(range(len(arms)), 2)
        i, j = max(pairs, key=lambda pair: slow_expected_best(arms[pair[0]], arms[pair[1]], theta, matrix))
        return better_first(i, j, arms @ theta)

    play_beside(EUBO(ridge=0.5), rule, dim=3, rounds=40, horizon=40, scales=(1.0, 0.4))


def test_the_closed_form_is_the_mean_of_the_maximum() -> None:
    generator = np.random.default_rng(0)
    x, y, theta, matrix = np.array([1.0, 0.2]), np.array([0.1, 0.7]), np.array([0.5, -0.3]), np.array([[2.0, 0.5], [0.5, 1.0]])
    draws = generator.multivariate_normal(theta, np.linalg.inv(matrix), size=400_000)
    drawn = np.maximum(draws @ x, draws @ y)
    assert abs(drawn.mean() - slow_expected_best(x, y, theta, matrix)) < 5.0 * drawn.std() / np.sqrt(len(drawn))


def test_before_any_answer_the_widest_pair_is_asked() -> None:
    arms = FiniteActions([[1.0, 0.0], [-1.0, 0.1], [0.0, 0.5]])
    policy, streams = EUBO(), Streams(0, [0])
    duels, _ = policy.choose(policy.start(Problem(dim=2), streams), arms, streams)
    assert {int(duels.first[0]), int(duels.second[0])} == {0, 1}


def test_live_equal_arms_play_as_two_rows() -> None:
    arms, policy, streams = FiniteActions([[1.0], [1.0]]), EUBO(), Streams(0, [0])
    duels, _ = policy.choose(policy.start(Problem(dim=1, live=True), streams), arms, streams)
    assert duels.first[0] != duels.second[0]


def test_pending_duels_change_the_next_pair() -> None:
    arms = FiniteActions([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.95], [0.0, -0.95]])
    policy, streams = EUBO(ridge=1.0), Streams(0, [0])
    duels, state = policy.choose(policy.start(Problem(dim=2, live=True), streams), arms, streams)
    next_duels, after = policy.choose_with_pending(state, arms, streams, [duels])
    assert {int(duels.first[0]), int(duels.second[0])} == {0, 1}
    assert {int(next_duels.first[0]), int(next_duels.second[0])} == {2, 3}
    np.testing.assert_array_equal(after.whitener, state.whitener)


def test_it_finds_the_best_arm() -> None:
    run = duelist.simulate(EUBO(), duelist.LinearDuels(dim=4, arms=10), rounds=300, trials=10, seed=0)
    floor = duelist.simulate(duelist.Uniform(), duelist.LinearDuels(dim=4, arms=10), rounds=300, trials=10, seed=0)
    assert run.final_weak_regret.mean() < 0.2 * floor.final_weak_regret.mean()


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="ridge"):
        EUBO(ridge=-1.0)
