"""What the baselines share: fits that are counted when they fail, late feedback, and live play."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.lanes import Problem
from duelist.core.stored_names import upgrade_fields
from duelist.core.streams import Streams
from duelist.history.duels import duels_between
from duelist.policies.parts.confidence import UCBSettings, UCBState

BASELINES: tuple[Any, ...] = (
    duelist.MaxInP(),
    duelist.MaxPairUCB(),
    duelist.MaxPairUCB(width="local", radius=2.5),
    duelist.CoLSTIM(),
    duelist.VACDB(),
    duelist.StaD(),
    duelist.SupCoLSTIM(),
)
LAYERED = BASELINES[4:]
FLAT: tuple[Any, ...] = (duelist.MaxInP, duelist.MaxPairUCB, duelist.CoLSTIM)
STREAMS = Streams(0, [0])
every_baseline = pytest.mark.parametrize("policy", BASELINES, ids=lambda policy: type(policy).__name__)
every_flat = pytest.mark.parametrize("kind", FLAT)
every_layered = pytest.mark.parametrize("policy", LAYERED, ids=lambda policy: type(policy).__name__)


@every_baseline
def test_a_fit_that_does_not_converge_is_counted_in_its_lane_alone(policy: Any) -> None:
    # Squares of contrasts near 1e160 overflow, so the curvature of lane 1 cannot be factored.
    arms = FiniteActions(np.stack([np.eye(2), 1e160 * np.array([[1.0, 1.0], [-1.0, 0.5]])]))
    streams = Streams(0, [0, 1])
    state = policy.start(Problem(dim=2, lanes=2), streams)
    state = policy.learn(state, arms, duels_between(arms, np.zeros(2, dtype=int), np.ones(2, dtype=int)), np.array([1, 1]))
    assert policy.report(state)["unconverged_fits"].tolist() == [0.0, 1.0]


@every_baseline
def test_no_fit_fails_on_separable_data(policy: Any) -> None:
    # The first row always wins: without the ridge the estimate would run away.
    arms = FiniteActions(np.random.default_rng(0).choice([-1.0, 1.0], (6, 3)) + 0.1 * np.arange(6)[:, None])
    state = policy.start(Problem(dim=3, horizon=200), STREAMS)
    for _ in range(200):
        duels, state = policy.choose(state, arms, STREAMS)
        state = policy.learn(state, arms, duels, np.where(duels.first <= duels.second, 1, -1))
    assert policy.report(state)["unconverged_fits"].tolist() == [0.0]
    assert np.isfinite(getattr(state, "fit", state).theta).all()


@every_flat
def test_a_ridge_of_next_to_nothing_keeps_the_fit_of_separable_data_finite(kind: Any) -> None:
    # Twelve duels in d = 3 whose winner is always the first row: without a ridge there is no finite fit.
    arms = FiniteActions(np.random.default_rng(0).choice([-1.0, 1.0], (6, 3)) + 0.1 * np.arange(6)[:, None])
    policy = kind(ridge=0.001, fit_ridge=1e-6, warmup=12)
    state = policy.start(Problem(dim=3, horizon=200), STREAMS)
    for _ in range(200):
        duels, state = policy.choose(state, arms, STREAMS)
        state = policy.learn(state, arms, duels, np.where(duels.first <= duels.second, 1, -1))
    assert policy.report(state)["unconverged_fits"].tolist() == [0.0]
    assert 1.0 < np.linalg.norm(getattr(state, "fit", state).theta) < 1000.0


@every_flat
def test_the_same_ridge_given_twice_changes_no_bit(kind: Any) -> None:
    env = duelist.LinearDuels(dim=4, arms=8)
    once, twice = (duelist.simulate(policy, env, rounds=80, trials=3, seed=1) for policy in (kind(), kind(fit_ridge=2.0)))
    np.testing.assert_array_equal(once.regret, twice.regret)


@every_flat
@pytest.mark.parametrize(("warmup", "rounds"), [(5, 5), ("theory", 6)])
def test_the_warm_up_plays_random_pairs_of_different_arms_for_that_long(kind: Any, warmup: int | str, rounds: int) -> None:
    # "theory" is d K = 2 * 3 rounds. Without width or noise, arm 0 would meet itself from the start.
    policy = kind(warmup=warmup, radius=0.0, **({"perturbation": 0.0} if kind is duelist.CoLSTIM else {}))
    streams = Streams(0, range(300))
    arms = FiniteActions(np.tile([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], (300, 1, 1)))
    state = policy.start(Problem(dim=2, lanes=300, horizon=100), streams)
    learnt = duels_between(arms, np.zeros(300, dtype=np.int64), np.ones(300, dtype=np.int64))
    state = policy.learn(state, arms, learnt, np.ones(300, dtype=np.int64))
    for _ in range(rounds):
        duels, state = policy.choose(state, arms, streams)
        # 300 / 6 = 50 of each ordered pair of different arms on average, deviation 6.5.
        assert (np.bincount(3 * duels.first + duels.second, minlength=9)[[1, 2, 3, 5, 6, 7]] > 17).all()
        assert (duels.first != duels.second).all()
    duels, state = policy.choose(state, arms, streams)
    assert (duels.first == 0).all()
    assert (duels.second == 0).all()


def test_settings_written_with_one_ridge_are_read_with_that_ridge_in_the_fit() -> None:
    ridge, radius = np.array([0.5]), np.array([3.0])
    theta = np.zeros((1, 2))
    flat = {"history": None, "theta": theta, "gram": None, "whitener": None, "asked": 3, "unconverged": np.zeros(1)}
    settings = {"ridge": ridge, "radius": radius, "different": True}
    assert UCBSettings(**upgrade_fields(UCBSettings, 1, settings)) == UCBSettings(ridge, radius, True, ridge)
    state = UCBState(**upgrade_fields(UCBState, 1, {**flat, **settings}))
    assert state.settings == UCBSettings(ridge, radius, True, ridge)
    assert state.asked == 3
    assert state.shape.shape == (1, 0, 0)


@every_baseline
def test_live_play_never_shows_a_row_beside_itself_and_simulation_may(policy: Any) -> None:
    arms = FiniteActions(np.random.default_rng(3).standard_normal((5, 2)))
    met_itself = {}
    for live in (True, False):
        state = policy.start(Problem(dim=2, live=live, horizon=None if live else 300), STREAMS)
        met_itself[live] = 0
        for _ in range(300):
            duels, state = policy.choose(state, arms, STREAMS)
            met_itself[live] += int(duels.first[0] == duels.second[0])
            state = policy.learn(state, arms, duels, np.where(duels.first <= duels.second, 1, -1))
    assert met_itself[True] == 0
    assert met_itself[False] > 0


@every_layered
def test_late_answers_teach_the_layer_and_count_by_the_weight_of_when_they_were_asked(policy: Any) -> None:
    generator = np.random.default_rng(2)
    sets = [FiniteActions(scale * generator.standard_normal((5, 2))) for scale in (1.0, 0.3, 0.1) * 4]
    state = policy.start(Problem(dim=2, horizon=100), STREAMS)
    waiting = []
    for arms in sets:
        duels, state = policy.choose(state, arms, STREAMS)
        waiting.append((arms, duels))
    expected = state.gram.copy()
    for arms, duels in reversed(waiting):
        state = policy.learn(state, arms, duels, generator.choice([-1, 1], 1))
        layer, count = duels.note[0]
        expected[0, int(layer)] += count * np.outer(duels.contrast[0], duels.contrast[0])
    np.testing.assert_allclose(state.gram, expected, rtol=1e-12)
    assert len({duels.note[0, 0] for _, duels in waiting}) >= 2
    assert state.info.explored.sum() + state.info.exploited.sum() == len(sets)


@every_layered
def test_layers_are_used_and_their_counts_add_up_to_the_rounds(policy: Any) -> None:
    run = duelist.simulate(policy, duelist.LinearDuels(dim=3, arms=8), rounds=400, trials=4, seed=0)
    explored = np.array([column for name, column in run.info.items() if name.startswith("explored_layer_")])
    np.testing.assert_array_equal(explored.sum(axis=0) + run.info["exploited"], 400.0)
    assert (explored[0] > 0).all()
    assert (explored[1] > 0).any()


@every_layered
def test_a_past_vote_without_a_note_teaches_the_lowest_layer_in_full(policy: Any) -> None:
    arms = FiniteActions(np.eye(2))
    state = policy.start(Problem(dim=2), STREAMS)
    learnt = policy.learn(state, arms, duels_between(arms, np.array([0]), np.array([1])), np.array([1]))
    np.testing.assert_allclose(learnt.gram[0, 0] - state.gram[0, 0], [[1.0, -1.0], [-1.0, 1.0]])
    assert learnt.info.explored[0, 0] == 1.0
