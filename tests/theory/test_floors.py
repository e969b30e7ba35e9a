"""Floors against every policy of tiny problems, and below the regret of policies that play."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.core.errors import InvalidInputError
from duelist.theory import hidden_magnitude_estimate, regret_floor, sign_values
from duelist.theory.reflections import reflect, reflection_values, split_costs, undominated
from duelist.theory.two_hypotheses import least_costs
from duelist.typing import FloatArray

CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=2)))
# Closed under every reflection that exchanges two corners of the square, as the circle is.
CIRCLE = np.array([(math.cos(angle), math.sin(angle)) for angle in (np.arange(16) + 0.5) * math.pi / 8])


def logistic(u: float) -> float:
    return 1.0 / (1.0 + math.exp(-u))


def best_of_all_policies(costs: FloatArray, chances: FloatArray, rounds: int) -> float:
    """The least expected cost under a uniform prior over truths, by walking every history of every policy.

    costs (n_truths, n_actions), chances (n_truths, n_actions, n_outcomes). Histories with the same counts have the same
    posterior.
    """
    truths, actions, outcomes = chances.shape
    tells = (chances != chances[:1]).any(axis=(0, 2))

    @cache
    def least(left: int, history: tuple[tuple[int, int], ...]) -> float:
        if left == 0:
            return 0.0
        weights = np.full(truths, 1.0 / truths)
        for action, outcome in history:
            weights = weights * chances[:, action, outcome]
        found = math.inf
        for action in range(actions):
            after = [tuple(sorted((*history, (action, y)))) for y in range(outcomes)] if tells[action] else [history]
            found = min(found, float(weights @ costs[:, action]) + sum(least(left - 1, each) for each in after))
        return found

    return least(rounds, ())


def sign_problem(a: float, shifts: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    costs = [(0.0, 2 * a), (2 * a, 0.0)] + [(a, a)] * len(shifts)
    wins = [(1.0, 1.0)] * 2 + [(logistic(c + 2 * a), logistic(c - 2 * a)) for c in shifts]
    return np.array(costs).T, np.array([[(p, 1 - p) for p in pair] for pair in wins]).transpose(1, 0, 2)


def duels_problem(arms: FloatArray, truths: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Costs and chances of all pairs, each arm against itself included."""
    utilities = truths @ arms.T
    pairs = [(i, j) for i in range(len(arms)) for j in range(i, len(arms))]
    costs = np.array([[max(u) - (u[i] + u[j]) / 2 for i, j in pairs] for u in utilities.tolist()])
    wins = np.array([[logistic(u[i] - u[j]) for i, j in pairs] for u in utilities.tolist()])
    return costs, np.stack([wins, 1 - wins], axis=2)


@pytest.mark.parametrize("a", [0.05, 0.4, 1.0])
@pytest.mark.parametrize("rounds", [1, 2, 4, 6])
def test_the_value_of_a_sign_is_that_of_the_best_of_all_policies(a: float, rounds: int) -> None:
    assert sign_values(a, rounds)[-1] == pytest.approx(best_of_all_policies(*sign_problem(a, [0.0]), rounds), rel=1e-9)


def test_the_value_of_a_sign_is_the_least_over_a_list_of_all_policies_of_three_rounds() -> None:
    a, (costs, chances) = 0.8, sign_problem(0.8, [0.0])
    found = math.inf
    # A policy names an action for the empty history, for each of two outcomes, and for each of four pairs of them.
    for policy in itertools.product(range(3), repeat=7):
        total = 0.0
        for truth, y1, y2 in itertools.product(range(2), repeat=3):
            plays = policy[0], policy[1 + y1], policy[3 + 2 * y1 + y2]
            chance = chances[truth, plays[0], y1] * chances[truth, plays[1], y2]
            total += 0.5 * chance * sum(costs[truth, play] for play in plays)
        found = min(found, total)
    assert sign_values(a, 3)[-1] == pytest.approx(found, rel=1e-9)


