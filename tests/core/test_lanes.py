"""Hyper-parameters may differ from lane to lane, and are cut with the lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane, Problem, check_per_lane, per_lane, select_lanes


@dataclass(frozen=True)
class Parameters:
    radius: PerLane = 1.0
    name: str = "four"


def test_one_number_serves_every_lane() -> None:
    np.testing.assert_array_equal(per_lane("radius", 2.5, 3), [2.5, 2.5, 2.5])
    np.testing.assert_array_equal(per_lane("radius", [2.5], 3), [2.5, 2.5, 2.5])


def test_one_number_a_lane_is_a_column() -> None:
    np.testing.assert_array_equal(per_lane("radius", (1, 2, 3), 3), [1.0, 2.0, 3.0])


@pytest.mark.parametrize("value", [-1.0, [1.0, -1.0], np.array([1.0, np.nan]), "one", ["one"], None, True, [[1.0]]])
def test_every_number_of_a_column_is_checked(value: object) -> None:
    with pytest.raises(InvalidInputError, match="radius must be a finite number at least 0; got"):
        check_per_lane("radius", value, at_least=0.0)


def test_numbers_and_columns_within_bounds_pass() -> None:
    for value in (1, 0.0, [1.0, 2.0], (3,), np.array([0.5, 0.0])):
        check_per_lane("radius", value, at_least=0.0)


def test_a_column_of_another_length_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"one per lane \(3\); got 2"):
        per_lane("radius", [1.0, 2.0], 3)


def test_selecting_lanes_cuts_columns_and_leaves_numbers_and_names() -> None:
    assert select_lanes(Parameters(radius=[1.0, 2.0, 3.0, 4.0]), slice(1, 3), 4).radius == (2.0, 3.0)
    assert select_lanes(Parameters(radius=np.array([1.0, 2.0])), slice(0, 1), 2).radius == (1.0,)  # type: ignore[arg-type]
    whole = Parameters()
    assert select_lanes(whole, slice(1, 3), 4) is whole


def test_a_column_that_fits_neither_one_nor_all_lanes_is_refused_before_it_could_fit_a_block() -> None:
    with pytest.raises(InvalidInputError, match="radius"):
        select_lanes(Parameters(radius=[1.0, 2.0]), slice(0, 2), 4)


@pytest.mark.parametrize(("field", "value"), [("dim", 0), ("lanes", 0), ("horizon", 0), ("dim", 2.0)])
def test_a_problem_of_no_size_is_refused(field: str, value: object) -> None:
    with pytest.raises(InvalidInputError, match=field):
        Problem(**{"dim": 2, field: value})  # type: ignore[arg-type]


@dataclass(frozen=True)
class Network:
    hidden: tuple[int, ...] = (32, 16)
    names: Sequence[str] = ("a", "b")
    weights: list[float] = field(default_factory=lambda: [0.5, 0.5])
    rate: PerLane | None = None


def test_what_is_not_declared_per_lane_is_a_value_of_all_lanes_whatever_its_length() -> None:
    whole = Network()
    for total in (2, 3):
        assert select_lanes(whole, slice(0, 1), total) is whole
    cut = select_lanes(Network(rate=(0.1, 0.2)), slice(1, 2), 2)
    assert (cut.hidden, cut.names, cut.weights, cut.rate) == ((32, 16), ("a", "b"), [0.5, 0.5], (0.2,))


def test_an_object_that_is_no_dataclass_has_nothing_to_cut() -> None:
    plain = type("Plain", (), {})()
    assert select_lanes(plain, slice(0, 1), 2) is plain
