"""Polya-Gamma variates against the moments and the transform that define them."""

from __future__ import annotations

import math

import numpy as np
import pytest

from duelist.core.streams import Streams
from duelist.kernels.philox import exponential, gamma, normal, open_stream, uniform
from duelist.kernels.polya_gamma import log_cosh_error, polya_gamma_one, polya_gamma_truncated
from duelist.typing import FloatArray
from tests.support.kernels import from_python, uncached_kernel

call_log_cosh_error = from_python(log_cosh_error)

N = 200_000


@uncached_kernel
def many_ones(out: FloatArray, key: np.ndarray, c: float) -> None:
    stream = open_stream(key, 0, 0)
    for i in range(out.shape[0]):
        out[i] = polya_gamma_one(stream, c)


@uncached_kernel
def many_truncated(out: FloatArray, key: np.ndarray, b: float, c: float) -> None:
    stream = open_stream(key, 1, 0)
    for i in range(out.shape[0]):
        out[i] = polya_gamma_truncated(stream, b, c)


@uncached_kernel
def many_basic(out: FloatArray, key: np.ndarray, shape: float) -> None:
    stream = open_stream(key, 2, 0)
    for i in range(out.shape[1]):
        out[0, i] = uniform(stream)
        out[1, i] = exponential(stream)
        out[2, i] = normal(stream)
        out[3, i] = gamma(stream, shape)


def key() -> np.ndarray:
    return np.asarray(Streams(0, [0]).keys("polya-gamma test")[0])


def mean_of(b: float, c: float) -> float:
    return b / 4 if c == 0 else b / (2 * c) * math.tanh(c / 2)


def variance_of(b: float, c: float) -> float:
    return b / 24 if c == 0 else b / (4 * c**3) * (math.sinh(c) - c) / math.cosh(c / 2) ** 2


def transform_of(b: float, c: float, t: float) -> float:
    """E exp(-t w) = cosh(c/2)^b / cosh(sqrt(c^2/4 + t/2))^b."""
    return float((math.cosh(c / 2) / math.cosh(math.sqrt(c * c / 4 + t / 2))) ** b)


def within_five_errors(values: FloatArray, expected: float) -> None:
    error = values.std() / math.sqrt(len(values))
    assert abs(values.mean() - expected) < 5 * error


@pytest.mark.slow
@pytest.mark.parametrize("c", [0.0, 0.3, 1.7, -3.0, 8.0, 40.0])
def test_a_draw_of_one_has_the_mean_variance_and_transform_of_the_law(c: float) -> None:
    draws = np.empty(N)
    many_ones(draws, key(), c)
    mean = mean_of(1.0, c)
    within_five_errors(draws, mean)
    within_five_errors((draws - mean) ** 2, variance_of(1.0, c))
    for t in (0.5, 3.0, 20.0):
        within_five_errors(np.exp(-t * draws), transform_of(1.0, c, t))


def test_a_large_tilt_stays_finite_and_has_the_right_mean() -> None:
    draws = np.empty(20_000)
    many_ones(draws, key(), 500.0)
    within_five_errors(draws, mean_of(1.0, 500.0))


@pytest.mark.slow
@pytest.mark.parametrize(("b", "c"), [(0.25, 0.0), (0.25, 2.0), (1.0, 1.0), (7.5, 3.0), (400.0, 0.5)])
def test_the_truncated_sum_has_the_mean_and_variance_of_the_law_it_stands_for(b: float, c: float) -> None:
    draws = np.empty(N)
    many_truncated(draws, key(), b, c)
    mean = mean_of(b, c)
    within_five_errors(draws, mean)
    within_five_errors((draws - mean) ** 2, variance_of(b, c))


@pytest.mark.parametrize("u", [0.5, 3.0, -5.0, 12.0])
def test_the_error_of_the_truncated_sum_is_what_its_own_draws_show(u: float) -> None:
    """E exp(-w u^2/2) under the truncated sum must be exp(error) / cosh(u/2)."""
    draws = np.empty(N)
    many_truncated(draws, key(), 1.0, 0.0)
    within_five_errors(np.exp(-0.5 * u * u * draws), math.exp(call_log_cosh_error(u)) / math.cosh(u / 2))
    assert abs(call_log_cosh_error(u)) < 1e-3


@pytest.mark.parametrize("shape", [0.3, 1.0, 4.5])
def test_basic_draws_have_the_moments_of_their_laws(shape: float) -> None:
    out = np.empty((4, N))
    many_basic(out, key(), shape)
    for row, mean, variance in ((0, 0.5, 1 / 12), (1, 1.0, 1.0), (2, 0.0, 1.0), (3, shape, shape)):
        within_five_errors(out[row], mean)
        within_five_errors((out[row] - mean) ** 2, variance)
