"""Votes that are not logistic, or turned round: as often as the law says, and paid for by the law."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from duelist.actions.finite import FiniteActions
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels, LinearDuelsInstance
from duelist.history.duels import duels_between

# The laws in the standard library's terms.
LAWS: dict[str, Callable[[float], float]] = {
    "logistic": lambda u: 1 / (1 + math.exp(-u)),
    "probit": lambda u: 0.5 * (1 + math.erf(u * math.sqrt(2 * math.pi) / 4 / math.sqrt(2))),
    "cauchit": lambda u: 0.5 + math.atan(math.pi * u / 4) / math.pi,
}


def vote_law(u: float, link: str, flips: float) -> float:
    return (1 - flips) * LAWS[link](u) + flips * (1 - LAWS[link](u))


@pytest.mark.parametrize(("link", "flips"), [("logistic", 0.1), ("probit", 0.0), ("cauchit", 0.0), ("cauchit", 0.25)])
def test_arms_win_as_often_as_the_law_says(link: Any, flips: float) -> None:
    instance = LinearDuels(dim=3, arms=8, theta_norm=2.0, link=link, flips=flips).instance(Streams(1, range(12)))
    actions, rounds = instance.actions(0), 4000
    duels = duels_between(actions, np.zeros(12, dtype=np.int64), np.ones(12, dtype=np.int64))
    logits = np.einsum("ld,ld->l", instance.theta, duels.contrast)
    wins = sum(instance.outcomes(t, duels) == 1 for t in range(rounds))
    chance = np.array([vote_law(float(u), link, flips) for u in logits])
    logistic = np.array([LAWS["logistic"](float(u)) for u in logits])
    # Twelve binomials at five standard deviations: a false alarm less than once in 100,000 seeds.
    spread = np.sqrt(rounds * chance * (1 - chance))
    assert (np.abs(wins - rounds * chance) < 5 * spread).all()
    # And these lanes can tell the law from the logistic.
    assert (np.abs(wins - rounds * logistic) > 5 * spread).any()


@pytest.mark.parametrize("flips", [0.0, 0.2])
@pytest.mark.parametrize("link", ["logistic", "probit", "cauchit"])
def test_the_third_regret_is_of_the_chance_that_a_vote_goes_to_the_best_arm(link: Any, flips: float) -> None:
    recipe = LinearDuels(dim=2, arms=3, link=link, flips=flips)
    instance = LinearDuelsInstance(recipe, np.array([[0.6, 0.8]]), Streams(0, [0]))
    actions = FiniteActions(np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0]]))  # utilities 1.4, -0.2 and 0.2
    regret = instance.regret(actions, duels_between(actions, np.array([1]), np.array([2])))
    expected = (vote_law(1.6, link, flips) + vote_law(1.2, link, flips)) / 2 - 0.5
    assert float(regret.yue[0]) == pytest.approx(expected)
    assert float(regret.average[0]) == pytest.approx((1.6 + 1.2) / 2)


def test_the_same_uniform_decides_under_every_law() -> None:
    streams = Streams(0, range(40))
    plain, flipped = (LinearDuels(dim=4, arms=8, flips=flips).instance(streams) for flips in (0.0, 0.2))
    actions = plain.actions(0)
    duels = duels_between(actions, np.zeros(40, dtype=np.int64), np.ones(40, dtype=np.int64))
    logits = np.einsum("ld,ld->l", plain.theta, duels.contrast)
    for t in range(50):
        change = flipped.outcomes(t, duels) - plain.outcomes(t, duels)
        # Flips bring chances nearer to a half, so a common uniform can only turn the favourite's wins.
        assert (change[logits > 0] <= 0).all()
        assert (change[logits < 0] >= 0).all()
