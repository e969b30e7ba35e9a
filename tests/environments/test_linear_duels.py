"""The paper's synthetic problem: its truth, its arms, its noise and its three regrets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels, LinearDuelsInstance
from duelist.history.duels import Duels, duels_between


def duel(actions: FiniteActions, first: int, second: int) -> Duels:
    return duels_between(actions, np.full(actions.lanes, first), np.full(actions.lanes, second))


@pytest.mark.parametrize("dim", [1, 2, 5, 70])
def test_theta_is_a_unit_vector_of_its_own_in_every_lane(dim: int) -> None:
    instance = LinearDuels(dim=dim, arms=2).instance(Streams(0, range(20)))
    np.testing.assert_allclose(np.linalg.norm(instance.theta, axis=1), 1.0)
    assert len(np.unique(instance.theta.round(9), axis=0)) == (2 if dim == 1 else 20)


def test_directions_are_uniform() -> None:
    theta = LinearDuels(dim=3, arms=2).instance(Streams(0, range(3000))).theta
    # Five standard errors: coordinates have mean 0 and variance 1/3 over the sphere.
    assert np.abs(theta.mean(axis=0)).max() < 5 * math.sqrt(1 / 3 / 3000)
    assert np.abs(3 * theta.T @ theta / 3000 - np.eye(3)).max() < 0.1


def test_theta_may_have_another_norm() -> None:
    theta = LinearDuels(dim=4, arms=2, theta_norm=2.5).instance(Streams(0, [0, 1])).theta
    np.testing.assert_allclose(np.linalg.norm(theta, axis=1), 2.5)


@pytest.mark.parametrize(("dim", "arms"), [(1, 2), (3, 8), (5, 32), (10, 32), (70, 5)])
@pytest.mark.parametrize("unit_norm", [False, True])
def test_arms_are_distinct_corners(dim: int, arms: int, unit_norm: bool) -> None:
    features = LinearDuels(dim=dim, arms=arms, unit_norm=unit_norm).instance(Streams(0, range(6))).actions(0).features
    assert features.shape == (6, arms, dim)
    np.testing.assert_allclose(np.abs(features), 1 / math.sqrt(dim) if unit_norm else 1.0)
    np.testing.assert_allclose(np.linalg.norm(features, axis=2), 1.0 if unit_norm else math.sqrt(dim))
    for lane in features:
        assert len(np.unique(lane, axis=0)) == arms


def test_corners_are_uniform() -> None:
    features = LinearDuels(dim=70, arms=20).instance(Streams(0, range(100))).actions(0).features.reshape(-1, 70)
    # 2000 signs a coordinate: five standard errors of their mean, for coordinates beyond the first word of 64 bits too.
    assert np.abs(features.mean(axis=0)).max() < 5 / math.sqrt(2000)


def test_arms_stay_for_the_run_or_change_every_round() -> None:
    streams = Streams(0, [0, 1])
    fixed = LinearDuels(dim=6, arms=5).instance(streams)
    fresh = LinearDuels(dim=6, arms=5, fresh_arms=True).instance(streams)
    assert fixed.actions(0) is fixed.actions(7)
    np.testing.assert_array_equal(fixed.actions(0).features, fresh.actions(0).features)
    assert not np.array_equal(fresh.actions(0).features, fresh.actions(1).features)
    np.testing.assert_array_equal(fresh.actions(3).features, fresh.actions(3).features)


def test_an_instance_depends_on_seed_and_trial_only() -> None:
    env = LinearDuels(dim=4, arms=6)
    many, one = env.instance(Streams(3, range(10))), env.instance(Streams(3, [7]))
    np.testing.assert_array_equal(many.theta[7], one.theta[0])
    np.testing.assert_array_equal(many.actions(0).features[7], one.actions(0).features[0])
    assert not np.array_equal(env.instance(Streams(4, [7])).theta, one.theta)


def test_arms_win_as_often_as_the_model_says() -> None:
    instance = LinearDuels(dim=3, arms=8).instance(Streams(0, range(12)))
    actions, rounds = instance.actions(0), 4000
    duels = duel(actions, 0, 1)
    wins = sum(instance.outcomes(t, duels) == 1 for t in range(rounds))
    chance = 1 / (1 + np.exp(-np.einsum("ld,ld->l", instance.theta, duels.contrast)))
    assert np.ptp(chance) > 0.5  # the lanes cover easy and hard pairs
    # Twelve binomials at five standard deviations: a false alarm less than once in 100,000 seeds.
    assert (np.abs(wins - rounds * chance) < 5 * np.sqrt(rounds * chance * (1 - chance))).all()


def test_outcomes_are_common_noise_for_whoever_plays() -> None:
    instance = LinearDuels(dim=3, arms=8).instance(Streams(0, [0]))
    actions = instance.actions(0)
    utilities = actions.utilities(instance.theta)[0]
    worst, *_, best = (int(k) for k in np.argsort(utilities))
    middle = int(np.argsort(utilities)[4])
    for t in range(300):
        strong = int(instance.outcomes(t, duel(actions, best, worst))[0])
        weak = int(instance.outcomes(t, duel(actions, middle, worst))[0])
        # One uniform decides both: who wins with the smaller chance wins with the larger.
        assert weak <= strong
        assert strong == int(instance.outcomes(t, duel(actions, best, worst))[0])


def test_the_three_regrets_by_hand() -> None:
    theta = np.array([[0.6, 0.8]])
    instance = LinearDuelsInstance(LinearDuels(dim=2, arms=3), theta, Streams(0, [0]))
    actions = FiniteActions(np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]]))  # utilities 1.4, -0.2 and 0.2
    regret = instance.regret(actions, duel(actions, 1, 2))
    assert float(regret.average[0]) == pytest.approx((1.6 + 1.2) / 2)
    assert float(regret.weak[0]) == pytest.approx(1.2)
    expected = ((1 / (1 + math.exp(-1.6)) - 0.5) + (1 / (1 + math.exp(-1.2)) - 0.5)) / 2
    assert float(regret.yue[0]) == pytest.approx(expected)


def test_playing_the_best_arm_against_itself_costs_nothing_and_against_another_only_the_average() -> None:
    instance = LinearDuels(dim=4, arms=6).instance(Streams(0, range(5)))
    actions = instance.actions(0)
    best = actions.utilities(instance.theta).argmax(axis=1)
    twice = instance.regret(actions, duels_between(actions, best, best))
    for part in twice:
        np.testing.assert_allclose(part, 0.0, atol=1e-12)
    mixed = instance.regret(actions, duels_between(actions, best, (best + 1) % 6))
    np.testing.assert_allclose(mixed.weak, 0.0, atol=1e-12)
    assert (mixed.average > 0).all()
    assert (mixed.yue > 0).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dim": 0}, "dim"),
        ({"arms": 1}, "arms"),
        ({"dim": 3, "arms": 9}, r"at most 2\^dim = 8"),
        ({"theta_norm": 0.0}, "theta_norm"),
        ({"theta_norm": math.nan}, "theta_norm"),
        ({"dim": 2.5}, "dim"),
    ],
)
def test_problems_that_do_not_exist_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        LinearDuels(**settings)
