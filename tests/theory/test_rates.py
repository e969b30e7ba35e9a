"""The paper's Table 1 as formulas."""

from __future__ import annotations

import math

import pytest

from duelist.core.errors import InvalidInputError
from duelist.policies.registry import POLICIES
from duelist.theory.linear_bounds import lower_bound
from duelist.theory.rates import ARMS_RATE, FEATURES_RATE, REGRET_RATES


def test_every_row_of_the_table_is_a_policy_here() -> None:
    assert set(REGRET_RATES) == {"MaxInP", "CoLSTIM", "StaD", "SupCoLSTIM", "FGTS"}
    assert set(REGRET_RATES) <= set(POLICIES)


@pytest.mark.parametrize("name", REGRET_RATES)
def test_the_number_is_that_of_the_formula(name: str) -> None:
    rate = REGRET_RATES[name]
    d, T, K = 7, 900, 40
    expected = {FEATURES_RATE: d * math.sqrt(T), ARMS_RATE: math.sqrt(d * T * math.log(K))}[rate.formula]
    assert rate.at(dim=d, horizon=T, arms=K) == pytest.approx(expected, rel=1e-12)


def test_rates_in_the_arms_are_the_smaller_ones_below_e_to_the_d_arms() -> None:
    d = 6
    for arms in (2, 32, math.floor(math.e**d), math.ceil(math.e**d), 10**6):
        by_arms, by_features = (REGRET_RATES[name].at(dim=d, horizon=100, arms=arms) for name in ("StaD", "FGTS"))
        assert (by_arms < by_features) == (arms < math.e**d)


def test_a_rate_in_the_arms_needs_their_number() -> None:
    with pytest.raises(InvalidInputError, match="number of arms"):
        REGRET_RATES["SupCoLSTIM"].at(dim=2, horizon=10)
    assert REGRET_RATES["FGTS"].at(dim=2, horizon=100) == 20.0


def test_on_the_corners_of_the_cube_the_two_rates_and_the_lower_bound_grow_alike() -> None:
    """K = 2^d, which the paper says of the ball: the second rate is sqrt(log 2) times the first."""
    for d in (3, 10, 20):
        by_arms, by_features = (REGRET_RATES[name].at(dim=d, horizon=10**6, arms=2**d) for name in ("StaD", "FGTS"))
        assert by_arms / by_features == pytest.approx(math.sqrt(math.log(2)))
        assert lower_bound(dim=d, horizon=10**6, bound=1.0).value / by_features == pytest.approx(1 / (24 * math.sqrt(2)))
