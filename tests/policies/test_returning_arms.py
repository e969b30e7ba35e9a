"""How much of an action set came back: in any order, with a little noise, and not at all."""

from __future__ import annotations

import numpy as np

from duelist.policies.returning_arms import share_seen

RNG = np.random.default_rng(3)
BEFORE = RNG.standard_normal((2, 12, 6))


def test_a_set_in_another_order_came_back_and_so_did_one_with_a_little_noise() -> None:
    turned = BEFORE[:, ::-1]
    np.testing.assert_array_equal(share_seen(turned, BEFORE), 1.0)
    np.testing.assert_array_equal(share_seen(turned + 0.01 * RNG.standard_normal(BEFORE.shape), BEFORE), 1.0)


def test_other_arms_did_not_come_back() -> None:
    np.testing.assert_array_equal(share_seen(RNG.standard_normal((2, 12, 6)), BEFORE), 0.0)
    np.testing.assert_array_equal(share_seen(BEFORE + 50.0, BEFORE), 0.0)


def test_the_share_is_counted_lane_by_lane_whatever_the_number_of_arms() -> None:
    mixed = np.concatenate([BEFORE[:, :4], 20.0 + RNG.standard_normal((2, 4, 6))], axis=1)
    mixed[1, 4:6] = BEFORE[1, 7:9]
    np.testing.assert_array_equal(share_seen(mixed, BEFORE), [0.5, 0.75])


def test_before_the_first_set_nothing_says_that_arms_change() -> None:
    np.testing.assert_array_equal(share_seen(BEFORE, np.zeros((2, 0, 6))), 1.0)
