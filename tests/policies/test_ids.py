"""IDS plays the best arm against the one that is cheapest for what a duel would tell."""

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
from duelist.policies import IDS
from tests.support.oracles import Floats
from tests.support.reference_policies import Choice, Taught, norm, play_beside, slow_fit, slow_matrix


def least_ratio(delta: float, half: float, gain: float) -> tuple[float, float]:
    """The least (delta + p half)^2 / (p gain) over ten thousand coins p in (0, 1], and the coin."""
    coins = np.arange(1, 10_001) / 10_000
    ratios = (delta + coins * half) ** 2 / (coins * gain)
    best = int(ratios.argmin())
    return float(ratios[best]), float(coins[best])


def slow_ids(arms: Floats, theta: Floats, matrix: Floats, radius: float) -> tuple[int, int, float]:
    """The best arm, its partner, and how often the coin shows them."""
    leader = int(np.argmax(arms @ theta))
    x = arms[leader]
    delta = max(float(theta @ (w - x)) + radius * norm(w - x, matrix) for w in arms)
    found: list[tuple[float, int, float]] = []
    for k, w in enumerate(arms):
        if k != leader:
            win = 1.0 / (1.0 + math.exp(-float(theta @ (x - w))))
            gain = 0.5 * math.log(1.0 + win * (1.0 - win) * norm(x - w, matrix) ** 2)
            ratio, coin = least_ratio(delta, 0.5 * float(theta @ (x - w)), gain)
            found.append((ratio, k, coin))
    _, partner, coin = min(found)
    return leader, partner, coin


@pytest.mark.parametrize("radius", [0.3, 2.0])
def test_every_round_agrees_with_the_rule_in_plain_python(radius: float) -> None:
    def rule(record: list[Taught], actions: FiniteActions, streams: Streams, asked: int) -> Choice:
        if asked == 0:  # all arms are equally good, and random numbers of their content decide
            return first_round(actions, streams)
        theta = slow_fit(record, 3, 0.5)
        leader, partner, coin = slow_ids(actions.features[0], theta, slow_matrix(record, 3, 0.5, theta), radius)
        number = float(streams.uniforms("ids coin", asked)[0])
        assert abs(number - coin) > 2e-4, "the grid of coins does not decide this round"
        return Choice(leader, partner if number < coin else leader)

    def first_round(actions: FiniteActions, streams: Streams) -> Choice:
        priority = actions.random_priority(streams, "ties", 0)[0]
        leader = int(priority.argmax())
        widths = np.linalg.norm(actions.features[0] - actions.features[0, leader], axis=1)
        return Choice(leader, int(widths.argmax()))

    choices = play_beside(IDS(radius=radius, ridge=0.5), rule, dim=3, rounds=40, horizon=40, scales=(1.0, 0.4))
    assert any(choice.first != choice.second for choice in choices)
    if radius < 1.0:
        assert any(choice.first == choice.second for choice in choices)


def one_vote_known() -> tuple[float, float]:
    """theta and H^-1 in one dimension after one win of z = 1 with ridge 1: theta = s(-theta), H = 1 + s'(theta)."""
    theta = 0.4
    for _ in range(200):
        theta = 1.0 / (1.0 + math.exp(theta))
    return theta, 1.0 / (1.0 + theta * (1.0 - theta))


def test_one_round_computed_by_hand() -> None:
    """Arms 0, 1 and 2 on a line, of which 1 beat 0 once: 2 is the leader, and the partner is at distance 1 or 2."""
    arms, policy, streams = FiniteActions([[0.0], [1.0], [2.0]]), IDS(ridge=1.0, radius=2.0), Streams(3, [0])
    state = policy.start(Problem(dim=1), streams)
    state = policy.learn(state, arms, duels_between(arms, np.array([1]), np.array([0])), np.array([1]))
    theta, variance = one_vote_known()
    assert state.theta[0, 0] == pytest.approx(theta, abs=1e-6)
    delta = max(-k * theta + 2.0 * k * math.sqrt(variance) for k in (0, 1, 2))
    ratios = {}
    for k in (1, 2):
        win = 1.0 / (1.0 + math.exp(-k * theta))
        ratios[k] = (delta + 0.5 * k * theta) ** 2 / (0.5 * math.log(1.0 + win * (1.0 - win) * k * k * variance))
    assert delta > theta  # so that p = 1 for both
    nearest = min(ratios, key=lambda k: ratios[k])
    duels, _ = policy.choose(state, arms, streams)
    assert (int(duels.first[0]), int(duels.second[0])) == (2, 2 - nearest)


def test_when_nothing_can_be_better_the_best_arm_meets_itself() -> None:
    arms, policy, streams = FiniteActions([[1.0], [0.0]]), IDS(ridge=1.0, radius=0.01), Streams(0, [0])
    state = policy.start(Problem(dim=1), streams)
    for _ in range(30):
        state = policy.learn(state, arms, duels_between(arms, np.array([0]), np.array([1])), np.array([1]))
    duels, _ = policy.choose(state, arms, streams)
    assert (duels.first[0], duels.second[0]) == (0, 0)


@pytest.mark.parametrize("features", [[[1.0], [0.0]], [[1.0], [1.0]]])
def test_live_an_arm_never_meets_itself(features: list[list[float]]) -> None:
    arms, policy, streams = FiniteActions(features), IDS(ridge=1.0, radius=0.01), Streams(0, [0])
    state = policy.start(Problem(dim=1, live=True), streams)
    for _ in range(10):
        duels, state = policy.choose(state, arms, streams)
        assert duels.first[0] != duels.second[0]
        state = policy.learn(state, arms, duels, np.array([1 if duels.first[0] == 0 else -1]))


def test_pending_duels_change_the_next_pair() -> None:
    arms = FiniteActions([[0.01, 0.0], [-1.0, 0.0], [0.0, 0.95]])
    policy, streams = IDS(ridge=1.0), Streams(0, [0])
    state = policy.start(Problem(dim=2, live=True), streams)
    state = state._replace(theta=np.array([[1.0, -0.1]]))
    duels, state = policy.choose(state, arms, streams)
    again, _ = policy.choose(state, arms, streams)
    later, after = policy.choose_with_pending(state, arms, streams, [duels] * 20)
    assert duels.second[0] == again.second[0] != later.second[0]
    np.testing.assert_array_equal(after.whitener, state.whitener)


def test_a_column_of_radii_equals_separate_runs() -> None:
    env = duelist.LinearDuels(dim=4, arms=10)
    together = duelist.simulate(IDS(radius=(0.5, 3.0)), env, rounds=60, trials=[3, 3], seed=2)
    for lane, radius in enumerate((0.5, 3.0)):
        alone = duelist.simulate(IDS(radius=radius), env, rounds=60, trials=[3], seed=2)
        np.testing.assert_array_equal(together.second[lane], alone.second[0])


@pytest.mark.parametrize("wrong", [{"radius": 0.0}, {"ridge": -1.0}, {"same_arm": "redraw"}])
def test_wrong_settings_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        IDS(**wrong)  # type: ignore[arg-type]
