"""What an agent believes: draws against an oracle, numbers against brute force, and when draws are renewed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.core.errors import InvalidInputError
from duelist.journal.memory import MemoryJournal
from duelist.live import beliefs
from duelist.live.agent import Agent
from duelist.live.beliefs import Draws, best_row, predict_rows, rank_rows, win_probability
from duelist.live.ensemble import Ensemble, renew_ensemble, start_ensemble
from duelist.samplers.diagnostics import PosteriorDraws

ARMS = np.random.default_rng(7).standard_normal((6, 3))
TRUTH = np.array([1.0, -0.5, 0.3])


def vote(agent: Agent, votes: int, *, seed: int = 0, table: list[tuple[np.ndarray, int]] | None = None) -> None:
    """Votes of a logistic crowd, one in eight a tie; contrasts and outcomes go to `table`."""
    rng = np.random.default_rng(seed)
    for _ in range(votes):
        duel = agent.choose(ARMS)
        first, second = duel.features
        outcome = 1 if rng.random() < 1.0 / (1.0 + np.exp(-(first - second) @ TRUTH)) else -1
        outcome = 0 if rng.random() < 0.125 else outcome
        agent.learn(duel, {1: "first", -1: "second", 0: "tie"}[outcome])  # type: ignore[arg-type]
        if table is not None:
            table.append((first - second, outcome))


def oracle(table: list[tuple[np.ndarray, int]], prior: Any) -> PosteriorDraws:
    counts = [[0.5 + outcome / 2, 0.5 - outcome / 2] for _, outcome in table]
    return duelist.sample_posterior([contrast for contrast, _ in table], counts, prior=prior, draws=4000, seed=3)


@pytest.mark.parametrize(
    ("policy", "prior"),
    [
        (duelist.FGTS(prior=duelist.Gaussian(2.0)), duelist.Gaussian(2.0)),
        (duelist.FGTS(prior=duelist.UniformBall(1.5)), duelist.UniformBall(1.5)),
        (duelist.Uniform(), duelist.Gaussian()),  # its state has no history
        (duelist.CoLSTIM(), duelist.Gaussian()),  # a part of its state has one
        (duelist.VACDB(), duelist.Gaussian()),  # its history weighs votes
    ],
    ids=["fgts", "ball", "uniform", "colstim", "vacdb"],
)
def test_after_many_renewals_the_draws_are_those_of_the_posterior(policy: Any, prior: Any) -> None:
    agent, table = Agent(policy, dim=3, seed=1), []  # type: ignore[var-annotated]
    for _ in range(15):
        vote(agent, 6, seed=len(table), table=table)
        agent.predict(ARMS)
    draws, wanted = agent._draws(), oracle(table, prior)
    assert (draws.votes, draws.age) == (90, 0)
    # 512 independent draws: z-scores of three means and of three standard deviations. Beyond 4.5 with a chance of 6 * 7e-6 per
    # case, 2e-4 for all five; the oracle's error (ESS of thousands) adds little.
    error = wanted.sd / np.sqrt(len(draws.theta))
    assert np.abs(draws.theta.mean(axis=0) - wanted.mean).max() < (4.5 * 1.1 * error).max()
    ratio = draws.theta.std(axis=0, ddof=1) / wanted.sd
    assert np.abs(ratio - 1.0).max() < 4.5 * 1.1 / np.sqrt(2 * len(draws.theta))


def test_forgotten_votes_count_less() -> None:
    agent = Agent(duelist.Uniform(), dim=3)
    forgetful = Agent(duelist.FGTS(discount=0.9), dim=3)
    for each in (agent, forgetful):
        vote(each, 60)
    spread = [np.ptp(each.predict(ARMS).utility) for each in (agent, forgetful)]
    assert spread[1] < spread[0]


def test_numbers_are_those_of_counting_over_the_draws() -> None:
    rng = np.random.default_rng(0)
    draws, features = Draws(rng.standard_normal((64, 3)), 10, 2), rng.standard_normal((5, 3))
    found, ranked = predict_rows(draws, features, 0.8), rank_rows(draws, features, 0.8)
    utilities = [[sum(t * x for t, x in zip(theta, row, strict=True)) for row in features] for theta in draws.theta]
    for row in range(5):
        mine = [each[row] - sum(each) / 5 for each in utilities]
        assert found.utility[row] == pytest.approx(np.mean(mine))
        assert (found.low[row], found.high[row]) == pytest.approx(tuple(np.quantile(mine, [0.1, 0.9])))
        assert found.probability_best[row] == pytest.approx(np.mean([each[row] == max(each) for each in utilities]))
        assert found.expected_loss[row] == pytest.approx(np.mean([max(each) - each[row] for each in utilities]))
        places = sorted(1 + sum(other > each[row] for other in each) for each in utilities)
        assert ranked.rank[row] == pytest.approx(np.mean(places))
        assert ranked.low[row] <= np.median(places) <= ranked.high[row]
        assert np.mean([ranked.low[row] <= place <= ranked.high[row] for place in places]) >= 0.8
    assert ranked.order.tolist() == sorted(range(5), key=lambda row: -found.utility[row])
    assert (found.votes, found.age, ranked.votes, ranked.age) == (10, 2, 10, 2)
    wins = [1.0 / (1.0 + np.exp(each[1] - each[0])) for each in utilities]
    said = win_probability(draws, features[0], features[1], 0.8)
    assert said.probability == pytest.approx(np.mean(wins))
    assert (said.low, said.high) == pytest.approx(tuple(np.quantile(wins, [0.1, 0.9])))


def test_rows_that_tie_share_the_probability_of_being_best() -> None:
    draws = Draws(np.random.default_rng(0).standard_normal((64, 2)), 0, 0)
    assert predict_rows(draws, np.zeros((4, 2))).probability_best == pytest.approx([0.25] * 4)
    assert best_row(draws, np.zeros((4, 2))) == 0
    assert best_row(draws, np.zeros((4, 2)), np.array([1.0, 0.5, 0.5, 2.0])) == 1


def test_a_cost_changes_the_choice_exactly_when_it_exceeds_the_gain() -> None:
    agent = Agent(duelist.FGTS(), dim=3, seed=0)
    vote(agent, 80)
    utility = agent.predict(ARMS).utility
    leader, second = np.argsort(-utility)[:2]
    assert agent.best(ARMS) == leader
    gain = utility[leader] - utility[second]
    cost = np.zeros(len(ARMS))
    for share, choice in ((0.99, leader), (1.01, second)):
        cost[leader] = share * gain
        assert agent.best(ARMS, cost=cost) == choice
    assert agent.best(ARMS, cost=cost + 7.0) == second, "what all cost alike does not matter"
    for weight in (0.0, 0.5, 4.0):
        agent.set_cost_weight(weight)
        assert agent.best(ARMS, cost=cost) == int(np.argmax(agent.predict(ARMS).utility - weight * cost))
    agent.set_cost_weight(0.0)
    assert agent.best(ARMS, cost=cost) == leader != second, "or the weights show nothing"


def test_before_the_first_vote_it_is_the_prior_and_says_so() -> None:
    agent = Agent(duelist.FGTS(prior=duelist.Gaussian(3.0)), dim=3)
    found = agent.predict(ARMS)
    assert found.is_prior
    assert (found.votes, found.age) == (0, 0)
    assert "this is the prior" in str(found)
    # 512 draws of N(0, 9): the standard error of a standard deviation is 3 %; 5 of them in 3 coordinates: 2e-6.
    assert agent._draws().theta.std(axis=0) == pytest.approx([3.0] * 3, rel=0.16)
    even = agent.preference(ARMS[0], ARMS[0])
    assert (even.probability, even.low, even.high) == (0.5, 0.5, 0.5)


class Counter:
    """How often draws were made from scratch, and renewed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.started = self.renewed = 0

        def counted_start(*args: Any, **options: Any) -> Ensemble:
            self.started += 1
            return start_ensemble(*args, **options)

        def counted_renew(*args: Any, **options: Any) -> Ensemble:
            self.renewed += 1
            return renew_ensemble(*args, **options)

        monkeypatch.setattr(beliefs, "start_ensemble", counted_start)
        monkeypatch.setattr(beliefs, "renew_ensemble", counted_renew)


