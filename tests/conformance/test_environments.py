"""One table that every environment passes. A new environment adds a line to `ROWS`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from duelist.actions.finite import FiniteActions
from duelist.core.streams import Streams
from duelist.environments.continuous import ContinuousDuels
from duelist.environments.given import ContextDuels, GivenDuels
from duelist.environments.hard import HardDuels
from duelist.environments.linear import LinearDuels, ListedDuels
from duelist.environments.matrix import MatrixDuels
from duelist.environments.nonlinear import NetworkDuels, QuadraticDuels
from duelist.environments.registry import ENVIRONMENTS
from duelist.environments.scored import ScoredDuels
from duelist.environments.trajectories import TrajectoryDuels
from duelist.environments.users import UserDuels
from duelist.environments.votes import VoteDuels
from duelist.environments.wrappers import Corrupted, Delayed, Rotating, Switching, Tied
from duelist.history.duels import Duels, duels_between
from duelist.preferences.links import win_law
from duelist.preferences.logistic import win_probability
from duelist.testing import environment_checks, random_duels
from duelist.typing import FloatArray

SEED = 7
VOTES = 4000
# Every row is tested twice at this level: with about 35 rows one false alarm in 140 changes of the seed.
FALSE_ALARM = 1e-4


@dataclass(frozen=True)
class Row:
    """An environment and its name in the tests.

    Attributes:
        law: of who wins given the difference of utilities; None where utilities do not decide.
        signed: kinds of regret that may be negative.
    """

    name: str
    environment: Any
    law: Any = win_probability
    signed: tuple[str, ...] = ()


BASE = LinearDuels(dim=4, arms=6)
TABLE = {
    "first": ["ann", "ann", "bob", "cid", "ann", "cid"],
    "second": ["bob", "cid", "cid", "bob", "bob", "ann"],
    "outcome": [1, 1, 0, 1, -1, 0],
    "weight": [3, 2, 1, 2, 1, 1],
}
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
    Row("GivenDuels", GivenDuels(features=[[1.0, 0.0], [0.0, 1.0], [0.5, 0.7]], theta=[2.0, -1.0])),
    Row(
        "GivenDuels, models",
        GivenDuels(features=np.eye(3), theta=[[1.0, 0.0, 0.5], [0.0, 2.0, 0.0]], link="probit", flips=0.1),
        win_law("probit", 0.1),
    ),
    Row("ContextDuels", ContextDuels(context_dim=2, arms=5, arm_dim=3)),
    Row("ContextDuels, tables", ContextDuels(contexts=np.eye(3), catalogue=np.arange(8.0).reshape(4, 2) - 4.0)),
    Row("ContextDuels, blocks", ContextDuels(context_dim=2, arms=4, join="blocks")),
    Row("MatrixDuels, given", MatrixDuels(matrix=[[0.5, 0.6, 0.7], [0.4, 0.5, 0.8], [0.3, 0.2, 0.5]]), None),
    Row("MatrixDuels", MatrixDuels(arms=6), None),
    Row("MatrixDuels, cycle", MatrixDuels(matrix="cycle", arms=6), None),
    Row("MatrixDuels, random", MatrixDuels(matrix="random", arms=5, regret="copeland"), None, signed=("yue", "condorcet")),
    Row("ScoredDuels", ScoredDuels(contexts=np.eye(3), scores=[[1.0, 0.0], [0.2, 0.4], [0.5, 0.5]]), None),
    Row(
        "ScoredDuels, costs",
        ScoredDuels(
            contexts=np.eye(3),
            scores=np.eye(3),
            costs=[[0.1, 0.5, 1.0]] * 3,
            cost_weight=0.3,
            catalogue=np.ones((3, 3)),
            join="product",
        ),
        None,
    ),
    Row("TrajectoryDuels", TrajectoryDuels()),
    Row("TrajectoryDuels, grid", TrajectoryDuels(process="grid", theta_norm=0.5)),
    Row("UserDuels", UserDuels(dim=3, arms=5, users=4, clusters=2, asks="skewed"), None),
    Row("VoteDuels", VoteDuels(votes=TABLE), None),
    Row("VoteDuels, votes", VoteDuels(votes=TABLE, answers="votes"), None),
    Row("Tied", Tied(base=BASE, nu=1.5), None),
    Row("Corrupted", Corrupted(base=BASE, flips=0.2), None),
    Row("Corrupted, adversary", Corrupted(base=BASE, budget=3), None),
    Row("Delayed", Delayed(base=BASE, delay=3, batch=4)),
    Row("Delayed, at random", Delayed(base=BASE, delay=3, law="geometric", missing=0.2)),
    Row("Rotating", Rotating(base=BASE, rate=0.01)),
    Row("Switching", Switching(base=BASE, every=2), None),
    Row("Tied, Corrupted, Switching", Tied(base=Corrupted(base=Switching(base=MatrixDuels(arms=4)), flips=0.1)), None),
]
by_utility = pytest.mark.parametrize("row", [row for row in ROWS if row.law], ids=[row.name for row in ROWS if row.law])
every_environment = pytest.mark.parametrize("row", ROWS, ids=[row.name for row in ROWS])


def true_utilities(instance: Any, features: FloatArray) -> FloatArray:
    """(lanes, n) of features (lanes, n, dim), from what the instance says the truth is."""
    while hasattr(instance, "base"):
        instance = instance.base
    if hasattr(instance, "utility"):
        return np.asarray(instance.utility(features))
    return np.asarray(np.einsum("ld,lnd->ln", instance.theta, features))


def best_pair(instance: Any, actions: Any) -> Duels:
    """The best arm against itself: that which costs least, tried one by one."""
    if isinstance(actions, FiniteActions):
        every = [np.full(actions.lanes, row) for row in range(actions.n_arms)]
        row = np.argmin([instance.regret(actions, duels_between(actions, one, one)).average for one in every], axis=0)
        return duels_between(actions, row, row)
    best = actions.best(np.repeat(instance.theta[:, None], 2, axis=1))
    return Duels(best.row[:, 0], best.row[:, 1], best.features)


def test_every_registered_environment_has_a_row() -> None:
    # Those of Gymnasium need an extra: tests/environments/test_gymnasium.py.
    assert {type(row.environment).__name__ for row in ROWS} == {*ENVIRONMENTS} - {"GymnasiumDuels"}


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
        best = instance.regret(actions, best_pair(instance, actions)).kinds()
        assert (regret.weak <= regret.average + 1e-12).all()
        for kind, column in regret.kinds().items():
            assert column.shape == (20,)
            assert kind in row.signed or (column >= -1e-12).all()
            # The best arm by one kind of regret need not be the best by another.
            assert kind not in ("average", "weak", "yue") or kind in row.signed or np.abs(best[kind]).max() < 1e-12


@by_utility
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


@by_utility
def test_the_probability_of_a_win_is_what_the_true_utilities_say(row: Row) -> None:
    instance = row.environment.instance(Streams(SEED, range(20)))
    for t in range(3):
        duels = random_duels(instance.actions(t), t)
        utilities = true_utilities(instance, duels.features)
        np.testing.assert_allclose(instance.win_probability(t, duels), row.law(utilities[:, 0] - utilities[:, 1]), rtol=1e-12)


@every_environment
def test_outcomes_follow_the_probabilities_that_the_instance_names(row: Row) -> None:
    """One pair of rows of one trial, asked in many rounds: wins and ties, each at the stated level.

    An exact binomial test where the probability stays; where it moves, a normal one on the sum.
    """
    instance = row.environment.instance(Streams(SEED, [0]))
    answers, chances = [], []
    duels = random_duels(instance.actions(0), 3)
    for t in range(VOTES):
        answers.append(instance.outcomes(t, duels))
        chances.append([instance.win_probability(t, duels)[0], instance.tie_probability(t, duels)[0]])
        assert answers[-1].shape == (1,)
        assert answers[-1][0] in (-1, 0, 1)
    for value, chance in zip((1, 0), np.transpose(chances), strict=True):
        found = int(np.sum(np.array(answers) == value))
        if (chance == chance[0]).all():
            assert binomtest(found, VOTES, float(chance[0])).pvalue > FALSE_ALARM
        else:
            assert abs(found - chance.sum()) < norm.isf(FALSE_ALARM / 2) * np.sqrt((chance * (1.0 - chance)).sum())


@every_environment
def test_the_noise_of_lanes_and_rounds_is_independent_of_the_policy(row: Row) -> None:
    instance = row.environment.instance(Streams(SEED, range(30)))
    duels = random_duels(instance.actions(0), 1)
    before = [instance.outcomes(t, duels).tolist() for t in range(4)]
    for t in range(4):  # another policy asks about other pairs in between
        instance.outcomes(t, random_duels(instance.actions(t), 9))
    assert [instance.outcomes(t, duels).tolist() for t in range(4)] == before
    assert len({tuple(outcomes) for outcomes in before}) > 1
