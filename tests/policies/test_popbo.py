"""POPBO plays the largest improvement over its last arm that the likelihood still allows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint, brentq, minimize

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.nonlinear import QuadraticDuels
from duelist.history.duels import Duels
from duelist.policies.algorithms.nonlinear.popbo import POPBO, Likelihood, largest_gains
from tests.support.oracles import Floats
from tests.support.reference_policies import Taught, slow_fit, slow_matrix

RIDGE, RADIUS = 0.4, 1.3


def slow_features(frequencies: Floats, arms: Floats) -> Floats:
    """Fourier features (n_arms, 2 n) of arms (n_arms, dim) with frequencies (dim, n)."""
    angles = np.array([[sum(arm * w) for w in frequencies.T] for arm in arms])
    return np.hstack([np.cos(angles), np.sin(angles)]) / math.sqrt(frequencies.shape[1])


def slow_loss(record: list[Taught], theta: Floats) -> float:
    """L: one term per duel."""
    return 0.5 * RIDGE * float(theta @ theta) + sum(
        float(np.logaddexp(0.0, -duel.outcome * (theta @ duel.contrast))) for duel in record
    )


def exact_gain(record: list[Taught], theta: Floats, z: Floats) -> float:
    """The largest <v, z> over the whole set, by a general optimiser."""
    most = slow_loss(record, theta) + RADIUS

    def negative_gain(v: Floats) -> float:
        return -float(z @ v)

    def room(v: Floats) -> list[float]:
        return [most - slow_loss(record, v)]

    inside = NonlinearConstraint(room, 0.0, np.inf)
    return -float(minimize(negative_gain, theta.tolist(), constraints=inside, method="SLSQP", tol=1e-10).fun)


def slow_gain(record: list[Taught], theta: Floats, z: Floats) -> float:
    """The improvement along H^-1 z, its step found by bracketing."""
    direction = np.linalg.solve(slow_matrix(record, len(theta), RIDGE, theta), z)
    if not direction.any():
        return 0.0
    least = slow_loss(record, theta)
    step = brentq(lambda s: slow_loss(record, theta + s * direction) - least - RADIUS, 0.0, 1e3, xtol=1e-13, rtol=1e-14)
    return float(z @ (theta + step * direction))


def test_every_round_agrees_with_the_rule_in_plain_python() -> None:
    policy = POPBO(radius=RADIUS, ridge=RIDGE, n_frequencies=3, bandwidth=1.5)
    rng, streams = np.random.default_rng(3), Streams(4, [6])
    arms = rng.standard_normal((6, 2))
    state, record, last = policy.start(Problem(dim=2), streams), list[Taught](), -1
    phi = slow_features(state.frequencies[0], arms)
    for t in range(25):
        rows = rng.permutation(6)[: 6 - t % 3]  # the last arm is not always there
        actions = FiniteActions(arms[rows])
        duels, state = policy.choose(state, actions, streams)
        theta = slow_fit(record, 6, RIDGE)
        first, second = int(rows[duels.first[0]]), int(rows[duels.second[0]])
        if t > 0:  # the first reference is any arm: all estimates are zero
            assert second == (last if last in rows else max(rows, key=lambda k: theta @ phi[k])), t
        assert first == max(rows, key=lambda k: slow_gain(record, theta, phi[k] - phi[second])), t
        won = 1 if float((arms[second] ** 2).sum() - (arms[first] ** 2).sum()) > rng.logistic() else -1
        record.append(Taught(phi[first] - phi[second], won))
        state, last = policy.learn(state, actions, duels, np.array([won])), first


def test_gains_are_on_the_border_of_the_set_and_near_the_exact_maximum() -> None:
    rng = np.random.default_rng(5)
    contrasts = rng.standard_normal((30, 4))
    record = [Taught(z, 1 if rng.random() < 1 / (1 + math.exp(-2 * z[0])) else -1) for z in contrasts]
    theta = slow_fit(record, 4, RIDGE)
    curvature = slow_matrix(record, 4, RIDGE, theta)
    losses = np.array([0.5 * (1 - duel.outcome) for duel in record])
    away = rng.standard_normal((8, 4))
    gains = largest_gains(
        Likelihood(contrasts, np.ones(30), losses, RIDGE), theta, np.linalg.inv(np.linalg.cholesky(curvature)), away, RADIUS
    )
    for z, gain in zip(away, gains, strict=True):
        assert gain == pytest.approx(slow_gain(record, theta, z), rel=1e-6)
        exact = exact_gain(record, theta, z)
        beyond_estimate = exact - z @ theta
        assert 0.9 * beyond_estimate <= gain - z @ theta <= beyond_estimate * (1 + 1e-6)


def test_an_open_duel_shrinks_the_set_and_leaves_the_estimate() -> None:
    policy, streams = POPBO(radius=2.0), Streams(2, [0])
    actions = FiniteActions(np.random.default_rng(1).standard_normal((6, 2)))
    state = policy.start(Problem(dim=2, live=True), streams)
    pending: list[Duels] = []
    asked = set()
    for _ in range(6):
        if pending:
            duels, state = policy.choose_with_pending(state, actions, streams, pending)
        else:
            duels, state = policy.choose(state, actions, streams)
        assert duels.first[0] != duels.second[0]
        pending.append(duels)
        asked.add(int(duels.first[0]))
    assert len(asked) >= 3
    assert not state.fit.theta.any()


def test_it_finds_an_ideal_point_that_no_linear_utility_has() -> None:
    env = QuadraticDuels(dim=2, arms=16)
    run = duelist.simulate(POPBO(), env, rounds=300, trials=4, seed=0)
    linear = duelist.simulate(duelist.MaxPairUCB(), env, rounds=300, trials=4, seed=0)
    assert run.final_regret.mean() < 0.5 * linear.final_regret.mean()


@pytest.mark.parametrize(
    "settings", [{"ridge": 0.0}, {"radius": -1.0}, {"n_frequencies": 0}, {"bandwidth": -1.0}, {"same_arm": "redraw"}]
)
def test_bad_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        POPBO(**settings)  # type: ignore[arg-type]
