"""BEXP3 draws arms by exponential weights on estimated Borda scores."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chisquare

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments import MatrixDuels
from duelist.history.duels import duels_between
from duelist.policies import BEXP3
from tests.support.oracles import philox_words, unit

STREAMS = Streams(0, [0])


def slow_weights(arms: Any, total: Any, rounds: int, rate: float, explore: float) -> list[float]:
    """q, one arm at a time."""
    many, dim = len(arms), arms.shape[1]
    mean = sum(np.outer(x - y, x - y) for x in arms for y in arms) / many**2
    least = min(value for value in np.linalg.eigvalsh(mean) if value > 1e-8)
    eta = rate * math.log(many) ** (2 / 3) * dim ** (-1 / 3) * rounds ** (-2 / 3)
    gamma = min(1.0, explore * math.log(many) ** (1 / 3) * dim ** (1 / 3) * rounds ** (-1 / 3) / math.sqrt(least))
    parts = [math.exp(eta * float(total @ x)) for x in arms]
    return [(1.0 - gamma) * part / sum(parts) + gamma / many for part in parts]


def slow_draw(weights: list[float], actions: FiniteActions, streams: Streams, name: str, t: int) -> int:
    """The first of exponential clocks, each with the random number of its arm's content."""
    prints = actions.fingerprints[0]
    clocks = [
        -math.log(unit(philox_words(streams.keys(name)[0], 1, t, int(content))[0])) / weight if weight else math.inf
        for content, weight in zip(prints, weights, strict=True)
    ]
    return int(np.argmin(clocks))


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("horizon", [300, None])
def test_every_round_agrees_with_the_rule_in_plain_python(live: bool, horizon: int | None) -> None:
    generator, streams = np.random.default_rng(8), Streams(4, [6])
    policy = BEXP3(rate=20.0, explore=0.5)
    state = policy.start(Problem(dim=3, horizon=horizon, live=live), streams)
    truth, total = np.array([0.1, -0.15, 0.05]), np.zeros(3)
    fixed = FiniteActions(generator.standard_normal((5, 3)))
    for t in range(40):
        actions = fixed if t % 3 else FiniteActions(generator.standard_normal((int(generator.integers(5, 8)), 3)))
        arms = actions.features[0]
        duels, state = policy.choose(state, actions, streams)
        q = slow_weights(arms, total, horizon or t + 1, 20.0, 0.5)
        pairs = {
            (i, j): 0.0 if live and i == j else q[i] * q[j] / ((1.0 - q[i]) if live else 1.0)
            for i in range(len(arms))
            for j in range(len(arms))
        }
        first = slow_draw(q, actions, streams, "bexp3 first", t)
        second = slow_draw([pairs[first, j] for j in range(len(arms))], actions, streams, "bexp3 second", t)
        assert (int(duels.first[0]), int(duels.second[0])) == (first, second), f"round {t}"
        assert float(policy.pair_probability(state, actions, duels)[0]) == pytest.approx(pairs[first, second], rel=1e-6)
        spread = sum(p * np.outer(arms[i] - arms[j], arms[i] - arms[j]) for (i, j), p in pairs.items())
        z = arms[first] - arms[second]
        outcome = 1 if generator.random() < 0.5 + float(truth @ z) else -1
        total = total + 0.5 * outcome * np.linalg.inv(spread) @ z
        state = policy.learn(state, actions, duels, np.array([outcome]))
        np.testing.assert_allclose(state.total[0], total, rtol=1e-5, atol=1e-5)


def test_two_arms_by_hand() -> None:
    """The arms 1 and -1 must meet, so Q = z^2 = 4, and a win of the arm 1 adds z / (2 Q) = 1/4; a tie adds nothing."""
    arms = FiniteActions([[1.0], [-1.0]])
    policy = BEXP3(same_arm="different")
    state = policy.start(Problem(dim=1, horizon=100), STREAMS)
    duels, asked = policy.choose(state, arms, STREAMS)
    won = 1 if float(duels.features[0, 0, 0]) > 0 else -1
    learnt = policy.learn(asked, arms, duels, np.array([won]))
    assert learnt.total[0, 0] == pytest.approx(0.25, rel=1e-6)
    tied = policy.learn(asked, arms, duels, np.array([0]))
    assert tied.total[0, 0] == 0.0


def test_the_estimate_is_that_of_the_borda_scores() -> None:
    """With P = 1/2 + <theta, z>, the mean of 4,000 first estimates is theta: within 4 standard errors."""
    lanes, theta = 4000, np.array([0.2, -0.1])
    streams = Streams(1, range(lanes))
    arms = FiniteActions(np.broadcast_to([[1.0, 0.0], [0.0, 1.0], [0.3, 0.5]], (lanes, 3, 2)))
    policy = BEXP3()
    duels, state = policy.choose(policy.start(Problem(dim=2, lanes=lanes, horizon=100), streams), arms, streams)
    wins = np.random.default_rng(0).random(lanes) < 0.5 + duels.contrast @ theta
    total = policy.learn(state, arms, duels, np.where(wins, 1, -1)).total
    error = total.std(axis=0) / math.sqrt(lanes)
    assert (np.abs(total.mean(axis=0) - theta) < 4.0 * error).all()


def test_arms_are_drawn_as_often_as_they_weigh() -> None:
    lanes = 5000
    streams = Streams(2, range(lanes))
    arms = FiniteActions(np.broadcast_to([[1.0, 0.0], [0.0, 1.0], [0.3, 0.5]], (lanes, 3, 2)))
    policy = BEXP3(explore=0.1, rate=50.0)
    state = policy.start(Problem(dim=2, lanes=lanes, horizon=100), streams)._replace(total=np.tile([0.3, 0.1], (lanes, 1)))
    duels, after = policy.choose(state, arms, streams)
    expected = policy.arm_weights(after._replace(asked=0), arms)[0] * lanes
    for rows in (duels.first, duels.second):
        assert chisquare(np.bincount(rows, minlength=3), expected).pvalue > 1e-4


def test_arms_that_do_not_span_the_space_are_played() -> None:
    run = duelist.simulate(BEXP3(), MatrixDuels(arms=5, regret="borda"), rounds=400, trials=3, seed=0)
    assert np.isfinite(run.regret).all()


def test_duels_of_others_teach_nothing_and_other_notes_are_refused() -> None:
    arms = FiniteActions([[1.0, 0.0], [0.0, 1.0]])
    policy = BEXP3()
    state = policy.start(Problem(dim=2), STREAMS)
    duels = duels_between(arms, np.array([0]), np.array([1]))
    assert policy.learn(state, arms, duels, np.array([1])).total.tolist() == [[0.0, 0.0]]
    with pytest.raises(InvalidInputError, match="note"):
        policy.learn(state, arms, duels._replace(note=np.ones((1, 1))), np.array([1]))


@pytest.mark.parametrize(
    ("setting", "word"), [({"rate": 0.0}, "rate"), ({"explore": -1.0}, "explore"), ({"horizon": 0}, "horizon")]
)
def test_bad_settings_are_named(setting: dict[str, Any], word: str) -> None:
    with pytest.raises(InvalidInputError, match=word):
        BEXP3(**setting)
