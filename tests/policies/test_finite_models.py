"""FiniteModels: the posterior is Bayes' rule written out, the draws follow it, and any action set can be played."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem, select_lanes
from duelist.core.streams import Streams
from duelist.environments.linear import ListedDuels
from duelist.kernels.rules.finite_models import draw_lanes
from duelist.policies.algorithms.sampling.finite_models import FiniteModels, FiniteModelsState
from duelist.policies.codec import policy_from_mapping, to_mapping
from duelist.typing import FloatArray
from tests.support.continuous_sets import SETS

MODELS = np.random.default_rng(0).standard_normal((1000, 4))


def _play(
    policy: FiniteModels, rounds: int, **problem: Any
) -> tuple[FiniteModelsState, list[tuple[FloatArray, int, int, int]]]:
    """One lane of fresh arms, and the rounds as a plain list: arms, first, second, outcome."""
    rng = np.random.default_rng(4)
    streams = Streams(0, [0])
    state = policy.start(Problem(dim=4, **problem), streams)
    played = []
    sets = [FiniteActions(rng.standard_normal((6, 4))) for _ in range(25)]
    for t in range(rounds):
        arms = sets[t % 25] if t % 3 else sets[0]
        duels, state = policy.choose(state, arms, streams)
        outcome = int(rng.choice([-1, 0, 1]))
        state = policy.learn(state, arms, duels, np.array([outcome]))
        played.append((arms.features[0], int(duels.first[0]), int(duels.second[0]), outcome))
    return state, played


def _brute_force(models: FloatArray, played: Any, j: int, eta: float, mu: float) -> FloatArray:
    """Log posterior of every model, each term exact and added without rounding."""
    totals = []
    for theta in models:
        terms = []
        for arms, first, second, outcome in played:
            rewards = [math.fsum(a * b for a, b in zip(arm, theta, strict=True)) for arm in arms]
            for sign in (1, -1) if outcome == 0 else (outcome,):
                u = sign * (rewards[first] - rewards[second])
                part = 0.5 if outcome == 0 else 1.0  # a tie is half a win each way
                terms.append(-part * eta * (math.log1p(math.exp(-abs(u))) + max(-u, 0.0)))
            terms.append(mu * (max(rewards) - rewards[second if j == 0 else first]))
        totals.append(math.fsum(terms))
    top = max(totals)
    norm = math.log(math.fsum(math.exp(total - top) for total in totals))
    return np.array([total - top - norm for total in totals])


@pytest.mark.slow
@pytest.mark.parametrize(("eta", "mu"), [(1.0, 0.0), (1.0, 0.3), (0.25, 0.02)])
def test_the_posterior_is_exact_to_ten_digits(eta: float, mu: float) -> None:
    models = MODELS[:100]  # digits are lost over rounds, not over models
    policy = FiniteModels(models=models, eta=eta, mu=mu)
    state, played = _play(policy, 200)
    for j in range(2):
        expected = _brute_force(models, played, j, eta, mu)
        found = policy.log_posterior(state)[0, j]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10 * max(1.0, float(np.abs(expected).max())))
        np.testing.assert_allclose(np.exp(found), np.exp(expected), rtol=0, atol=1e-10)


@pytest.mark.slow
def test_a_thousand_models_are_exact_after_a_long_run() -> None:
    policy = FiniteModels(models=MODELS, mu=0.01)
    state, played = _play(policy, 60)
    np.testing.assert_allclose(
        np.exp(policy.log_posterior(state)[0, 1]), np.exp(_brute_force(MODELS, played, 1, 1.0, 0.01)), rtol=0, atol=1e-10
    )


def test_without_a_horizon_the_whole_history_is_weighed_anew_every_round() -> None:
    policy = FiniteModels(models=MODELS[:50], alpha=0.4)
    state, played = _play(policy, 49, live=True)
    expected = _brute_force(MODELS[:50], played, 0, 1.0, 0.4 / 7.0)
    np.testing.assert_allclose(np.exp(policy.log_posterior(state)[0, 0]), np.exp(expected), rtol=0, atol=1e-10)


def test_a_reward_table_is_the_same_as_models_with_those_rewards() -> None:
    arms = FiniteActions(np.random.default_rng(1).standard_normal((6, 4)))
    table = MODELS[:80] @ arms.features[0].T
    policies = FiniteModels(models=MODELS[:80], mu=0.2), FiniteModels(rewards=table, mu=0.2)
    streams = Streams(2, [0])
    states = [policy.start(Problem(dim=4, live=True), streams) for policy in policies]
    rng = np.random.default_rng(3)
    for _ in range(60):
        outcome = rng.choice([-1, 1], 1)
        pairs = []
        for which, policy in enumerate(policies):
            duels, states[which] = policy.choose(states[which], arms, streams)
            states[which] = policy.learn(states[which], arms, duels, outcome)
            pairs.append((int(duels.first[0]), int(duels.second[0])))
        assert pairs[0] == pairs[1]
        assert pairs[0][0] != pairs[0][1]
    logs = [policy.log_posterior(state) for policy, state in zip(policies, states, strict=True)]
    np.testing.assert_allclose(logs[0], logs[1], rtol=1e-11, atol=1e-11)


def test_draws_have_the_frequencies_of_the_posterior() -> None:
    lanes, weights = 20_000, np.log(np.array([0.5, 0.3, 0.15, 0.05]))
    tilt = np.zeros((lanes, 2, 4))
    tilt[:, 1] = np.log([1.0, 2.0, 1.0, 4.0])
    drawn = np.empty((lanes, 2), dtype=np.int64)
    ones = np.ones(lanes)
    keys = Streams(0, range(lanes)).keys("models")
    draw_lanes(drawn, np.tile(weights, (lanes, 1)), tilt, ones, ones, keys, 5, 0)
    for j, wanted in enumerate((np.exp(weights), np.array([0.5, 0.6, 0.15, 0.2]) / 1.45)):
        shares = np.bincount(drawn[:, j], minlength=4) / lanes
        np.testing.assert_allclose(shares, wanted, atol=5 * np.sqrt(0.25 / lanes))
    both = ((drawn[:, 0] == 0) & (drawn[:, 1] == 0)).mean()
    assert both == pytest.approx(0.5 * 0.5 / 1.45, abs=5 * np.sqrt(0.25 / lanes))


@pytest.mark.slow
def test_weights_beyond_the_range_of_numbers_do_no_harm() -> None:
    drawn = np.empty((1, 2), dtype=np.int64)
    one = np.ones(1)
    draw_lanes(drawn, np.array([[-1e6, -2e6, -1e6]]), np.zeros((1, 2, 3)), one, one, Streams(0, [0]).keys("models"), 0, 0)
    assert set(drawn[0]) <= {0, 2}
    policy = FiniteModels(models=[[1000.0], [-1000.0]], mu=0.0)
    streams, arms = Streams(0, [0]), FiniteActions([[1.0], [-1.0]])
    state = policy.start(Problem(dim=1), streams)
    duels, state = policy.choose(state, arms, streams)
    for _ in range(10):
        state = policy.learn(state, arms, duels._replace(features=arms.features[:, :2]), np.array([1]))
    np.testing.assert_allclose(policy.log_posterior(state)[0, 0], [0.0, -20_000.0])


def test_it_finds_the_true_model_of_the_list() -> None:
    env = ListedDuels(models=MODELS[:200], arms=12)
    run = duelist.simulate(FiniteModels(models=MODELS[:200]), env, rounds=400, trials=4, seed=1, workers=1)
    floor = duelist.simulate(duelist.Uniform(), env, rounds=400, trials=4, seed=1, workers=1)
    assert run.final_regret.mean() < 0.1 * floor.final_regret.mean()
    assert run.info["effective_models"].max() < 40


@pytest.mark.parametrize("name", SETS)
def test_every_continuous_set_can_be_played(name: str) -> None:
    actions = SETS[name]
    policy, streams = FiniteModels(models=100), Streams(0, [0, 1])
    state = policy.start(Problem(dim=3, lanes=2, live=True), streams)
    for _ in range(12):
        duels, state = policy.choose(state, actions, streams)
        assert actions.contains(duels.features).all()
        assert (duels.features[:, 0] != duels.features[:, 1]).any(axis=1).all()
        state = policy.learn(state, actions, duels, np.array([1, -1]))
    best = actions.best(np.tile(state.models, (2, 1, 1))).value
    np.testing.assert_array_equal(state.maxima[actions.digest.hex()], best)


def test_a_policy_is_a_value_that_can_be_written_down_and_cut_into_lanes() -> None:
    policy = FiniteModels(models=MODELS[:3], eta=(0.5, 1.0, 2.0))
    assert policy == FiniteModels(models=MODELS[:3].tolist(), eta=(0.5, 1.0, 2.0))
    assert policy_from_mapping(to_mapping(policy)) == policy
    cut = select_lanes(policy, slice(1, 2), 3)
    assert cut.eta == (1.0,)
    assert cut.models == policy.models


@pytest.mark.parametrize(
    "arguments",
    [
        {"models": 0},
        {"models": [[1.0, math.nan]]},
        {"models": [1.0, 2.0]},
        {"models": [[]]},
        {"rewards": [[1.0]]},
        {"eta": -1.0},
        {"alpha": math.inf},
        {"mu": -0.1},
        {"horizon": 0},
        {"same_arm": "redraw"},
    ],
)
def test_impossible_hyper_parameters_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(InvalidInputError):
        FiniteModels(**arguments)


def test_models_and_tables_that_do_not_fit_the_arms_are_refused_and_change_nothing() -> None:
    streams = Streams(0, [0])
    with pytest.raises(InvalidInputError, match=r"models must be \(N, 3\)"):
        FiniteModels(models=MODELS).start(Problem(dim=3), streams)
    policy = FiniteModels(rewards=[[0.0, 1.0, 2.0]])
    state = policy.start(Problem(dim=3), streams)
    with pytest.raises(InvalidInputError, match="offers 2"):
        policy.choose(state, FiniteActions(np.eye(3)[:2]), streams)
    arms = FiniteActions(np.eye(3))
    duels, state = policy.choose(state, arms, streams)
    with pytest.raises(InvalidInputError, match="outcomes"):
        policy.learn(state, arms, duels, np.array([2]))
    assert not state.log_likelihood.any()


def test_two_models_and_one_duel_are_bayes_rule_by_hand() -> None:
    # Rewards log 3 and 0 against 0 and 0: the first arm wins with chance 3/4 under one model and 1/2 under the other.
    policy = FiniteModels(rewards=[[math.log(3.0), 0.0], [0.0, 0.0]], mu=0.0)
    streams, arms = Streams(0, [0]), FiniteActions(np.eye(2))
    state = policy.start(Problem(dim=2, live=True), streams)
    duels, state = policy.choose(state, arms, streams)
    won = 1 if duels.first[0] == 0 else -1
    state = policy.learn(state, arms, duels, np.array([won]))
    wanted = float(Fraction(3, 4) / (Fraction(3, 4) + Fraction(1, 2)))
    assert math.exp(policy.log_posterior(state)[0, 0, 0]) == pytest.approx(wanted, rel=1e-14)
