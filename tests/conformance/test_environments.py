"""One table that every environment passes. A new environment adds a line to `ROWS`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from duelist.actions.finite import FiniteActions
from duelist.core.streams import Streams
from duelist.environments.continuous import ContinuousDuels
from duelist.environments.hard import HardDuels
from duelist.environments.linear import LinearDuels
from duelist.environments.listed import ListedDuels
from duelist.environments.nonlinear import NetworkDuels, QuadraticDuels
from duelist.environments.registry import ENVIRONMENTS
from duelist.history.duels import Duels, duels_between
from duelist.preferences.links import win_law
from duelist.preferences.logistic import win_probability
from duelist.testing import environment_checks, random_duels
from duelist.typing import FloatArray

SEED = 7
VOTES = 4000
# Every row is tested once at this level: with about 15 rows one false alarm in 700 changes of the seed.
FALSE_ALARM = 1e-4


@dataclass(frozen=True)
class Row:
    """An environment, its name in the tests, and its law of who wins given the difference of utilities."""

    name: str
    environment: Any
    law: Any = win_probability


ROWS = [
    Row("LinearDuels", LinearDuels(dim=4, arms=6)),
    Row("LinearDuels, fresh arms", LinearDuels(dim=4, arms=6, fresh_arms=True)),
    Row("LinearDuels, sphere", LinearDuels(dim=4, arms=6, geometry="sphere", unit_norm=True, theta_norm=3.0)),
    Row("LinearDuels, clusters", LinearDuels(dim=4, arms=6, geometry="clusters")),
    Row("LinearDuels, axes", LinearDuels(dim=4, arms=3, geometry="axes")),
    Row("LinearDuels, probit", LinearDuels(dim=4, arms=6, link="probit", flips=0.2), win_law("probit", 0.2)),
    Row("LinearDuels, cauchit", LinearDuels(dim=4, arms=6, link="cauchit"), win_law("cauchit", 0.0)),
    Row("ListedDuels", ListedDuels(models=((3.0, 4.0, 0.0), (0.0, 1.0, 2.0)), arms=5)),
    Row("HardDuels", HardDuels(dim=3, horizon=50)),
    Row("HardDuels, corners", HardDuels(dim=3, horizon=50, actions="corners")),
    Row("ContinuousDuels", ContinuousDuels(dim=3)),
    Row("ContinuousDuels, sphere", ContinuousDuels(dim=3, actions="sphere")),
    Row("ContinuousDuels, box", ContinuousDuels(dim=3, actions="box", theta_norm=2.0)),
    Row("QuadraticDuels", QuadraticDuels(dim=2, arms=6)),
    Row("NetworkDuels", NetworkDuels(dim=2, arms=6)),
]
every_environment = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])


def true_utilities(instance: Any, features: FloatArray) -> FloatArray:
    """(lanes, n) of features (lanes, n, dim), from what the instance says the truth is."""
    if hasattr(instance, "utility"):
        return np.asarray(instance.utility(features))
    return np.asarray(np.einsum("ld,lnd->ln", instance.theta, features))


def best_pair(instance: Any, actions: Any) -> Duels:
    """The best arm against itself."""
    if isinstance(actions, FiniteActions):
        row = true_utilities(instance, actions.features).argmax(axis=1)
        return duels_between(actions, row, row)
    best = actions.best(np.repeat(instance.theta[:, None], 2, axis=1))
    return Duels(best.row[:, 0], best.row[:, 1], best.features)


def test_every_registered_environment_has_a_row() -> None:
    assert {type(row.environment) for row in ROWS} == set(ENVIRONMENTS.values())


@every_environment
@pytest.mark.parametrize("check", environment_checks(LinearDuels()))
def test_it_passes_the_check_that_is_open_to_everybody(row: Row, check: str) -> None:
    environment_checks(row.environment)[check]()


@every_environment
def test_regret_is_never_negative_and_zero_for_the_best_pair(row: Row) -> None:
    instance = row.environment.instance(Streams(SEED, range(20)))
    for t in range(5):
        actions = instance.actions(t)
        regret = instance.regret(actions, random_duels(actions, t))
        assert all(column.shape == (20,) and (column >= -1e-12).all() for column in regret)
        assert (regret.weak <= regret.average + 1e-12).all()
        assert all(np.abs(column).max() < 1e-12 for column in instance.regret(actions, best_pair(instance, actions)))


@every_environment
def test_regret_is_what_the_true_utilities_say(row: Row) -> None:
    instance = row.environment.instance(Streams(SEED, range(20)))
    actions = instance.actions(0)
    duels = random_duels(actions, 0)
    best = true_utilities(instance, best_pair(instance, actions).features).max(axis=1, keepdims=True)
    gaps = best - true_utilities(instance, duels.features)
    regret = instance.regret(actions, duels)
    np.testing.assert_allclose(regret.average, gaps.mean(axis=1), atol=1e-12)
    np.testing.assert_allclose(regret.weak, gaps.min(axis=1), atol=1e-12)
    np.testing.assert_allclose(regret.yue, (row.law(gaps) - 0.5).mean(axis=1), atol=1e-12)


@every_environment
def test_outcomes_follow_the_probabilities_of_winning(row: Row) -> None:
    """One pair of one trial, asked in many rounds: an exact binomial test at the stated level."""
    instance = row.environment.instance(Streams(SEED, [0]))
    duels = random_duels(instance.actions(0), 3)
    utilities = true_utilities(instance, duels.features)[0]
    wins = 0
    for t in range(VOTES):
        outcome = instance.outcomes(t, duels)
        assert outcome.shape == (1,)
        assert outcome[0] in (-1, 1)
        wins += int(outcome[0] == 1)
    chance = float(row.law(np.array([utilities[0] - utilities[1]]))[0])
    assert binomtest(wins, VOTES, chance).pvalue > FALSE_ALARM
