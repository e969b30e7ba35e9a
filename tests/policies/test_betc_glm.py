"""BETCGLM asks about every pair until all are known to epsilon, and commits."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.policies import BETCGLM
from tests.support.reference_policies import Taught, better_first, by_priority, norm, slow_fit, slow_matrix

STREAMS = Streams(0, [0])


def slow_borda(arms: Any, theta: Any) -> list[float]:
    """Mean probability of beating another arm, one pair at a time."""
    scores = []
    for i, x in enumerate(arms):
        wins = [1.0 / (1.0 + math.exp(-float(theta @ (x - y)))) for j, y in enumerate(arms) if j != i]
        scores.append(sum(wins) / len(wins))
    return scores


@pytest.mark.parametrize(("scale", "horizon"), [(1.0, 60), (2.5, 60), (2.0, None)])
def test_every_round_agrees_with_the_rule_in_plain_python(scale: float, horizon: int | None) -> None:
    generator, streams = np.random.default_rng(8), Streams(4, [6])
    policy = BETCGLM(scale=scale, warmup=4, ridge=0.5)
    state = policy.start(Problem(dim=3, horizon=horizon), streams)
    truth = 2.0 * generator.standard_normal(3)
    record: list[Taught] = []
    explored = committed = 0
    for t in range(60):
        actions = FiniteActions(generator.standard_normal((int(generator.integers(3, 7)), 3)))
        arms = actions.features[0]
        duels, state = policy.choose(state, actions, streams)
        pair = int(duels.first[0]), int(duels.second[0])
        matrix, theta = slow_matrix(record, 3, 0.5), slow_fit(record, 3, 0.5)
        epsilon = scale * 3 ** (1 / 6) * (t + 1 if horizon is None else horizon) ** (-1 / 3)
        if t < 4:
            assert pair[0] != pair[1]
        else:
            i, j = max(combinations(range(len(arms)), 2), key=lambda p: norm(arms[p[0]] - arms[p[1]], matrix))
            if norm(arms[i] - arms[j], matrix) > epsilon:
                expected = by_priority(better_first(i, j, np.zeros(len(arms))), actions, streams, t)
                assert pair == (expected.first, expected.second), f"round {t}"
                explored += 1
            else:
                best = int(np.argmax(slow_borda(arms, theta)))
                assert pair == (best, best), f"round {t}"
                committed += 1
        z = arms[pair[0]] - arms[pair[1]]
        outcome = 1 if generator.random() < 1.0 / (1.0 + math.exp(-float(truth @ z))) else -1
        state = policy.learn(state, actions, duels, np.array([outcome]))
        record.append(Taught(z, outcome))
        np.testing.assert_allclose(
            policy.estimated_utilities(state, actions)[0], slow_borda(arms, state.fit.theta[0]), rtol=1e-12
        )
    assert explored > 6
    assert committed > 5 or scale == 1.0


def test_arms_along_two_axes_by_hand() -> None:
    """V = I + n z z^T in each axis: |z|^2 = 4 / (1 + 4n) is at most epsilon^2 = 0.1 from n = 10 on, the same for both axes."""
    arms = FiniteActions([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    policy = BETCGLM(warmup=0, horizon=1000, scale=math.sqrt(0.1) / (2 ** (1 / 6) * 0.1))
    state = policy.start(Problem(dim=2), STREAMS)
    asked = []
    for _ in range(40):
        duels, state = policy.choose(state, arms, STREAMS)
        pair = tuple(sorted((int(duels.first[0]), int(duels.second[0]))))
        asked.append(pair)
        # The arm (1, 0) always wins; along the other axis both win as often.
        won = int(duels.contrast[0, 0]) // 2 or (-1) ** asked.count((2, 3))
        state = policy.learn(state, arms, duels, np.array([won]))
    assert asked[:20].count((0, 1)) == asked[:20].count((2, 3)) == 10
    assert set(asked[20:]) == {(0, 0)}


def test_two_people_see_the_best_against_the_second_best() -> None:
    policy = BETCGLM(scale=1e6, warmup=0)
    arms = FiniteActions(np.diag([1.0, 2.0, 3.0]))
    state = policy.start(Problem(dim=3, live=True), STREAMS)
    state = state._replace(fit=state.fit._replace(theta=np.array([[1.0, 1.0, 0.1]])))
    duels, _ = policy.choose(state, arms, STREAMS)
    assert (int(duels.first[0]), int(duels.second[0])) == (1, 0)


def test_questions_that_wait_count_as_known() -> None:
    policy, arms = BETCGLM(warmup=0, horizon=1000), FiniteActions([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.9], [0.0, -0.9]])
    state = policy.start(Problem(dim=2), STREAMS)
    first, state = policy.choose(state, arms, STREAMS)
    second, after = policy.choose_with_pending(state, arms, STREAMS, [first])
    assert {int(first.first[0]), int(first.second[0])} == {0, 1}
    assert {int(second.first[0]), int(second.second[0])} == {2, 3}
    np.testing.assert_array_equal(after.fit.gram, state.fit.gram)


def test_a_column_of_scales_equals_separate_runs() -> None:
    env = duelist.LinearDuels(dim=4, arms=10)
    together = duelist.simulate(BETCGLM(scale=(1.0, 1.0, 3.0, 3.0)), env, rounds=80, trials=[3, 7, 3, 7], seed=2)
    for lanes, scale in ((slice(0, 2), 1.0), (slice(2, 4), 3.0)):
        alone = duelist.simulate(BETCGLM(scale=scale), env, rounds=80, trials=[3, 7], seed=2)
        np.testing.assert_array_equal(together.first[lanes], alone.first)


@pytest.mark.parametrize(
    ("setting", "word"), [({"scale": 0.0}, "scale"), ({"warmup": -1}, "warmup"), ({"horizon": 0}, "horizon")]
)
def test_bad_settings_are_named(setting: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidInputError, match=word):
        BETCGLM(**setting)
