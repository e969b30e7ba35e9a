"""SupCoLSTIM plays CoLSTIM's rule inside layers of accuracy."""

from __future__ import annotations

import math

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.policies.algorithms.confidence.supcolstim import SupCoLSTIM, stop_width
from tests.support.reference_policies import (
    Choice,
    SlowLayers,
    Taught,
    play_beside,
    slow_fit,
    slow_matrix,
    slow_noise,
    slow_walk,
)

STREAMS = Streams(0, [0])


def test_the_stop_width_is_that_of_layered_linear_bandits() -> None:
    assert stop_width(2500) == pytest.approx(1 / 50)


@pytest.mark.parametrize(
    ("theta", "radius", "pair"),
    [
        # Widths are |z| / sqrt(2) = 0.3536, 0.3536 and 0.7071: only the ends are wider than 1/2, so the middle arm may
        # neither lead nor challenge, whoever the estimate prefers.
        (1.0, 1.0, (2, 0)),
        (-1.0, 1.0, (0, 2)),
        (1.0, 0.0, (2, 0)),
    ],
)
def test_a_round_computed_by_hand(theta: float, radius: float, pair: tuple[int, int]) -> None:
    policy = SupCoLSTIM(radius=radius, perturbation=0.0, layers=4, horizon=100)
    state = policy.start(Problem(dim=1), STREAMS)
    thetas = state.theta.copy()
    thetas[0, 0, 0] = theta
    arms = FiniteActions([[0.0], [0.5], [1.0]])
    duels, asked = policy.choose(state._replace(theta=thetas), arms, STREAMS)
    assert (duels.first[0], duels.second[0]) == pair
    assert duels.note is not None
    assert duels.note.tolist() == [[0.0, 1.0]]
    learnt = policy.learn(asked, arms, duels, np.array([1]))
    np.testing.assert_allclose(learnt.gram[0, :, 0, 0], [3.0, 2.0, 2.0, 2.0])
    # 2 theta = s(-theta) at 0.222323, towards the winner.
    np.testing.assert_allclose(learnt.theta[0, 0, 0], 0.222323 if pair == (2, 0) else -0.222323, atol=1e-5)


def test_a_column_of_radii_equals_separate_runs_bit_for_bit() -> None:
    env = duelist.LinearDuels(dim=4, arms=10)
    together = duelist.simulate(SupCoLSTIM(radius=(0.2, 0.2, 2.0, 2.0)), env, rounds=80, trials=[3, 7, 3, 7], seed=2)
    for lanes, radius in ((slice(0, 2), 0.2), (slice(2, 4), 2.0)):
        alone = duelist.simulate(SupCoLSTIM(radius=radius), env, rounds=80, trials=[3, 7], seed=2)
        np.testing.assert_array_equal(together.regret[lanes], alone.regret)
        np.testing.assert_array_equal(together.first[lanes], alone.first)
        np.testing.assert_array_equal(together.second[lanes], alone.second)


@pytest.mark.parametrize("radius", [0.4, 3.0])
def test_every_round_agrees_with_the_rule_in_plain_python(radius: float) -> None:
    dim, n_layers, horizon = 2, 4, 300
    clip = math.sqrt(dim * math.log(horizon))

    def rule(record: list[Taught], actions: FiniteActions, streams: Streams, asked: int) -> Choice:
        taught = [[duel for duel in record if duel.layer == layer and duel.count > 0] for layer in range(n_layers)]
        chance = min(1.0, math.sqrt(dim * math.log(dim * horizon) / (asked + 1)))
        layers = SlowLayers(
            [slow_fit(part, dim, 0.5) for part in taught],
            [slow_matrix(part, dim, 0.5) for part in taught],
            radius,
            stop=horizon**-0.5,
            noise=slow_noise(actions, streams, asked, own_chance=chance, clip=clip),
        )
        return slow_walk(actions.features[0], layers)

    policy = SupCoLSTIM(radius=radius, ridge=0.5, layers=n_layers)
    choices = play_beside(policy, rule, dim=dim, rounds=40, horizon=horizon, scales=(0.4, 0.1, 0.05, 0.02))
    assert len({choice.layer for choice in choices if choice.count > 0}) >= 3
    assert any(choice.count == 0 for choice in choices)
