"""One table that every policy passes. Rows are in `tests/conformance/rows.py`."""

from __future__ import annotations

import tracemalloc
from dataclasses import fields
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions, OffsetActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.linear import LinearDuels
from duelist.history.duels import Duels, duels_between
from duelist.policies.parts.matrix_policy import MatrixPolicy
from duelist.policies.registry import duel_policies
from duelist.testing import SEED, Step, play_rounds, policy_checks
from duelist.typing import FloatArray, IntArray
from tests.conformance.rows import ROWS, Row, is_installed


def table(rows: list[Row]) -> pytest.MarkDecorator:
    missing = {row.name: f"needs the extra {row.policy.extra!r}" for row in rows if not is_installed(row.policy)}

    def marks(row: Row) -> Any:
        if row.name in missing:
            return pytest.mark.skip(reason=missing[row.name])
        # Rules without features share nearly everything: one of them is enough for the inner loop.
        return pytest.mark.slow if isinstance(row.policy, MatrixPolicy) and row.name != "RUCB" else ()

    return pytest.mark.parametrize("row", [pytest.param(row, marks=marks(row), id=row.name) for row in rows])


every_policy = table(ROWS)
every_learner = table([row for row in ROWS if row.learns])
every_rule_with_utilities = table([row for row in ROWS if row.policy.weighs_offsets() and not row.other_sampler])
every_policy_without_roles = table([row for row in ROWS if row.forgets_order])
one_row_per_class = table([row for row in ROWS if not row.variant])


ENV = LinearDuels(dim=4, arms=8)
# JAX compiles for the number of lanes: tests that play a few lanes all play as many.
LANES = 3


def test_every_registered_policy_has_a_row() -> None:
    assert {type(row.policy) for row in ROWS if not row.variant} == set(duel_policies().values())
    assert len([row for row in ROWS if not row.variant]) == len(duel_policies())


# Another sampler changes what is random, what is kept and what is reported. Which arms are offered, and in what order, it
# never sees: those properties are checked on FGTS with its own sampler, which plays by the same rule.
OF_SAMPLERS = (
    "the same seed gives the same run",
    "a run is the same alone and beside others",
    "report has one finite number per lane",
    "a saved state goes on as if nothing had happened",
)


@pytest.mark.slow
@every_policy
@pytest.mark.parametrize("check", policy_checks(duelist.Uniform()))
def test_it_passes_the_check_that_is_open_to_everybody(row: Row, check: str) -> None:
    if not row.other_sampler or check in OF_SAMPLERS:
        policy_checks(row.policy, rounds=row.rounds)[check]()


def chosen_rows(policy: Any, step: Step, offsets: FloatArray) -> list[list[int]]:
    """(lanes, 2) the pair that the state of a step chooses when utilities have offsets."""
    duels, _ = policy.choose(step.before, OffsetActions(step.actions, offsets), Streams(SEED, list(range(LANES))))
    rows: list[list[int]] = np.stack([duels.first, duels.second], axis=1).tolist()
    return rows


@every_rule_with_utilities
def test_an_offset_of_nothing_or_common_to_all_arms_changes_no_choice(row: Row) -> None:
    for t, (step, _) in enumerate(play_rounds(row.policy, ENV, row.rounds, range(LANES))):
        free = np.stack([step.duels.first, step.duels.second], axis=1).tolist()
        offsets = np.zeros((LANES, ENV.arms))
        assert chosen_rows(row.policy, step, offsets) == free, t
        assert chosen_rows(row.policy, step, offsets + 0.5) == free, t


@every_rule_with_utilities
def test_the_arm_shown_most_is_hardly_shown_any_more_when_it_costs_ten(row: Row) -> None:
    steps = [step for step, _ in play_rounds(row.policy, ENV, row.rounds, range(LANES))]
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
    for step, _ in play_rounds(row.policy, ENV, 60, [0, 1]):
        duels, state = row.policy.choose(state, step.actions, streams)
        assert duels.first.tolist() == step.duels.first.tolist()
        assert duels.second.tolist() == step.duels.second.tolist()
        state = row.policy.learn(state, step.actions, swapped(duels, step.actions), -step.outcomes)


@every_policy_without_roles
def test_a_tie_says_the_same_in_either_order(row: Row) -> None:
    streams = Streams(SEED, [0, 1])
    straight = turned = row.policy.start(Problem(dim=ENV.dim, lanes=2, horizon=200), streams)
    for t, (step, _) in enumerate(play_rounds(row.policy, ENV, 40, [0, 1])):
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

    def instance(self, streams: Streams) -> Any:
        return Wrong(ENV.instance(streams), self.outcome)


@one_row_per_class
@pytest.mark.parametrize("outcome", [3, 2, -3])
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
