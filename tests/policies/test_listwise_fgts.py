"""ListwiseFGTS: with two choices it is FGTS, its potential is the formula's, bad answers change nothing, and it learns."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import duelist
from duelist.actions.finite import FiniteActions
from duelist.core.errors import InvalidInputError
from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.history.duels import Duels, duels_between
from duelist.history.slates import slates_of
from duelist.policies.algorithms.slates.listwise_fgts import ListwiseFGTS, ListwiseFGTSState
from duelist.posteriors.priors import GaussianBall
from duelist.preferences.plackett_luce import ranking_loss
from duelist.preferences.ties import BothBad, Davidson, LearntDavidson, RaoKupper
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


def answer_loss(policy: ListwiseFGTS, utilities: Floats, answer: Any, nu: float) -> float:
    """-log P(answer), from the odds of every possible answer."""
    ties = policy.ties
    if isinstance(ties, RaoKupper | BothBad):
        outcome: Any = answer if isinstance(answer, str) else ("first", "second")[int(answer[0])]
        return ties.loss(outcome, *utilities).loss
    odds = np.exp(utilities)
    if isinstance(answer, str):
        if ties is None:  # 1/q of a win of each
            return float(np.mean([ranking_loss(utilities, [place]) for place in range(len(odds))]))
        tie = nu * np.prod(odds) ** (1 / len(odds))
        return float(-np.log(tie / (odds.sum() + tie)))
    ranked = list(answer) if policy.feedback == "ranking" else list(answer)[:1]
    loss = ranking_loss(utilities, ranked)
    if ties is not None:  # the first stage has one answer more
        loss += float(np.log((odds.sum() + nu * np.prod(odds) ** (1 / len(odds))) / odds.sum()))
    return loss


def written_out(policy: ListwiseFGTS, at: Floats, log: Played, lane: int, draw: int, mu: float) -> float:
    """The potential as its formula says, round by round."""
    theta, nu = at[:3], getattr(policy.ties, "nu", 1.0)
    total = 0.5 * float(theta @ theta)
    if isinstance(policy.ties, LearntDavidson):
        nu = math.exp(at[3])
        total += 0.5 * (at[3] - math.log(policy.ties.median)) ** 2 / policy.ties.spread**2
    for actions, slates, answers in log:
        utilities = slates.features[lane] @ theta
        total += answer_loss(policy, utilities, answers[lane], nu)
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
        ListwiseFGTS(choices=4, feedback="ranking", ties=Davidson(0.8), mu=0.3),
        ListwiseFGTS(choices=3, feedback="ranking", ties=LearntDavidson(0.5, 0.7), mu=0.3),
        ListwiseFGTS(choices=2, ties=LearntDavidson(), mu=0.3),
        ListwiseFGTS(choices=2, ties=RaoKupper(1.7), mu=0.3),
        ListwiseFGTS(choices=2, ties=BothBad(-0.5), mu=0.3),
    ],
    ids=lambda policy: f"{policy.choices}, {policy.feedback}, {policy.ties}",
)
def test_the_potential_is_the_formulas_and_its_gradient_agrees_with_finite_differences(policy: ListwiseFGTS) -> None:
    state, log = played(policy, 70, ties=True)  # beyond the first capacity of 64
    theta = np.random.default_rng(1).standard_normal((2, policy.choices, policy.potential(state).width))
    values, gradients = policy.potential(state).value_and_gradient(theta)
    for lane, draw in np.ndindex(2, policy.choices):

        def plain(at: Floats, lane: int = lane, draw: int = draw) -> float:
            return written_out(policy, at, log, lane, draw, mu=0.3)

        assert values[lane, draw] == pytest.approx(plain(theta[lane, draw]), rel=1e-12)
        np.testing.assert_allclose(gradients[lane, draw], finite_difference(plain, theta[lane, draw]), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ties", [False, True], ids=["wins", "wins and ties"])
def test_with_two_choices_the_potential_is_that_of_fgts(ties: bool) -> None:
    policy, duels = (
        ListwiseFGTS(choices=2, mu=0.2, prior=GaussianBall(1.0, 9.0)),
        duelist.FGTS(mu=0.2, prior=GaussianBall(1.0, 9.0)),
    )
    state, log = played(policy, 40, ties=ties)
    other = duels.start(Problem(dim=3, lanes=2), Streams(0, [0, 1]))
    for actions, slates, answers in log:
        outcomes = np.array([0 if isinstance(answer, str) else (1 if answer[0] == 0 else -1) for answer in answers])
        other = duels.learn(other, actions, duels_between(actions, slates.rows[:, 0], slates.rows[:, 1]), outcomes)
    theta = np.random.default_rng(2).standard_normal((2, 2, 3))
    values, gradients = policy.potential(state).value_and_gradient(theta)
    np.testing.assert_allclose(values, duels.potential(other).value(theta), rtol=0, atol=1e-12)
    np.testing.assert_allclose(gradients, duels.potential(other).gradient(theta), rtol=0, atol=1e-12)


def test_with_two_choices_it_shows_duels_and_learns_outcomes_as_any_policy_for_pairs() -> None:
    policy, streams = ListwiseFGTS(choices=2), Streams(3, [0, 1])
    by_outcome = by_place = policy.start(Problem(dim=3, lanes=2), streams)
    for t in range(6):
        actions = SETS[t % 2]
        duels, by_outcome = policy.choose(by_outcome, actions, streams)
        again, by_place = policy.choose(by_place, actions, streams)
        assert isinstance(duels, Duels)
        np.testing.assert_array_equal(duels.first, again.first)
        best = actions.best(by_outcome.chains.position).row
        np.testing.assert_array_equal(np.stack([duels.first, duels.second], axis=1), best)
        by_outcome = policy.learn(by_outcome, actions, duels, np.array([[1, -1], [-1, 0]][t % 2]))
        by_place = policy.learn(by_place, actions, slates_of(actions, best), [[[0], [1]], [[1], "tie"]][t % 2])  # type: ignore[arg-type]
    np.testing.assert_array_equal(by_outcome.table.features, by_place.table.features)
    np.testing.assert_array_equal(by_outcome.table.placed, by_place.table.placed)


@pytest.mark.parametrize(
    "policy",
    [
        ListwiseFGTS(choices=4, feedback="ranking", mu=0.0),
        ListwiseFGTS(choices=3, feedback="ranking", ties=LearntDavidson(), mu=0.0),
    ],
    ids=["no model", "learnt"],
)
def test_the_curvature_is_the_hessian_of_the_ranking_losses_and_the_prior(policy: ListwiseFGTS) -> None:
    state, _ = played(policy, 20, ties=True)
    potential = policy.potential(state)
    theta = np.random.default_rng(3).standard_normal((2, potential.width))
    curvature = potential.curvature(theta)

    def slope(at: Floats, lane: int, i: int) -> float:
        everywhere = np.broadcast_to(at, (2, policy.choices, potential.width))
        return float(potential.value_and_gradient(everywhere)[1][lane, 0, i])

    for lane in range(2):
        rows = [finite_difference(lambda at, i=i, lane=lane: slope(at, lane, i), theta[lane]) for i in range(potential.width)]  # type: ignore[misc]
        np.testing.assert_allclose(curvature[lane], rows, rtol=1e-5, atol=1e-5)
    mode = potential.mode(theta)
    at_mode = potential.value_and_gradient(np.repeat(mode[:, None], policy.choices, axis=1))[1]
    np.testing.assert_allclose(at_mode, 0.0, atol=1e-5)


@pytest.mark.slow
def test_nu_and_theta_are_drawn_from_their_joint_posterior() -> None:
    """One feature and log nu: a grid of both is the oracle, for the policy's own chains and for the draws that people see."""
    policy, streams = ListwiseFGTS(choices=2, ties=LearntDavidson(0.7, 0.8), mu=0.0), Streams(5, range(40))
    actions = FiniteActions(np.array([[[1.0], [0.0]]] * 40))
    state = policy.start(Problem(dim=1, lanes=40), streams)
    outcomes = [1] * 9 + [-1] * 4 + [0] * 7
    pair = duels_between(actions, np.zeros(40, dtype=np.int64), np.ones(40, dtype=np.int64))
    for outcome in outcomes:
        state = policy.learn(state, actions, pair, np.full(40, outcome))
    theta, log_nu = np.meshgrid(np.linspace(-5, 5, 401), np.linspace(-6, 6, 401), indexing="ij")
    total = np.exp(theta / 2) + np.exp(-theta / 2) + np.exp(log_nu)
    log_density = -0.5 * theta**2 - 0.5 * (log_nu - math.log(0.7)) ** 2 / 0.64
    log_density += 9 * theta / 2 - 4 * theta / 2 + 7 * log_nu - 20 * np.log(total)
    density = np.exp(log_density - log_density.max())
    density /= density.sum()
    means = [float((density * one).sum()) for one in (theta, log_nu)]
    sds = [float(np.sqrt((density * (one - mean) ** 2).sum())) for one, mean in zip((theta, log_nu), means, strict=True)]
    drawn = []
    for t in range(60):
        _, state = policy.choose(state, actions, streams)
        if t >= 20:
            drawn.append(state.chains.position)
    # 40 lanes of two chains: 80 independent chains of 40 draws each, of which ten count. Four standard errors.
    chains = np.concatenate(drawn, axis=1)
    people = np.log(policy.tie_posterior(state, streams, 1024))
    for i, (mean, sd) in enumerate(zip(means, sds, strict=True)):
        assert abs(chains[:, :, i].mean() - mean) < 4 * sd / math.sqrt(800)
        assert abs(chains[:, :, i].std() - sd) < 4 * sd / math.sqrt(2 * 800)
    assert abs(people.mean() - means[1]) < 4 * sds[1] / math.sqrt(4000)
    assert abs(people.std() - sds[1]) < 4 * sds[1] / math.sqrt(2 * 4000)
    utilities = policy.posterior_draws(state, streams, 512)
    assert utilities.shape == (40, 512, 1)
    assert abs(utilities.mean() - means[0]) < 4 * sds[0] / math.sqrt(4000)


