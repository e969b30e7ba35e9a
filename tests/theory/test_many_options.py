"""The lower bound for q options: the steps of its proof, and the best of all rules on problems small enough to solve."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duelist.theory.linear_bounds import hard_gap, lower_bound
from duelist.typing import FloatArray


def information(dim: int, horizon: int, options: int) -> float:
    """The c of the bound, from the gap: D^2 = d / (72 c T)."""
    return dim / (72 * horizon * hard_gap(dim, horizon, options) ** 2)


def points_of_the_ball(rng: np.random.Generator, n: int, dim: int) -> FloatArray:
    points = rng.standard_normal((n, dim))
    points *= rng.random((n, 1)) ** (1 / dim) / np.linalg.norm(points, axis=1, keepdims=True)
    corner = rng.random(n) < 0.3
    points[corner] = rng.choice([-1.0, 1.0], (int(corner.sum()), dim)) / math.sqrt(dim)
    return points


def log_chances(utilities: FloatArray) -> FloatArray:
    return np.asarray(utilities - np.log(np.exp(utilities).sum()))


def test_with_two_options_the_bound_is_the_papers() -> None:
    assert lower_bound(dim=5, horizon=2500, bound=1.0).value == 5 * math.sqrt(2500) / (24 * math.sqrt(2))
    assert lower_bound(dim=5, horizon=2500, bound=1.0, options=2) == lower_bound(dim=5, horizon=2500, bound=1.0)
    assert hard_gap(5, 2500) == math.sqrt(5 / 5000) / 6


@given(dim=st.integers(1, 50), options=st.integers(2, 1000), bound=st.floats(0.01, 5.0), more=st.integers(0, 10**6))
def test_where_its_conditions_hold_the_bound_loses_next_to_nothing(dim: int, options: int, bound: float, more: int) -> None:
    horizon = max(math.ceil(72 * (dim / bound) ** 2), dim) + more
    many, duels = (lower_bound(dim=dim, horizon=horizon, bound=bound, options=q) for q in (options, 2))
    assert many.require().value >= duels.require().value * math.exp(-bound / 72) * (1 - 1e-12)
    assert many.value <= duels.value
    assert hard_gap(dim, horizon, options) * math.sqrt(dim) <= bound


@given(dim=st.integers(1, 6), horizon=st.integers(1, 2000), options=st.integers(2, 12), seed=st.integers(0, 2**32 - 1))
def test_what_a_winner_tells_is_at_most_c_times_the_mean_square(dim: int, horizon: int, options: int, seed: int) -> None:
    """KL of one answer between two parameters of the class that differ in a sign <= c / (2 q) sum_j w_j^2."""
    rng = np.random.default_rng(seed)
    arms = points_of_the_ball(rng, options, dim)
    theta = hard_gap(dim, horizon, options) * rng.choice([-1.0, 1.0], dim)
    other = theta * np.where(np.arange(dim) == 0, -1.0, 1.0)
    one, two = log_chances(arms @ theta), log_chances(arms @ other)
    divergence = float(np.exp(one) @ (one - two))
    w = arms @ (theta - other)
    assert divergence <= information(dim, horizon, options) / (2 * options) * float(w @ w) + 1e-15


@given(
    d=st.integers(1, 8),
    T=st.integers(1, 30),
    options=st.integers(2, 9),
    sign=st.sampled_from([-1, 1]),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_stopped_sums_with_means_over_the_options(d: int, T: int, options: int, sign: int, seed: int) -> None:
    """Mean squared errors up to tau_i are at most 4T/d + 2 for one sign, and at least 2T/d for both signs together."""
    coordinate = points_of_the_ball(np.random.default_rng(seed), T * options, d)[:, 0].reshape(T, options)
    energy = np.cumsum((coordinate**2).mean(axis=1))
    reached = np.flatnonzero(energy >= T / d)
    tau = int(reached[0]) + 1 if len(reached) else T
    assert energy[tau - 1] <= T / d + 1 + 1e-9

    def squared_errors(x: int) -> float:
        return float(((1 / math.sqrt(d) - x * coordinate[:tau]) ** 2).mean(axis=1).sum())

    assert squared_errors(sign) <= 4 * T / d + 2 + 1e-9
    assert squared_errors(1) + squared_errors(-1) >= 2 * T / d - 1e-9


@given(d=st.integers(1, 100), extra=st.integers(0, 10**6), options=st.integers(2, 100))
def test_the_last_line_of_the_proof_is_the_bound(d: int, extra: int, options: int) -> None:
    T = d + extra
    c, D = information(d, T, options), hard_gap(d, T, options)
    told = (4 * T / d + 2) * math.sqrt(c * D**2 * (T / d + 1))
    assert told <= 6 * math.sqrt(2 * c) * D * (T / d) ** 1.5 * (1 + 1e-9)
    last = D * math.sqrt(d) / 2 * (T - 3 * math.sqrt(2 * c) * D * T**1.5 / math.sqrt(d))
    assert lower_bound(dim=d, horizon=T, bound=1e3, options=options).value == pytest.approx(last, rel=1e-9)


def least_regret(horizon: int, options: int) -> float:
    """The regret of the best of all rules in dimension 1 with options at -1 and 1, averaged over theta* = D and -D.

    A rule decides how many of the options are at 1; what it knows is the log odds of D. The recursion tries every number.
    """
    gap = hard_gap(1, horizon, options)

    @cache
    def value(log_odds: float, rounds: int) -> float:
        if rounds == 0:
            return 0.0
        chance = {1: 1 / (1 + math.exp(-log_odds)), -1: 1 / (1 + math.exp(log_odds))}
        best = math.inf
        for up in range(options + 1):
            down = options - up
            cost = sum(chance[s] * 2 * gap * (down if s == 1 else up) / options for s in (1, -1))
            # The chance that the winner is one of the options at 1.
            wins = {s: up * math.exp(s * gap) / (up * math.exp(s * gap) + down * math.exp(-s * gap)) for s in (1, -1)}
            for answer in (0, 1) if 0 < up < options else ():
                told = {s: wins[s] if answer else 1 - wins[s] for s in (1, -1)}
                then = round(log_odds + math.log(told[1] / told[-1]), 12)
                cost += sum(chance[s] * told[s] for s in (1, -1)) * value(then, rounds - 1)
            if up in (0, options):  # all alike: the answer says nothing
                cost += value(log_odds, rounds - 1)
            best = min(best, cost)
        return best

    return value(0.0, horizon)


@pytest.mark.parametrize(("horizon", "options"), [(1, 2), (6, 2), (6, 3), (5, 4), (4, 8), (4, 16)])
def test_the_best_of_all_rules_is_above_the_bound(horizon: int, options: int) -> None:
    bound = lower_bound(dim=1, horizon=horizon, bound=10.0, options=options).require().value
    ignorance = hard_gap(1, horizon, options) * horizon
    assert bound < least_regret(horizon, options) <= ignorance * (1 + 1e-12)
    assert bound == pytest.approx(ignorance / 4)
