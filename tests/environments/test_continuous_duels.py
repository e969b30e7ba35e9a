"""Duels over continuous sets: regret from the support function, and FGTS learning on each set."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions.ball import BallActions, SphereActions
from duelist.actions.box import BoxActions
from duelist.actions.custom import CustomActions
from duelist.actions.ellipsoid import EllipsoidActions
from duelist.actions.finite import ActionSet
from duelist.actions.polytope import PolytopeActions
from duelist.actions.product import ProductActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.continuous import ContinuousDuels


def _own(lanes: int) -> ActionSet:
    return CustomActions(np.sign, dim=3, name="corners of a cube", lanes=lanes)


FACTORIES: dict[str, Any] = {
    "ball": "ball",
    "sphere": "sphere",
    "box": "box",
    "ellipsoid": lambda lanes: EllipsoidActions(np.diag([1.0, 2.0, 0.5]), [1.0, 0.0, 0.0], lanes),
    "polytope": lambda lanes: PolytopeActions(np.r_[-np.eye(3), np.ones((1, 3))], [0.0, 0.0, 0.0, 2.0], lanes),
    "product": lambda lanes: ProductActions([BoxActions([-1.0], [1.0], lanes), BallActions(lanes, 2)]),
    "own": _own,
}


@pytest.mark.parametrize("name", FACTORIES)
def test_fgts_learns_on_every_set(name: str) -> None:
    env = ContinuousDuels(dim=3, actions=FACTORIES[name], theta_norm=3.0)
    run = duelist.simulate(duelist.FGTS(), env, rounds=250, trials=2, seed=3, workers=1)
    gained = np.diff(run.regret.mean(axis=0), prepend=0.0)
    assert (gained >= -1e-9).all()
    assert gained[-50:].mean() < 0.35 * gained[:20].mean()


@pytest.mark.parametrize("name", FACTORIES)
def test_random_play_does_not_learn_and_depends_on_its_own_trial_alone(name: str) -> None:
    env = ContinuousDuels(dim=3, actions=FACTORIES[name], theta_norm=3.0)
    run = duelist.simulate(duelist.Uniform(), env, rounds=120, trials=3, seed=3, workers=1)
    gained = np.diff(run.regret.mean(axis=0), prepend=0.0)
    assert gained[-60:].mean() == pytest.approx(gained[:60].mean(), rel=0.35)
    alone = duelist.simulate(duelist.Uniform(), env, rounds=120, trials=[2], seed=3, workers=1)
    np.testing.assert_allclose(alone.regret[0], run.regret[2], rtol=1e-12)
    instance = env.instance(Streams(3, [0]))
    policy: Any = duelist.Uniform()
    duels, _ = policy.choose(policy.start(Problem(dim=3), Streams(3, [0])), instance.actions(0), Streams(3, [0]))
    assert np.isnan(policy.pair_probability(None, instance.actions(0), duels)).all()


def test_regret_is_the_support_function_minus_what_was_played() -> None:
    env = ContinuousDuels(dim=4, actions="box", theta_norm=2.0)
    streams = Streams(0, [0, 1])
    instance = env.instance(streams)
    np.testing.assert_allclose(np.linalg.norm(instance.theta, axis=1), 2.0)
    actions = instance.actions(0)
    policy = duelist.FGTS()
    state = policy.start(Problem(dim=4, lanes=2), streams)
    duels, _ = policy.choose(state, actions, streams)
    best = np.abs(instance.theta).sum(axis=1)
    utilities = np.einsum("ld,ljd->lj", instance.theta, duels.features)
    cost = instance.regret(actions, duels)
    np.testing.assert_allclose(cost.average, best - utilities.mean(axis=1), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(cost.weak, best - utilities.max(axis=1), rtol=1e-12, atol=1e-12)


def test_named_sets_are_the_sets_of_that_name() -> None:
    kinds = {name: type(ContinuousDuels(dim=2, actions=name).action_set(3)) for name in ("ball", "sphere", "box")}
    assert kinds == {"ball": BallActions, "sphere": SphereActions, "box": BoxActions}


def test_a_lane_alone_gives_the_same_numbers_as_in_a_block() -> None:
    env = ContinuousDuels(dim=3, actions="box", theta_norm=2.0)
    block = duelist.simulate(duelist.FGTS(), env, rounds=40, trials=[5, 2], seed=1, workers=1)
    alone = duelist.simulate(duelist.FGTS(), env, rounds=40, trials=[2], seed=1)
    np.testing.assert_array_equal(alone.regret[0], block.regret[1])


def test_factories_that_forget_the_lanes_are_refused() -> None:
    env = ContinuousDuels(dim=2, actions=lambda _lanes: BallActions(1, 2))
    with pytest.raises(InvalidInputError, match="Pass lanes on"):
        duelist.simulate(duelist.FGTS(), env, rounds=2, trials=2, workers=1)
    with pytest.raises(InvalidInputError, match="Did you mean 'ball'"):
        ContinuousDuels(dim=2, actions="bal")  # type: ignore[arg-type]
