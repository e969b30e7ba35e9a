"""Random numbers inside kernels are NumPy's Philox, word for word."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from duelist.core.streams import Streams
from duelist.kernels.philox import arm_uniforms, fill_normals, philox, to_unit, uniforms
from tests.support.kernels import from_python
from tests.support.oracles import box_muller, philox_words, unit

call_fill_normals = from_python(fill_normals)
call_philox = from_python(philox)
call_to_unit = from_python(to_unit)

WORD = st.integers(0, 2**64 - 1)
COUNT = st.integers(1, 2**62)


@given(key=st.tuples(WORD, WORD), block=COUNT, round_=COUNT, substream=COUNT)
def test_words_equal_those_of_numpy(key: tuple[int, int], block: int, round_: int, substream: int) -> None:
    words = np.array(key, dtype=np.uint64)
    assert [int(word) for word in call_philox(words, block, round_, substream)] == philox_words(words, block, round_, substream)


def test_consecutive_blocks_are_the_consecutive_words_of_numpy() -> None:
    key = np.array([11, 7], dtype=np.uint64)
    ours = [int(word) for block in range(1, 26) for word in call_philox(key, block, 3, 2)]
    assert ours == philox_words(key, 1, 3, 2, size=100)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 8, 11])
def test_normals_are_box_muller_on_those_words_and_never_share_a_block(size: int) -> None:
    key = np.array([5, 6], dtype=np.uint64)
    out = np.empty(size)
    next_block, uniform = call_fill_normals(out, key, 3, 9, 1)
    blocks = math.ceil(size / 4)
    np.testing.assert_allclose(out, box_muller(philox_words(key, 3, 9, 1, size=4 * blocks), size), rtol=1e-13)
    assert next_block == 3 + blocks + 1
    assert uniform == unit(philox_words(key, 3 + blocks, 9, 1)[0])


def test_a_uniform_is_never_zero_or_one_even_for_the_extreme_words() -> None:
    lowest = call_to_unit(np.uint64(0))
    highest = call_to_unit(np.uint64(2**64 - 1))
    assert 0.0 < lowest < 1e-15
    assert 1.0 - 1e-15 < highest < 1.0


def test_normals_are_standard_normal() -> None:
    out = np.empty(200_000)
    call_fill_normals(out, Streams(0, [0]).keys("normals")[0], 1, 0, 0)
    # The seed is fixed; over seeds each bound is crossed less than once in a million (five standard errors).
    error = 5 / math.sqrt(len(out))
    assert abs(out.mean()) < error
    assert abs((out**2).mean() - 1) < error * math.sqrt(2)
    assert abs((out**3).mean()) < error * math.sqrt(15)
    assert abs((out**4).mean() - 3) < error * math.sqrt(96)
    assert stats.kstest(out, "norm").pvalue > 1e-6
    assert abs((out[:-1] * out[1:]).mean()) < error


def test_one_uniform_a_lane_is_uniform() -> None:
    out = np.empty(50_000)
    uniforms(out, Streams(0, range(50_000)).keys("uniform"), 4)
    assert stats.kstest(out, "uniform").pvalue > 1e-6


def test_numbers_of_an_arm_are_named_by_its_content_and_not_by_its_row() -> None:
    lanes, arms = 2_000, 5
    prints = np.tile(np.arange(arms, dtype=np.uint64), (lanes, 1))
    prints[:, 4] = prints[:, 1]
    out, reversed_out = np.empty((lanes, arms)), np.empty((lanes, arms))
    keys = Streams(0, range(lanes)).keys("arms")
    arm_uniforms(out, prints, keys, 7)
    arm_uniforms(reversed_out, np.ascontiguousarray(prints[:, ::-1]), keys, 7)
    assert (out[:, ::-1] == reversed_out).all()
    assert (out[:, 4] == out[:, 1]).all()
    assert stats.kstest(out[:, :4].ravel(), "uniform").pvalue > 1e-6
    assert abs(np.corrcoef(out[:, 0], out[:, 1])[0, 1]) < 5 / math.sqrt(lanes)
