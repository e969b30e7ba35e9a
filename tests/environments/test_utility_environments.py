"""Environments with a nonlinear truth, and slates: their truth is what they say, and answers follow their model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels
from duelist.environments.nonlinear import NetworkDuels, QuadraticDuels
from duelist.history.duels import duels_between
from duelist.history.slates import slates_of

ENVIRONMENTS: list[Any] = [QuadraticDuels(dim=3, arms=10), NetworkDuels(dim=3, arms=10, hidden=4)]


@pytest.mark.parametrize("env", ENVIRONMENTS, ids=lambda env: type(env).__name__)
def test_the_best_arm_costs_nothing_and_others_their_gap(env: Any) -> None:
    instance = env.instance(Streams(0, [0, 1, 2]))
    actions = instance.actions(0)
    utilities = instance.utility(actions.features)
    np.testing.assert_allclose(utilities.std(axis=1), 2.0, rtol=1e-12)
    best, worst = utilities.argmax(axis=1), utilities.argmin(axis=1)
    gap = utilities.max(axis=1) - utilities.min(axis=1)
    np.testing.assert_allclose(instance.regret(actions, duels_between(actions, best, best)).average, 0.0, atol=1e-12)
    regret = instance.regret(actions, duels_between(actions, best, worst))
    np.testing.assert_allclose(regret.average, gap / 2, rtol=1e-12)
    np.testing.assert_allclose(regret.weak, 0.0, atol=1e-12)


@pytest.mark.parametrize("env", ENVIRONMENTS, ids=lambda env: type(env).__name__)
def test_outcomes_occur_as_often_as_the_utilities_say(env: Any) -> None:
    instance = env.instance(Streams(0, [0]))
    actions = instance.actions(0)
    utilities = instance.utility(actions.features)[0]
    duels = duels_between(actions, np.array([0]), np.array([1]))
    wins = sum(int(instance.outcomes(t, duels)[0] == 1) for t in range(4000))
    p = 1.0 / (1.0 + math.exp(utilities[1] - utilities[0]))
    assert abs(wins - 4000 * p) < 5 * math.sqrt(4000 * p * (1 - p))


def test_a_quadratic_truth_is_quadratic_along_every_line() -> None:
    instance = QuadraticDuels(dim=3, arms=5).instance(Streams(0, [0]))
    start, way = np.array([0.1, -0.5, 0.3]), np.array([1.0, 2.0, -1.0])
    line = start + np.arange(-3.0, 4.0)[:, None] * way
    values = instance.utility(line[None])[0]
    np.testing.assert_allclose(np.diff(values, n=3), 0.0, atol=1e-10)
    assert (np.diff(values, n=2) < 0.0).all()


def test_slates_are_ranked_by_plackett_luce_where_the_law_of_pairs_is_logistic() -> None:
    streams = Streams(0, [0, 1])
    instance = LinearDuels(dim=3, arms=4).instance(streams)
    actions = instance.actions(0)
    slates = slates_of(actions, np.array([[0, 1, 2], [3, 3, 0]]))
    firsts = np.array([instance.rankings(t, slates)[:, 0] for t in range(3000)])
    for lane in range(2):
        odds = np.exp(slates.features[lane] @ instance.theta[lane])
        for place, p in enumerate(odds / odds.sum()):
            assert abs((firsts[:, lane] == place).sum() - 3000 * p) < 5 * math.sqrt(3000 * p * (1 - p))
    utilities = np.einsum("ld,lkd->lk", instance.theta, actions.features)
    best = slates_of(actions, np.repeat(utilities.argmax(axis=1)[:, None], 3, axis=1))
    np.testing.assert_allclose(instance.regret(actions, best), 0.0, atol=1e-12)
    with pytest.raises(InvalidInputError, match="Plackett-Luce"):
        LinearDuels(dim=3, arms=4, flips=0.1).instance(streams).rankings(0, slates)


@pytest.mark.parametrize(
    "make", [lambda: QuadraticDuels(arms=1), lambda: NetworkDuels(hidden=0), lambda: LinearDuels(dim=2, arms=5)]
)
def test_bad_recipes_are_refused(make: Any) -> None:
    with pytest.raises(InvalidInputError):
        make()
