"""Ready-made rewards: their formulas, their parameter counts, and the checks on what a reward returns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.rewards.base import CustomReward, RewardBoundError, RewardNotFiniteError, Squashed, check_rewards
from duelist.rewards.models import LastLayer, Quadratic, RadialBasis, TwoLayerNetwork

RNG = np.random.default_rng(0)
FEATURES = RNG.standard_normal((7, 3))


def test_a_quadratic_is_the_sum_over_pairs_of_coordinates() -> None:
    reward = Quadratic()
    theta = RNG.standard_normal(reward.parameters(3))
    for phi, value in zip(FEATURES, reward(theta, FEATURES), strict=True):
        expected, place = float(theta[:3] @ phi), 3
        for i in range(3):
            for j in range(i, 3):
                expected += theta[place] * phi[i] * phi[j]
                place += 1
        assert place == len(theta)
        assert value == pytest.approx(expected, rel=1e-12)


def test_a_network_is_the_sum_over_its_hidden_units() -> None:
    reward = TwoLayerNetwork(hidden=4, scale=3.0)
    theta = RNG.standard_normal(reward.parameters(3))
    weights, shifts, outputs = theta[:12], theta[12:16], theta[16:]
    for phi, value in zip(FEATURES, reward(theta, FEATURES), strict=True):
        units = [math.tanh(float(weights[3 * k : 3 * k + 3] @ phi) + shifts[k]) for k in range(4)]
        assert value == pytest.approx(3.0 / 2.0 * sum(o * u for o, u in zip(outputs, units, strict=True)), rel=1e-12)


def test_a_radial_basis_reward_at_a_lone_centre_is_its_weight_and_fades_with_distance() -> None:
    reward = RadialBasis([[0.0, 0.0, 0.0]], width=2.0)
    at = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 0.0]])
    np.testing.assert_allclose(reward(np.array([5.0]), at), [5.0, 5.0 * math.exp(-0.5)], rtol=1e-14)
    assert hash(reward) == hash(RadialBasis(np.zeros((1, 3)), width=2.0))


def test_the_last_layer_is_linear_in_the_outputs_of_the_network() -> None:
    reward = LastLayer(np.sin, width=3)
    theta = RNG.standard_normal(3)
    np.testing.assert_allclose(reward(theta, FEATURES), np.sin(FEATURES) @ theta)


def test_a_squashed_reward_keeps_its_order_and_its_bound() -> None:
    inner = CustomReward(lambda theta, features: features @ theta, n_parameters=3)
    theta = np.array([3.0, -1.0, 2.0])
    plain, squashed = inner(theta, FEATURES), Squashed(inner, bound=1.5)(theta, FEATURES)
    assert np.abs(squashed).max() <= 1.5
    assert np.abs(plain).max() > 1.5
    np.testing.assert_array_equal(np.argsort(plain), np.argsort(squashed))


def test_rewards_that_are_not_finite_or_beyond_their_bound_are_refused_by_name() -> None:
    check_rewards(np.array([1.0, -2.0]), bound=2.0)
    with pytest.raises(RewardNotFiniteError, match=r"1 value\(s\) of 2"):
        check_rewards(np.array([1.0, np.nan]), bound=2.0)
    with pytest.raises(RewardBoundError, match=r"\|r\| <= 2; a draw gave \|r\| = 2.5"):
        check_rewards(np.array([1.0, -2.5]), bound=2.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Quadratic(bound=0.0),
        lambda: Quadratic(bound=math.nan),
        lambda: TwoLayerNetwork(hidden=0),
        lambda: TwoLayerNetwork(scale=-1.0),
        lambda: RadialBasis([[0.0]], width=0.0),
        lambda: RadialBasis([[math.nan]]),
        lambda: LastLayer(np.tanh, width=0),
        lambda: CustomReward(lambda _theta, _features: 0.0, n_parameters=0),
        lambda: Squashed(Quadratic(), bound=math.inf),
    ],
)
def test_rewards_refuse_bad_parameters(make: Any) -> None:
    with pytest.raises(InvalidInputError):
        make()
