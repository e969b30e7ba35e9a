"""One table that every policy passes. Rows are in `tests/conformance/rows.py`."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions, OffsetActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.serialize import from_bytes, to_bytes
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels
from duelist.history.duels import Duels, duels_between
from duelist.policies.registry import duel_policies
from duelist.typing import FloatArray, IntArray
from tests.conformance.rows import ROWS, Row, is_installed

SEED = 11


def table(rows: list[Row]) -> pytest.MarkDecorator:
    missing = {row.name: f"needs the extra {row.policy.extra!r}" for row in rows if not is_installed(row.policy)}
    marked = [
        pytest.param(row, marks=pytest.mark.skip(reason=missing[row.name]) if row.name in missing else (), id=row.name)
        for row in rows
    ]
    return pytest.mark.parametrize("row", marked)


every_policy = table(ROWS)
# Another sampler changes what is random, what is kept and what is reported. Which arms are offered, and in what order, it
# never sees: those properties are checked on FGTS with its own sampler, which plays by the same rule.
every_rule = table([row for row in ROWS if not row.other_sampler])
every_learner = table([row for row in ROWS if row.learns])
every_rule_with_utilities = table([row for row in ROWS if row.policy.weighs_offsets() and not row.other_sampler])
every_policy_without_roles = table([row for row in ROWS if row.forgets_order])
one_row_per_class = table([row for row in ROWS if not row.variant])


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
# JAX compiles for the number of lanes: tests that play a few lanes all play as many.
LANES = 3


def test_every_registered_policy_has_a_row() -> None:
    assert {type(row.policy) for row in ROWS if not row.variant} == set(duel_policies().values())
    assert len([row for row in ROWS if not row.variant]) == len(duel_policies())


@pytest.mark.slow
@every_policy
@pytest.mark.parametrize("env", [ENV, FRESH], ids=["fixed arms", "fresh arms"])
def test_the_same_seed_gives_the_same_run(row: Row, env: LinearDuels) -> None:
    once, again = (duelist.simulate(row.policy, env, rounds=row.rounds, trials=LANES, seed=SEED, workers=1) for _ in range(2))
    other = duelist.simulate(row.policy, env, rounds=row.rounds, trials=LANES, seed=SEED + 1, workers=1)
    np.testing.assert_array_equal(once.first, again.first)
    np.testing.assert_array_equal(once.second, again.second)
    np.testing.assert_array_equal(once.regret, again.regret)
    assert not np.array_equal(once.first, other.first)


@pytest.mark.slow
@every_policy
@pytest.mark.parametrize("env", [ENV, FRESH], ids=["fixed arms", "fresh arms"])
def test_a_lane_alone_gives_the_same_numbers_as_in_a_block(row: Row, env: LinearDuels) -> None:
    block = duelist.simulate(row.policy, env, rounds=row.rounds, trials=[5, 2, 9], seed=SEED, workers=1)
    for lane, trial in enumerate(block.trials):
        alone = duelist.simulate(row.policy, env, rounds=row.rounds, trials=[trial], seed=SEED)
        for name in ("first", "second", "outcomes", "regret", "weak_regret", "yue_regret"):
            np.testing.assert_array_equal(getattr(alone, name)[0], getattr(block, name)[lane], err_msg=name)
        for name, column in alone.info.items():
            rtol = 1e-12 if row.compiled_by_jax else 0.0
            np.testing.assert_allclose(column[0], block.info[name][lane], rtol=rtol, err_msg=name)


@pytest.mark.slow
@every_rule
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


@pytest.mark.slow
@every_policy
@pytest.mark.parametrize("env", [ENV, FRESH], ids=["fixed arms", "fresh arms"])
def test_saving_and_loading_in_mid_run_equals_never_having_stopped(row: Row, env: LinearDuels) -> None:
    trials, end = [3, 4, 5], min(40, row.rounds)
    straight = pairs_of(play(row.policy, end, env=env, trials=trials))
    stopped: list[tuple[list[int], list[int]]] = []
    state = None
    for first_round, until in pairwise((0, 1, 17, end)):
        part = list(play(row.policy, until - first_round, env=env, trials=trials, state=state, first_round=first_round))
        stopped += pairs_of(iter(part))
        state = from_bytes(to_bytes(part[-1][1]))
    assert stopped == straight


@pytest.mark.slow
@every_rule
@pytest.mark.parametrize(("dim", "arms"), [(3, 2), (1, 2)], ids=["two arms", "one dimension"])
def test_the_smallest_problems_are_played(row: Row, dim: int, arms: int) -> None:
    run = duelist.simulate(row.policy, LinearDuels(dim=dim, arms=arms), rounds=40, trials=3, seed=SEED)
    assert set(np.unique(run.first)) | set(np.unique(run.second)) <= {0, 1}
    assert np.isfinite(run.regret).all()


@pytest.mark.slow
@every_rule
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


@pytest.mark.slow
@every_rule
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


def chosen_rows(policy: Any, step: Step, offsets: FloatArray) -> list[list[int]]:
    """(lanes, 2) the pair that the state of a step chooses when utilities have offsets."""
    duels, _ = policy.choose(step.before, OffsetActions(step.actions, offsets), Streams(SEED, list(range(LANES))))
    rows: list[list[int]] = np.stack([duels.first, duels.second], axis=1).tolist()
    return rows


@every_rule_with_utilities
def test_an_offset_of_nothing_or_common_to_all_arms_changes_no_choice(row: Row) -> None:
    for t, (step, _) in enumerate(play(row.policy, row.rounds, env=ENV, trials=list(range(LANES)))):
        free = np.stack([step.duels.first, step.duels.second], axis=1).tolist()
        offsets = np.zeros((LANES, ENV.arms))
        assert chosen_rows(row.policy, step, offsets) == free, t
        assert chosen_rows(row.policy, step, offsets + 0.5) == free, t


@every_rule_with_utilities
def test_the_arm_shown_most_is_hardly_shown_any_more_when_it_costs_ten(row: Row) -> None:
    steps = [step for step, _ in play(row.policy, row.rounds, env=ENV, trials=list(range(LANES)))]
    late = steps[-(row.rounds // 3) :]
    free = np.array([np.stack([step.duels.first, step.duels.second], axis=1) for step in late])  # (rounds, lanes, 2)
    favourites = np.array([np.bincount(free[:, lane].ravel(), minlength=ENV.arms).argmax() for lane in range(LANES)])
    offsets = np.zeros((LANES, ENV.arms))
    offsets[np.arange(LANES), favourites] = -10.0
    with_cost = np.array([chosen_rows(row.policy, step, offsets) for step in late])
    shown = [(rows == favourites[None, :, None]).any(axis=2).mean() for rows in (free, with_cost)]
    assert shown[0] > 0.4
    assert shown[1] <= 0.02


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


@cache
def floor() -> float:
    return final_regret(duelist.Uniform())


def final_regret(policy: Any) -> float:
    return float(duelist.simulate(policy, LinearDuels(dim=5, arms=16), rounds=600, trials=8, seed=0).final_regret.mean())


@pytest.mark.slow
@every_learner
def test_it_beats_uniform_by_its_margin_on_a_fixed_problem(row: Row) -> None:
    assert final_regret(row.policy) < row.margin * floor()


@one_row_per_class
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


class Wrong(NamedTuple):
    """An instance that names no winner in one round."""

    instance: Any
    outcome: int

    def actions(self, round_: int) -> Any:
        return self.instance.actions(round_)

    def regret(self, actions: Any, duels: Duels) -> Any:
        return self.instance.regret(actions, duels)

    def outcomes(self, round_: int, duels: Duels) -> IntArray:
        right: IntArray = self.instance.outcomes(round_, duels)
        return np.full_like(right, self.outcome) if round_ == 2 else right


class WrongDuels(NamedTuple):
    """An environment with a mistake in it."""

    outcome: int
    dim: int = ENV.dim

    def instance(self, streams: Streams) -> Wrong:
        return Wrong(ENV.instance(streams), self.outcome)


@one_row_per_class
@pytest.mark.parametrize("outcome", [3, 0, -3])
def test_an_unknown_winner_never_reaches_it(row: Row, outcome: int) -> None:
    learnt = []

    class Watched(type(row.policy)):  # type: ignore[misc]
        def learn(self, state: Any, actions: Any, duels: Duels, outcomes: IntArray) -> Any:
            learnt.append(outcomes.tolist())
            return super().learn(state, actions, duels, outcomes)

    with pytest.raises(InvalidInputError, match="outcomes"):
        duelist.simulate(Watched(**vars_of(row.policy)), WrongDuels(outcome), rounds=5, trials=2, seed=SEED, workers=1)
    assert len(learnt) == 2


def vars_of(policy: Any) -> dict[str, Any]:
    return {field.name: getattr(policy, field.name) for field in fields(policy) if field.init}


@pytest.mark.slow
@every_policy
def test_reports_are_one_number_per_lane(row: Row) -> None:
    run = duelist.simulate(row.policy, ENV, rounds=30, trials=5, seed=SEED, workers=2)
    assert all(column.shape == (5,) and np.isfinite(column).all() for column in run.info.values())


class Ready(NamedTuple):
    """What a bare round needs, made once so that the memory measured is the policy's own."""

    actions: FiniteActions
    theta: FloatArray
    streams: Streams


@pytest.mark.slow
@table([row for row in ROWS if not row.variant and row.bounded])
def test_memory_stays_bounded_over_thousands_of_rounds_with_fixed_arms(row: Row) -> None:
    rng = np.random.default_rng(0)
    ready = Ready(FiniteActions(rng.choice([-1.0, 1.0], size=(1, 6, 3))), np.array([[0.6, -0.6, 0.5]]), Streams(SEED, [0]))
    state = row.policy.start(Problem(dim=3, horizon=10_000), ready.streams)
    noise = rng.random(3000)

    def advance(state: Any, rounds: range) -> Any:
        for t in rounds:
            duels, state = row.policy.choose(state, ready.actions, ready.streams)
            chance = 1 / (1 + np.exp(-float(ready.theta[0] @ duels.contrast[0])))
            state = row.policy.learn(state, ready.actions, duels, np.array([1 if noise[t] < chance else -1]))
        return state

    state = advance(state, range(1000))
    tracemalloc.start()
    try:
        state = advance(state, range(1000, 3000))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    # The log of a duel is a few small numbers, kept in arrays that double: 128 bytes for every round so far leave room for a
    # doubling (FGTS had 88, the others at most 56), and not for an object that every round leaves behind.
    assert peak < 128 * 3000
