"""The vectorisable exp and log1p against NumPy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from duelist.kernels.logistic import exp_of_negative, log1p_of_fraction, solve_logit
from duelist.typing import FloatArray
from tests.support.kernels import from_python, uncached_kernel

LAST_PLACE = 2.0**-52


@uncached_kernel
def exp_of_all(x: FloatArray, out: FloatArray) -> None:
    for i in range(x.shape[0]):
        out[i] = exp_of_negative(x[i])


@uncached_kernel
def log1p_of_all(x: FloatArray, out: FloatArray) -> None:
    for i in range(x.shape[0]):
        out[i] = log1p_of_fraction(x[i])


def spread_out() -> FloatArray:
    return -np.concatenate([np.linspace(0.0, 708.0, 400_001), np.logspace(-300, math.log10(708.0), 200_000), [0.0]])


def test_exp_agrees_with_numpy_to_two_units_in_the_last_place_down_to_minus_708() -> None:
    x = spread_out()
    out = np.empty_like(x)
    exp_of_all(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=2 * LAST_PLACE, atol=0.0)


def test_exp_below_minus_708_is_tiny_and_never_negative_or_nan() -> None:
    x = np.array([-708.5, -745.0, -1e5, -1e308, -np.inf])
    out = np.empty_like(x)
    exp_of_all(x, out)
    assert (out > 0.0).all()
    assert (out < 1e-307).all()


def test_exp_passes_nan_on() -> None:
    assert math.isnan(from_python(exp_of_negative)(math.nan))


def test_log1p_agrees_with_numpy_to_four_units_in_the_last_place_on_the_unit_interval() -> None:
    e = np.concatenate(
        [np.exp(spread_out()), np.linspace(0.0, 1.0, 400_001), np.sqrt(2.0) - 1 + np.linspace(-1e-8, 1e-8, 1001)]
    )
    out = np.empty_like(e)
    log1p_of_all(e, out)
    np.testing.assert_allclose(out, np.log1p(e), rtol=4 * LAST_PLACE, atol=0.0)


@pytest.mark.slow
def test_the_logit_of_a_gaussian_and_one_duel_is_found_however_wide_the_gaussian() -> None:
    """Newton's method alone jumps from one end of a wide bracket to the other and back, and learns nothing from a surprise."""
    for start in (-30.0, -3.0, 0.0, 8.0, 30.0):
        for spread in (1e-6, 0.3, 10.0, 300.0, 1e5):
            for lost in (0.0, 0.5, 1.0):
                low, high = start - spread * lost - 1.0, start + spread * (1.0 - lost) + 1.0
                root = brentq(
                    lambda u: u - start - spread * (0.5 - 0.5 * math.tanh(u / 2.0) - lost),  # noqa: B023
                    low, high, xtol=1e-13, rtol=1e-14,
                )  # fmt: skip
                assert abs(from_python(solve_logit)(start, spread, 1.0, lost) - root) <= 1e-9 * (1.0 + abs(root))