@pytest.mark.parametrize("a", [0.1, 0.5, 1.0])
@pytest.mark.parametrize("most", [0.5, 3.0])
def test_shifted_duels_are_allowed_for_and_cost_little(a: float, most: float) -> None:
    offered = [0.0, 0.013, most / 3, -most / 2, most, -most]
    best = best_of_all_policies(*sign_problem(a, offered), 5)
    value = sign_values(a, 5, most_shift=most)[-1]
    assert 0.97 * best <= value <= best + 1e-12


def test_a_shift_can_help_so_the_unshifted_value_alone_would_be_no_bound() -> None:
    with_shifts = best_of_all_policies(*sign_problem(1.0, [0.0, -1.5, 1.5]), 12)
    assert sign_values(1.0, 12, most_shift=1.5)[-1] <= with_shifts < sign_values(1.0, 12)[-1] - 1e-3


def test_values_grow_with_rounds_and_shrink_per_magnitude() -> None:
    curves = {a: sign_values(a, 400, most_shift=2.0) for a in (0.003, 0.03, 0.1, 0.3, 1.0)}
    for curve in curves.values():
        assert (np.diff(curve) >= -1e-9).all()
        assert (np.diff(curve, 2) <= 1e-9).all()  # a round more costs less than the one before
    per_magnitude = [curve[-1] / a for a, curve in curves.items()]
    assert per_magnitude == sorted(per_magnitude, reverse=True)


def test_the_least_cost_of_any_two_truths_is_never_too_high_and_nearly_right() -> None:
    generator = np.random.default_rng(0)
    grid = np.arange(-180, 181) / 20.0
    for _ in range(5):
        costs = generator.random((2, 4))
        wins = generator.uniform(0.1, 0.9, (2, 4))
        wins[:, 0] = wins[0, 0]  # one action that tells nothing
        chances = np.stack([wins, 1 - wins], axis=2)
        best = best_of_all_policies(costs, chances, 5)
        value = least_costs(costs, chances, grid, 5)[-1]
        assert 0.995 * best <= value <= best + 1e-12
        coarse = least_costs(costs, chances, grid[::20], 5)[-1]
        assert coarse <= value + 1e-12


def test_with_one_coordinate_the_floor_is_the_regret_of_the_best_policy() -> None:
    arms, truths = np.array([[-1.0], [1.0]]), np.array([[-1.0], [1.0]])
    floor = regret_floor(dim=1, arms=2, rounds=6)
    assert floor.kind == "bound"
    assert floor.value == pytest.approx(best_of_all_policies(*duels_problem(arms, truths), 6), rel=1e-9)


@pytest.mark.parametrize("rounds", [1, 3, 4])
def test_the_sum_over_coordinates_is_below_the_best_policy_of_a_square(rounds: int) -> None:
    best = best_of_all_policies(*duels_problem(CORNERS, CIRCLE), rounds)
    floor = np.mean([
        sign_values(abs(one), rounds, most_shift=2 * abs(other))[-1] for theta in CIRCLE for one, other in (theta, theta[::-1])
    ]) * 2  # fmt: skip
    assert 0.8 * best <= floor <= best + 1e-12


@pytest.mark.parametrize("arms", [CORNERS, CORNERS[:3], CORNERS[[0, 3]]], ids=["four", "three", "opposite"])
@pytest.mark.parametrize("rounds", [1, 4])
def test_the_sum_over_reflections_is_below_the_best_policy(arms: FloatArray, rounds: int) -> None:
    best = best_of_all_policies(*duels_problem(arms, CIRCLE), rounds)
    floor = float(np.mean([reflection_values(arms, theta, rounds)[-1] for theta in CIRCLE]))
    assert 0.25 * best <= floor <= best + 1e-12