def test_nu_is_reported_where_it_is_learnt_and_nowhere_else() -> None:
    policy, streams = ListwiseFGTS(choices=3, ties=LearntDavidson()), Streams(0, [0, 1])
    state, _ = played(policy, 5)
    np.testing.assert_allclose(policy.report(state)["tie_nu"], np.exp(state.chains.position[:, :, -1].mean(axis=1)))
    plain, _ = played(ListwiseFGTS(choices=3), 5)
    assert "tie_nu" not in ListwiseFGTS(choices=3).report(plain)
    with pytest.raises(InvalidInputError, match="LearntDavidson"):
        ListwiseFGTS(choices=3).tie_posterior(plain, streams)


def test_a_smaller_slate_is_learnt_like_one_of_its_size() -> None:
    """Votes on pairs join slates of three: the loss is that of two, and every draw has an adversary."""
    policy = ListwiseFGTS(choices=3, feedback="ranking", mu=0.4)
    streams, actions = Streams(0, [0, 1]), SETS[0]
    state = policy.learn(
        policy.start(Problem(dim=3, lanes=2), streams), actions, slates_of(actions, np.array([[0, 1], [2, 3]])), [[1], [0]]
    )
    theta = np.random.default_rng(1).standard_normal((2, 3, 3))
    values, _ = policy.potential(state).value_and_gradient(theta)
    for lane, rows, winner in ((0, [0, 1], 1), (1, [2, 3], 0)):
        for draw in range(3):
            at = theta[lane, draw]
            utilities = actions.features[lane, rows] @ at
            other = utilities.mean() if draw == 2 else utilities[1 - draw]
            expected = 0.5 * at @ at + np.log1p(np.exp(utilities[1 - winner] - utilities[winner]))
            expected -= 0.4 * ((actions.features[lane] @ at).max() - other)
            assert values[lane, draw] == pytest.approx(expected, rel=1e-12)


