"""A log played again: rounds offer what was offered, answers are those of the log or none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import duelist
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.datasets import Comparisons, LoggedDuels
from duelist.experiments.run import NO_ANSWER
from duelist.history.duels import duels_between
from duelist.testing import check_environment

FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.5], [0.3, -2.0]])
SHOWN = np.array([[0, 1, 2], [3, 0, -1], [2, 1, 0], [1, 3, 2], [0, 3, -1]])
CHOSEN = np.array([1, 0, 2, 0, -1])


def logged(**changes: Any) -> LoggedDuels:
    return LoggedDuels(**{"features": FEATURES, "shown": SHOWN, "chosen": CHOSEN, **changes})


def test_every_round_offers_one_logged_choice_and_the_whole_log_before_it_begins_again() -> None:
    instance = logged().instance(Streams(0, range(3)))
    for lane in range(3):
        order = [int(instance.choices(round_)[lane]) for round_ in range(10)]
        assert sorted(order[:5]) == list(range(5))
        assert order[5:] == order[:5]
        for round_, choice in enumerate(order):
            rows = [row if row >= 0 else SHOWN[choice, 0] for row in SHOWN[choice]]
            np.testing.assert_array_equal(instance.actions(round_).features[lane], FEATURES[rows])
    assert len({tuple(instance.choices(round_)[lane] for round_ in range(5)) for lane in range(3)}) > 1


def test_answers_are_those_of_the_log_or_none() -> None:
    """Every pair of places of every choice, against the rule in words."""
    instance = logged().instance(Streams(0, [0]))
    coins = set()
    for round_ in range(40):
        choice = int(instance.choices(round_)[0])
        rows = [row for row in SHOWN[choice].tolist() if row >= 0]
        winner = None if CHOSEN[choice] < 0 else rows[CHOSEN[choice]]
        for a in range(3):
            for b in range(3):
                first, second = (rows[place] if place < len(rows) else rows[0] for place in (a, b))
                duels = duels_between(instance.actions(round_), np.array([a]), np.array([b]))
                outcome, delay = instance.outcomes(round_, duels)[0], instance.delay(round_, duels)[0]
                if first == second:
                    assert delay == 0
                    coins.add(int(outcome))
                elif winner is None:
                    assert (outcome, delay) == (0, 0)
                elif winner in (first, second):
                    assert (outcome, delay) == (1 if winner == first else -1, 0)
                else:
                    assert delay == -1
    assert coins == {-1, 1}


def test_a_tie_of_three_is_no_answer_and_not_in_the_fit() -> None:
    env = logged(chosen=np.array([-1, 0, 2, 0, -1]))
    instance = env.instance(Streams(0, [0]))
    round_ = next(t for t in range(5) if instance.choices(t)[0] == 0)
    assert instance.delay(round_, duels_between(instance.actions(round_), np.array([0]), np.array([1])))[0] == -1
    rest = logged(shown=SHOWN[1:], chosen=CHOSEN[1:])
    np.testing.assert_allclose(env.theta, rest.theta, atol=1e-9)


@pytest.mark.parametrize("weights", [None, np.array([2.0, 1.0, 0.0, 3.0, 0.5])])
@pytest.mark.parametrize("contexts", [None, np.array([[1.0, 0.5], [1.0, -1.0], [1.0, 2.0], [1.0, 0.0], [1.0, 1.5]])])
def test_the_truth_is_the_minimum_of_the_loss_written_out(contexts: Any, weights: Any) -> None:
    env = logged(contexts=contexts, weights=weights, ridge=0.3)
    dim = 2 if contexts is None else 4

    def vector(choice: int, row: int) -> Any:
        return FEATURES[row] if contexts is None else np.kron(contexts[choice], FEATURES[row])

    def loss(theta: Any) -> float:
        total = 0.15 * float(theta @ theta)
        for choice, (rows, place) in enumerate(zip(SHOWN, CHOSEN, strict=True)):
            there = [row for row in rows if row >= 0]
            winner = there[max(place, 0)]
            for other in there:
                if other != winner:
                    gap = float((vector(choice, winner) - vector(choice, other)) @ theta)
                    share = 0.5 if place < 0 else 1.0
                    count = 1.0 if weights is None else weights[choice]
                    total += count * share * float(np.log1p(np.exp(-gap)))
                    total += count * (1 - share) * float(np.log1p(np.exp(gap)))
        return total

    assert env.dim == dim
    expected = minimize(loss, np.zeros(dim), method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(env.theta, expected, atol=1e-5)
    instance = env.instance(Streams(0, [0]))
    for round_ in range(5):
        choice, actions = int(instance.choices(round_)[0]), instance.actions(round_)
        utilities = np.array(
            [vector(choice, max(row, SHOWN[choice, 0] if row < 0 else row)) @ env.theta for row in SHOWN[choice]]
        )
        regret = instance.regret(actions, duels_between(actions, np.array([0]), np.array([1])))
        assert regret.average[0] == pytest.approx(utilities.max() - utilities[:2].mean())


def test_answers_from_the_fit_follow_its_law() -> None:
    """1,000 lanes in 40 rounds, the rate of wins against the logistic law: five standard errors are 0.0125."""
    env = logged(answers="fit", shown=SHOWN[:1], chosen=CHOSEN[:1])
    instance = env.instance(Streams(0, range(1000)))
    duels = duels_between(instance.actions(0), np.zeros(1000, dtype=int), np.full(1000, 2))
    rate = np.mean([(instance.outcomes(t, duels) == 1).mean() for t in range(40)])
    gap = float((FEATURES[0] - FEATURES[2]) @ env.theta)
    assert abs(rate - 1 / (1 + np.exp(-gap))) < 0.0125
    assert not env.lanes_apart


@pytest.mark.parametrize("answers", ["votes", "fit"])
def test_it_is_an_environment_that_policies_play(answers: Any) -> None:
    rng = np.random.default_rng(1)
    features = rng.normal(size=(30, 3))
    shown = np.array([rng.choice(30, size=4, replace=False) for _ in range(300)])
    chosen = (features[shown] @ [2.0, -1.0, 0.5] + rng.gumbel(size=shown.shape)).argmax(axis=1)
    log = Comparisons(name="x", items=range(30), shown=shown, chosen=chosen, features=features, feature_names="pqr")  # type: ignore[arg-type]
    env = log.replay(answers=answers)
    check_environment(env)
    runs = {p: duelist.simulate(p, env, rounds=300, trials=3, seed=0) for p in (duelist.MaxInP(), duelist.Uniform())}
    learnt, drawn = (float(run.final_regret.mean()) for run in runs.values())
    assert learnt < 0.8 * drawn
    silent = [(run.outcomes == NO_ANSWER).mean() for run in runs.values()]
    assert (min(silent) > 0.1) == (answers == "votes")


def test_what_does_not_fit_together_is_refused() -> None:
    for changes, message in (
        ({"shown": SHOWN + 1}, "rows of the 4 items"),
        ({"chosen": CHOSEN[1:]}, "chosen must have a row per choice"),
        ({"contexts": np.ones((2, 2))}, "contexts must have a row per choice"),
        ({"weights": np.array([1.0, 1.0, 1.0, 1.0, -1.0])}, "at least 0"),
        ({"answers": "none"}, "answers"),
    ):
        with pytest.raises(InvalidInputError, match=message):
            logged(**changes)