def test_draws_are_renewed_when_votes_have_grown_by_a_twentieth(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, counter = Agent(duelist.FGTS(), dim=3, seed=0), Counter(monkeypatch)
    vote(agent, 100)
    first = agent.predict(ARMS)
    for age in range(1, 6):
        vote(agent, 1, seed=age)
        found = agent.predict(ARMS)
        assert (found.votes, found.age) == (100, age)
        assert found.utility.tolist() == first.utility.tolist()
    assert (counter.started, counter.renewed) == (1, 0)
    vote(agent, 1)
    found = agent.predict(ARMS)
    assert (found.votes, found.age) == (106, 0)
    assert (counter.started, counter.renewed) == (1, 1)
    agent.rank(ARMS)
    agent.best(ARMS)
    agent.preference(ARMS[0], ARMS[1])
    assert (counter.started, counter.renewed) == (1, 1)


def test_an_agent_that_forgets_renews_by_what_it_remembers(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, counter = Agent(duelist.FGTS(discount=0.95), dim=3, seed=0), Counter(monkeypatch)
    vote(agent, 200)  # it remembers about 20
    agent.predict(ARMS)
    vote(agent, 2)
    agent.predict(ARMS)
    assert counter.renewed == 1


@pytest.mark.parametrize("policy", [duelist.FGTS(), duelist.Uniform()], ids=["fgts", "uniform"])
def test_a_loaded_agent_predicts_the_same(policy: Any, tmp_path: Path) -> None:
    agent = Agent(policy, dim=3, seed=0)
    vote(agent, 60)
    agent.predict(ARMS)
    vote(agent, 2)
    agent.save(tmp_path / "agent.npz")
    loaded = Agent.load(tmp_path / "agent.npz")
    for _ in range(2):
        one, other = agent.predict(ARMS), loaded.predict(ARMS)
        assert one.utility.tolist() == other.utility.tolist()
        assert (one.votes, one.age) == (other.votes, other.age)
        for each in (agent, loaded):
            vote(each, 4)  # enough for the draws to be renewed


@pytest.mark.parametrize("policy", [duelist.FGTS(), duelist.Uniform()], ids=["fgts", "uniform"])
def test_an_agent_on_a_journal_predicts_the_same_and_so_does_its_next_process(policy: Any) -> None:
    journal = MemoryJournal()
    plain, logged = Agent(policy, dim=3, seed=0), Agent(policy, dim=3, seed=0, journal=journal, snapshot_every=16)
    for each in (plain, logged):
        vote(each, 40)
    again = Agent(policy, dim=3, seed=0, journal=journal)
    wanted = plain.predict(ARMS).utility.tolist()
    assert logged.predict(ARMS).utility.tolist() == wanted
    assert again.predict(ARMS).utility.tolist() == wanted


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda agent: agent.predict([[1.0, 2.0]]), r"features must be \(n, 3\)"),
        (lambda agent: agent.predict(np.zeros((0, 3))), "n at least 1"),
        (lambda agent: agent.predict([1.0, 2.0, 3.0]), r"features must be \(n, dim\)"),
        (lambda agent: agent.predict(ARMS * np.nan), "finite"),
        (lambda agent: agent.predict(ARMS, level=1.0), "level must be below 1"),
        (lambda agent: agent.predict(ARMS, level=0), "level must be"),
        (lambda agent: agent.best(ARMS, cost=[1.0]), r"cost must be \(6,\)"),
        (lambda agent: agent.best(ARMS, cost=1.0), r"cost must be \(n,\)"),
        (lambda agent: agent.preference(ARMS, ARMS[0]), r"a must be \(dim,\)"),
        (lambda agent: agent.preference(ARMS[0], [1.0]), r"b must be the features \(3,\)"),
    ],
)
def test_bad_input_is_refused_with_words(call: Any, words: str) -> None:
    with pytest.raises(InvalidInputError, match=words):
        call(Agent(duelist.FGTS(), dim=3))


def test_a_policy_without_linear_utilities_says_what_is_possible() -> None:
    pytest.importorskip("jax")
    from duelist.policies import NonlinearFGTS

    with pytest.raises(InvalidInputError, match="not linear in the features"):
        Agent(NonlinearFGTS(), dim=2).predict([[1.0, 0.0]])
