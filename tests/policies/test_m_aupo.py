"""MAUPO shows the slate that is least certain on average, and its estimate moves by online mirror descent."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import duels_between
from duelist.history.slates import slates_of
from duelist.policies import MAUPO
from duelist.preferences.plackett_luce import RankingError
from tests.support.oracles import Floats
from tests.support.slow_slates import rounds_with_answers, slow_answer

STREAMS = Streams(0, [0])


def average_uncertainty(shown: Floats, reference: Floats, information: Floats) -> float:
    """The mean of |x - reference| in the norm of H^-1."""
    inverse = np.linalg.inv(information)
    return sum(float(np.sqrt((x - reference) @ inverse @ (x - reference))) for x in shown) / len(shown)


def test_every_round_agrees_with_the_rule_in_plain_python() -> None:
    policy = MAUPO(choices=3, step=0.6, ridge=0.5)
    state = policy.start(Problem(dim=2), STREAMS)
    theta, information = np.zeros(2), 0.5 * np.eye(2)
    for arms, answer in rounds_with_answers(40, dim=2, choices=3):
        features = arms.features[0]
        every = [(rows, one) for rows in combinations(range(len(features)), 3) for one in rows]
        rows, reference = max(
            every, key=lambda pair: average_uncertainty(features[list(pair[0])], features[pair[1]], information)
        )
        slates, state = policy.choose(state, arms, STREAMS)
        assert set(slates.rows[0].tolist()) == set(rows)
        shown = slates.features[0]
        wanted = average_uncertainty(shown, features[reference], information)
        assert average_uncertainty(shown, shown[0], information) == pytest.approx(wanted)
        _, gradient, hessian = slow_answer(theta, shown, answer)
        theta = theta - 0.6 * np.linalg.inv(information + 0.6 * hessian) @ gradient
        information = information + slow_answer(theta, shown, answer)[2]
        state = policy.learn(state, arms, slates, [answer])
        np.testing.assert_allclose(state.theta[0], theta, atol=1e-10)
        np.testing.assert_allclose(state.information[0], information, atol=1e-10)


def test_a_first_round_by_hand() -> None:
    """H is the identity: of 0, 1, 3 and 7 on a line, seen from 7 the widths 7 + 6 are the largest sum of two."""
    arms, policy = FiniteActions([[0.0], [1.0], [3.0], [7.0]]), MAUPO(choices=3)
    state = policy.start(Problem(dim=1), STREAMS)
    slates, state = policy.choose(state, arms, STREAMS)
    assert slates.rows.tolist() == [[3, 0, 1]]
    state = policy.learn(state, arms, slates, [[0]])
    # Each has a chance of 1/3: the gradient is 8/3 - 7, the Hessian the variance of 7, 0 and 1, which is 86/9.
    assert state.theta[0, 0] == pytest.approx((13 / 3) / (1 + 86 / 9))


def test_answers_that_are_on_their_way_make_what_was_asked_more_certain() -> None:
    arms, policy = FiniteActions(np.concatenate([np.eye(6), -np.eye(6)])), MAUPO(choices=3)
    state = policy.start(Problem(dim=6), STREAMS)
    first, state = policy.choose(state, arms, STREAMS)
    second, after = policy.choose_with_pending(state, arms, STREAMS, [first])
    assert not set(first.rows[0].tolist()) & set(second.rows[0].tolist())
    np.testing.assert_array_equal(after.information, state.information)


def test_a_vote_on_a_pair_from_elsewhere_is_a_slate_of_two() -> None:
    arms, policy = FiniteActions([[1.0], [0.0]]), MAUPO(choices=3)
    state = policy.start(Problem(dim=1), STREAMS)
    pair = duels_between(arms, np.array([0]), np.array([1]))
    for outcome, sign in ((1, 1.0), (-1, -1.0), (0, 0.0)):
        assert np.sign(policy.learn(state, arms, pair, np.array([outcome])).theta[0, 0]) == sign


def test_answers_that_cannot_be_change_nothing_and_settings_are_checked() -> None:
    arms, policy = FiniteActions([[1.0], [0.0], [0.5]]), MAUPO(choices=3)
    state = policy.start(Problem(dim=1), STREAMS)
    slates, state = policy.choose(state, arms, STREAMS)
    with pytest.raises(RankingError, match="one per lane"):
        policy.learn(state, arms, slates, [[0], [1]])
    for wrong in ({"choices": 1}, {"step": 0.0}, {"ridge": -1.0}):
        with pytest.raises(InvalidInputError):
            MAUPO(**wrong)


def test_where_all_arms_are_equally_good_its_slates_tell_more_than_random_ones() -> None:
    generator, policy = np.random.default_rng(1), MAUPO(choices=3)
    arms = FiniteActions(generator.normal(size=(1, 24, 5)))
    left = {}
    for name in ("chosen", "random"):
        state = policy.start(Problem(dim=5), STREAMS)
        for _ in range(40):
            slates, asked = policy.choose(state, arms, STREAMS)
            if name == "random":
                slates = slates_of(arms, generator.choice(24, (1, 3), replace=False))
            state = policy.learn(asked, arms, slates, [generator.permutation(3)])
        left[name] = np.trace(np.linalg.inv(state.information[0]))
    assert left["chosen"] < 0.7 * left["random"]
