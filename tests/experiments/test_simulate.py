"""Runs: their numbers are those of a plain loop for any number of workers, and errors come out unchanged."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions.finite import ActionSet
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.base import Regret
from duelist.environments.linear import LinearDuels
from duelist.experiments.run import NO_ANSWER, Run
from duelist.history.duels import Duels
from duelist.policies import MAUPO
from duelist.policies.base import Policy
from duelist.typing import FloatArray, IntArray

ENV = LinearDuels(dim=3, arms=6)
COLUMNS = ("regret", "weak_regret", "yue_regret", "first", "second", "outcomes")


def assert_same_run(one: Run, other: Run) -> None:
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    assert one.info.keys() == other.info.keys()
    for name in one.info:
        np.testing.assert_array_equal(one.info[name], other.info[name], err_msg=name)


@pytest.mark.parametrize("env", [ENV, LinearDuels(dim=3, arms=6, fresh_arms=True, unit_norm=True)])
def test_regret_is_what_a_plain_loop_over_the_arms_played_gives(env: LinearDuels) -> None:
    run = duelist.simulate(duelist.FGTS(), env, rounds=120, trials=[4, 8], seed=5)
    for lane, trial in enumerate(run.trials):
        instance = env.instance(Streams(5, [trial]))
        theta = instance.theta[0]
        average = weak = yue = 0.0
        for t in range(120):
            utilities = [float(arm @ theta) for arm in instance.actions(t).features[0]]
            first, second = utilities[run.first[lane, t]], utilities[run.second[lane, t]]
            best = max(utilities)
            average += best - (first + second) / 2
            weak += best - max(first, second)
            yue += sum(1 / (1 + math.exp(-(best - u))) - 0.5 for u in (first, second)) / 2
            assert run.regret[lane, t] == pytest.approx(average, abs=1e-9)
            assert run.weak_regret[lane, t] == pytest.approx(weak, abs=1e-9)
            assert run.yue_regret[lane, t] == pytest.approx(yue, abs=1e-9)


def test_regret_never_falls_and_the_final_one_is_the_last() -> None:
    run = duelist.simulate(duelist.FGTS(), ENV, rounds=80, trials=3, seed=0)
    assert (np.diff(run.regret, axis=1) > -1e-12).all()
    np.testing.assert_array_equal(run.final_regret, run.regret[:, -1])
    assert set(np.unique(run.outcomes)) == {-1, 1}
    assert run.seconds > 0.0


@pytest.mark.parametrize("workers", [2, 3, 50])
def test_the_number_of_workers_changes_nothing(workers: int) -> None:
    one = duelist.simulate(duelist.FGTS(), ENV, rounds=50, trials=5, seed=0, workers=1)
    assert_same_run(one, duelist.simulate(duelist.FGTS(), ENV, rounds=50, trials=5, seed=0, workers=workers))


def test_policies_meet_the_same_instances_and_the_same_noise() -> None:
    env = LinearDuels(dim=2, arms=2)
    one = duelist.simulate(duelist.Uniform(), env, rounds=200, trials=3, seed=0)
    other = duelist.simulate(duelist.FGTS(same_arm="runner-up"), env, rounds=200, trials=3, seed=0)
    # Where both happened to show the same pair in the same round, the same candidate won.
    same = (one.first == other.first) & (one.second == other.second)
    assert same.sum() > 200
    np.testing.assert_array_equal(one.outcomes[same], other.outcomes[same])


def test_trials_are_named_by_their_number() -> None:
    several = duelist.simulate(duelist.Uniform(), ENV, rounds=20, trials=6, seed=0)
    named = duelist.simulate(duelist.Uniform(), ENV, rounds=20, trials=[5, 3], seed=0)
    assert (several.trials, named.trials) == ((0, 1, 2, 3, 4, 5), (5, 3))
    np.testing.assert_array_equal(named.regret, several.regret[[5, 3]])


def test_a_count_of_trials_may_come_from_numpy() -> None:
    assert duelist.simulate(duelist.Uniform(), ENV, rounds=2, trials=np.int64(3)).trials == (0, 1, 2)  # type: ignore[arg-type]


class LaneError(RuntimeError):
    """What the failing policy raises."""


@dataclass(frozen=True, kw_only=True)
class Fails(Policy[Any]):
    """Plays arm 0 against arm 1 and fails where trial 3 is played, in the given round."""

    at: int = 5

    def start(self, problem: Problem, streams: Streams) -> int:
        assert problem.lanes == len(streams)
        return 0

    def choose(self, state: int, actions: ActionSet, streams: Streams) -> tuple[Duels, int]:
        if 3 in streams.trials and state == self.at:
            raise LaneError("trial 3 failed")
        features = getattr(actions, "features")[:, :2].copy()  # noqa: B009 - finite by construction here
        rows = np.zeros(actions.lanes, dtype=np.int64)
        return Duels(rows, rows + 1, features), state + 1

    def learn(self, state: int, actions: ActionSet, duels: Duels, outcomes: IntArray) -> int:
        assert len(outcomes) == actions.lanes == len(duels.first)
        return state

    def report(self, state: int) -> dict[str, FloatArray]:
        return {"asked": np.array([float(state)])}


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_policy_that_fails_in_one_block_raises_its_own_error(workers: int) -> None:
    with pytest.raises(LaneError, match="trial 3 failed"):
        duelist.simulate(Fails(), ENV, rounds=3000, trials=4, workers=workers)


def test_one_failing_block_stops_the_others() -> None:
    ticks: list[int] = []
    with pytest.raises(LaneError):
        duelist.simulate(Fails(at=0), ENV, rounds=100_000, trials=4, workers=4, progress=ticks.append)
    assert sum(ticks) < 3 * 100_000


@pytest.mark.parametrize("workers", [1, 3])
def test_progress_hears_of_every_round_of_every_trial(workers: int) -> None:
    ticks: list[int] = []
    duelist.simulate(duelist.Uniform(), ENV, rounds=40, trials=7, workers=workers, progress=ticks.append)
    assert sum(ticks) == 7 * 40
    assert min(ticks) > 0


def test_a_progress_function_may_stop_the_run() -> None:
    def stop(_amount: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        duelist.simulate(duelist.Uniform(), ENV, rounds=40, trials=7, workers=1, progress=stop)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rounds": 0}, "rounds"),
        ({"rounds": 2.5}, "rounds"),
        ({"trials": 0}, "trials"),
        ({"trials": []}, "at least one trial"),
        ({"trials": [-1]}, "trial"),
        ({"trials": 2.5}, "trials"),
        ({"trials": True}, "trials"),
        ({"seed": -1}, "seed"),
        ({"workers": 0}, "workers"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        duelist.simulate(duelist.Uniform(), ENV, **{"rounds": 5, "trials": 2, **settings})


class ZerosAndOnes:
    """An environment whose author wrote 1 for a win and 0 for a loss."""

    dim = ENV.dim

    def instance(self, streams: Streams) -> Any:
        truth = ENV.instance(streams)
        outcomes = truth.outcomes
        truth.outcomes = lambda round_, duels: (outcomes(round_, duels) + 1) // 2  # type: ignore[method-assign]
        return truth


def test_an_environment_that_answers_in_zeros_and_ones_is_told_so() -> None:
    with pytest.warns(UserWarning, match=r"ZerosAndOnes were .* never -1.*2 \* outcome - 1"):
        duelist.simulate(duelist.FGTS(), ZerosAndOnes(), rounds=50, trials=2, seed=0)


class Changed:
    """An environment whose author returns something of his own from a method."""

    dim = ENV.dim

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    def instance(self, streams: Streams) -> Any:
        truth = ENV.instance(streams)
        for name, change in self.answers.items():
            own = getattr(truth, name)
            setattr(truth, name, lambda *asked, own=own, change=change: change(own(*asked)))
        return truth


@pytest.mark.parametrize("trials", [1, 3, 4])
def test_a_plain_array_of_regret_is_the_average_also_of_three_lanes(trials: int) -> None:
    plain = Changed(regret=lambda regret: regret.average)
    run, expected = (duelist.simulate(duelist.Uniform(), env, rounds=20, trials=trials, workers=1) for env in (plain, ENV))
    np.testing.assert_array_equal(run.regret, expected.regret)
    assert np.isnan(run.weak_regret).all()
    assert np.isnan(run.yue_regret).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"regret": lambda regret: regret.average[:2]}, r"regret of Changed must be \(3,\).*average"),
        ({"regret": lambda regret: regret.average * np.nan}, "average = .*nan"),
        ({"regret": lambda regret: (regret.average, regret.weak[:1])}, "weak"),
        ({"outcomes": lambda outcomes: 2 * outcomes}, r"outcomes of Changed.*in round 0"),
        ({"outcomes": lambda outcomes: outcomes[:1]}, "outcomes of Changed"),
        ({"outcomes": lambda outcomes: outcomes / 2}, "outcomes of Changed"),
        ({"outcomes": lambda _: np.array([np.nan] * 3)}, "outcomes of Changed"),
    ],
)
def test_answers_of_the_wrong_form_name_the_method(change: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        duelist.simulate(duelist.Uniform(), Changed(**change), rounds=5, trials=3, workers=1)


def test_kinds_of_regret_that_come_and_go_are_refused() -> None:
    rounds = iter(range(100))
    fickle = Changed(regret=lambda regret: Regret(regret.average, others={} if next(rounds) < 3 else {"b": regret.weak}))
    with pytest.raises(InvalidInputError, match="same kinds in every round"):
        duelist.simulate(duelist.Uniform(), fickle, rounds=5, trials=3, workers=1)


@pytest.mark.parametrize("every", [1, 7, 10, 100])
def test_thinned_columns_are_rows_of_the_whole_ones(every: int) -> None:
    whole = duelist.simulate(duelist.FGTS(), ENV, rounds=45, trials=3, seed=2)
    thin = duelist.simulate(duelist.FGTS(), ENV, rounds=45, trials=3, seed=2, every=every)
    kept = [t for t in range(1, 46) if t % every == 0 or t == 45]
    assert thin.rounds.tolist() == kept
    assert whole.rounds.tolist() == [*range(1, 46)]
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(thin, name), getattr(whole, name)[:, np.array(kept) - 1], err_msg=name)
    np.testing.assert_array_equal(thin.final_regret, whole.final_regret)


def test_a_run_that_cannot_fit_is_refused_before_it_begins() -> None:
    with pytest.raises(InvalidInputError, match=r"GiB.*every=100000000 keeps a thousand"):
        duelist.simulate(duelist.Uniform(), ENV, rounds=10**11, trials=8)


def test_simple_regret_is_what_the_recommended_arm_costs() -> None:
    run = duelist.simulate(duelist.MaxInP(), ENV, rounds=45, trials=3, seed=2, simple_regret=20)
    assert run.simple_rounds is not None
    assert run.simple_regret is not None
    assert run.simple_rounds.tolist() == [20, 40, 45]
    for lane in range(3):
        streams = Streams(2, [lane])
        instance = ENV.instance(streams)
        policy = duelist.MaxInP()
        state = policy.start(Problem(dim=3, horizon=45), streams)
        found = []
        for t in range(45):
            actions = instance.actions(t)
            duels, state = policy.choose(state, actions, streams)
            state = policy.learn(state, actions, duels, instance.outcomes(t, duels))
            if t + 1 in (20, 40, 45):
                utilities = actions.features[0] @ instance.theta[0]
                found.append(utilities.max() - utilities[np.argmax(actions.features[0] @ state.theta[0])])
        np.testing.assert_allclose(run.simple_regret[lane], found, atol=1e-12)
    nothing = duelist.simulate(duelist.Uniform(), ENV, rounds=5, trials=2, simple_regret=5)
    assert nothing.simple_regret is not None
    assert np.isnan(nothing.simple_regret).all()
    assert duelist.simulate(duelist.Uniform(), ENV, rounds=5, trials=2).simple_regret is None


def test_rules_for_slates_are_asked_for_recommendations_too() -> None:
    run = duelist.simulate(MAUPO(choices=3), ENV, rounds=25, trials=2, seed=2, simple_regret=10, workers=1)
    assert run.simple_rounds is not None
    assert run.simple_regret is not None
    assert run.simple_rounds.tolist() == [10, 20, 25]
    streams, policy = Streams(2, [0, 1]), MAUPO(choices=3)
    instance = ENV.instance(streams)
    state = policy.start(Problem(dim=3, lanes=2, horizon=25), streams)
    for t in range(25):
        actions = instance.actions(t)
        slates, state = policy.choose(state, actions, streams)
        state = policy.learn(state, actions, slates, list(instance.rankings(t, slates)))
    for lane in range(2):
        utilities = actions.features[lane] @ instance.theta[lane]
        cost = utilities.max() - utilities[np.argmax(actions.features[lane] @ state.theta[lane])]
        assert run.simple_regret[lane, -1] == pytest.approx(cost, abs=1e-12)


@pytest.mark.parametrize("policy", [duelist.FGTS(), duelist.Foresight(), duelist.CoLSTIM(), duelist.VACDB(), duelist.StaD()])
def test_policies_that_estimate_recommend_an_arm_near_the_best(policy: Any) -> None:
    env = LinearDuels(dim=3, arms=6, theta_norm=2.0)
    run = duelist.simulate(policy, env, rounds=300, trials=4, seed=0, simple_regret=300)
    uniform = duelist.simulate(duelist.Uniform(), env, rounds=300, trials=4, seed=0)
    assert run.simple_regret is not None
    assert run.simple_regret.mean() < 0.1 * uniform.final_regret.mean() / 300


class Lagging(Changed):
    """Answers come at another time in every lane."""

    def instance(self, streams: Streams) -> Any:
        truth = super().instance(streams)

        class Late(type(truth)):  # type: ignore[misc]
            def delay(self, round_: int, duels: Duels) -> IntArray:
                return np.arange(len(duels.first)) + round_

        truth.__class__ = Late
        return truth


def test_lanes_with_delays_of_their_own_must_be_played_apart() -> None:
    with pytest.raises(InvalidInputError, match="lanes_apart = True"):
        duelist.simulate(duelist.Uniform(), Lagging(), rounds=5, trials=3, workers=1)
    apart = Lagging()
    apart.lanes_apart = True  # type: ignore[attr-defined]
    run = duelist.simulate(duelist.Uniform(), apart, rounds=5, trials=3, workers=2)
    assert ((run.outcomes == NO_ANSWER) == [[False, False, False, True, True]] * 3).all()
