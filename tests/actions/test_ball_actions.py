"""The ball as an action set, and the history of duels played on it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from duelist.actions.ball import BallActions
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.history.duels import Duels
from duelist.history.history import History
from duelist.typing import FloatArray


@given(theta=arrays(np.float64, (2, 3, 4), elements=st.floats(-1e150, 1e150)), radius=st.floats(0.01, 100.0))
def test_the_best_point_of_a_ball_attains_its_support_function(theta: FloatArray, radius: float) -> None:
    best = BallActions(lanes=2, dim=4, radius=radius).best(theta)
    np.testing.assert_allclose(np.linalg.norm(best.features, axis=2), radius, rtol=1e-12)
    attained = np.einsum("lkd,lkd->lk", best.features, theta)
    np.testing.assert_allclose(best.value, attained, rtol=1e-9, atol=1e-300)
    assert (best.row == -1).all()


def test_no_point_of_the_ball_beats_the_best_one() -> None:
    rng = np.random.default_rng(0)
    theta = rng.standard_normal((1, 1, 5))
    best = BallActions(lanes=1, dim=5, radius=2.0).best(theta)
    points = rng.standard_normal((10_000, 5))
    points *= 2.0 / np.linalg.norm(points, axis=1, keepdims=True)
    assert best.value[0, 0] >= (points @ theta[0, 0]).max()


def test_at_theta_zero_the_best_point_is_the_first_axis() -> None:
    best = BallActions(lanes=1, dim=3, radius=1.5).best(np.zeros((1, 2, 3)))
    np.testing.assert_array_equal(best.features[0], [[1.5, 0, 0], [1.5, 0, 0]])
    np.testing.assert_array_equal(best.value, [[0.0, 0.0]])


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e300])
def test_very_short_and_very_long_theta_do_not_overflow_or_vanish(scale: float) -> None:
    best = BallActions(lanes=1, dim=2).best(np.array([[[scale, 0.0]]]))
    assert best.value[0, 0] == scale
    np.testing.assert_array_equal(best.features[0, 0], [1.0, 0.0])


def test_the_digest_tells_balls_apart() -> None:
    digests = {BallActions(lanes=1, dim=d, radius=r).digest for d in (2, 3) for r in (1.0, 1.0000001)}
    assert len(digests) == 4
    assert BallActions(lanes=1, dim=2).digest == BallActions(lanes=1, dim=2).digest


@pytest.mark.parametrize("arguments", [(0, 2, 1.0), (1, 0, 1.0), (1, 2, 0.0), (1, 2, float("inf")), (1, 2, float("nan"))])
def test_impossible_balls_are_refused(arguments: tuple[Any, ...]) -> None:
    with pytest.raises(InvalidInputError):
        BallActions(*arguments)


def _played(rounds: int, *, keep_sets: bool) -> tuple[History, list[FloatArray], list[float]]:
    """A history of balls of changing radius with a finite set in between, the features shown and the radii."""
    rng = np.random.default_rng(3)
    history = History.start(lanes=2, dim=3, keep_sets=keep_sets)
    finite = FiniteActions(rng.standard_normal((2, 4, 3)))
    shown, radii = [], []
    for t in range(rounds):
        outcomes = rng.choice([-1, 1], size=2)
        if t % 5 == 4:
            first, second = rng.integers(0, 4, 2), rng.integers(0, 4, 2)
            lanes = np.arange(2)
            features = np.stack([finite.features[lanes, first], finite.features[lanes, second]], axis=1)
            history = history.append(finite, Duels(first, second, features), outcomes)
        else:
            ball = BallActions(lanes=2, dim=3, radius=1.0 + t % 3)
            best = ball.best(rng.standard_normal((2, 2, 3)))
            features = best.features
            history = history.append(ball, Duels(best.row[:, 0], best.row[:, 1], features), outcomes)
            radii.append(ball.radius)
        shown.append(features)
    return history, shown, radii


def test_a_history_adds_up_the_radii_of_balls_and_the_features_of_the_adversary() -> None:
    history, shown, radii = _played(150, keep_sets=True)
    statistics = history.statistics
    assert statistics.ball_reach == pytest.approx(sum(radii), rel=1e-14)
    np.testing.assert_allclose(statistics.adversary, sum(features[:, ::-1] for features in shown), rtol=1e-12)
    assert statistics.repeats.sum() == 30


@pytest.mark.parametrize("keep_sets", [True, False])
def test_an_older_history_with_balls_is_rebuilt_exactly(keep_sets: bool) -> None:
    longer, *_ = _played(150, keep_sets=keep_sets)
    shorter, *_ = _played(70, keep_sets=keep_sets)
    rebuilt = History(longer._log, 70).statistics
    for name, expected in shorter.statistics._asdict().items():
        if name in ("n_rows", "ball_reach"):
            np.testing.assert_array_equal(getattr(rebuilt, name), expected)
    n = int(shorter.statistics.n_rows.max())
    np.testing.assert_array_equal(rebuilt.contrasts[:, :, :n], shorter.statistics.contrasts[:, :, :n])
    np.testing.assert_array_equal(rebuilt.totals[:, :n], shorter.statistics.totals[:, :n])
    np.testing.assert_array_equal(rebuilt.losses[:, :n], shorter.statistics.losses[:, :n])
    if keep_sets:
        np.testing.assert_array_equal(rebuilt.adversary, shorter.statistics.adversary)


def test_a_history_with_balls_survives_saving() -> None:
    history, *_ = _played(150, keep_sets=True)
    again = History.from_arrays(history.to_arrays())
    assert again.rounds == 150
    for name, expected in history.to_arrays().items():
        np.testing.assert_array_equal(again.to_arrays()[name], expected, err_msg=name)
    assert again.statistics.ball_reach == history.statistics.ball_reach
    np.testing.assert_array_equal(again.statistics.adversary, history.statistics.adversary)
