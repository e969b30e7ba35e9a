"""Sta'D eliminates arms stage by stage, with every duel counted in full."""

from __future__ import annotations

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.policies.algorithms.confidence.stad import StaD, stop_width
from tests.support.reference_policies import Choice, SlowLayers, Taught, play_beside, slow_fit, slow_matrix, slow_walk

STREAMS = Streams(0, [0])


def test_the_stop_width_is_the_authors() -> None:
    np.testing.assert_allclose(stop_width(np.array([1.0, 2.0]), 2500), [1 / 50, 1 / 100])


def test_two_rounds_computed_by_hand() -> None:
    # Widths are |z| / sqrt(2): 0.7071 for the ends of [0, 1], more than 1/2; the stop width is 1 / sqrt(100).
    arms = FiniteActions([[0.0], [0.6], [1.0]])
    policy = StaD(radius=1.0, ridge=2.0, layers=4, horizon=100)
    state = policy.start(Problem(dim=1), STREAMS)
    duels, state = policy.choose(state, arms, STREAMS)
    assert {int(duels.first[0]), int(duels.second[0])} == {0, 2}
    assert duels.note is not None
    assert duels.note.tolist() == [[0.0, 1.0]]
    outcome = 1 if duels.first[0] == 2 else -1  # the arm at 1 wins
    state = policy.learn(state, arms, duels, np.array([outcome]))
    # M_1 = 2 + 1, and 2 theta = s(-theta) at theta = 0.222323.
    np.testing.assert_allclose(state.gram[0, :, 0, 0], [3.0, 2.0, 2.0, 2.0])
    np.testing.assert_allclose(state.theta[0, :, 0], [0.222323, 0.0, 0.0, 0.0], atol=1e-5)
    # The ends are still 1 / sqrt(3) = 0.577 apart, wider than 1/2, and the only such pair.
    duels, state = policy.choose(state, arms, STREAMS)
    assert (duels.first[0], duels.second[0]) == (2, 0)
    assert duels.note is not None
    assert duels.note.tolist() == [[0.0, 1.0]]
    # A third of the ends in a row makes them 1 / sqrt(5) = 0.447: stage 1 passes them on, stage 2 asks anew.
    for _ in range(2):
        state = policy.learn(state, arms, duels, np.array([1]))
    duels, state = policy.choose(state, arms, STREAMS)
    assert duels.note is not None
    assert duels.note.tolist() == [[1.0, 1.0]]


def test_a_column_of_radii_equals_separate_runs_bit_for_bit() -> None:
    env = duelist.LinearDuels(dim=4, arms=10)
    together = duelist.simulate(StaD(radius=(0.2, 0.2, 2.0, 2.0)), env, rounds=80, trials=[3, 7, 3, 7], seed=2)
    for lanes, radius in ((slice(0, 2), 0.2), (slice(2, 4), 2.0)):
        alone = duelist.simulate(StaD(radius=radius), env, rounds=80, trials=[3, 7], seed=2)
        np.testing.assert_array_equal(together.regret[lanes], alone.regret)
        np.testing.assert_array_equal(together.first[lanes], alone.first)
        np.testing.assert_array_equal(together.second[lanes], alone.second)


@pytest.mark.slow
@pytest.mark.parametrize("explore", ["optimistic", "widest"])
@pytest.mark.parametrize("radius", [0.4, 3.0])
def test_every_round_agrees_with_the_rule_in_plain_python(explore: str, radius: float) -> None:
    dim, n_layers, horizon = 2, 4, 300

    def rule(record: list[Taught], actions: FiniteActions, _streams: Streams, _asked: int) -> Choice:
        taught = [[duel for duel in record if duel.layer == layer and duel.count > 0] for layer in range(n_layers)]
        layers = SlowLayers(
            [slow_fit(part, dim, 0.5) for part in taught],
            [slow_matrix(part, dim, 0.5) for part in taught],
            radius,
            stop=1 / (radius * horizon**0.5),
            widest_first=explore == "widest",
        )
        return slow_walk(actions.features[0], layers)

    policy = StaD(radius=radius, ridge=0.5, explore=explore, layers=n_layers)
    choices = play_beside(policy, rule, dim=dim, rounds=40, horizon=horizon, scales=(0.4, 0.1, 0.05, 0.02))
    assert len({choice.layer for choice in choices if choice.count > 0}) >= 3
    assert any(choice.count == 0 for choice in choices)
