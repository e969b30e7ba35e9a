"""MaxMinLCB plays the game between promising arms that its formula describes."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.nonlinear import QuadraticDuels
from duelist.history.duels import Duels, duels_between
from duelist.policies.algorithms.nonlinear.maxminlcb import MaxMinLCB, MaxMinLCBState, play_game
from tests.support.oracles import Floats
from tests.support.reference_policies import Taught, slow_fit, slow_matrix


def slow_features(frequencies: Floats, arms: Floats) -> Floats:
    """Fourier features (n_arms, 2 n) of arms (n_arms, dim) with frequencies (dim, n), one number at a time."""
    n = frequencies.shape[1]
    rows = []
    for arm in arms:
        angles = [sum(float(x * w) for x, w in zip(arm, frequencies[:, k], strict=True)) for k in range(n)]
        rows.append([math.cos(a) / math.sqrt(n) for a in angles] + [math.sin(a) / math.sqrt(n) for a in angles])
    return np.array(rows)


def slow_pair(phi: Floats, record: list[Taught], *, ridge: float, kappa: float, radius: float) -> tuple[int, int]:
    """Leader and follower in plain loops over pairs, from the kernel form of the width."""
    dim, n_arms = phi.shape[1], len(phi)
    theta = slow_fit(record, dim, ridge)
    inverse = np.linalg.inv(slow_matrix(record, dim, ridge * kappa))
    lower, upper = np.empty((n_arms, n_arms)), np.empty((n_arms, n_arms))
    for i, j in product(range(n_arms), repeat=2):
        z = phi[i] - phi[j]
        chance = 1.0 / (1.0 + math.exp(-float(theta @ z)))
        sigma = math.sqrt(ridge * kappa * float(z @ inverse @ z))
        lower[i, j], upper[i, j] = chance - radius * sigma, chance + radius * sigma
    kept = [i for i in range(n_arms) if all(upper[i, j] >= 0.5 - 1e-9 for j in range(n_arms))]
    if len(kept) == 1:
        return kept[0], kept[0]
    leader = max(kept, key=lambda i: min(lower[i, j] for j in kept if j != i))
    return leader, min((j for j in kept if j != leader), key=lambda j: lower[leader, j])


@pytest.mark.parametrize("radius", [0.1, 0.6])
def test_every_round_agrees_with_the_rule_in_plain_python(radius: float) -> None:
    policy = MaxMinLCB(radius=radius, ridge=0.3, kappa=5.0, n_frequencies=3, bandwidth=1.5)
    rng, streams = np.random.default_rng(3), Streams(4, [6])
    state = policy.start(Problem(dim=2), streams)
    record: list[Taught] = []
    pairs = []
    for t in range(25):
        arms = rng.standard_normal((int(rng.integers(3, 7)), 2))
        actions = FiniteActions(arms)
        duels, state = policy.choose(state, actions, streams)
        phi = slow_features(state.frequencies[0], arms)
        first, second = slow_pair(phi, record, ridge=0.3, kappa=5.0, radius=radius)
        if t > 0:  # in the first round all chances are a half, and leaders may tie
            assert (int(duels.first[0]), int(duels.second[0])) == (first, second), t
        won = 1 if float(-(arms[duels.first[0]] ** 2).sum() + (arms[duels.second[0]] ** 2).sum()) > rng.logistic() else -1
        record.append(Taught(phi[duels.first[0]] - phi[duels.second[0]], won))
        state = policy.learn(state, actions, duels, np.array([won]))
        pairs.append(first != second)
    assert any(pairs)


def test_the_width_is_that_of_the_dueling_kernel() -> None:
    policy = MaxMinLCB(ridge=0.7, kappa=4.0, n_frequencies=4)
    streams, rng = Streams(1, [0]), np.random.default_rng(0)
    actions = FiniteActions(rng.standard_normal((5, 2)))
    state = policy.start(Problem(dim=2), streams)
    past = [(0, 1), (2, 3), (1, 4)]
    for i, j in past:
        state = policy.learn(state, actions, duels_between(actions, np.array([i]), np.array([j])), np.array([1]))
    phi = slow_features(state.frequencies[0], actions.features[0])
    kernel = phi @ phi.T

    def of_pairs(a: tuple[int, int], b: tuple[int, int]) -> float:
        return float(kernel[a[0], b[0]] + kernel[a[1], b[1]] - kernel[a[0], b[1]] - kernel[a[1], b[0]])

    gram = np.array([[of_pairs(a, b) for b in past] for a in past])
    pair = (0, 3)
    with_past = np.array([of_pairs(pair, a) for a in past])
    by_kernel = of_pairs(pair, pair) - with_past @ np.linalg.solve(gram + 2.8 * np.eye(3), with_past)
    whitened = state.fit.whitener[0] @ (phi[0] - phi[3])
    assert 2.8 * whitened @ whitened == pytest.approx(by_kernel, rel=1e-10)


def test_an_arm_that_alone_is_promising_meets_itself_in_simulation_and_its_hardest_test_live() -> None:
    chance = np.array([[[0.5, 0.9, 0.8], [0.1, 0.5, 0.4], [0.2, 0.6, 0.5]]])
    width, priority = np.full((1, 3, 3), 0.1) * (1 - np.eye(3)), np.array([[0.3, 0.2, 0.1]])
    assert [rows.tolist() for rows in play_game(chance, width, priority, different=False)] == [[0], [0]]
    assert [rows.tolist() for rows in play_game(chance, width, priority, different=True)] == [[0], [2]]


def test_ties_go_by_priority() -> None:
    level, width = np.full((1, 3, 3), 0.5), 0.2 * (1 - np.eye(3))[None]
    assert [rows.tolist() for rows in play_game(level, width, np.array([[0.1, 0.9, 0.5]]), different=False)] == [[1], [2]]


def test_duels_that_wait_make_room_for_others() -> None:
    policy, streams = MaxMinLCB(radius=2.0, ridge=0.05), Streams(2, [0])
    actions = FiniteActions(np.random.default_rng(1).standard_normal((6, 2)))
    state: MaxMinLCBState = policy.start(Problem(dim=2, live=True), streams)
    pending: list[Duels] = []
    asked = set()
    for _ in range(5):
        duels, state = (
            policy.choose_with_pending(state, actions, streams, pending) if pending else policy.choose(state, actions, streams)
        )
        pending.append(duels)
        asked.add(frozenset((int(duels.first[0]), int(duels.second[0]))))
    assert len(asked) >= 3
    assert state.fit.gram.tolist() == policy.start(Problem(dim=2, live=True), streams).fit.gram.tolist()


def test_it_finds_an_ideal_point_that_no_linear_utility_has() -> None:
    env = QuadraticDuels(dim=2, arms=16)
    run = duelist.simulate(MaxMinLCB(), env, rounds=300, trials=4, seed=0)
    linear = duelist.simulate(duelist.MaxPairUCB(), env, rounds=300, trials=4, seed=0)
    assert run.final_regret.mean() < 0.5 * linear.final_regret.mean()


@pytest.mark.parametrize(
    "settings",
    [{"kappa": 3.0}, {"ridge": 0.0}, {"radius": -1.0}, {"n_frequencies": 0}, {"bandwidth": 0.0}, {"same_arm": "runner-up"}],
)
def test_bad_settings_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(InvalidInputError):
        MaxMinLCB(**settings)  # type: ignore[arg-type]


def test_arms_of_another_dimension_are_refused() -> None:
    policy, streams = MaxMinLCB(), Streams(0, [0])
    with pytest.raises(InvalidInputError, match="dimension 2"):
        policy.choose(policy.start(Problem(dim=2), streams), FiniteActions([[1.0], [2.0]]), streams)