def test_no_mirror_is_charged_more_than_a_duel_costs() -> None:
    generator = np.random.default_rng(1)
    for _ in range(10):
        arms = np.unique(generator.choice([-1.0, 1.0], (12, 6)), axis=0)
        theta = generator.standard_normal(6)
        best, shares = split_costs(arms, theta)
        costs = duels_problem(arms, theta[None])[0][0]
        assert shares
        assert all((share >= 0.0).all() for share in shares.values())
        assert (sum(shares.values()) <= costs * (1 + 1e-12)).all()
        assert best == int((arms @ theta).argmax())
        for k in shares:
            image = reflect(theta, arms[best] - arms[k])
            np.testing.assert_allclose(np.linalg.norm(image), np.linalg.norm(theta))
            np.testing.assert_allclose(arms[[best, k]] @ image, arms[[k, best]] @ theta, atol=1e-12)


def test_duels_that_are_left_out_would_not_have_been_played() -> None:
    generator = np.random.default_rng(2)
    costs = generator.integers(0, 4, (2, 30)) / 4
    wins = generator.integers(1, 5, (2, 30)) / 5
    wins[:, 10:] = np.where(generator.random(20) < 0.5, wins[:, 10:], 1 - wins[:, 10:])
    kept = undominated(costs, wins)
    chances = np.stack([wins, 1 - wins], axis=2)
    grid = np.arange(-60, 61) / 10.0
    few, all_of_them = least_costs(costs[:, kept], chances[:, kept], grid, 20), least_costs(costs, chances, grid, 20)
    np.testing.assert_allclose(few, all_of_them)
    assert 0 < kept.sum() < 30


def test_hidden_magnitudes_match_the_best_of_all_policies_and_are_called_an_estimate() -> None:
    angles = np.pi * ((np.arange(6) + 0.5) / 6 - 0.5)
    # The law of a coordinate in dimension 4 is cos^2 of its angle: give each value as many copies as it weighs.
    copies = np.round(4 * np.cos(angles) ** 2 / np.cos(angles).min() ** 2 * 0.25 * 4).astype(int)
    np.testing.assert_allclose(copies / copies[0], np.cos(angles) ** 2 / np.cos(angles[0]) ** 2, rtol=0.02)
    values = np.repeat(np.sin(angles), copies)
    costs = np.stack([2 * np.maximum(-values, 0), 2 * np.maximum(values, 0), np.abs(values)], axis=1)
    wins = np.stack([np.ones_like(values), np.ones_like(values), 1 / (1 + np.exp(-2 * values))], axis=1)
    best = best_of_all_policies(costs, np.stack([wins, 1 - wins], axis=2), 4)
    estimate = hidden_magnitude_estimate(dim=4, rounds=4, points=6)
    assert estimate.kind == "estimate"
    assert estimate.value == pytest.approx(4 * best, rel=0.01)


def test_the_curve_ends_at_the_value_and_holds_the_floors_of_fewer_rounds() -> None:
    long, short = regret_floor(dim=3, arms=8, rounds=120, instances=64), regret_floor(dim=3, arms=8, rounds=40, instances=64)
    assert long.curve[-1] == long.value
    assert len(long.curve) == 120
    assert long.curve[39] == pytest.approx(short.value, abs=4 * (long.standard_error + short.standard_error) + 0.02)
    assert "sampled bound" in str(long)


@pytest.mark.slow
@pytest.mark.parametrize("policy", [duelist.Foresight(), duelist.FGTS()], ids=["Foresight", "FGTS"])
def test_policies_stay_above_the_floor(policy: duelist.policies.Policy[Any]) -> None:
    rounds, trials = 150, 100
    floor = regret_floor(dim=5, arms=32, rounds=rounds)
    final = duelist.simulate(policy, duelist.LinearDuels(dim=5, arms=32), rounds=rounds, trials=trials, seed=0).final_regret
    assert final.mean() - 2 * final.std(ddof=1) / math.sqrt(trials) > floor.value > 30.0


@pytest.mark.parametrize("dim", [2, 5])
def test_more_corners_than_there_are_get_an_error_that_says_so(dim: int) -> None:
    with pytest.raises(InvalidInputError, match="Raise dim or lower arms"):
        regret_floor(dim=dim, arms=2**dim + 1, rounds=10)
