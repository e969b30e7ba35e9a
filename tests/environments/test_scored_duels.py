"""Arms with a score in every context, against loops over the table."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.scored import ScoredDuels
from duelist.history.duels import duels_between

RNG = np.random.default_rng(3)
CONTEXTS, SCORES, COSTS = RNG.normal(size=(7, 2)), RNG.random((7, 4)), RNG.random((7, 4))
ENV = ScoredDuels(contexts=CONTEXTS, scores=SCORES, costs=COSTS, cost_weight=0.5, sharpness=3.0)


def test_a_trial_meets_every_context_once_before_any_again() -> None:
    instance = ENV.instance(Streams(0, [0, 1, 2]))
    seen = np.array([instance.rows(t) for t in range(14)])
    for lane in range(3):
        assert sorted(seen[:7, lane]) == list(range(7))
    np.testing.assert_array_equal(seen[7:], seen[:7])
    assert len({tuple(order) for order in seen[:7].T}) == 3


def test_regret_and_chances_are_those_of_the_table() -> None:
    instance = ENV.instance(Streams(0, range(5)))
    for t in range(9):
        actions = instance.actions(t)
        first, second = RNG.integers(4, size=5), RNG.integers(4, size=5)
        duels = duels_between(actions, first, second)
        regret, chance = instance.regret(actions, duels), instance.win_probability(t, duels)
        for lane, row in enumerate(instance.rows(t)):
            utility = [SCORES[row, k] - 0.5 * COSTS[row, k] for k in range(4)]
            one, other = utility[first[lane]], utility[second[lane]]
            assert regret.average[lane] == pytest.approx(max(utility) - (one + other) / 2)
            assert regret.weak[lane] == pytest.approx(max(utility) - max(one, other))
            assert chance[lane] == pytest.approx(1 / (1 + math.exp(-3.0 * (one - other))))
            lost = max(SCORES[row]) - (SCORES[row, first[lane]] + SCORES[row, second[lane]]) / 2
            assert regret.others["score"][lane] == pytest.approx(lost)
            assert regret.others["cost"][lane] == pytest.approx((COSTS[row, first[lane]] + COSTS[row, second[lane]]) / 2)
            np.testing.assert_array_equal(actions.features[lane], np.kron(np.eye(4), CONTEXTS[row]))


def test_a_policy_learns_which_arm_is_good_where() -> None:
    kinds = RNG.integers(2, size=200)
    env = ScoredDuels(contexts=np.eye(2)[kinds], scores=np.eye(2)[kinds], sharpness=4.0)
    learnt = duelist.simulate(duelist.FGTS(), env, rounds=400, trials=4, seed=0).final_regret
    chance = duelist.simulate(duelist.Uniform(), env, rounds=400, trials=4, seed=0).final_regret
    assert learnt.mean() < 0.25 * chance.mean()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"contexts": CONTEXTS[:5]}, "contexts must fit scores of shape"),
        ({"costs": COSTS[:, :2]}, "costs must fit scores"),
        ({"catalogue": np.eye(3), "join": "product"}, "catalogue must fit scores"),
        ({"join": "product"}, "needs features of the arms"),
        ({"scores": SCORES[:, :1], "costs": None}, "a column per arm, at least 2"),
        ({"sharpness": 0.0}, "sharpness"),
        ({"join": "sum"}, "join"),
    ],
)
def test_tables_that_do_not_fit_are_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidInputError, match=told):
        ScoredDuels(**{"contexts": CONTEXTS, "scores": SCORES, "costs": COSTS, **wrong})
