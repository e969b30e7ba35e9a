"""How much of an action set came back: in any order, with a little noise, and not at all."""

from __future__ import annotations

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.policies.algorithms.sampling import foresight as returning_arms
from duelist.policies.algorithms.sampling.foresight import carry_over
from duelist.policies.parts.prior_scale import base_ridge
from duelist.typing import FloatArray

RNG = np.random.default_rng(3)
BEFORE = RNG.standard_normal((2, 6, 12))


def share_seen(now: FloatArray, before: FloatArray) -> FloatArray:
    features = np.ascontiguousarray(np.swapaxes(now, 1, 2))
    return returning_arms.share_seen(now, before, base_ridge(FiniteActions(features)))


def test_a_set_in_another_order_came_back_and_so_did_one_with_a_little_noise() -> None:
    turned = BEFORE[:, :, ::-1]
    np.testing.assert_array_equal(share_seen(turned, BEFORE), 1.0)
    np.testing.assert_array_equal(share_seen(turned + 0.01 * RNG.standard_normal(BEFORE.shape), BEFORE), 1.0)


def test_other_arms_did_not_come_back() -> None:
    np.testing.assert_array_equal(share_seen(RNG.standard_normal((2, 6, 12)), BEFORE), 0.0)
    np.testing.assert_array_equal(share_seen(BEFORE + 50.0, BEFORE), 0.0)


def test_the_share_is_counted_lane_by_lane_whatever_the_number_of_arms() -> None:
    mixed = np.concatenate([BEFORE[:, :, :4], 20.0 + RNG.standard_normal((2, 6, 4))], axis=2)
    mixed[1, :, 4:6] = BEFORE[1, :, 7:9]
    np.testing.assert_array_equal(share_seen(mixed, BEFORE), [0.5, 0.75])


def test_before_the_first_set_nothing_says_that_arms_change() -> None:
    np.testing.assert_array_equal(share_seen(BEFORE, np.zeros((2, 6, 0))), 1.0)


def test_what_is_carried_over_is_believed_to_be_all_until_rounds_say_otherwise() -> None:
    gained = np.array([[0.0, 0.0, 0.0], [2.0, 0.0, 1.0], [2.0, 0.0, 990.0], [2.0, 1.0, 1e9], [1.0, 3.0, 50.0]])
    np.testing.assert_allclose(carry_over(gained), [1.0, 10 / 11, 0.01, 0.5, 1.0], rtol=1e-6)
