"""Messages say what was expected, what came and what to do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from duelist.core.checks import finite_number, one_of, whole_number
from duelist.core.errors import DuelistError, InvalidInputError, UnknownNameError


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, "1", None, True, 0.0, -2.0, 5.5])
def test_a_number_outside_its_bounds_is_refused_with_the_bounds_in_the_message(value: object) -> None:
    with pytest.raises(InvalidInputError, match="step must be a finite number above 0 and at most 5; got"):
        finite_number("step", value, above=0.0, at_most=5.0)


@pytest.mark.parametrize("value", [5, 5.0, np.float32(0.5), np.int64(3)])
def test_any_kind_of_real_number_is_accepted(value: float) -> None:
    assert finite_number("step", value, above=0.0, at_most=5.0) == float(value)


@pytest.mark.parametrize("value", [0, 11, 2.0, "3", True, None])
def test_a_count_outside_its_bounds_is_refused(value: object) -> None:
    with pytest.raises(InvalidInputError, match="rounds must be a whole number of at least 1 and at most 10; got"):
        whole_number("rounds", value, at_least=1, at_most=10)


def test_numpy_counts_are_counts() -> None:
    assert whole_number("rounds", np.int32(4)) == 4


def test_an_unknown_name_gets_the_nearest_one() -> None:
    with pytest.raises(UnknownNameError, match=r"one of 'mala', 'paper'; got 'mela'. Did you mean 'mala'\?"):
        one_of("sampler", "mela", ["mala", "paper"])


def test_a_name_far_from_all_gets_no_guess() -> None:
    with pytest.raises(UnknownNameError, match=r"got 'zzz'\.$"):
        one_of("sampler", "zzz", ["mala", "paper"])


def test_every_error_is_of_one_family_and_bad_input_is_also_a_value_error() -> None:
    assert issubclass(InvalidInputError, DuelistError)
    assert issubclass(InvalidInputError, ValueError)
