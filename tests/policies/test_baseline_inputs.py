"""The baselines refuse what they cannot use, before anything is computed from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import duels_between
from duelist.policies.algorithms.confidence.colstim import CoLSTIM
from duelist.policies.algorithms.confidence.maxinp import MaxInP
from duelist.policies.algorithms.confidence.maxpairucb import MaxPairUCB
from duelist.policies.algorithms.confidence.stad import StaD
from duelist.policies.algorithms.confidence.supcolstim import SupCoLSTIM
from duelist.policies.algorithms.confidence.vacdb import VACDB

BASELINES: tuple[Any, ...] = (MaxInP, MaxPairUCB, CoLSTIM, VACDB, StaD, SupCoLSTIM)
LAYERED: tuple[Any, ...] = (VACDB, StaD, SupCoLSTIM)
STREAMS = Streams(0, [0])


@pytest.mark.parametrize("kind", BASELINES)
@pytest.mark.parametrize("shape", [(1, 4, 2), (1, 4, 5), (2, 4, 3)])
def test_arms_of_another_dimension_or_number_of_lanes_are_refused(kind: Any, shape: tuple[int, ...]) -> None:
    policy = kind()
    state = policy.start(Problem(dim=3), STREAMS)
    with pytest.raises(InvalidInputError, match=r"1 lane\(s\) of dimension 3"):
        policy.choose(state, FiniteActions(np.random.default_rng(0).standard_normal(shape)), STREAMS)


@pytest.mark.parametrize("kind", BASELINES)
@pytest.mark.parametrize("radius", ["theori", -1.0, float("nan"), float("inf"), [[1.0]], [1.0, -2.0], None])
def test_a_radius_that_is_no_number_of_at_least_zero_is_refused(kind: Any, radius: object) -> None:
    with pytest.raises(InvalidInputError, match="radius"):
        kind(radius=radius)


@pytest.mark.parametrize("kind", BASELINES)
def test_radii_may_come_as_an_array_or_a_list(kind: Any) -> None:
    problem = Problem(dim=2, lanes=3)
    streams = Streams(0, [0, 1, 2])
    states = [kind(radius=radii).start(problem, streams) for radii in (np.array([1.0, 2.0, 3.0]), [1.0, 2.0, 3.0])]
    for state in states:
        assert getattr(state, "fit", state).settings.radius.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("kind", [MaxInP, MaxPairUCB, CoLSTIM])
@pytest.mark.parametrize("ridge", ["two", 0.0, -1.0, float("nan")])
def test_a_ridge_that_is_not_above_zero_is_refused(kind: Any, ridge: object) -> None:
    with pytest.raises(InvalidInputError, match="ridge"):
        kind(ridge=ridge)


@pytest.mark.parametrize("kind", [MaxInP, MaxPairUCB, CoLSTIM])
@pytest.mark.parametrize("name", ["fit_ridge", "warmup"])
@pytest.mark.parametrize("value", ["two", -1.0, float("nan"), 0.0 - 1e-9, [[1.0]]])
def test_a_ridge_of_the_fit_or_a_warm_up_that_cannot_be_is_refused(kind: Any, name: str, value: object) -> None:
    with pytest.raises(InvalidInputError, match=name):
        kind(**{name: value})


@pytest.mark.parametrize("perturbation", ["much", -1.0, float("nan"), [1.0, -2.0]])
def test_a_perturbation_that_is_no_number_of_at_least_zero_is_refused(perturbation: Any) -> None:
    with pytest.raises(InvalidInputError, match="perturbation"):
        CoLSTIM(perturbation=perturbation)


@pytest.mark.parametrize("kind", [*LAYERED, CoLSTIM])
@pytest.mark.parametrize("horizon", [0, -5, 2.5, "long"])
def test_a_horizon_that_is_no_number_of_rounds_is_refused(kind: Any, horizon: object) -> None:
    with pytest.raises(InvalidInputError, match="horizon"):
        kind(horizon=horizon)


@pytest.mark.parametrize("kind", LAYERED)
@pytest.mark.parametrize("layers", [0, 1, 61, 2.5])
def test_fewer_than_two_layers_or_too_many_are_refused(kind: Any, layers: object) -> None:
    with pytest.raises(InvalidInputError, match="layers"):
        kind(layers=layers)


def test_stad_refuses_a_radius_of_zero_since_its_stop_test_divides_by_it() -> None:
    with pytest.raises(InvalidInputError, match=r"radius must be .*above 0"):
        StaD(radius=(1.0, 0.0))


@pytest.mark.parametrize("kind", LAYERED)
@pytest.mark.parametrize(
    "note", [[[7.0, 1.0]], [[-1.0, 1.0]], [[0.5, 1.0]], [[0.0, -1.0]], [[0.0, np.nan]], [[np.nan, 1.0]], [[0.0]]]
)
def test_a_note_that_this_policy_did_not_write_is_refused_and_nothing_is_learnt(kind: Any, note: list[list[float]]) -> None:
    policy, arms = kind(layers=4), FiniteActions(np.eye(3))
    state = policy.start(Problem(dim=3), STREAMS)
    duels = duels_between(arms, np.array([0]), np.array([1]), np.array(note))
    with pytest.raises(InvalidInputError, match="note"):
        policy.learn(state, arms, duels, np.array([1]))
    assert state.history.rounds == 0
