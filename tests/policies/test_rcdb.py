"""RCDB weighs each vote by how well its pair was known."""

from __future__ import annotations

import math

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments import Corrupted
from duelist.history.duels import duels_between
from duelist.policies import RCDB
from tests.support.reference_policies import Taught, by_priority, norm, slow_fit, slow_matrix, slow_max_pair

STREAMS = Streams(0, [0])
ARMS = FiniteActions([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
FIRST = duels_between(ARMS, np.array([0]), np.array([1]))


def test_one_vote_computed_by_hand() -> None:
    """z = (1, -1) has width sqrt(2) in the norm of I, so alpha = sqrt(2) / 4 makes w = 1/4 and Sigma = I + z z^T / 4."""
    policy = RCDB(ridge=1.0, alpha=math.sqrt(2.0) / 4.0)
    state = policy.learn(policy.start(Problem(dim=2), STREAMS), ARMS, FIRST, np.array([1]))
    np.testing.assert_allclose(state.gram[0], [[1.25, -0.25], [-0.25, 1.25]], rtol=1e-12)
    np.testing.assert_allclose(state.whitener[0].T @ state.whitener[0], np.linalg.inv(state.gram[0]), rtol=1e-12)
    # theta = c z with c = w s(-2c) = 0.25 / (1 + exp(2c)): c = 0.100156...
    c = state.theta[0, 0]
    assert state.theta[0, 1] == pytest.approx(-c, abs=1e-12)
    assert c == pytest.approx(0.25 / (1.0 + math.exp(2.0 * c)), abs=1e-10)


@pytest.mark.parametrize("alpha", [0.05, 0.4, 1.0])
def test_every_round_agrees_with_the_rule_in_plain_python(alpha: float) -> None:
    generator, streams = np.random.default_rng(8), Streams(4, [6])
    policy = RCDB(radius=2.0, ridge=0.5, fit_ridge=0.2, alpha=alpha)
    state = policy.start(Problem(dim=3), streams)
    truth = 2.0 * generator.standard_normal(3)
    record: list[Taught] = []
    for t in range(25):
        actions = FiniteActions(generator.standard_normal((int(generator.integers(3, 7)), 3)))
        arms = actions.features[0]
        duels, state = policy.choose(state, actions, streams)
        matrix, theta = slow_matrix(record, 3, 0.5), slow_fit(record, 3, 0.2)
        expected = by_priority(slow_max_pair(arms, theta, matrix, 2.0), actions, streams, t)
        assert (int(duels.first[0]), int(duels.second[0])) == (expected.first, expected.second), f"round {t}"
        z = arms[expected.first] - arms[expected.second]
        width = norm(z, matrix)
        weight = 1.0 if width <= alpha else alpha / width
        assert duels.note is not None
        np.testing.assert_allclose(duels.note, [[weight]], rtol=1e-10)
        outcome = 1 if generator.random() < 1.0 / (1.0 + math.exp(-float(truth @ z))) else -1
        state = policy.learn(state, actions, duels, np.array([outcome]))
        record.append(Taught(z, outcome, count=weight))
    assert any(duel.count < 1.0 for duel in record)
    np.testing.assert_allclose(state.gram[0], slow_matrix(record, 3, 0.5), rtol=1e-10)


def test_a_very_large_alpha_is_max_pair_ucb() -> None:
    env = duelist.LinearDuels(dim=4, arms=10)
    robust = duelist.simulate(RCDB(alpha=1e9), env, rounds=80, trials=3, seed=2)
    plain = duelist.simulate(duelist.MaxPairUCB(), env, rounds=80, trials=3, seed=2)
    np.testing.assert_array_equal(robust.first, plain.first)
    np.testing.assert_array_equal(robust.second, plain.second)


@pytest.mark.parametrize("weigh", ["answered", "asked"])
def test_a_late_answer_counts_as_it_was_asked(weigh: str) -> None:
    """An open duel of weight w makes Sigma = I + w z z^T; its own pair again has width |z| / sqrt(1 + w |z|^2) in it."""
    policy = RCDB(ridge=1.0, alpha=0.5, weigh=weigh, radius=0.1, same_arm="different")
    pair = FiniteActions([[1.0, 0.0], [0.0, 1.0]])
    state = policy.start(Problem(dim=2, live=True), STREAMS)
    opened, state = policy.choose(state, pair, STREAMS)
    again, state = policy.choose_with_pending(state, pair, STREAMS, [opened])
    assert opened.note is not None
    assert again.note is not None
    w = 0.5 / math.sqrt(2.0)
    assert opened.note[0, 0] == pytest.approx(w, rel=1e-12)
    second = min(1.0, 0.5 / math.sqrt(2.0 / (1.0 + 2.0 * w))) if weigh == "asked" else w
    assert again.note[0, 0] == pytest.approx(second, rel=1e-12)
    np.testing.assert_array_equal(state.gram[0], np.eye(2))
    # The answers come in the other order; each counts by its note.
    state = policy.learn(policy.learn(state, pair, again, np.array([1])), pair, opened, np.array([1]))
    outer = np.array([[1.0, -1.0], [-1.0, 1.0]])
    np.testing.assert_allclose(state.gram[0], np.eye(2) + (w + second) * outer, rtol=1e-12)


def test_an_arm_against_itself_teaches_nothing() -> None:
    policy = RCDB()
    before = policy.learn(policy.start(Problem(dim=2), STREAMS), ARMS, FIRST, np.array([1]))
    after = policy.learn(before, ARMS, duels_between(ARMS, np.array([2]), np.array([2])), np.array([1]))
    assert after.theta.tobytes() == before.theta.tobytes()
    assert after.whitener.tobytes() == before.whitener.tobytes()


def test_a_column_of_alphas_equals_separate_runs() -> None:
    env = Corrupted(base=duelist.LinearDuels(dim=4, arms=10), budget=10)
    together = duelist.simulate(RCDB(alpha=(0.1, 0.1, 1.0, 1.0)), env, rounds=60, trials=[3, 7, 3, 7], seed=2)
    for lanes, alpha in ((slice(0, 2), 0.1), (slice(2, 4), 1.0)):
        alone = duelist.simulate(RCDB(alpha=alpha), env, rounds=60, trials=[3, 7], seed=2)
        np.testing.assert_array_equal(together.first[lanes], alone.first)


@pytest.mark.parametrize(
    ("setting", "word"), [({"alpha": 0.0}, "alpha"), ({"weigh": "all"}, "weigh"), ({"radius": -1.0}, "radius")]
)
def test_bad_settings_are_named(setting: dict[str, object], word: str) -> None:
    with pytest.raises(InvalidInputError, match=word):
        RCDB(**setting)  # type: ignore[arg-type]


@pytest.mark.parametrize("note", [[[0.0]], [[1.5]], [[0.5, 0.5]], [[math.nan]]])
def test_a_note_of_another_policy_is_refused(note: list[list[float]]) -> None:
    policy = RCDB()
    state = policy.start(Problem(dim=2), STREAMS)
    with pytest.raises(InvalidInputError, match="note"):
        policy.learn(state, ARMS, FIRST._replace(note=np.array(note)), np.array([1]))
