"""CPPL shows the arms with the largest upper bounds, and its estimate is the mean of stochastic gradient steps."""

from __future__ import annotations

import math

import numpy as np
import pytest

from duelist.actions.finite import FiniteActions, OffsetActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.policies import CPPL
from tests.support.slow_slates import rounds_with_answers, slow_answer

STREAMS = Streams(0, [0])


def test_every_round_agrees_with_the_rule_in_plain_python() -> None:
    policy = CPPL(choices=3, width=0.4, rate=0.7, decay=0.3, ridge=0.5)
    state = policy.start(Problem(dim=2), STREAMS)
    thetas, hessians, squares = [np.zeros(2)], 0.5 * np.eye(2), 0.5 * np.eye(2)
    for t, (arms, answer) in enumerate(rounds_with_answers(40, dim=2, choices=3), start=1):
        mean = np.mean(thetas, axis=0)
        sigma = np.linalg.inv(hessians) @ squares @ np.linalg.inv(hessians)
        bounds = []
        for x in arms.features[0]:
            strength = math.exp(float(mean @ x))
            quantile = math.sqrt(2 * math.log(t) + 2 + 2 * math.sqrt(2 * math.log(t)))
            root = np.linalg.cholesky(sigma)  # of the norm that the paper has: that of Sigma^1/2 M Sigma^1/2, M of rank one
            region = math.sqrt(np.linalg.norm(root.T @ (strength**2 * np.outer(x, x)) @ root, ord=2))
            bounds.append(strength + 0.4 * quantile * region)
        slates, state = policy.choose(state, arms, STREAMS)
        assert slates.rows[0].tolist() == sorted(range(len(bounds)), key=lambda row: -bounds[row])[:3]
        shown = slates.features[0]
        _, gradient, hessian = slow_answer(mean, shown, answer)
        hessians, squares = hessians + hessian, squares + np.outer(gradient, gradient)
        thetas.append(thetas[-1] - 0.7 * t**-0.3 * slow_answer(thetas[-1], shown, answer)[1])
        state = policy.learn(state, arms, slates, [answer])
        np.testing.assert_allclose(state.mean[0], np.mean(thetas, axis=0), atol=1e-10)
        np.testing.assert_allclose(state.hessians[0], hessians, atol=1e-10)
        np.testing.assert_allclose(state.squares[0], squares, atol=1e-10)


def test_a_first_round_by_hand() -> None:
    """Nothing is known: all strengths are 1, and the longest arms have the widest bounds, 1 + 0.5 * sqrt(1) * |x|."""
    arms, policy = FiniteActions([[0.5], [-2.0], [1.0]]), CPPL(choices=2, width=0.5, rate=0.25)
    state = policy.start(Problem(dim=1), STREAMS)
    slates, state = policy.choose(state, arms, STREAMS)
    assert slates.rows.tolist() == [[1, 2]]
    state = policy.learn(state, arms, slates, [[1]])
    # The gradient is -3/2: theta goes to 3/8, and the mean of both thetas is 3/16.
    assert state.theta[0, 0] == pytest.approx(3 / 8)
    assert state.mean[0, 0] == pytest.approx(3 / 16)
    assert state.hessians[0, 0, 0] == pytest.approx(1 + 9 / 4)
    assert state.squares[0, 0, 0] == pytest.approx(1 + 9 / 4)


def test_huge_strengths_do_not_overflow_and_offsets_add_to_utilities() -> None:
    policy = CPPL(choices=2, width=0.01)
    state = policy.start(Problem(dim=1), STREAMS)._replace(mean=np.array([[1e4]]))
    arms = FiniteActions([[1.0], [2.0], [3.0]])
    assert policy.choose(state, arms, STREAMS)[0].rows.tolist() == [[2, 1]]
    dear = OffsetActions(arms, np.array([[0.0, 0.0, -1e6]]))
    assert policy.choose(state, dear, STREAMS)[0].rows.tolist() == [[1, 0]]


def test_answers_that_are_on_their_way_narrow_bounds() -> None:
    arms, policy = FiniteActions(np.concatenate([2.0 * np.eye(4), 1.9 * np.eye(4)])), CPPL(choices=2)
    state = policy.start(Problem(dim=4), STREAMS)
    first, state = policy.choose(state, arms, STREAMS)
    second, after = policy.choose_with_pending(state, arms, STREAMS, [first])
    assert not set(first.rows[0].tolist()) & set(second.rows[0].tolist())
    np.testing.assert_array_equal(after.hessians, state.hessians)


def test_the_belief_has_the_covariance_of_the_bounds() -> None:
    policy = CPPL(choices=3)
    state = policy.start(Problem(dim=2), STREAMS)
    for arms, answer in rounds_with_answers(20, dim=2, choices=3):
        slates, state = policy.choose(state, arms, STREAMS)
        state = policy.learn(state, arms, slates, [answer])
    mean, whitener = policy.running_belief(state)
    np.testing.assert_array_equal(mean, state.mean)
    inverse = np.linalg.inv(state.hessians[0])
    # Draws are the mean plus standard normal rows times the whitener.
    np.testing.assert_allclose(whitener[0].T @ whitener[0], inverse @ state.squares[0] @ inverse, rtol=1e-8)


@pytest.mark.parametrize("wrong", [{"choices": 1}, {"width": -1.0}, {"rate": 0.0}, {"decay": 1.5}, {"ridge": 0.0}])
def test_settings_that_cannot_be_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InvalidInputError):
        CPPL(**wrong)  # type: ignore[arg-type]
