"""LDBDF weighs answers by how likely they were to come, and knows pairs from the moment of the question."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments import Delayed
from duelist.history.duels import duels_between
from duelist.policies import LDBDF
from tests.support.reference_policies import Taught, norm, slow_fit, slow_matrix

STREAMS = Streams(0, [0])
ARMS = FiniteActions([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])


def test_one_answer_computed_by_hand() -> None:
    """With tau = 1/4 one win of z = (1, -1) weighs 4: theta = c z with lambda c = 4 s(-2c), and V has z z^T once."""
    policy = LDBDF(ridge=1.0, arrival=0.25, same_arm="different")
    state = policy.start(Problem(dim=2), STREAMS)
    duels, asked = policy.choose(state, FiniteActions([[1.0, 0.0], [0.0, 1.0]]), STREAMS)
    np.testing.assert_allclose(asked.gram[0], [[2.0, -1.0], [-1.0, 2.0]], rtol=1e-12)
    np.testing.assert_allclose(asked.whitener[0].T @ asked.whitener[0], np.linalg.inv(asked.gram[0]), rtol=1e-12)
    sign = float(duels.contrast[0, 0])
    learnt = policy.learn(asked, ARMS, duels, np.array([1]))
    c = sign * float(learnt.theta[0, 0])
    assert c == pytest.approx(4.0 / (1.0 + math.exp(2.0 * c)), abs=1e-5)
    assert learnt.theta[0, 1] == pytest.approx(-sign * c, abs=1e-12)
    np.testing.assert_array_equal(learnt.gram, asked.gram)
    np.testing.assert_array_equal(state.gram[0], np.eye(2))


@pytest.mark.parametrize(("arrival", "window"), [(1.0, None), (0.5, 6), (0.3, 3)])
def test_every_round_agrees_with_the_rule_in_plain_python(arrival: float, window: int | None) -> None:
    """Answers come after 0 to 9 further questions or never; the loop fits from the record and looks at every pair."""
    generator, streams = np.random.default_rng(8), Streams(4, [6])
    policy = LDBDF(radius=1.5, ridge=0.5, fit_ridge=0.2, arrival=arrival, window=window)
    state = policy.start(Problem(dim=3), streams)
    truth = 2.0 * generator.standard_normal(3)
    asked: list[Taught] = []
    answers: list[Taught] = []
    waiting: list[tuple[int, int, Any, Any, int]] = []
    dropped = 0
    for t in range(40):
        actions = FiniteActions(generator.standard_normal((int(generator.integers(3, 7)), 3)))
        arms = actions.features[0]
        duels, state = policy.choose(state, actions, streams)
        theta, matrix = slow_fit(answers, 3, 0.2), slow_matrix(asked, 3, 0.5)
        first = int(np.argmax(arms @ theta)) if answers else int(duels.first[0])
        scores = [float(theta @ (x - arms[first])) + 1.5 * norm(x - arms[first], matrix) for x in arms]
        assert (int(duels.first[0]), int(duels.second[0])) == (first, int(np.argmax(scores))), f"round {t}"
        z = arms[first] - arms[int(duels.second[0])]
        outcome = 1 if generator.random() < 1.0 / (1.0 + math.exp(-float(truth @ z))) else -1
        asked.append(Taught(z, outcome))
        wait = int(generator.integers(0, 10))
        if generator.random() < 0.8:
            waiting.append((t + wait, t, actions, duels, outcome))
        for one in [one for one in waiting if one[0] == t]:
            _, when, offered, shown, who = one
            state = policy.learn(state, offered, shown, np.array([who]))
            if window is None or t - when <= window:
                answers.append(Taught(shown.contrast[0], who, count=1.0 / arrival))
            else:
                dropped += 1
    assert (dropped > 0) == (window is not None)
    np.testing.assert_allclose(state.gram[0], slow_matrix(asked, 3, 0.5), rtol=1e-10)
    np.testing.assert_allclose(state.theta[0], slow_fit(answers, 3, 0.2), atol=1e-6)


def test_the_weighted_loss_has_the_mean_of_the_loss_of_all_answers() -> None:
    """Mean gradient over 400 draws of which answers come, against the gradient with all of them: within 4 standard errors."""
    generator = np.random.default_rng(1)
    z, outcomes, theta = generator.standard_normal((60, 3)), generator.choice([-1.0, 1.0], 60), np.array([0.3, -0.5, 0.2])
    gradients = -(outcomes / (1.0 + np.exp(outcomes * (z @ theta))))[:, None] * z
    arrived = generator.random((400, 60)) < 0.4
    estimates = arrived @ gradients / 0.4
    error = estimates.std(axis=0) / math.sqrt(len(estimates))
    assert (np.abs(estimates.mean(axis=0) - gradients.sum(axis=0)) < 4.0 * error).all()


def test_a_vote_of_others_joins_the_matrix_when_it_comes() -> None:
    policy = LDBDF(ridge=1.0)
    state = policy.start(Problem(dim=2), STREAMS)
    learnt = policy.learn(state, ARMS, duels_between(ARMS, np.array([0]), np.array([1])), np.array([1]))
    np.testing.assert_allclose(learnt.gram[0], [[2.0, -1.0], [-1.0, 2.0]], rtol=1e-12)


def test_questions_that_wait_differ() -> None:
    """Four equal questions in a row: each pair that waits makes its own width small, so another is asked."""
    policy = LDBDF(same_arm="different", radius=1.0)
    streams, arms = Streams(2, [0]), FiniteActions(2.0 * np.eye(4))
    state = policy.start(Problem(dim=4), streams)
    pairs = set()
    for _ in range(2):
        duels, state = policy.choose(state, arms, streams)
        pairs.add(frozenset((int(duels.first[0]), int(duels.second[0]))))
    assert len(pairs) == 2


def test_a_column_of_arrivals_equals_separate_runs() -> None:
    env = Delayed(base=duelist.LinearDuels(dim=4, arms=10), delay=5)
    together = duelist.simulate(LDBDF(arrival=(0.2, 0.2, 1.0, 1.0)), env, rounds=60, trials=[3, 7, 3, 7], seed=2)
    for lanes, arrival in ((slice(0, 2), 0.2), (slice(2, 4), 1.0)):
        alone = duelist.simulate(LDBDF(arrival=arrival), env, rounds=60, trials=[3, 7], seed=2)
        np.testing.assert_array_equal(together.first[lanes], alone.first)


@pytest.mark.parametrize(
    ("setting", "word"),
    [({"arrival": 0.0}, "arrival"), ({"arrival": 1.2}, "arrival"), ({"window": -1}, "window"), ({"radius": -1.0}, "radius")],
)
def test_bad_settings_are_named(setting: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidInputError, match=word):
        LDBDF(**setting)


def test_a_note_of_another_policy_is_refused() -> None:
    policy = LDBDF()
    state = policy.start(Problem(dim=2), STREAMS)
    duels = duels_between(ARMS, np.array([0]), np.array([1]))._replace(note=np.array([[3.0]]))
    with pytest.raises(InvalidInputError, match="note"):
        policy.learn(state, ARMS, duels, np.array([1]))
