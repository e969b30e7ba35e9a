"""Duels that wait for an answer change what is asked next, exactly as their contrasts with known counts would."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.policies.parts.open_duels import add_information
from duelist.policies.parts.prior_scale import expect_answers
from duelist.policies.registry import duel_policies
from duelist.typing import FloatArray

ARMS = FiniteActions(np.random.default_rng(2).standard_normal((8, 3)))
STREAMS = Streams(5, [0])
OPEN = [duels_between(ARMS, np.array([i]), np.array([j])) for i, j in ((0, 1), (4, 2), (0, 1), (7, 3))]
POLICIES = duel_policies(with_extras=False)
AWARE = ("CoLSTIM", "Foresight", "MaxInP", "MaxPairUCB", "StaD", "SupCoLSTIM", "VACDB")


def after(policy: Any, votes: int) -> Any:
    """The live state after so many votes, the first arm of a pair winning two of three."""
    state = policy.start(Problem(dim=3, live=True), STREAMS)
    for t in range(votes):
        duels, state = policy.choose(state, ARMS, STREAMS)
        state = policy.learn(state, ARMS, duels, np.array([-1 if t % 3 == 0 else 1]))
    return state


def whitener_of(matrix: FloatArray) -> FloatArray:
    return np.linalg.inv(np.linalg.cholesky(matrix))


def contrasts_of(pending: list[Duels]) -> FloatArray:
    return np.array([duels.features[0, 0] - duels.features[0, 1] for duels in pending])


def test_added_information_is_that_of_the_sum() -> None:
    rng = np.random.default_rng(0)
    z, weights, half = rng.standard_normal((2, 5, 4)), rng.random((2, 5)), rng.standard_normal((2, 4, 9))
    matrix = half @ half.swapaxes(1, 2)
    found = add_information(whitener_of(matrix), z, weights)
    np.testing.assert_allclose(found, whitener_of(matrix + np.einsum("lni,ln,lnj->lij", z, weights, z)), atol=1e-12)


def test_maxinp_plays_the_widest_promising_pair_with_open_duels_counted() -> None:
    policy = duelist.MaxInP()
    state = after(policy, 30)
    z = contrasts_of(OPEN)
    inverse = np.linalg.inv(state.gram[0] + z.T @ z)
    features, theta = ARMS.features[0], state.theta[0]
    apart = features[:, None] - features[None]
    widths = np.sqrt(np.einsum("ijd,de,ije->ij", apart, inverse, apart))
    promising = (apart @ theta + 5.0 * widths >= 0.0).all(axis=1)
    widths[~promising] = widths[:, ~promising] = -1.0
    duels, _ = policy.choose_with_pending(state, ARMS, STREAMS, OPEN)
    assert {int(duels.first[0]), int(duels.second[0])} == set(np.unravel_index(widths.argmax(), widths.shape))


def test_maxpairucb_plays_the_best_pair_with_open_duels_counted_by_either_width() -> None:
    for width in ("global", "local"):
        policy = duelist.MaxPairUCB(width=width, radius=7.0)
        state = after(policy, 30)
        z, features, theta = contrasts_of(OPEN), ARMS.features[0], state.theta[0]
        chance = expit(z @ theta)
        root = np.linalg.inv(state.whitener[0])
        matrix = root @ root.T + (z.T * (chance * (1 - chance) if width == "local" else 1.0)) @ z
        apart = features[:, None] - features[None]
        scores = 7.0 * np.sqrt(np.einsum("ijd,de,ije->ij", apart, np.linalg.inv(matrix), apart))
        scores += (features @ theta)[:, None] + features @ theta
        np.fill_diagonal(scores, -np.inf)
        duels, _ = policy.choose_with_pending(state, ARMS, STREAMS, OPEN)
        assert {int(duels.first[0]), int(duels.second[0])} == set(np.unravel_index(scores.argmax(), scores.shape))


def test_foresight_counts_open_duels_in_the_curvature_of_every_scale_that_matters() -> None:
    mixture, z = after(duelist.Foresight(), 30).scales.mixture, contrasts_of(OPEN)
    expected = expect_answers(mixture, OPEN)
    for g in range(len(mixture.weights[0])):
        root, chance = np.linalg.inv(mixture.whitener[0, g]), expit(z @ mixture.theta[0, g])
        more = (z.T * (chance * (1 - chance))) @ z if mixture.weights[0, g] > 0.0 else 0.0
        np.testing.assert_allclose(expected.whitener[0, g], whitener_of(root @ root.T + more), atol=1e-10)
    np.testing.assert_array_equal(expected.theta, mixture.theta)


@pytest.mark.parametrize("name", AWARE)
def test_what_is_open_is_not_in_the_state_that_is_kept(name: str) -> None:
    policy = POLICIES[name]()
    state = after(policy, 12)
    _, plain = policy.choose(state, ARMS, STREAMS)
    _, beside = policy.choose_with_pending(state, ARMS, STREAMS, OPEN)
    learnt = [one.scales if name == "Foresight" else one.fit if name == "CoLSTIM" else one for one in (plain, beside)]
    np.testing.assert_array_equal(learnt[0].theta, learnt[1].theta)
    np.testing.assert_array_equal(learnt[0].whitener, learnt[1].whitener)
    assert beside.fit.asked == plain.fit.asked if name == "CoLSTIM" else beside.asked == plain.asked


@pytest.mark.slow
@pytest.mark.parametrize("name", ["CoLSTIM", "Foresight", "MaxInP", "MaxPairUCB"])
def test_twenty_people_asked_at_once_get_different_pairs(name: str) -> None:
    """Nearly as many different pairs as asked one by one; not counting open duels, MaxInP and Foresight repeat one pair."""

    def distinct(at_once: int) -> int:
        total = 0
        for seed in range(3):
            rng = np.random.default_rng(seed)
            features = rng.standard_normal((16, 6)) / np.sqrt(6)
            utilities = features @ rng.standard_normal(6)
            agent, pairs = duelist.Agent(POLICIES[name](), dim=6, seed=seed), []
            for _ in range(100 // at_once):
                for duel in [agent.choose(features) for _ in range(at_once)]:
                    gap = utilities[duel.second] - utilities[duel.first]
                    agent.learn(duel, "first" if rng.random() < 1.0 / (1.0 + np.exp(gap)) else "second")
                    pairs.append(frozenset(duel.rows))
            total += sum(len(set(pairs[start : start + 20])) for start in range(0, 100, 20))
        return total

    assert distinct(20) >= 0.7 * distinct(1)