def test_the_names_of_0_1_0_play_the_same() -> None:
    environments, experiments = (importlib.import_module(f"duelist.{room}") for room in ("environments", "experiments"))
    env = environments.LinearSlates(dim=3, arms=8)
    run = experiments.simulate_slates(ListwiseFGTS(choices=3), env, rounds=5, trials=2, seed=1)
    now = duelist.simulate(ListwiseFGTS(choices=3), duelist.LinearDuels(dim=3, arms=8), rounds=5, trials=2, seed=1)
    np.testing.assert_array_equal(run.chosen, now.chosen)


def test_live_a_slate_shows_the_next_best_arm_instead_of_one_twice() -> None:
    policy, streams = ListwiseFGTS(choices=3), Streams(0, [0])
    arms = FiniteActions(np.random.default_rng(0).normal(size=(4, 2)))
    state = policy.start(Problem(dim=2, live=True), streams)
    for _ in range(20):
        slates, state = policy.choose(state, arms, streams)
        shown: list[int] = []
        for theta in state.chains.position[0]:
            shown.append(next(int(row) for row in np.argsort(-(arms.features[0] @ theta)) if row not in shown))
        assert slates.rows[0].tolist() == shown
        state = policy.learn(state, arms, slates, [[0]])


def test_slates_and_pairs_are_played_on_the_same_instances() -> None:
    """The oracle is the loop written out, with Gumbel noise from the stream of rankings."""
    policy, env = ListwiseFGTS(choices=3, feedback="ranking"), duelist.LinearDuels(dim=3, arms=8, fresh_arms=True)
    both = duelist.compare({"slates": policy, "pairs": duelist.Uniform()}, env, rounds=12, trials=3, seed=4)
    run = both.runs["slates"]
    streams = Streams(4, range(3))
    instance = env.instance(streams)
    state = policy.start(Problem(dim=3, lanes=3, horizon=12), streams)
    total = np.zeros(3)
    for t in range(12):
        actions = instance.actions(t)
        slates, state = policy.choose(state, actions, streams)
        utilities = np.einsum("ld,lkd->lk", instance.theta, slates.features)
        noise = np.array([streams.generator("ranking", lane, t).gumbel(size=3) for lane in range(3)])
        rankings = np.argsort(-(utilities + noise), axis=1)
        state = policy.learn(state, actions, slates, list(rankings))
        total += np.einsum("ld,lkd->lk", instance.theta, actions.features).max(axis=1) - utilities.mean(axis=1)
        np.testing.assert_array_equal(run.chosen[:, t], slates.rows)
        np.testing.assert_array_equal(np.asarray(run.rankings)[:, t], rankings)
        ahead = [list(ranking).index(0) < list(ranking).index(1) for ranking in rankings]
        np.testing.assert_array_equal(run.outcomes[:, t] == 1, ahead)
    np.testing.assert_allclose(run.final_regret, total, rtol=1e-12)
    pairs = both.runs["pairs"]
    np.testing.assert_array_equal(pairs.chosen, np.stack([pairs.first, pairs.second], axis=2))
    assert {row["label"] for row in both.table()} == {"slates", "pairs"}


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        ([[0], []], "at least the winner"),
        ([[0], [1, 1]], "at most once"),
        ([[0], [3]], "names places 0 to 2"),
        ([[0]], "one per lane"),
        ([[0], "both"], "tie"),
    ],
)
def test_a_bad_answer_in_one_lane_is_refused_by_name_and_changes_no_lane(answers: list[Any], message: str) -> None:
    policy = ListwiseFGTS(choices=3, feedback="ranking")
    state, _ = played(policy, 5)
    before = [np.copy(column) for column in state.table[:5]]
    slates = slates_of(SETS[0], np.array([[0, 1, 2], [2, 3, 4]]))
    with pytest.raises(InvalidInputError, match=message):
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
        policy.learn(state, SETS[0], slates_of(SETS[0], np.array([[0, 1, 2, 3]] * 2)), [[0], [1]])
    for bad in ({"choices": 1}, {"feedback": "loser"}, {"eta": 0.0}, {"horizon": 0}, {"same_arm": "redraw"}):
        with pytest.raises(InvalidInputError):
            ListwiseFGTS(**bad)
    for ties in (RaoKupper(), BothBad()):
        with pytest.raises(InvalidInputError, match="model of duels"):
            ListwiseFGTS(choices=3, ties=ties)


def test_the_same_seed_gives_the_same_slates_whatever_the_number_of_trials() -> None:
    policy, env = ListwiseFGTS(choices=3, feedback="ranking"), duelist.LinearDuels(dim=3, arms=8)
    few = duelist.simulate(policy, env, rounds=30, trials=2, seed=5)
    more = duelist.simulate(policy, env, rounds=30, trials=4, seed=5)
    np.testing.assert_array_equal(few.chosen, more.chosen[:2])
    np.testing.assert_array_equal(np.asarray(few.rankings), np.asarray(more.rankings)[:2])


@pytest.mark.slow
def test_four_choices_learn_faster_a_round_than_two_on_the_same_instances() -> None:
    env = duelist.LinearDuels(dim=5, arms=16)
    two, four = (
        duelist.simulate(policy, env, rounds=200, trials=16, seed=0).final_regret
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
