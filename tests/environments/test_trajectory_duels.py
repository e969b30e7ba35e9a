"""Duels between trajectories: plans are chosen and paid for, trajectories are compared and learnt from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest

import duelist
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments import Tied, TrajectoryDuels
from duelist.policies import Policy
from duelist.testing import play_rounds, random_duels


class _Seen(NamedTuple):
    asked: int
    chosen: Any
    learnt: Any


@dataclass(frozen=True, kw_only=True)
class _Witness(Policy[_Seen]):
    """Plays the plans of fixed directions and checks what it is given to learn."""

    def start(self, problem: Any, streams: Streams) -> _Seen:  # noqa: ARG002
        return _Seen(0, None, ())

    def choose(self, state: _Seen, actions: Any, streams: Streams) -> Any:  # noqa: ARG002
        duels = random_duels(actions, state.asked)
        return duels, state._replace(asked=state.asked + 1, chosen=duels)

    def learn(self, state: _Seen, actions: Any, duels: Any, outcomes: Any) -> _Seen:  # noqa: ARG002
        return state._replace(learnt=(*state.learnt, (state.chosen.features, duels.features)))

    def report(self, state: _Seen) -> dict[str, Any]:
        chosen, learnt = (np.array(column) for column in zip(*state.learnt, strict=True))
        whole = (learnt == np.round(learnt)).all(axis=(0, 2, 3))
        return {"whole": whole.astype(float), "same": (chosen == learnt).mean(axis=(0, 2, 3))}


@pytest.mark.parametrize("wrap", [lambda env: env, lambda env: Tied(base=env)], ids=["bare", "tied"])
def test_policies_learn_the_trajectories_and_pay_for_the_plans(wrap: Any) -> None:
    env = wrap(TrajectoryDuels(process="river"))
    run = duelist.simulate(_Witness(), env, rounds=20, trials=2, seed=0, workers=1)
    assert (run.info["whole"] == 1.0).all(), "visits of a trajectory are whole numbers"
    assert (run.info["same"] < 0.9).all(), "expected visits of plans are not"
    instance: Any = env.instance(Streams(0, [0, 1]))
    plans = instance.actions(0)
    cost = np.array([instance.regret(plans, random_duels(plans, t)).average for t in range(20)])
    np.testing.assert_allclose(run.regret, cost.cumsum(axis=0).T, rtol=1e-12)


def test_two_episodes_of_one_pair_differ_and_one_asked_for_twice_does_not() -> None:
    instance = TrajectoryDuels(process="grid").instance(Streams(1, [0, 1, 2]))
    duels = random_duels(instance.actions(0), 0)
    first, again, later = (instance.show(t, duels).features for t in (5, 5, 6))
    np.testing.assert_array_equal(first, again)
    assert (first != later).any(axis=(1, 2)).all()
    alone = TrajectoryDuels(process="grid").instance(Streams(1, [2]))
    own = duels._replace(first=duels.first[2:], second=duels.second[2:], features=duels.features[2:])
    np.testing.assert_array_equal(alone.show(5, own).features[0], first[2])


def test_a_plan_against_itself_shows_two_trajectories() -> None:
    instance = TrajectoryDuels(process="river").instance(Streams(1, [0]))
    duels = random_duels(instance.actions(0), 0)
    twice = duels._replace(features=np.repeat(duels.features[:, :1], 2, axis=1))
    assert not twice.contrast.any()
    assert any(instance.show(t, twice).contrast.any() for t in range(5))


def test_a_given_truth_is_that_of_every_trial() -> None:
    theta = np.arange(12.0)
    instance = TrajectoryDuels(process="river", theta=theta).instance(Streams(0, range(3)))
    np.testing.assert_array_equal(instance.theta, np.tile(theta, (3, 1)))
    with pytest.raises(InvalidInputError, match="one entry per feature, 16; got 12"):
        TrajectoryDuels(process="grid", theta=theta)
    with pytest.raises(InvalidInputError, match="process"):
        TrajectoryDuels(process="desert")  # type: ignore[arg-type]


def test_fgts_learns_which_plan_is_best() -> None:
    env = TrajectoryDuels(process="grid")
    ours, random = (
        duelist.simulate(policy, env, rounds=250, trials=4, seed=2, workers=1)
        for policy in (duelist.FGTS(alpha=0.0), duelist.Uniform())
    )
    late = [np.diff(run.regret.mean(axis=0))[-50:].mean() for run in (ours, random)]
    assert late[0] < 0.3 * late[1]


def test_the_rounds_of_the_checks_show_trajectories_too() -> None:
    steps = [step for step, _ in play_rounds(duelist.FGTS(alpha=0.0), TrajectoryDuels(process="river"), 3, [0])]
    assert all((step.duels.features == np.round(step.duels.features)).all() for step in steps)
