"""KLPolicy draws arms from a softmax of the estimate, and knows how likely every pair was."""

from __future__ import annotations

import math

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import duels_between
from duelist.policies import KLPolicy
from duelist.policies.parts.confidence import UCBState
from tests.support.oracles import Floats, philox_words, unit
from tests.support.reference_policies import Choice, Taught, play_beside, slow_fit

ARMS = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]]


def after_one_duel(policy: KLPolicy, arms: FiniteActions, streams: Streams, *, live: bool = False) -> UCBState:
    """Arm 0 has beaten arm 1, so z = (1, -1) and, with ridge 1, theta = 0.3374 z."""
    lanes = arms.lanes
    state = policy.start(Problem(dim=2, lanes=lanes, live=live), streams)
    duels = duels_between(arms, np.zeros(lanes, dtype=np.int64), np.ones(lanes, dtype=np.int64))
    return policy.learn(state, arms, duels, np.ones(lanes, dtype=np.int64))


@pytest.mark.parametrize("second", ["policy", "reference"])
def test_every_round_agrees_with_the_rule_in_plain_python(second: str) -> None:
    def gumbel(name: str, actions: FiniteActions, streams: Streams, asked: int) -> Floats:
        numbers = [unit(philox_words(streams.keys(name)[0], 1, asked, int(k))[0]) for k in actions.fingerprints[0]]
        return np.array([-math.log(-math.log(u)) for u in numbers])

    def rule(record: list[Taught], actions: FiniteActions, streams: Streams, asked: int) -> Choice:
        logits = actions.features[0] @ slow_fit(record, 3, 0.5) / 0.7
        first = logits + gumbel("kl first", actions, streams, asked)
        other = (logits if second == "policy" else 0.0 * logits) + gumbel("kl second", actions, streams, asked)
        return Choice(int(np.argmax(first)), int(np.argmax(other)))

    policy = KLPolicy(temperature=0.7, second=second, ridge=0.5)
    play_beside(policy, rule, dim=3, rounds=25, horizon=25, scales=(1.0, 0.4))


def test_a_probability_computed_by_hand() -> None:
    # Utilities 0.33742, -0.33742, -0.33742 at temperature 1: weights 1.40132, 0.71361, 0.71361, pi = 0.49543, 0.25229, 0.25229.
    arms, streams, policy = FiniteActions(ARMS), Streams(0, [0]), KLPolicy(temperature=1.0, ridge=1.0)
    pair = duels_between(arms, np.array([0]), np.array([1]))
    state = after_one_duel(policy, arms, streams)
    assert policy.pair_probability(state, arms, pair)[0] == pytest.approx(0.49543 * 0.25229, rel=1e-3)
    live = after_one_duel(policy, arms, streams, live=True)
    assert policy.pair_probability(live, arms, pair)[0] == pytest.approx(0.49543 * 0.5, rel=1e-3)
    mixed = KLPolicy(temperature=1.0, ridge=1.0, second="reference")
    assert mixed.pair_probability(state, arms, pair)[0] == pytest.approx(0.49543 / 3, rel=1e-3)


@pytest.mark.parametrize("live", [False, True])
@pytest.mark.parametrize("features", [ARMS, [*ARMS, ARMS[0]]])
def test_pairs_happen_as_often_as_they_are_said_to(live: bool, features: list[list[float]]) -> None:
    lanes, n_arms = 20_000, len(features)
    arms, streams = FiniteActions(np.tile(features, (lanes, 1, 1))), Streams(5, range(lanes))
    policy = KLPolicy(temperature=0.6)
    state = after_one_duel(policy, arms, streams, live=live)
    duels, after = policy.choose(state, arms, streams)
    total = 0.0
    for i in range(n_arms):
        for j in range(n_arms):
            pair = duels_between(arms, np.full(lanes, i), np.full(lanes, j))
            said = float(policy.pair_probability(after, arms, pair)[0])
            seen = float(((duels.first == i) & (duels.second == j)).mean())
            assert abs(seen - said) <= 5.0 * math.sqrt(said * (1.0 - said) / lanes)
            total += said
    assert total == pytest.approx(1.0)


def test_a_low_temperature_is_greedy_and_a_high_one_the_reference() -> None:
    arms, streams = FiniteActions(ARMS), Streams(0, [0])
    cold, hot = KLPolicy(temperature=1e-3), KLPolicy(temperature=1e6)
    best = duels_between(arms, np.array([0]), np.array([0]))
    assert cold.pair_probability(after_one_duel(cold, arms, streams), arms, best)[0] == pytest.approx(1.0)
    assert hot.pair_probability(after_one_duel(hot, arms, streams), arms, best)[0] == pytest.approx(1 / 9, rel=1e-4)


def test_a_column_of_temperatures_equals_separate_runs() -> None:
    env = duelist.LinearDuels(dim=4, arms=10)
    together = duelist.simulate(KLPolicy(temperature=(0.2, 2.0)), env, rounds=60, trials=[3, 3], seed=2)
    for lane, temperature in enumerate((0.2, 2.0)):
        alone = duelist.simulate(KLPolicy(temperature=temperature), env, rounds=60, trials=[3], seed=2)
        np.testing.assert_array_equal(together.second[lane], alone.second[0])


@pytest.mark.parametrize("wrong", [{"temperature": 0.0}, {"second": "first"}])
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        KLPolicy(**wrong)  # type: ignore[arg-type]
