"""A number depends on (seed, stream name, trial, round) and on nothing else."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.kernels.philox import fill_normals
from tests.support.kernels import from_python

call_fill_normals = from_python(fill_normals)


def normals(streams: Streams, name: str, lane: int, round_: int, substream: int = 0) -> list[float]:
    out = np.empty(6)
    call_fill_normals(out, streams.keys(name)[lane], 1, round_, substream)
    return out.tolist()


def test_a_lane_has_the_same_numbers_whatever_its_place_and_its_neighbours() -> None:
    alone = Streams(seed=3, trials=[7])
    among = Streams(seed=3, trials=[1, 7, 2, 9])
    last = Streams(seed=3, trials=range(8))
    for round_ in (0, 1, 500):
        expected = normals(alone, "sampler", 0, round_)
        assert normals(among, "sampler", 1, round_) == expected
        assert normals(last, "sampler", 7, round_) == expected
        drawn = alone.generator("theta", 0, round_).random(5)
        np.testing.assert_array_equal(among.generator("theta", 1, round_).random(5), drawn)


def test_selecting_lanes_keeps_their_numbers() -> None:
    streams = Streams(seed=0, trials=[4, 5, 6, 7])
    np.testing.assert_array_equal(streams.select(slice(1, 3)).keys("a"), streams.keys("a")[1:3])
    assert len(streams.select(slice(1, 3))) == 2


def test_another_seed_name_trial_round_or_substream_gives_other_numbers() -> None:
    draws = [
        normals(Streams(seed, [trial]), name, 0, round_, substream)
        for seed, trial, name, round_, substream in itertools.product((0, 1), (0, 1), ("a", "b"), (0, 1), (0, 1))
    ]
    flat = [number for draw in draws for number in draw]
    assert len(set(flat)) == len(flat) == 32 * 6


def test_generators_of_different_rounds_and_names_differ() -> None:
    streams = Streams(0, [0])
    numbers = {streams.generator(name, 0, round_).random() for name in ("a", "b") for round_ in range(10)}
    assert len(numbers) == 20


def test_trials_are_uncorrelated() -> None:
    streams = Streams(0, range(2000))
    draws = np.array([normals(streams, "sampler", lane, 0) for lane in range(2000)])
    # 15 correlations of 2000 pairs, each with standard error 0.022: five of them false-alarm less than once in 100,000.
    correlations = np.corrcoef(draws.T)[np.triu_indices(6, 1)]
    assert np.abs(correlations).max() < 5 / np.sqrt(2000)
    assert abs(np.corrcoef(draws[:-1, 0], draws[1:, 0])[0, 1]) < 5 / np.sqrt(2000)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "0"])
def test_a_seed_that_is_not_a_whole_number_is_refused(seed: object) -> None:
    with pytest.raises(InvalidInputError, match="seed must be a whole number"):
        Streams(seed, [0])  # type: ignore[arg-type]


def test_whole_numbers_are_the_uniform_ones_cut_into_equal_parts() -> None:
    streams = Streams(seed=3, trials=range(2000))
    drawn = streams.integers("arm", 4, 7)
    np.testing.assert_array_equal(drawn, np.floor(streams.uniforms("arm", 4) * 7).astype(int))
    counts = np.bincount(drawn, minlength=7)
    assert chisquare(counts).pvalue > 1e-4
    with pytest.raises(InvalidInputError, match="high"):
        streams.integers("arm", 4, 0)


def test_normal_numbers_are_those_of_the_trial_and_are_normal() -> None:
    streams = Streams(seed=3, trials=range(400))
    drawn = streams.normals("noise", 4, 5)
    np.testing.assert_array_equal(Streams(seed=3, trials=[7]).normals("noise", 4, 5)[0], drawn[7])
    assert not np.array_equal(drawn, streams.normals("noise", 5, 5))
    assert kstest(drawn.ravel(), "norm").pvalue > 1e-4
    assert np.abs(np.corrcoef(drawn.T) - np.eye(5)).max() < 0.25
