"""One table that every policy for slates passes. Rows are in `tests/conformance/rows.py`."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.serialize import from_bytes, to_bytes
from duelist.core.streams import Streams
from duelist.policies.codec import policy_from_mapping, to_mapping
from duelist.policies.registry import slate_policies
from tests.conformance.rows import SLATE_ROWS, SlateRow

ENV = duelist.LinearDuels(dim=3, arms=8)
FRESH = duelist.LinearDuels(dim=3, arms=8, fresh_arms=True)
SEED = 11


class PairsOnly:
    """Instances without rankings."""

    dim = 3

    def instance(self, streams: Streams) -> Any:
        return streams


every_policy = pytest.mark.parametrize("row", SLATE_ROWS, ids=[row.name for row in SLATE_ROWS])
_PLAYERS = [row for row in SLATE_ROWS if row.margin is not None]  # the others play to know: regret is not what they look at
every_player = pytest.mark.parametrize("row", _PLAYERS, ids=[row.name for row in _PLAYERS])
fixed_and_fresh = pytest.mark.parametrize("env", [ENV, FRESH], ids=["fixed arms", "fresh arms"])


def played(policy: Any, env: duelist.LinearDuels, *, trials: list[int], rounds: int, save_at: int = -1) -> list[Any]:
    """The rows shown in every round; the state is saved and loaded before round `save_at`."""
    streams = Streams(SEED, trials)
    instance, shown = env.instance(streams), []
    state = policy.start(Problem(dim=env.dim, lanes=len(trials), horizon=rounds), streams)
    for t in range(rounds):
        state = from_bytes(to_bytes(state)) if t == save_at else state
        slates, state = policy.choose(state, instance.actions(t), streams)
        state = policy.learn(state, instance.actions(t), slates, list(instance.rankings(t, slates)))
        shown.append(slates.rows.tolist())
    return shown


def test_every_registered_slate_policy_has_a_row() -> None:
    assert {type(row.policy) for row in SLATE_ROWS} == set(slate_policies().values())


@every_policy
@fixed_and_fresh
def test_the_same_seed_gives_the_same_run(row: SlateRow, env: duelist.LinearDuels) -> None:
    once, again, other = (duelist.simulate(row.policy, env, rounds=15, trials=2, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(once.chosen, again.chosen)
    np.testing.assert_array_equal(once.regret, again.regret)
    assert not np.array_equal(once.chosen, other.chosen)


@every_policy
def test_a_lane_alone_gives_the_same_slates_as_in_a_block(row: SlateRow) -> None:
    block = played(row.policy, FRESH, trials=[5, 2], rounds=15)
    for lane, trial in enumerate([5, 2]):
        alone = played(row.policy, FRESH, trials=[trial], rounds=15)
        assert [rows[0] for rows in alone] == [rows[lane] for rows in block]


@every_policy
@fixed_and_fresh
def test_saving_and_loading_in_mid_run_equals_never_having_stopped(row: SlateRow, env: duelist.LinearDuels) -> None:
    assert played(row.policy, env, trials=[3], rounds=15, save_at=8) == played(row.policy, env, trials=[3], rounds=15)


@every_policy
def test_learn_and_choose_leave_their_input_state_as_it_was(row: SlateRow) -> None:
    streams = Streams(SEED, [0])
    actions = FRESH.instance(streams).actions(0)
    before = row.policy.start(Problem(dim=3), streams)
    slates, asked = row.policy.choose(before, actions, streams)
    ranking = np.arange(row.policy.choices)
    kept = to_bytes(asked)
    for answer in (ranking, ranking[::-1]):
        row.policy.learn(asked, actions, slates, [answer])
    assert to_bytes(asked) == kept
    assert row.policy.choose(before, actions, streams)[0].rows.tolist() == slates.rows.tolist()


@every_policy
def test_slates_are_rows_of_the_set_that_was_offered(row: SlateRow) -> None:
    streams, rng = Streams(SEED, [0, 1]), np.random.default_rng(0)
    state = row.policy.start(Problem(dim=3, lanes=2), streams)
    for n_arms in (5, 2, 9):
        actions = FiniteActions(rng.normal(size=(2, n_arms, 3)))
        slates, state = row.policy.choose(state, actions, streams)
        assert slates.rows.shape == (2, row.policy.choices)
        np.testing.assert_array_equal(slates.features, actions.features[np.arange(2)[:, None], slates.rows])
        state = row.policy.learn(state, actions, slates, [np.arange(row.policy.choices)] * 2)


@every_policy
def test_reports_are_one_number_per_lane(row: SlateRow) -> None:
    run = duelist.simulate(row.policy, ENV, rounds=5, trials=3, seed=0)
    assert all(column.shape == (3,) and np.isfinite(column).all() for column in run.info.values())


@every_policy
def test_it_is_written_as_json_and_read_back(row: SlateRow) -> None:
    assert policy_from_mapping(json.loads(json.dumps(to_mapping(row.policy), allow_nan=False))) == row.policy


@every_policy
def test_an_agent_plays_it_live_and_never_shows_an_arm_twice(row: SlateRow) -> None:
    arms = np.random.default_rng(3).normal(size=(6, 3))
    agent: Any = duelist.Agent(row.policy, dim=3, seed=1)
    for _ in range(12):
        slate = agent.choose(arms)
        assert len(set(slate.rows)) == row.policy.choices
        assert sorted(slate.screen) == sorted(slate.rows)
        agent.learn(slate, winner=min(slate.rows))
    assert agent.rounds == 12


@every_policy
def test_an_environment_that_ranks_nothing_is_refused_by_name(row: SlateRow) -> None:
    with pytest.raises(InvalidInputError, match="PairsOnly answers pairs"):
        duelist.simulate(row.policy, PairsOnly(), rounds=2, trials=1)


@pytest.mark.slow
@every_player
def test_regret_per_round_falls_below_that_of_random_play(row: SlateRow) -> None:
    assert row.margin is not None
    policies = {"random": duelist.Uniform(), "rule": row.policy}
    runs = {name: duelist.simulate(policy, ENV, rounds=120, trials=6, seed=0) for name, policy in policies.items()}
    late = {name: (run.regret[:, -1] - run.regret[:, -31]).mean() for name, run in runs.items()}
    assert late["rule"] < row.margin * late["random"]


@pytest.mark.slow
@every_policy
def test_what_it_recommends_gets_better(row: SlateRow) -> None:
    run = duelist.simulate(row.policy, ENV, rounds=60, trials=20, seed=0, simple_regret=1)
    assert run.simple_regret is not None
    costs = run.simple_regret.mean(axis=0)
    assert costs[-10:].mean() < 0.3 * costs[0]
