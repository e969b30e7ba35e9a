"""TopTwoTS plays the best arm of a draw against one that a later draw likes better."""

from __future__ import annotations

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import duels_between
from duelist.kernels.linalg.factors import LARGE
from duelist.policies import TopTwoTS
from duelist.policies.parts import normal_belief
from tests.support.reference_policies import Choice, Taught, play_beside, slow_fit, slow_matrix


@pytest.mark.parametrize("beta", [0.0, 0.5, 1.0])
def test_every_round_agrees_with_the_rule_in_plain_python(beta: float) -> None:
    redraws = 3

    def rule(record: list[Taught], actions: FiniteActions, streams: Streams, asked: int) -> Choice:
        theta = slow_fit(record, 3, 0.5)
        lower = np.linalg.cholesky(slow_matrix(record, 3, 0.5, theta))
        noise = streams.normals("top two", asked, (1 + redraws) * 3)[0].reshape(-1, 3)
        liked = [int(np.argmax(actions.features[0] @ (theta + np.linalg.solve(lower.T, row)))) for row in noise]
        if streams.uniforms("top two coin", asked)[0] < beta:
            return Choice(liked[0], liked[1])
        return Choice(liked[0], next((k for k in liked[1:] if k != liked[0]), liked[0]))

    policy = TopTwoTS(beta=beta, redraws=redraws, ridge=0.5)
    choices = play_beside(policy, rule, dim=3, rounds=25, horizon=25, scales=(1.0, 0.4))
    assert any(choice.first != choice.second for choice in choices)


def test_live_an_arm_never_meets_itself_even_when_no_draw_finds_another() -> None:
    arms = FiniteActions([[1.0, 0.0], [0.9, 0.0], [-1.0, 0.0]])
    policy, streams = TopTwoTS(redraws=1), Streams(0, [0])
    state = policy.start(Problem(dim=2, live=True), streams)
    for _ in range(200):
        state = policy.learn(state, arms, duels_between(arms, np.array([0]), np.array([2])), np.array([1]))
    for _ in range(20):
        duels, state = policy.choose(state, arms, streams)
        assert (duels.first[0], duels.second[0]) == (0, 1)


def test_the_sharper_the_belief_the_more_often_the_leader_meets_itself() -> None:
    run = duelist.simulate(TopTwoTS(), duelist.LinearDuels(dim=3, arms=6), rounds=400, trials=10, seed=1)
    same = run.first == run.second
    assert same[:, :50].mean() < same[:, -50:].mean()


def test_a_column_of_betas_equals_separate_runs() -> None:
    env = duelist.LinearDuels(dim=4, arms=10)
    together = duelist.simulate(TopTwoTS(beta=(0.2, 0.9)), env, rounds=60, trials=[3, 3], seed=2)
    for lane, beta in enumerate((0.2, 0.9)):
        alone = duelist.simulate(TopTwoTS(beta=beta), env, rounds=60, trials=[3], seed=2)
        np.testing.assert_array_equal(together.second[lane], alone.second[0])


def test_the_belief_of_a_long_history_stays_close_to_that_of_a_full_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    generator, streams, policy = np.random.default_rng(3), Streams(0, [0]), TopTwoTS()
    monkeypatch.setattr(normal_belief, "EXACT_ROWS", 64)
    state, record = policy.start(Problem(dim=3), streams), []
    for _ in range(200):
        arms = FiniteActions(generator.standard_normal((2, 3)))
        outcome = int(generator.choice([-1, 1]))
        duels = duels_between(arms, np.array([0]), np.array([1]))
        state = policy.learn(state, arms, duels, np.array([outcome]))
        record.append(Taught(duels.contrast[0], outcome))
    theta = slow_fit(record, 3, 1.0)
    covariance = np.linalg.inv(slow_matrix(record, 3, 1.0, theta))
    assert np.abs(state.theta[0] - theta).max() < 0.1 * np.sqrt(covariance.diagonal()).min()
    np.testing.assert_allclose(state.whitener[0].T @ state.whitener[0], covariance, atol=0.1 * covariance.diagonal().min())


def test_in_large_dimensions_the_belief_follows_the_fit() -> None:
    generator, streams, policy = np.random.default_rng(4), Streams(0, [0]), TopTwoTS()
    state, record, rounds = policy.start(Problem(dim=LARGE), streams), [], []
    for _ in range(30):
        arms = FiniteActions(generator.standard_normal((2, LARGE)) / np.sqrt(LARGE))
        outcome = int(generator.choice([-1, 1]))
        duels = duels_between(arms, np.array([0]), np.array([1]))
        rounds.append((arms, duels, np.array([outcome])))
        state = policy.learn(state, *rounds[-1])
        record.append(Taught(duels.contrast[0], outcome))
    covariance = np.linalg.inv(slow_matrix(record, LARGE, 1.0, slow_fit(record, LARGE, 1.0)))
    np.testing.assert_allclose(state.whitener[0].T @ state.whitener[0], covariance, atol=0.02)
    at_once = policy.learn_many(policy.start(Problem(dim=LARGE), streams), rounds)
    np.testing.assert_allclose(at_once.whitener[0].T @ at_once.whitener[0], covariance, atol=1e-5)


@pytest.mark.parametrize("wrong", [{"beta": 1.5}, {"beta": -0.1}, {"redraws": 0}, {"ridge": 0.0}, {"same_arm": "redraw"}])
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        TopTwoTS(**wrong)  # type: ignore[arg-type]
