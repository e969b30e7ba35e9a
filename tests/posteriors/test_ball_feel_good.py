"""The Feel-Good term over balls: sum_i R_i |theta| in place of a scan of arms."""

from __future__ import annotations

import math

import numpy as np
import pytest

from duelist.actions.ball import BallActions
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.history.history import History
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.posteriors.linear import LinearPotential, tilt_from
from duelist.posteriors.priors import Gaussian
from duelist.typing import FloatArray

ETA, MU = 0.7, 0.3


def _record(rounds: int) -> tuple[History, list[tuple[BallActions | FiniteActions, FloatArray, int]]]:
    """A history of one lane over balls and one finite set, and the same rounds as a plain list."""
    rng = np.random.default_rng(1)
    history = History.start(lanes=1, dim=3, keep_sets=True)
    finite = FiniteActions(rng.standard_normal((5, 3)))
    record: list[tuple[BallActions | FiniteActions, FloatArray, int]] = []
    for t in range(rounds):
        actions: BallActions | FiniteActions = finite if t % 4 == 3 else BallActions(1, 3, 0.5 + t)
        best = actions.best(rng.standard_normal((1, 2, 3)))
        y = int(rng.choice([-1, 1]))
        history = history.append(actions, Duels(best.row[:, 0], best.row[:, 1], best.features), np.array([y]))
        record.append((actions, best.features[0], y))
    return history, record


def _potential(history: History) -> LinearPotential:
    statistics = history.statistics
    return LinearPotential.of(Gaussian(), statistics, eta=np.array([ETA]), mu=np.array([MU]))


def _slow_potential(record: list[tuple[BallActions | FiniteActions, FloatArray, int]], theta: FloatArray, j: int) -> float:
    """-log p_j(theta) written round by round as the paper prints it; j = 0, 1."""
    value = 0.5 * float(theta @ theta)
    for actions, features, y in record:
        if isinstance(actions, BallActions):
            support = actions.radius * math.sqrt(float(theta @ theta))
        else:
            support = max(float(arm @ theta) for arm in actions.features[0])
        z = features[0] - features[1]
        value += ETA * math.log1p(math.exp(-y * float(z @ theta))) - MU * (support - float(features[1 - j] @ theta))
    return value


def test_the_potential_is_the_papers_sum_over_rounds() -> None:
    history, record = _record(23)
    potential = _potential(history)
    theta = np.random.default_rng(2).standard_normal((1, 2, 3))
    expected = [[_slow_potential(record, theta[0, j], j) for j in range(2)]]
    np.testing.assert_allclose(potential.value(theta), expected, rtol=1e-12)


def test_the_gradient_agrees_with_finite_differences() -> None:
    history, _ = _record(23)
    potential = _potential(history)
    theta = np.random.default_rng(4).standard_normal((1, 2, 3))
    gradient, h = potential.gradient(theta), 1e-6
    for i in range(3):
        step = h * np.eye(3)[i]
        slope = (potential.value(theta + step) - potential.value(theta - step)) / (2 * h)
        np.testing.assert_allclose(gradient[..., i], slope, rtol=1e-6, atol=1e-6)


def test_at_zero_the_kink_of_the_norm_contributes_nothing() -> None:
    history, _ = _record(3)
    gradient = _potential(history).gradient(np.zeros((1, 2, 3)))
    statistics = history.statistics
    slopes = statistics.losses - 0.5 * statistics.totals
    expected = ETA * np.einsum("lp,ldp->ld", slopes, statistics.contrasts)[:, None] + MU * statistics.adversary
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)


def test_a_history_that_did_not_keep_its_balls_is_refused() -> None:
    ball = BallActions(1, 2)
    best = ball.best(np.array([[[1.0, 0.0], [0.0, 1.0]]]))
    history = History.start(lanes=1, dim=2).append(ball, Duels(best.row[:, 0], best.row[:, 1], best.features), np.array([1]))
    with pytest.raises(InvalidInputError, match="keep_sets"):
        tilt_from(history.statistics, np.array([0.1]))


def test_fgts_plays_a_ball_with_a_potential_that_contains_it() -> None:
    policy, streams, ball = FGTS(mu=MU), Streams(0, [0, 1]), BallActions(2, 3)
    state = policy.start(Problem(dim=3, lanes=2, horizon=10), streams)
    for _ in range(6):
        duels, state = policy.choose(state, ball, streams)
        np.testing.assert_allclose(np.linalg.norm(duels.features, axis=2), 1.0, rtol=1e-12)
        state = policy.learn(state, ball, duels, np.array([1, -1]))
    tilt = policy.potential(state).tilt
    assert tilt is not None
    assert tilt.ball_reach == 6.0
