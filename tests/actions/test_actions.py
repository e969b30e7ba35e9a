"""A finite set finds its best arm, keeps its own copy of the features, and refuses what is not a set of arms."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.history.duels import duels_between


@given(
    lanes=st.integers(1, 4), arms=st.integers(2, 40), dim=st.integers(1, 9), draws=st.integers(1, 3), seed=st.integers(0, 99)
)
def test_best_is_the_largest_utility_of_a_plain_search(lanes: int, arms: int, dim: int, draws: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    features, theta = rng.normal(size=(lanes, arms, dim)), rng.normal(size=(lanes, draws, dim))
    best = FiniteActions(features).best(theta)
    for lane in range(lanes):
        for draw in range(draws):
            utilities = [float(arm @ theta[lane, draw]) for arm in features[lane]]
            assert best.row[lane, draw] == int(np.argmax(utilities))
            assert best.value[lane, draw] == pytest.approx(max(utilities), rel=1e-12, abs=1e-12)
            np.testing.assert_array_equal(best.features[lane, draw], features[lane, best.row[lane, draw]])


def test_among_equal_arms_the_lowest_row_wins() -> None:
    arms = FiniteActions([[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]])
    assert arms.best(np.array([[[1.0, 1.0]]])).row[0, 0] == 1


def test_utilities_of_all_arms() -> None:
    arms = FiniteActions([[1.0, 2.0], [3.0, -1.0]])
    np.testing.assert_allclose(arms.utilities(np.array([[2.0, 0.5]])), [[3.0, 5.5]])


def test_one_lane_may_leave_out_its_axis() -> None:
    arms = FiniteActions(np.ones((3, 4)))
    assert (arms.lanes, arms.n_arms, arms.dim) == (1, 3, 4)


@pytest.mark.parametrize("shape", [(3, 2), (1, 3, 2), (2, 3, 2), (3, 1), (2, 3, 1)])
def test_changing_the_callers_array_afterwards_changes_nothing(shape: tuple[int, ...]) -> None:
    features = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
    arms = FiniteActions(features)
    twin = FiniteActions(features.copy())
    features[...] = -1.0
    np.testing.assert_array_equal(arms.features, twin.features)
    np.testing.assert_array_equal(arms.columns, twin.columns)
    assert arms.digest == twin.digest


@pytest.mark.parametrize("shape", [(2, 3, 2), (2, 3, 1)])
def test_kernels_get_one_memory_layout_whatever_the_dimension(shape: tuple[int, ...]) -> None:
    columns = FiniteActions(np.ones(shape)).columns
    assert columns.flags.c_contiguous
    assert columns.flags.writeable


def test_features_cannot_be_written_to() -> None:
    arms = FiniteActions([[1.0], [2.0]])
    with pytest.raises(ValueError, match="read-only"):
        arms.features[0, 0, 0] = 5.0


def test_the_digest_tells_contents_and_shapes_apart() -> None:
    features = np.arange(12.0).reshape(2, 3, 2)
    other = features.copy()
    other[1, 2, 1] += 1e-9
    digests = {FiniteActions(f).digest for f in (features, other, features.reshape(2, 2, 3), features.reshape(1, 6, 2))}
    assert len(digests) == 4
    assert FiniteActions(features.copy()).digest == FiniteActions(features).digest


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ([[1.0, 2.0]], "n_arms >= 2"),
        (np.empty((2, 0)), "dim >= 1"),
        ([1.0, 2.0], "got shape"),
        (3.0, "got shape"),
        (np.ones((1, 1, 2, 2)), "got shape"),
        ([[1.0, math.nan], [0.0, 1.0]], r"finite; got nan at index \(0, 1\)"),
        ([[1.0, 0.0], [math.inf, 1.0]], r"finite; got inf at index \(1, 0\)"),
        ([["a", "b"], ["c", "d"]], "array of numbers"),
        ([[1.0, 2.0], [3.0]], "same length"),
        (np.ones((2, 2)) * 1j, "real numbers"),
        ([[1j, 2], [3, 4]], "array of numbers"),
        (None, "features"),
    ],
)
def test_what_is_not_a_set_of_arms_is_refused(features: object, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        FiniteActions(features)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", [(1, 2, 3), (2, 2, 2), (1, 2)])
def test_a_theta_of_another_shape_is_refused_rather_than_read_beyond_its_end(shape: tuple[int, ...]) -> None:
    arms = FiniteActions(np.ones((1, 3, 2)))
    with pytest.raises(InvalidInputError, match=r"theta must be \(1, draws, 2\)"):
        arms.best(np.zeros(shape))


def test_duels_hold_the_features_of_both_rows_and_their_difference() -> None:
    arms = FiniteActions(np.arange(12.0).reshape(2, 3, 2) ** 2)
    duels = duels_between(arms, np.array([0, 2]), np.array([1, 2]))
    np.testing.assert_array_equal(duels.features[0], arms.features[0, [0, 1]])
    np.testing.assert_array_equal(duels.contrast, [arms.features[0, 0] - arms.features[0, 1], [0.0, 0.0]])
