"""One table that every policy passes. Rows are in `tests/conformance_rows.py`."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

import duelist
from conformance_rows import ROWS, Row
from duelist.core.actions import FiniteActions
from duelist.core.checks import FloatArray, IntArray
from duelist.core.duels import Duels, duels_between
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.saved import from_bytes, to_bytes
from duelist.core.streams import Streams
from duelist.environments.linear_duels import LinearDuels
from duelist.policies.registry import POLICIES

SEED = 11


def table(rows: list[Row]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", rows, ids=[row.name for row in rows])


every_policy = table(ROWS)
every_learner = table([row for row in ROWS if row.learns])
every_policy_without_roles = table([row for row in ROWS if row.forgets_order])
one_row_a_class = table(list({type(row.policy): row for row in reversed(ROWS)}.values())[::-1])


class Step(NamedTuple):
    """One round: what was offered, who met, who won, and the state that chose."""

    actions: FiniteActions
    duels: Duels
    outcomes: IntArray
    before: Any


def play(
    policy: Any,
    rounds: int,
    *,
    env: LinearDuels,
    trials: list[int],
    state: Any = None,
    first_round: int = 0,
) -> Iterator[tuple[Step, Any]]:
    """Play rounds of an environment, handing out every step and the state after it."""
    streams = Streams(SEED, trials)
    instance = env.instance(streams)
    if state is None:
        state = policy.start(Problem(dim=env.dim, lanes=len(trials), horizon=200), streams)
    for t in range(first_round, first_round + rounds):
        actions = instance.actions(t)
        duels, asked = policy.choose(state, actions, streams)
        outcomes = instance.outcomes(t, duels)
        step = Step(actions, duels, outcomes, state)
        state = policy.learn(asked, actions, duels, outcomes)
        yield step, state


def pairs_of(steps: Iterator[tuple[Step, Any]]) -> list[tuple[list[int], list[int]]]:
    return [(step.duels.first.tolist(), step.duels.second.tolist()) for step, _ in steps]


ENV = LinearDuels(dim=4, arms=8)
FRESH = LinearDuels(dim=4, arms=8, fresh_arms=True)


def test_every_registered_policy_has_a_row() -> None:
    assert {type(row.policy) for row in ROWS} == set(POLICIES.values())


@every_policy
@pytest.mark.parametrize("env", [ENV, FRESH], ids=["fixed arms", "fresh arms"])
def test_the_same_seed_gives_the_same_run(row: Row, env: LinearDuels) -> None:
    once, again = (duelist.simulate(row.policy, env, rounds=60, trials=3, seed=SEED, workers=1) for _ in range(2))
    other = duelist.simulate(row.policy, env, rounds=60, trials=3, seed=SEED + 1, workers=1)
    np.testing.assert_array_equal(once.first, again.first)
    np.testing.assert_array_equal(once.second, again.second)
    np.testing.assert_array_equal(once.regret, again.regret)
    assert not np.array_equal(once.first, other.first)


@every_policy
@pytest.mark.parametrize("env", [ENV, FRESH], ids=["fixed arms", "fresh arms"])
def test_a_lane_alone_gives_the_same_numbers_as_in_a_block(row: Row, env: LinearDuels) -> None:
    block = duelist.simulate(row.policy, env, rounds=60, trials=[5, 2, 9], seed=SEED, workers=1)
    for lane, trial in enumerate(block.trials):
        alone = duelist.simulate(row.policy, env, rounds=60, trials=[trial], seed=SEED)
        for name in ("first", "second", "outcomes", "regret", "weak_regret", "yue_regret"):
            np.testing.assert_array_equal(getattr(alone, name)[0], getattr(block, name)[lane], err_msg=name)
        for name, column in alone.info.items():
            np.testing.assert_array_equal(column[0], block.info[name][lane], err_msg=name)


@every_policy
def test_learn_and_choose_leave_their_input_state_as_it_was(row: Row) -> None:
    streams = Streams(SEED, [0, 1])
    steps = [step for step, _ in play(row.policy, 25, env=ENV, trials=[0, 1])]
    for position in range(0, 24, 6):
        step, next_step = steps[position : position + 2]
        again, asked = row.policy.choose(step.before, step.actions, streams)
        assert again.first.tolist() == step.duels.first.tolist()
        assert again.second.tolist() == step.duels.second.tolist()
        # Learn two different outcomes from one state, the later one first: neither may see the other.
        for outcomes in (-step.outcomes, step.outcomes):
            learnt = row.policy.learn(asked, step.actions, step.duels, outcomes)
        following, _ = row.policy.choose(learnt, next_step.actions, streams)
        assert following.first.tolist() == next_step.duels.first.tolist()
        assert following.second.tolist() == next_step.duels.second.tolist()


@every_policy
@pytest.mark.parametrize("env", [ENV, FRESH], ids=["fixed arms", "fresh arms"])
def test_saving_and_loading_in_mid_run_equals_never_having_stopped(row: Row, env: LinearDuels) -> None:
    straight = pairs_of(play(row.policy, 40, env=env, trials=[3, 4]))
    stopped: list[tuple[list[int], list[int]]] = []
    state = None
    for first_round, until in pairwise((0, 1, 17, 40)):
        part = list(play(row.policy, until - first_round, env=env, trials=[3, 4], state=state, first_round=first_round))
        stopped += pairs_of(iter(part))
        state = from_bytes(to_bytes(part[-1][1]))
    assert stopped == straight


@every_policy
@pytest.mark.parametrize(("dim", "arms"), [(3, 2), (1, 2)], ids=["two arms", "one dimension"])
def test_the_smallest_problems_are_played(row: Row, dim: int, arms: int) -> None:
    run = duelist.simulate(row.policy, LinearDuels(dim=dim, arms=arms), rounds=40, trials=3, seed=SEED)
    assert set(np.unique(run.first)) | set(np.unique(run.second)) <= {0, 1}
    assert np.isfinite(run.regret).all()


@every_policy
def test_the_number_of_arms_may_change_from_round_to_round(row: Row) -> None:
    rng = np.random.default_rng(0)
    sets = [FiniteActions(rng.normal(size=(2, k, 3))) for k in (5, 2, 9, 3)]
    streams = Streams(SEED, [0, 1])
    state = row.policy.start(Problem(dim=3, lanes=2, horizon=60), streams)
    for t in range(60):
        actions = sets[t % 4]
        duels, state = row.policy.choose(state, actions, streams)
        lanes = np.arange(2)
        for rows, column in ((duels.first, 0), (duels.second, 1)):
            assert ((rows >= 0) & (rows < actions.n_arms)).all()
            np.testing.assert_array_equal(duels.features[:, column], actions.features[lanes, rows])
        state = row.policy.learn(state, actions, duels, rng.choice([-1, 1], size=2))


@every_policy
def test_permuting_the_arms_permutes_the_choice(row: Row) -> None:
    rng = np.random.default_rng(0)
    arms = rng.normal(size=(2, 7, 3))
    theta = rng.normal(size=(2, 3))
    order = np.stack([rng.permutation(7) for _ in range(2)])
    permuted = FiniteActions(np.take_along_axis(arms, order[:, :, None], axis=1))
    streams = Streams(SEED, [0, 1])
    states = [row.policy.start(Problem(dim=3, lanes=2, horizon=60), streams) for _ in range(2)]
    noise = np.random.default_rng(1).random(size=(60, 2))
    lanes = np.arange(2)
    for t in range(60):
        played = []
        for i, actions in enumerate((FiniteActions(arms), permuted)):
            duels, states[i] = row.policy.choose(states[i], actions, streams)
            chance = 1 / (1 + np.exp(-np.einsum("ld,ld->l", theta, duels.contrast)))
            states[i] = row.policy.learn(states[i], actions, duels, np.where(noise[t] < chance, 1, -1))
            played.append(duels)
        np.testing.assert_array_equal(played[0].first, order[lanes, played[1].first])
        np.testing.assert_array_equal(played[0].second, order[lanes, played[1].second])


def swapped(duels: Duels, actions: FiniteActions) -> Duels:
    return duels_between(actions, duels.second, duels.first, duels.note)


@every_policy_without_roles
def test_swapping_the_pair_and_flipping_the_outcome_changes_nothing(row: Row) -> None:
    streams = Streams(SEED, [0, 1])
    state = row.policy.start(Problem(dim=ENV.dim, lanes=2, horizon=200), streams)
    for step, _ in play(row.policy, 60, env=ENV, trials=[0, 1]):
        duels, state = row.policy.choose(state, step.actions, streams)
        assert duels.first.tolist() == step.duels.first.tolist()
        assert duels.second.tolist() == step.duels.second.tolist()
        state = row.policy.learn(state, step.actions, swapped(duels, step.actions), -step.outcomes)


@every_policy_without_roles
def test_a_tie_says_the_same_in_either_order(row: Row) -> None:
    streams = Streams(SEED, [0, 1])
    straight = turned = row.policy.start(Problem(dim=ENV.dim, lanes=2, horizon=200), streams)
    for t, (step, _) in enumerate(play(row.policy, 40, env=ENV, trials=[0, 1])):
        outcomes = step.outcomes * np.array(
            [t % 2, t % 3 > 0]
        )  # ties in every second round of one lane, every third of the other
        duels, straight = row.policy.choose(straight, step.actions, streams)
        again, turned = row.policy.choose(turned, step.actions, streams)
        assert duels.first.tolist() == again.first.tolist()
        assert duels.second.tolist() == again.second.tolist()
        straight = row.policy.learn(straight, step.actions, duels, outcomes)
        turned = row.policy.learn(turned, step.actions, swapped(duels, step.actions), -outcomes)


@every_learner
def test_it_beats_uniform_by_its_margin_on_a_fixed_problem(row: Row) -> None:
    env = LinearDuels(dim=5, arms=16)

    def final_regret(policy: Any) -> float:
        return float(duelist.simulate(policy, env, rounds=600, trials=8, seed=0).final_regret.mean())

    assert final_regret(row.policy) < row.margin * final_regret(duelist.Uniform())


@every_policy
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_features_that_are_not_finite_never_reach_it_and_its_state_goes_on(row: Row, bad: float) -> None:
    streams = Streams(SEED, [0])
    good = np.random.default_rng(0).normal(size=(4, 3))
    state = row.policy.start(Problem(dim=3, horizon=20), streams)
    expected, _ = row.policy.choose(state, FiniteActions(good), streams)
    broken = good.copy()
    broken[2, 1] = bad
    with pytest.raises(InvalidInputError, match="finite"):
        row.policy.choose(state, FiniteActions(broken), streams)
    after, _ = row.policy.choose(state, FiniteActions(good), streams)
    assert (after.first.tolist(), after.second.tolist()) == (expected.first.tolist(), expected.second.tolist())


@every_learner
@pytest.mark.parametrize("outcome", [3, 2, -3])
def test_an_unknown_winner_is_refused_by_every_policy_that_learns(row: Row, outcome: int) -> None:
    streams = Streams(SEED, [0])
    actions = FiniteActions(np.eye(3))
    state = row.policy.start(Problem(dim=3, horizon=20), streams)
    duels, state = row.policy.choose(state, actions, streams)
    with pytest.raises(InvalidInputError, match="outcomes"):
        row.policy.learn(state, actions, duels, np.array([outcome]))
    once, again = (
        row.policy.choose(row.policy.learn(state, actions, duels, np.array([1])), actions, streams) for _ in range(2)
    )
    assert once[0].first.tolist() == again[0].first.tolist()


@every_policy
def test_reports_are_one_number_a_lane(row: Row) -> None:
    run = duelist.simulate(row.policy, ENV, rounds=30, trials=5, seed=SEED, workers=2)
    assert all(column.shape == (5,) and np.isfinite(column).all() for column in run.info.values())


class Ready(NamedTuple):
    """What a bare round needs, made once so that the memory measured is the policy's own."""

    actions: FiniteActions
    theta: FloatArray
    streams: Streams


@one_row_a_class
def test_memory_stays_bounded_over_ten_thousand_rounds_with_fixed_arms(row: Row) -> None:
    rng = np.random.default_rng(0)
    ready = Ready(FiniteActions(rng.choice([-1.0, 1.0], size=(1, 6, 3))), np.array([[0.6, -0.6, 0.5]]), Streams(SEED, [0]))
    state = row.policy.start(Problem(dim=3, horizon=10_000), ready.streams)
    noise = rng.random(10_000)

    def advance(state: Any, rounds: range) -> Any:
        for t in rounds:
            duels, state = row.policy.choose(state, ready.actions, ready.streams)
            chance = 1 / (1 + np.exp(-float(ready.theta[0] @ duels.contrast[0])))
            state = row.policy.learn(state, ready.actions, duels, np.array([1 if noise[t] < chance else -1]))
        return state

    state = advance(state, range(1000))
    tracemalloc.start()
    try:
        state = advance(state, range(1000, 10_000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The log of a duel is a few small numbers, kept in arrays that double: 128 bytes a round leave room for a doubling.
    assert peak < 128 * 10_000 + 200_000
