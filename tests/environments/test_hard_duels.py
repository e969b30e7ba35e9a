"""The hard instance of the lower bound."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from duelist.actions.ball import BallActions
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.hard import HardDuels
from duelist.history.duels import Duels


def test_theta_is_a_uniform_draw_of_signs_at_the_gap_of_the_proof() -> None:
    env = HardDuels(dim=4, horizon=1000)
    theta = env.instance(Streams(0, range(2000))).theta
    np.testing.assert_allclose(np.abs(theta), math.sqrt(4 / 2000) / 6, rtol=1e-14)
    # Each of 16 corners has mean 125 and sd 10.8: six sds are a false alarm in 5e8 corners.
    _, counts = np.unique(theta > 0, axis=0, return_counts=True)
    assert len(counts) == 16
    assert np.abs(counts - 125).max() < 65


def test_the_arms_are_the_unit_ball_and_its_best_arm_pays_nothing() -> None:
    instance = HardDuels(dim=3, horizon=50).instance(Streams(1, range(5)))
    actions = instance.actions(0)
    assert isinstance(actions, BallActions)
    assert actions.radius == 1.0
    best = actions.best(np.repeat(instance.theta[:, None], 2, axis=1))
    regret = instance.regret(actions, Duels(best.row[:, 0], best.row[:, 1], best.features))
    np.testing.assert_allclose(regret.average, 0.0, atol=1e-15)
    np.testing.assert_allclose(best.value, np.linalg.norm(instance.theta, axis=1)[:, None].repeat(2, 1), rtol=1e-14)


def test_the_corners_lie_in_the_ball_and_hold_its_best_point() -> None:
    streams = Streams(2, range(6))
    ball = HardDuels(dim=5, horizon=80).instance(streams)
    corners = HardDuels(dim=5, horizon=80, actions="corners").instance(streams)
    np.testing.assert_array_equal(ball.theta, corners.theta)
    arms = corners.actions(0)
    assert isinstance(arms, FiniteActions)
    assert arms.n_arms == 32
    np.testing.assert_allclose(np.linalg.norm(arms.features, axis=2), 1.0, rtol=1e-14)
    theta = ball.theta[:, None]
    np.testing.assert_allclose(arms.best(theta).value, ball.actions(0).best(theta).value, rtol=1e-14)


@pytest.mark.slow
def test_wins_follow_the_true_utilities() -> None:
    """Best against worst corner wins with probability s(2 |theta*|), to four standard errors over 20 000 lanes."""
    env = HardDuels(dim=2, horizon=2)
    instance = env.instance(Streams(3, range(20_000)))
    unit = instance.theta / np.linalg.norm(instance.theta, axis=1, keepdims=True)
    nowhere = np.full(20_000, -1)
    wins = instance.outcomes(0, Duels(nowhere, nowhere, np.stack([unit, -unit], axis=1))) > 0
    chance = 1 / (1 + math.exp(-2 * math.sqrt(2) * math.sqrt(2 / 4) / 6))
    assert wins.mean() == pytest.approx(chance, abs=4 * math.sqrt(0.25 / 20_000))


@pytest.mark.parametrize(
    "arguments",
    [{"dim": 0, "horizon": 10}, {"dim": 2, "horizon": 0}, {"dim": 13, "horizon": 10, "actions": "corners"}],
)
def test_impossible_instances_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        HardDuels(**arguments)


def test_an_unknown_kind_of_actions_names_the_nearest() -> None:
    with pytest.raises(InvalidInputError, match="Did you mean 'corners'"):
        HardDuels(dim=2, horizon=10, actions="corner")  # type: ignore[arg-type]
