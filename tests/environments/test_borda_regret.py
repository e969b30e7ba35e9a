"""The Borda regret of linear utilities, beside a plain loop."""

from __future__ import annotations

import math

import numpy as np

import duelist
from duelist.actions import FiniteActions
from duelist.core.streams import Streams
from duelist.environments import Rotating
from duelist.history.duels import duels_between


def slow_scores(utilities: list[float], flips: float) -> list[float]:
    """Mean probability of beating another arm."""
    scores = []
    for i, mine in enumerate(utilities):
        wins = [1.0 / (1.0 + math.exp(other - mine)) for j, other in enumerate(utilities) if j != i]
        scores.append(sum(win + flips * (1.0 - 2.0 * win) for win in wins) / len(wins))
    return scores


def test_it_is_what_a_loop_over_arms_says() -> None:
    instance = duelist.LinearDuels(dim=4, arms=7, flips=0.1).instance(Streams(3, [0, 5]))
    actions = instance.actions(0)
    first, second = np.array([2, 6]), np.array([4, 0])
    regret = instance.regret(actions, duels_between(actions, first, second)).kinds()["borda"]
    for lane in range(2):
        utilities = [float(instance.theta[lane] @ x) for x in actions.features[lane]]
        scores = slow_scores(utilities, 0.1)
        expected = max(scores) - 0.5 * (scores[first[lane]] + scores[second[lane]])
        assert abs(regret[lane] - expected) < 1e-12


def test_it_follows_a_truth_that_turns() -> None:
    instance = Rotating(base=duelist.LinearDuels(dim=4, arms=7), rate=0.5).instance(Streams(3, [0]))
    start = instance.actions(0)
    assert isinstance(start, FiniteActions)
    duels = duels_between(start, np.array([1]), np.array([2]))
    for round_ in (0, 3, 0):
        actions = instance.actions(round_)
        scores = slow_scores([float(instance.theta[0] @ x) for x in start.features[0]], 0.0)
        expected = max(scores) - 0.5 * (scores[1] + scores[2])
        assert abs(float(instance.regret(actions, duels).kinds()["borda"][0]) - expected) < 1e-12


def test_fresh_arms_have_none() -> None:
    run = duelist.simulate(duelist.Uniform(), duelist.LinearDuels(dim=4, arms=6, fresh_arms=True), rounds=3, trials=2)
    assert set(run.regrets) == {"average", "weak", "yue"}
    kept = duelist.simulate(duelist.Uniform(), duelist.LinearDuels(dim=4, arms=6), rounds=3, trials=2)
    assert set(kept.regrets) == {"average", "weak", "yue", "borda"}
