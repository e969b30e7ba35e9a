"""DPS: the regression of votes on contrasts, and draws from it."""

from __future__ import annotations

import numpy as np
import pytest

from duelist.actions.ball import BallActions
from duelist.actions.custom import CustomActions
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import Duels
from duelist.policies import DPS
from duelist.policies.algorithms.sampling.dps import DPSState, estimate_rewards
from duelist.typing import FloatArray, IntArray


def _learnt(policy: DPS, contrasts: FloatArray, outcomes: IntArray) -> tuple[DPSState, Streams]:
    streams = Streams(0, [0])
    state = policy.start(Problem(dim=contrasts.shape[1], lanes=1), streams)
    rows = np.array([-1])
    for z, y in zip(contrasts, outcomes, strict=True):
        duels = Duels(rows, rows, np.stack([z, np.zeros_like(z)])[None])
        state = policy.learn(state, BallActions(1, contrasts.shape[1]), duels, np.array([y]))
    return state, streams


def test_the_mean_solves_the_penalised_least_squares_of_votes_of_one_half() -> None:
    rng = np.random.default_rng(0)
    contrasts, outcomes = rng.standard_normal((30, 3)), rng.integers(-1, 2, size=30)
    state, _ = _learnt(DPS(sigma=0.7, ridge=0.2), contrasts, outcomes)
    # Ridge regression as least squares with rows for the prior.
    rows = np.r_[contrasts / 0.7, np.sqrt(0.2) * np.eye(3)]
    targets = np.r_[0.5 * outcomes / 0.7, np.zeros(3)]
    np.testing.assert_allclose(estimate_rewards(state)[0], np.linalg.lstsq(rows, targets)[0], rtol=1e-10)


def test_draws_have_the_mean_and_the_covariance_of_the_regression() -> None:
    rng = np.random.default_rng(1)
    state, streams = _learnt(DPS(), rng.standard_normal((12, 2)) * [1.0, 3.0], rng.choice([-1, 1], size=12))
    policy, mirror, draws = DPS(), CustomActions(lambda theta: theta, dim=2, name="mirror"), []
    mean, covariance = estimate_rewards(state)[0], np.linalg.inv(state.precision[0])
    for _ in range(3000):
        duels, state = policy.choose(state, mirror, streams)
        draws.append(duels.features[0])
    drawn = np.array(draws)
    white = (drawn.reshape(-1, 2) - mean) @ np.linalg.cholesky(np.linalg.inv(covariance))
    # Means and second moments of 6,000 standard normal pairs, at five standard errors.
    assert np.abs(white.mean(axis=0)).max() < 5.0 / np.sqrt(6000)
    assert np.abs(white.T @ white / 6000 - np.eye(2)).max() < 5.0 * np.sqrt(2.0 / 6000)
    assert abs(np.corrcoef(drawn[:, 0, 0], drawn[:, 1, 0])[0, 1]) < 5.0 / np.sqrt(3000), "the two draws are independent"


@pytest.mark.parametrize("actions", [FiniteActions(np.eye(2)), BallActions(1, 2)], ids=["arms", "ball"])
def test_live_pairs_differ(actions: FiniteActions | BallActions) -> None:
    streams, policy = Streams(0, [0]), DPS()
    state = policy.start(Problem(dim=2, lanes=1, live=True), streams)
    for _ in range(40):
        duels, state = policy.choose(state, actions, streams)
        assert duels.contrast.any()
        state = policy.learn(state, actions, duels, np.where(duels.contrast[:, 0] > 0, 1, -1))


def test_settings_that_mean_nothing_are_refused() -> None:
    for wrong in ({"sigma": 0.0}, {"ridge": -1.0}, {"same_arm": "never"}):
        with pytest.raises(InvalidInputError, match=next(iter(wrong))):
            DPS(**wrong)
