"""Hyper-parameters may differ from lane to lane, and are cut with the lanes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.core.lanes import PerLane, Problem, per_lane, select_lanes


@dataclass(frozen=True)
class Parameters:
    radius: PerLane = 1.0
    name: str = "four"


def test_one_number_serves_every_lane() -> None:
    np.testing.assert_array_equal(per_lane("radius", 2.5, 3), [2.5, 2.5, 2.5])
    np.testing.assert_array_equal(per_lane("radius", [2.5], 3), [2.5, 2.5, 2.5])


def test_one_number_a_lane_is_a_column() -> None:
    np.testing.assert_array_equal(per_lane("radius", (1, 2, 3), 3), [1.0, 2.0, 3.0])


def test_a_column_of_another_length_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"one a lane \(3\); got 2"):
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
