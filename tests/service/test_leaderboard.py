from __future__ import annotations

import numpy as np
import pytest

from duelist.service.arena.item_commands import SetRetired
from duelist.service.insight.explain import explain
from duelist.service.insight.leaderboard import compute_leaderboard, leaderboard_inputs, posterior_draws, potential_of
from duelist.service.insight.timeline import timeline
from tests.support.arenas import Stage


def brute_force_posterior(wins: list[tuple[int, int]], n_items: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of the Bradley-Terry posterior with a standard normal prior, by weighting draws of the prior."""
    theta = np.random.default_rng(5).standard_normal((400_000, n_items))
    weight = np.zeros(len(theta))
    for winner, loser in wins:
        weight -= np.log1p(np.exp(theta[:, loser] - theta[:, winner]))
    weight = np.exp(weight - weight.max())
    weight /= weight.sum()
    mean = weight @ theta
    return mean, (theta - mean).T @ ((theta - mean) * weight[:, None])


@pytest.mark.slow
def test_the_posterior_is_that_of_the_votes() -> None:
    stage = Stage(items=3)
    wins = []
    rng = np.random.default_rng(3)
    for _ in range(25):
        decision = stage.ask()
        verdict = "left" if rng.random() < 0.7 else "right"
        stage.tell(decision, verdict, voter="ann" if rng.random() < 0.5 else "")  # held answers count as well
        wins.append((decision.left, decision.right) if verdict == "left" else (decision.right, decision.left))
    draws = posterior_draws(potential_of(stage.arena, chains=4), seed=0)[:, :3]
    mean, covariance = brute_force_posterior(wins, 3)
    # 1,000 correlated draws; the standard error of a mean is about sd / sqrt(500).
    assert draws.mean(axis=0) == pytest.approx(mean, abs=5 * np.sqrt(covariance.max() / 500))
    assert np.cov(draws.T) == pytest.approx(covariance, abs=0.12)


@pytest.mark.slow
def test_the_leaderboard_finds_the_order_and_says_how_sure_it_is() -> None:
    stage = Stage(items=4)
    fresh = compute_leaderboard(leaderboard_inputs(stage.arena))
    assert all(0.1 < (rank.probability_best or 0.0) < 0.4 for rank in fresh.ranks), "nothing is known yet"
    stage.crowd(500, spread=1.5)
    leaderboard = compute_leaderboard(leaderboard_inputs(stage.arena))
    assert [rank.item for rank in leaderboard.ranks][:2] == [0, 1]
    shares = [rank.probability_best or 0.0 for rank in leaderboard.ranks]
    assert shares[0] > 0.95
    assert sum(shares) == pytest.approx(1.0)
    assert sum(rank.utility for rank in leaderboard.ranks) == pytest.approx(0.0, abs=1e-9)
    for rank in leaderboard.ranks:
        assert rank.low is not None
        assert rank.high is not None
        assert rank.low < rank.utility < rank.high
        assert rank.shown == rank.wins + rank.losses + rank.ties + rank.both_bad


def test_a_retired_item_comes_last_and_is_never_best() -> None:
    stage = Stage(items=4)
    stage.crowd(200, spread=1.5)
    stage.commit(SetRetired("arena", "i0", True), at=stage.state.latest)
    ranks = compute_leaderboard(leaderboard_inputs(stage.arena)).ranks
    assert ranks[-1].item == 0
    assert ranks[-1].probability_best == 0.0
    assert not ranks[-1].active
    assert ranks[0].item == 1


def test_an_explanation_tells_the_sides_apart() -> None:
    stage = Stage(items=4)
    stage.crowd(300, spread=1.5)
    decision = stage.ask(at=10**9, flipped=True)
    leaderboard = compute_leaderboard(leaderboard_inputs(stage.arena))
    why = explain(stage.arena, decision, leaderboard)
    assert (why.left.item, why.right.item) == (decision.left, decision.right)
    better_left = decision.left < decision.right
    assert (why.probability_left_wins > 0.5) == better_left
    assert why.low < why.probability_left_wins < why.high
    assert why.left.drawn == (decision.draw_1_second, decision.draw_2_second)
    assert why.pair_probability == decision.probability
    # The first draw chose the first candidate, so there it is at least as good as the second.
    assert decision.draw_1_first >= decision.draw_1_second
    assert "drew two plausible worlds" in why.words


def test_an_explanation_with_features_from_the_ask_uses_those() -> None:
    stage = Stage(features="request", dim=1)
    for _ in range(40):
        decision = stage.ask(features={"i0": [1.0], "i1": [-1.0]})
        stage.tell(decision, "left" if decision.left == 0 else "right")
    decision = stage.ask(features={"i0": [-1.0], "i1": [1.0]})  # now the other one has the good feature
    why = explain(stage.arena, decision, compute_leaderboard(leaderboard_inputs(stage.arena)))
    assert (why.probability_left_wins > 0.8) == (decision.left == 1)


def test_the_timeline_counts_asks_votes_and_exploration() -> None:
    stage = Stage()
    assert timeline(stage.arena) == (1000, [])
    for second in range(5):
        decision = stage.ask(at=1000 * second + 100)
        stage.tell(decision, "skip" if second == 2 else "left", at=1000 * second + 600)
    width, buckets = timeline(stage.arena)
    assert width == 1000
    assert [bucket.votes for bucket in buckets] == [1, 1, 0, 1, 1]
    assert [bucket.asks for bucket in buckets] == [1] * 5
    stage.ask(at=90 * 86_400_000)
    width, buckets = timeline(stage.arena)
    assert len(buckets) <= 60
    assert sum(bucket.votes for bucket in buckets) == 4


def test_where_the_policy_forgets_the_leaderboard_does_too() -> None:
    loyal, fickle = Stage(items=2), Stage(items=2, policy={"kind": "FGTS", "discount": 0.9})
    for stage in (loyal, fickle):
        for vote in range(120):
            decision = stage.ask(at=vote)
            better = 0 if vote < 80 else 1  # tastes turn after 80 votes
            stage.tell(decision, "left" if decision.left == better else "right", at=vote)
    leaders = [compute_leaderboard(leaderboard_inputs(stage.arena)).ranks[0].item for stage in (loyal, fickle)]
    assert leaders == [0, 1]
    assert stage.replayed().to_bytes() == stage.state.to_bytes()


def test_faded_weights_are_the_powers_of_the_discount() -> None:
    stage = Stage(items=2, policy={"kind": "FGTS", "discount": 0.5})
    for vote in range(4):
        stage.tell(stage.ask(at=vote), "left", at=vote)
    likelihood = potential_of(stage.arena, chains=1).likelihood
    assert likelihood.totals.sum() == pytest.approx(1 + 0.5 + 0.25 + 0.125)
    history = stage.arena.learner.lane.state.history.statistics
    assert likelihood.totals.sum() == pytest.approx(history.totals.sum()), "as in the policy's own history"


def test_the_counts_are_those_of_going_through_the_log() -> None:
    stage = Stage(items=5)
    stage.crowd(300)
    slow = np.zeros((5, 5), dtype=int)  # shown, won, lost, tied, both bad
    for number in range(len(stage.arena.log)):
        decision = stage.arena.log[number]
        for mine, place in ((decision.first, "FIRST"), (decision.second, "SECOND")):
            said = decision.outcome.name
            if said not in ("OPEN", "SKIP"):
                slow[mine, 0] += 1
                slow[mine, {place: 1, "TIE": 3, "BOTH_BAD": 4}.get(said, 2)] += 1
    assert slow[:, 3].sum() > 0
    assert leaderboard_inputs(stage.arena).counts.tolist() == slow.tolist()
