"""The walk up the layers that VACDB, Sta'D and SupCoLSTIM share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from duelist.actions.finite import FiniteActions
from duelist.core.lanes import Problem
from duelist.core.serialize import from_bytes, to_bytes
from duelist.core.streams import Streams
from duelist.policies.algorithms.confidence.stad import StaD
from duelist.policies.algorithms.confidence.supcolstim import SupCoLSTIM
from duelist.policies.algorithms.confidence.vacdb import VACDB

LAYERED: tuple[Any, ...] = (VACDB(), StaD(), SupCoLSTIM())
STREAMS = Streams(0, [0])


def with_layer(state: Any, layer: int, *, theta: list[float], precision: float) -> Any:
    """The state with the estimate of one layer set, and its matrix to precision * I."""
    dim = len(theta)
    thetas, whitener = state.theta.copy(), state.whitener.copy()
    thetas[:, layer - 1], whitener[:, layer - 1] = theta, np.eye(dim) / np.sqrt(precision)
    return state._replace(theta=thetas, whitener=whitener)


def test_the_stop_test_comes_before_the_test_for_wide_pairs() -> None:
    # Widths are |z| / sqrt(ridge) = |z|, the widest is 2, and 1 / (radius sqrt(T)) = 2: nothing is left to explore.
    arms = FiniteActions([[0.0], [2.0]])
    for horizon, layer_and_count in ((100, [0.0, 0.0]), (101, [0.0, 1.0])):
        policy = StaD(radius=0.05, ridge=1.0, horizon=horizon)
        duels, _ = policy.choose(policy.start(Problem(dim=1), STREAMS), arms, STREAMS)
        assert duels.note is not None
        assert duels.note.tolist() == [layer_and_count]


@pytest.mark.parametrize("explore", ["optimistic", "widest"])
def test_a_pair_exactly_as_wide_as_its_layer_is_not_explored(explore: str) -> None:
    # Sigma_1 = 1/4, so widths are 2 |z|: 0.5 for neighbours and 1 for the ends. Only the ends are wider than 1/2, though
    # the estimate makes the upper neighbours the better pair by far.
    policy = VACDB(radius=0.0, explore=explore, horizon=100)
    state = with_layer(policy.start(Problem(dim=1), STREAMS), 1, theta=[50.0], precision=0.25)
    duels, _ = policy.choose(state, FiniteActions([[0.0], [0.25], [0.5]]), STREAMS)
    assert {int(duels.first[0]), int(duels.second[0])} == {0, 2}
    assert duels.note is not None
    assert duels.note.tolist() == [[0.0, 0.25]]


@pytest.mark.parametrize("policy", LAYERED, ids=lambda policy: type(policy).__name__)
def test_live_play_does_not_bring_back_an_eliminated_arm_while_two_are_left(policy: Any) -> None:
    # Layer 1 knows its widths and drops arm 0; layer 2 would prefer arm 0 by far. The last two arms exploit each other.
    state = policy.start(Problem(dim=2, live=True, horizon=10), STREAMS)
    for layer in range(1, state.theta.shape[1] + 1):
        state = with_layer(state, layer, theta=[-100.0, 0.0], precision=1e12)
    state = with_layer(state, 1, theta=[100.0, 0.0], precision=9.0)
    arms = FiniteActions([[-0.7, 0.0], [0.7, 0.0], [0.7, 1e-3]])
    duels, _ = policy.choose(state, arms, STREAMS)
    assert {int(duels.first[0]), int(duels.second[0])} == {1, 2}


@pytest.mark.parametrize("policy", LAYERED, ids=lambda policy: type(policy).__name__)
def test_live_play_with_one_arm_left_shows_it_beside_another(policy: Any) -> None:
    state = policy.start(Problem(dim=1, live=True, horizon=10), STREAMS)
    state = with_layer(state, 1, theta=[100.0], precision=1e4)
    duels, _ = policy.choose(state, FiniteActions([[-0.5], [0.5], [0.0]]), STREAMS)
    assert (duels.first[0], duels.second[0]) == (1, 2)


@pytest.mark.parametrize("policy", LAYERED, ids=lambda policy: type(policy).__name__)
def test_a_state_that_has_only_exploited_can_be_saved_and_loaded(policy: Any) -> None:
    alike = FiniteActions(np.ones((3, 2)))  # pairs of equal arms have no width, so there is nothing to explore
    apart = FiniteActions(np.eye(2))
    state = policy.start(Problem(dim=2), STREAMS)
    for _ in range(3):
        duels, state = policy.choose(state, alike, STREAMS)
        state = policy.learn(state, alike, duels, np.array([1]))
    assert state.info.exploited.tolist() == [3.0]
    again = from_bytes(to_bytes(state))
    for _ in range(5):
        duels, state = policy.choose(state, apart, STREAMS)
        state = policy.learn(state, apart, duels, np.array([1]))
        duels_again, again = policy.choose(again, apart, STREAMS)
        again = policy.learn(again, apart, duels_again, np.array([1]))
    assert again.theta.tobytes() == state.theta.tobytes()
    assert again.info.explored.tolist() == state.info.explored.tolist()
