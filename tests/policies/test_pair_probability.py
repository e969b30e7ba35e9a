"""The estimate of a pair's probability: sums to one, agrees with playing the rule, and with what FGTS really plays."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from duelist.actions.ball import BallActions
from duelist.actions.finite import FiniteActions
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import duels_between
from duelist.history.history import History
from duelist.policies.algorithms.sampling.fgts import FGTS
from duelist.policies.parts.pair_probability import Liked, follow_duels, liked_by, pair_probability
from duelist.posteriors.linear import LinearPotential
from duelist.posteriors.priors import Gaussian, Prior, UniformBall
from duelist.samplers.curvature import Curvature, flat_precision, refresh_curvature, unknown_curvature
from duelist.typing import FloatArray

RULES = ["allow", "runner-up", "redraw"]


def liked_in(utilities: FloatArray, first: int, second: int) -> Liked:
    """How two arms are liked in a table of utilities (n_arms, draws)."""
    return liked_by(np.zeros(len(utilities)), np.eye(len(utilities)), utilities, first, second)


def probability(utilities: FloatArray, first: int, second: int, rule: str) -> float:
    if first == second and rule != "allow":
        return 0.0
    return pair_probability(liked_in(utilities, first, second), rule)


def test_counts_are_those_of_sorted_draws() -> None:
    utilities = np.random.default_rng(0).standard_normal((6, 500)).round(1)  # some are equal: the lower row is better
    table = np.zeros((6, 6), dtype=int)
    for column in utilities.T:
        best, second, *_ = np.argsort(-column, kind="stable")
        table[best, second] += 1
    for i, j in itertools.permutations(range(6), 2):
        assert liked_in(utilities, i, j) == Liked(500, 6, table[i].sum(), table[j].sum(), table[i, j], table[j, i])


def test_utilities_are_mean_and_factor_times_noise() -> None:
    rng = np.random.default_rng(3)
    mean, factor, noise = rng.standard_normal(5), rng.standard_normal((5, 3)), rng.standard_normal((3, 200))
    assert liked_by(mean, factor, noise, 0, 3) == liked_in(mean[:, None] + factor @ noise, 0, 3)


@pytest.mark.parametrize("rule", RULES)
def test_the_probabilities_of_all_ordered_pairs_add_up_to_one(rule: str) -> None:
    utilities = np.random.default_rng(0).normal(size=(5, 400))
    total = sum(probability(utilities, i, j, rule) for i, j in itertools.product(range(5), repeat=2))
    assert total == pytest.approx(1.0)
    liked = liked_in(utilities, 1, 3)
    both = probability(utilities, 1, 3, rule) + probability(utilities, 3, 1, rule)
    assert pair_probability(liked, rule, either_order=True) == pytest.approx(both)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_the_estimate_agrees_with_playing_the_rule_itself(rule: str) -> None:
    # The slow, obvious version: take two independent draws, play the best of each, and on a repeat what the rule says.
    rng = np.random.default_rng(1)
    utilities = rng.normal(size=(4, 3000)) + np.array([1.5, 0.5, 0.0, -1.0])[:, None]
    counts = np.zeros((4, 4))
    n = 40_000
    for _ in range(n):
        first = int(utilities[:, rng.integers(3000)].argmax())
        second = first
        for _attempt in range(9 if rule == "redraw" else 1):
            order = np.argsort(-utilities[:, rng.integers(3000)])
            second = int(order[0])
            if second != first:
                break
        if second == first and rule != "allow":
            second = int(order[1])
        counts[first, second] += 1
    for i, j in itertools.product(range(4), repeat=2):
        # Four standard errors of a share of 40,000 plays: below one false alarm in 900 for the 16 pairs together.
        assert probability(utilities, i, j, rule) == pytest.approx(counts[i, j] / n, abs=4 * np.sqrt(0.25 / n))


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_the_estimate_of_fgts_follows_what_it_plays_from_one_posterior(rule: str) -> None:
    rng, streams = np.random.default_rng(2), Streams(0, [0])
    arms = FiniteActions([[1.0, 0.0], [0.6, 0.6], [0.0, 1.0]])
    policy = FGTS(same_arm=rule, alpha=0.0)
    state = policy.start(Problem(dim=2), streams)
    for _ in range(25):
        first, second = rng.choice(3, size=(2, 1))
        state = policy.learn(state, arms, duels_between(arms, first, second), rng.choice([-1, 1], size=1))
    counts, estimates, n = np.zeros((3, 3)), np.zeros((3, 3)), 4000
    for _ in range(n):
        duels, state = policy.choose(state, arms, streams)
        pair = int(duels.first[0]), int(duels.second[0])
        counts[pair] += 1
        estimates[pair] = policy.pair_probability(state, arms, duels)[0]
    # 1,024 draws of a normal approximation: a share has a standard error of at most 0.016, and the chains are correlated.
    np.testing.assert_allclose(estimates, counts / n, atol=0.08)


@pytest.mark.parametrize("prior", [Gaussian(), UniformBall(3.0)], ids=lambda one: type(one).__name__)
def test_the_mode_follows_duels_that_came_since_it_was_taken(prior: Prior) -> None:
    rng = np.random.default_rng(4)
    arms = FiniteActions(rng.normal(size=(5, 3)))
    history = History.start(lanes=1, dim=3)
    eta = np.ones(1)

    def learn(history: History, duels: int, winner: int) -> History:
        for _ in range(duels):
            first, second = (np.array([row]) for row in rng.choice(5, size=2, replace=False))
            history = history.append(arms, duels_between(arms, first, second), np.array([winner or rng.choice([-1, 1])]))
        return history

    def potential(history: History) -> LinearPotential:
        return LinearPotential.of(prior, history.statistics, eta=eta, chains=1, observations=history.rounds)

    history = learn(history, 200, 0)
    stale = refresh_curvature(unknown_curvature(1, 3), potential(history))
    history = learn(history, 10, 1)
    fresh = refresh_curvature(unknown_curvature(1, 3), potential(history))
    now = potential(history)
    followed = follow_duels(stale, now.likelihood, now.precision + flat_precision(prior, 3))

    def distance(one: Curvature) -> float:
        """In standard deviations of the posterior."""
        return float(np.linalg.norm(np.linalg.solve(fresh.whitener[0].T, one.mode[0] - fresh.mode[0])))

    assert distance(stale) > 0.2
    assert distance(followed) < 0.1 * distance(stale)


def test_there_is_no_estimate_without_a_curvature_or_rows() -> None:
    arms, streams = FiniteActions(np.eye(2)), Streams(0, [0])
    paper = FGTS(sampler="paper")
    duels, state = paper.choose(paper.start(Problem(dim=2), streams), arms, streams)
    assert np.isnan(paper.pair_probability(state, arms, duels)).all()
    ball, exact = BallActions(lanes=1, dim=2), FGTS()
    duels, state = exact.choose(exact.start(Problem(dim=2), streams), ball, streams)
    assert np.isnan(exact.pair_probability(state, ball, duels)).all()
