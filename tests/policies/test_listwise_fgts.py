"""ListwiseFGTS: with two choices it is FGTS, its potential is the formula's, bad answers change nothing, and it learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments.slates import LinearSlates
from duelist.experiments.slate_simulation import simulate_slates
from duelist.history.duels import duels_between
from duelist.history.slates import slates_of
from duelist.policies.algorithms.listwise_fgts import ListwiseFGTS, ListwiseFGTSState
from duelist.posteriors.priors import GaussianBall
from duelist.preferences.plackett_luce import RankingError, ranking_loss
from duelist.preferences.ties import BothBad, Davidson, RaoKupper
from tests.support.oracles import Floats, finite_difference

SETS = [FiniteActions(np.random.default_rng(n).standard_normal((2, n, 3))) for n in (5, 7)]
Played = list[tuple[FiniteActions, Any, list[Any]]]


def played(policy: ListwiseFGTS, rounds: int, *, ties: bool = False) -> tuple[ListwiseFGTSState, Played]:
    """The state after random slates with random answers of random length, in two lanes, and what was played."""
    rng, streams = np.random.default_rng(4), Streams(0, [0, 1])
    state, log = policy.start(Problem(dim=3, lanes=2), streams), []
    for _ in range(rounds):
        actions = SETS[int(rng.integers(2))]
        slates = slates_of(actions, rng.integers(actions.n_arms, size=(2, policy.choices)))
        answers: list[Any] = [rng.permutation(policy.choices)[: 1 + int(rng.integers(policy.choices))] for _ in range(2)]
        if ties and rng.random() < 0.3:
            answers[0] = "tie"
        state = policy.learn(state, actions, slates, answers)
        log.append((actions, slates, answers))
    return state, log


def written_out(policy: ListwiseFGTS, theta: Floats, log: Played, lane: int, draw: int, mu: float) -> float:
    """The potential as its formula says, round by round."""
    total = 0.5 * float(theta @ theta)
    for actions, slates, answers in log:
        utilities = slates.features[lane] @ theta
        answer = answers[lane]
        if policy.ties is None:
            total += ranking_loss(utilities, answer if policy.feedback == "ranking" else answer[:1])
        else:
            outcome: Any = answer if isinstance(answer, str) else ("first", "second")[int(answer[0])]
            total += policy.ties.loss(outcome, *utilities).loss
        others = np.delete(utilities, draw).mean()
        total -= mu * float((actions.features[lane] @ theta).max() - others)
    return total


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        ListwiseFGTS(choices=4, feedback="ranking", mu=0.3),
        ListwiseFGTS(choices=4, feedback="winner", mu=0.3),
        ListwiseFGTS(choices=2, ties=Davidson(0.8), mu=0.3),
        ListwiseFGTS(choices=2, ties=RaoKupper(1.7), mu=0.3),
        ListwiseFGTS(choices=2, ties=BothBad(-0.5), mu=0.3),
    ],
    ids=lambda policy: f"{policy.choices}, {policy.feedback}, {policy.ties}",
)
def test_the_potential_is_the_formulas_and_its_gradient_agrees_with_finite_differences(policy: ListwiseFGTS) -> None:
    state, log = played(policy, 70, ties=policy.ties is not None)  # beyond the first capacity of 64
    theta = np.random.default_rng(1).standard_normal((2, policy.choices, 3))
    values, gradients = policy.potential(state).value_and_gradient(theta)
    for lane, draw in np.ndindex(2, policy.choices):

        def plain(at: Floats, lane: int = lane, draw: int = draw) -> float:
            return written_out(policy, at, log, lane, draw, mu=0.3)

        assert values[lane, draw] == pytest.approx(plain(theta[lane, draw]), rel=1e-12)
        np.testing.assert_allclose(gradients[lane, draw], finite_difference(plain, theta[lane, draw]), rtol=1e-5, atol=1e-5)


def test_with_two_choices_the_potential_is_that_of_fgts() -> None:
    policy, duels = (
        ListwiseFGTS(choices=2, mu=0.2, prior=GaussianBall(1.0, 9.0)),
        duelist.FGTS(mu=0.2, prior=GaussianBall(1.0, 9.0)),
    )
    state, log = played(policy, 40)
    other = duels.start(Problem(dim=3, lanes=2), Streams(0, [0, 1]))
    for actions, slates, answers in log:
        outcomes = np.array([1 if answer[0] == 0 else -1 for answer in answers])
        other = duels.learn(other, actions, duels_between(actions, slates.rows[:, 0], slates.rows[:, 1]), outcomes)
    theta = np.random.default_rng(2).standard_normal((2, 2, 3))
    values, gradients = policy.potential(state).value_and_gradient(theta)
    np.testing.assert_allclose(values, duels.potential(other).value(theta), rtol=0, atol=1e-12)
    np.testing.assert_allclose(gradients, duels.potential(other).gradient(theta), rtol=0, atol=1e-12)


def test_the_curvature_is_the_hessian_of_the_ranking_losses_and_the_prior() -> None:
    policy = ListwiseFGTS(choices=4, feedback="ranking", mu=0.0)
    state, _ = played(policy, 20)
    potential, theta = policy.potential(state), np.random.default_rng(3).standard_normal((2, 3))
    curvature = potential.curvature(theta)

    def slope(at: Floats, lane: int, i: int) -> float:
        everywhere = np.broadcast_to(at, (2, 4, 3))
        return float(potential.value_and_gradient(everywhere)[1][lane, 0, i])

    for lane in range(2):
        rows = [finite_difference(lambda at, i=i, lane=lane: slope(at, lane, i), theta[lane]) for i in range(3)]  # type: ignore[misc]
        np.testing.assert_allclose(curvature[lane], rows, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([[0], []], "at least the winner"),
        ([[0], [1, 1]], "at most once"),
        ([[0], [3]], "names places 0 to 2"),
        ([[0]], "one per lane"),
        ([[0], "tie"], "no model of ties"),
    ],
)
def test_a_bad_answer_in_one_lane_is_refused_by_name_and_changes_no_lane(answers: list[Any], message: str) -> None:
    policy = ListwiseFGTS(choices=3, feedback="ranking")
    state, _ = played(policy, 5)
    before = [np.copy(column) for column in state.table[:5]]
    slates = slates_of(SETS[0], np.array([[0, 1, 2], [2, 3, 4]]))
    with pytest.raises(RankingError, match=message):
        policy.learn(state, SETS[0], slates, answers)
    assert state.table.rounds == 5
    for old, new in zip(before, state.table[:5], strict=True):
        np.testing.assert_array_equal(old, new)


def test_unknown_rows_and_slates_of_another_size_are_refused() -> None:
    policy = ListwiseFGTS(choices=3)
    state, _ = played(policy, 2)
    with pytest.raises(InvalidInputError, match="rows below 5"):
        slates_of(SETS[0], np.array([[0, 1, 5], [0, 1, 2]]))
    with pytest.raises(InvalidInputError, match="choices"):
        policy.learn(state, SETS[0], slates_of(SETS[0], np.array([[0, 1], [0, 1]])), [[0], [1]])
    for bad in ({"choices": 1}, {"feedback": "loser"}, {"eta": 0.0}, {"choices": 3, "ties": Davidson()}, {"horizon": 0}):
        with pytest.raises(InvalidInputError):
            ListwiseFGTS(**bad)


def test_the_same_seed_gives_the_same_slates_whatever_the_number_of_trials() -> None:
    policy, env = ListwiseFGTS(choices=3, feedback="ranking"), LinearSlates(dim=3, arms=8)
    few = simulate_slates(policy, env, rounds=30, trials=2, seed=5)
    more = simulate_slates(policy, env, rounds=30, trials=4, seed=5)
    np.testing.assert_array_equal(few.rows, more.rows[:2])
    np.testing.assert_array_equal(few.rankings, more.rankings[:2])


@pytest.mark.slow
def test_four_choices_learn_faster_a_round_than_two_on_the_same_instances() -> None:
    env = LinearSlates(dim=5, arms=16)
    two, four = (
        simulate_slates(policy, env, rounds=200, trials=16, seed=0).final_regret
        for policy in (ListwiseFGTS(choices=2), ListwiseFGTS(choices=4, feedback="ranking"))
    )
    gain = two - four
    low = gain.mean() - stats.t.ppf(0.975, len(gain) - 1) * gain.std(ddof=1) / np.sqrt(len(gain))
    assert low > 0.0


def test_ties_are_data_a_tie_pulls_the_candidates_together() -> None:
    actions = FiniteActions([[1.0], [0.0]])
    policy, streams = ListwiseFGTS(choices=2, ties=Davidson(1.0), mu=0.0), Streams(0, [0])
    slates = slates_of(actions, np.array([[0, 1]]))
    state = policy.start(Problem(dim=1), streams)
    for _ in range(10):
        state = policy.learn(state, actions, slates, ["tie"])
    values, _ = policy.potential(state).value_and_gradient(np.array([[[0.0], [2.0]]]))
    assert values[0, 0] + 2.0 < values[0, 1] - 2.0
