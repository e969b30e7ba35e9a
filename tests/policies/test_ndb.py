"""NDB-UCB and NDB-TS: the fit of a network, and widths from its gradients."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.nonlinear import QuadraticDuels
from duelist.history.duels import Duels, duels_between
from duelist.policies.algorithms.nonlinear.ndb import NDBTS, NDBUCB, NDBState
from duelist.rewards.base import CustomReward
from duelist.rewards.models import Quadratic, TwoLayerNetwork
from tests.support.oracles import Floats
from tests.support.reference_policies import Taught, slow_fit, slow_matrix

jax = pytest.importorskip("jax", reason="needs the extra 'jax'")
RIDGE, RADIUS, HIDDEN = 0.6, 1.4, 3


def linear(theta: Any, features: Any) -> Any:
    return features @ theta


LINEAR = CustomReward(linear, n_parameters=2)


def play(policy: Any, rounds: int) -> list[tuple[NDBState, FiniteActions, Duels, int]]:
    """States that chose, with what they chose from, the pair and who won, for an ideal point at the origin."""
    rng, streams = np.random.default_rng(3), Streams(4, [6])
    arms = FiniteActions(rng.standard_normal((6, 2)))
    state, steps = policy.start(Problem(dim=2), streams), []
    for _ in range(rounds):
        duels, asked = policy.choose(state, arms, streams)
        first, second = arms.features[0, duels.first[0]], arms.features[0, duels.second[0]]
        won = 1 if float((second**2).sum() - (first**2).sum()) > rng.logistic() else -1
        steps.append((state, arms, duels, won))
        state = policy.learn(asked, arms, duels, np.array([won]))
    return steps


def test_with_a_linear_reward_every_round_agrees_with_a_plain_linear_rule() -> None:
    """Gradients of a linear reward are its features, so the rule is one of logistic regression, fitted here by BFGS."""
    policy = NDBUCB(radius=RADIUS, ridge=RIDGE, reward=LINEAR, steps=20)
    record: list[Taught] = []
    for t, (state, arms, duels, won) in enumerate(play(policy, 25)):
        x, theta = arms.features[0], slow_fit(record, 2, RIDGE)
        np.testing.assert_allclose(state.theta[0] - state.centre[0], theta, atol=1e-6)
        inverse = np.linalg.inv(slow_matrix(record, 2, RIDGE))
        first, second = int(duels.first[0]), int(duels.second[0])
        if t > 0:
            assert first == max(range(6), key=lambda k: theta @ x[k])
        scores = [
            float(theta @ x[k]) + RADIUS * math.sqrt(RIDGE * float((x[k] - x[first]) @ inverse @ (x[k] - x[first])))
            for k in range(6)
        ]
        assert second == int(np.argmax(scores)), t
        record.append(Taught(x[first] - x[second], won))


def slow_gradient(theta: Floats, x: Floats) -> Floats:
    """Gradient of <v, tanh(W x + w)> / sqrt(hidden), by the chain rule, unit by unit, in the order (W, w, v)."""
    weights, shifts, outputs = theta[: 2 * HIDDEN].reshape(HIDDEN, 2), theta[2 * HIDDEN : 3 * HIDDEN], theta[3 * HIDDEN :]
    of_weights, of_shifts, of_outputs = [], [], []
    for k in range(HIDDEN):
        unit = math.tanh(float(weights[k] @ x) + shifts[k])
        inner = outputs[k] * (1 - unit**2) / math.sqrt(HIDDEN)
        of_weights += [inner * x[0], inner * x[1]]
        of_shifts.append(inner)
        of_outputs.append(unit / math.sqrt(HIDDEN))
    return np.array(of_weights + of_shifts + of_outputs)


def slow_utility(theta: Floats, x: Floats) -> float:
    """The output is linear in the last layer: its gradient there times its weights."""
    return float(slow_gradient(theta, x)[-HIDDEN:] @ theta[-HIDDEN:])


@pytest.mark.parametrize("gradients", ["initial", "current", "last-layer"])
@pytest.mark.parametrize("kind", [NDBUCB, NDBTS])
def test_with_a_network_every_pair_agrees_with_the_rule_in_plain_python(kind: Any, gradients: str) -> None:
    policy = kind(radius=RADIUS, ridge=RIDGE, reward=TwoLayerNetwork(hidden=HIDDEN), gradients=gradients)
    past: list[tuple[Floats, Floats]] = []
    for t, (state, arms, duels, _) in enumerate(play(policy, 12)):
        x, at = arms.features[0], state.centre[0] if gradients == "initial" else state.theta[0]
        begin = -HIDDEN if gradients == "last-layer" else 0
        matrix = RIDGE * np.eye(len(slow_gradient(at, x[0])[begin:]))
        for a, b in past:
            z = (slow_gradient(at, a) - slow_gradient(at, b))[begin:]
            matrix += np.outer(z, z)
        utilities = [slow_utility(state.theta[0], arm) - slow_utility(state.centre[0], arm) for arm in x]
        first, scores = int(duels.first[0]), []
        noise = arms.random_priority(Streams(4, [6]), "thompson", t)[0]
        for k in range(6):
            z = (slow_gradient(at, x[k]) - slow_gradient(at, x[first]))[begin:]
            width = math.sqrt(RIDGE * float(z @ np.linalg.inv(matrix) @ z))
            normal = 1.0
            if kind is NDBTS:
                normal = math.sqrt(2.0) * float(jax.scipy.special.erfinv(2.0 * noise[k] - 1.0))
            scores.append(utilities[k] + RADIUS * width * normal)
        if t > 0:
            assert first == int(np.argmax(utilities)), t
        assert int(duels.second[0]) == int(np.argmax(scores)), t
        past.append((x[first], x[int(duels.second[0])]))


def test_many_steps_end_where_the_loss_is_flat() -> None:
    policy = NDBUCB(ridge=RIDGE, reward=TwoLayerNetwork(hidden=HIDDEN), steps=60)
    steps = play(policy, 15)
    state, arms, *_ = steps[-1]

    def loss(theta: Floats) -> float:
        total = 0.5 * RIDGE * float(((theta - state.centre[0]) ** 2).sum())
        for _, _, duels, won in steps[:-1]:
            a, b = arms.features[0, duels.first[0]], arms.features[0, duels.second[0]]
            gap = slow_utility(theta, a) - slow_utility(theta, b)
            gap -= slow_utility(state.centre[0], a) - slow_utility(state.centre[0], b)
            total += math.log1p(math.exp(-won * gap))
        return total

    at, h = state.theta[0], 1e-5
    slope = [(loss(at + h * e) - loss(at - h * e)) / (2 * h) for e in np.eye(len(at))]
    assert np.abs(slope).max() < 1e-4
    assert loss(at) < loss(state.centre[0])


def test_open_duels_narrow_the_widths_and_votes_together_are_fitted_once() -> None:
    policy, streams = NDBUCB(radius=3.0, ridge=0.1), Streams(2, [0])
    arms = FiniteActions(np.random.default_rng(1).standard_normal((6, 2)))
    state = policy.start(Problem(dim=2, live=True), streams)
    pending: list[Duels] = []
    for _ in range(6):
        duels, state = policy.choose_with_pending(state, arms, streams, pending)
        assert duels.first[0] != duels.second[0]
        pending.append(duels)
    assert len({frozenset((int(duels.first[0]), int(duels.second[0]))) for duels in pending}) >= 3
    learnt = policy.learn_many(state, [(arms, duels, np.array([1])) for duels in pending])
    assert learnt.table.rounds == 6
    assert (learnt.theta != state.theta).any()


def test_a_tie_pulls_utilities_together() -> None:
    policy, streams = NDBUCB(reward=LINEAR, steps=10), Streams(2, [0])
    arms = FiniteActions([[1.0, 0.0], [0.0, 1.0]])
    duels = duels_between(arms, np.array([0]), np.array([1]))
    won = policy.learn(policy.start(Problem(dim=2), streams), arms, duels, np.array([1]))
    tied = policy.learn(won, arms, duels, np.array([0]))
    before, after = (np.ptp(policy.estimated_utilities(state, arms)) for state in (won, tied))
    assert 0.0 < after < before


@pytest.mark.parametrize("kind", [NDBUCB, NDBTS])
def test_it_finds_an_ideal_point_that_no_linear_utility_has(kind: Any) -> None:
    env = QuadraticDuels(dim=2, arms=16)
    run = duelist.simulate(kind(), env, rounds=200, trials=4, seed=0, workers=1)
    linear_rule = duelist.simulate(duelist.MaxPairUCB(), env, rounds=200, trials=4, seed=0)
    assert run.final_regret.mean() < 0.6 * linear_rule.final_regret.mean()


@pytest.mark.parametrize(
    "settings",
    [
        {"radius": -1.0},
        {"ridge": 0.0},
        {"steps": 0},
        {"gradients": "last"},
        {"reward": 3},
        {"reward": Quadratic(), "gradients": "last-layer"},
        {"same_arm": "redraw"},
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        NDBTS(**settings)
