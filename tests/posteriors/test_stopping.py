"""Verdicts: the evidence is what its formula says, bounds lie on the safe side, and wrong verdicts are as rare as promised."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import dblquad, quad
from scipy.optimize import minimize
from scipy.special import expit

from benchmarks.stopping import SETTINGS, play
from duelist.core.errors import DuelistError
from duelist.posteriors import (
    Goal,
    LinearModel,
    Votes,
    linear_verdict,
    log_evidence_against_best,
    log_marginal_bound,
    log_pair_evidence,
    pair_verdict,
)


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (14, 2), (7.5, 3.5), (3, 20)])
def test_the_evidence_of_a_pair_is_the_integral_of_its_formula(wins: float, losses: float) -> None:
    def integrand(p: float) -> float:
        return float((2 * p) ** wins * (2 * (1 - p)) ** losses * 2 / (math.pi * math.sqrt(p * (1 - p))))

    expected = quad(integrand, 0.5, 1.0, epsabs=1e-13)[0]
    assert float(log_pair_evidence(wins, losses)) == pytest.approx(math.log(expected), abs=1e-6)


def test_one_more_duel_multiplies_the_evidence_by_one_on_average_and_a_tie_by_less() -> None:
    for wins, losses in [(0, 0), (5, 2), (2, 9), (40, 30)]:
        now = float(log_pair_evidence(wins, losses))
        won, lost = float(log_pair_evidence(wins + 1, losses)), float(log_pair_evidence(wins, losses + 1))
        assert 0.5 * (math.exp(won - now) + math.exp(lost - now)) == pytest.approx(1.0, abs=1e-10)
        assert float(log_pair_evidence(wins + 0.5, losses + 0.5)) < now


def test_the_best_arm_is_the_one_that_is_left_and_the_error_is_that_of_the_last_rival() -> None:
    wins = np.array([[0, 30, 28], [4, 0, 20], [3, 12, 0]], dtype=float)
    expected = []
    for j in range(3):
        together = log_pair_evidence(sum(wins[k, j] for k in range(3)), sum(wins[j, k] for k in range(3)))
        alone = [math.exp(log_pair_evidence(wins[k, j], wins[j, k])) for k in range(3) if k != j]
        expected.append(math.log(0.5 * math.exp(together) + 0.25 * sum(alone)))
    np.testing.assert_allclose(log_evidence_against_best(wins), expected, atol=1e-12)
    verdict = pair_verdict(wins, Goal())
    assert verdict.arms == (0,)
    assert verdict.decided
    assert verdict.votes_expected == 0.0
    assert verdict.error_probability == pytest.approx(math.exp(-min(expected[1:])))


def test_chains_of_duels_rank_arms_that_never_met() -> None:
    wins = np.zeros((4, 4))
    for better, worse in [(2, 0), (0, 3), (3, 1)]:
        wins[better, worse] = 25.0
    ranking = pair_verdict(wins, Goal(kind="ranking"))
    assert ranking.arms == (2, 0, 3, 1)
    assert ranking.decided
    assert ranking.error_probability == pytest.approx(6 * math.exp(-float(log_pair_evidence(25, 0))))
    assert set(pair_verdict(wins, Goal(kind="top", k=2)).arms) == {0, 2}
    assert pair_verdict(wins, Goal(kind="top", k=2)).decided
    promoted = pair_verdict(wins, Goal(kind="promote", challenger=3, champion=0))
    assert promoted.arms == (0,)
    assert promoted.decided


def test_more_votes_are_expected_where_arms_are_closer_and_no_end_is_seen_without_a_difference() -> None:
    goal = Goal(kind="promote", challenger=0, champion=1)
    close, far = pair_verdict([[0, 12], [10, 0]], goal), pair_verdict([[0, 14], [8, 0]], goal)
    assert far.votes_expected < close.votes_expected < math.inf
    assert pair_verdict([[0, 8], [8, 0]], goal).votes_expected == math.inf
    assert pair_verdict(np.zeros((3, 3)), Goal()).error_probability == pytest.approx(1.0)


def _votes(seed: int, n: int = 12, dim: int = 2) -> Votes:
    random = np.random.default_rng(seed)
    contrasts, totals = random.normal(size=(n, dim)), random.integers(1, 9, n)
    wins = random.binomial(totals, expit(contrasts @ np.linspace(1.0, -0.5, dim)))
    return Votes(contrasts, wins.astype(float), (totals - wins).astype(float))


def test_the_bound_of_the_marginal_likelihood_is_below_it_and_close() -> None:
    from duelist.posteriors.stopping.linear import _fit

    for seed in range(3):
        votes = _votes(seed)

        def density(b: float, a: float, votes: Votes = votes) -> float:
            logits = votes.contrasts @ [a, b]
            log = votes.wins @ logits - (votes.wins + votes.losses) @ np.logaddexp(0.0, logits)
            return math.exp(log - 0.5 * (a * a + b * b)) / (2 * math.pi)

        exact = math.log(dblquad(density, -6, 6, -6, 6, epsabs=0.0, epsrel=1e-7)[0])
        bound = log_marginal_bound(votes, *_fit(votes, 1.0), 1.0)
        assert exact - 0.1 < bound < exact


def test_the_evidence_of_a_linear_verdict_is_that_of_a_constrained_fit() -> None:
    from duelist.posteriors.stopping.linear import _fit

    votes, arms = _votes(5, n=30, dim=3), np.random.default_rng(0).normal(size=(4, 3))
    verdict = linear_verdict(arms, votes, Goal(delta=0.5), LinearModel(norm=20.0))
    (best,) = verdict.arms

    def loss(theta: np.ndarray) -> float:
        logits = votes.contrasts @ theta
        return float((votes.wins + votes.losses) @ np.logaddexp(0.0, logits) - votes.wins @ logits)

    fits = [
        minimize(loss, np.zeros(3), constraints={"type": "ineq", "fun": lambda t, j=j: (arms[j] - arms[best]) @ t}).fun  # type: ignore[call-overload]
        for j in range(4)
        if j != best
    ]
    log_evidence = log_marginal_bound(votes, *_fit(votes, 1.0), 1.0) + min(fits)
    assert log_evidence > 0.0, "the example must have something to compare"
    # Two bounds are used, which together cost at most 0.01.
    assert -math.log(verdict.error_probability) == pytest.approx(log_evidence, abs=0.0101)
    assert -math.log(verdict.error_probability) < log_evidence


def test_separable_votes_and_equal_arms_have_verdicts_too() -> None:
    votes = Votes(np.array([[1.0, 0.0]]), np.array([200.0]), np.array([0.0]))
    verdict = linear_verdict([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0]], votes, Goal())
    assert verdict.decided
    assert verdict.arms[0] in (0, 2)
    assert not linear_verdict([[0.0, 1.0], [0.0, 0.0]], votes, Goal()).decided


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Goal(kind="bst"),
        lambda: Goal(delta=0.0),
        lambda: Goal(kind="promote", challenger=2, champion=2),
        lambda: pair_verdict(np.zeros((3, 3)), Goal(kind="top", k=3)),
        lambda: pair_verdict(np.zeros((3, 3)), Goal(kind="promote", challenger=7)),
        lambda: pair_verdict(np.zeros((3, 2)), Goal()),
        lambda: pair_verdict([[0, -1], [1, 0]], Goal()),
        lambda: linear_verdict([[1.0], [0.0]], Votes(np.zeros((2, 3)), np.zeros(2), np.zeros(2)), Goal()),
    ],
)
def test_goals_and_votes_that_make_no_sense_are_refused(wrong: object) -> None:
    with pytest.raises(DuelistError):
        wrong()  # type: ignore[operator]


@pytest.mark.parametrize("setting", SETTINGS)
def test_wrong_verdicts_are_as_rare_as_promised(setting: str) -> None:
    """40 problems at delta 0.1: with errors at the limit, more than 10 would be seen in 3 of 1,000 tests."""
    results = [play(setting, seed, delta=0.1, most_votes=1000 if "nearly" in setting else 1500) for seed in range(40)]
    assert sum(result.wrong for result in results) <= 10
    if "nearly" not in setting:
        assert sum(result.stopped for result in results) >= 5, "a rule that never stops is never wrong"
