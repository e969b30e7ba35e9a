"""What the baselines share: fits that are counted when they fail, late feedback, and live play."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import duelist
from duelist.core.actions import FiniteActions
from duelist.core.duels import duels_between
from duelist.core.lanes import Problem
from duelist.core.streams import Streams

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
STREAMS = Streams(0, [0])
every_baseline = pytest.mark.parametrize("policy", BASELINES, ids=lambda policy: type(policy).__name__)
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
    assert state.explored.sum() + state.exploited.sum() == len(sets)


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
    assert learnt.explored[0, 0] == 1.0
