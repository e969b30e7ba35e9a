"""Tables of votes: counts, the fit, real votes drawn again, and pairs that nobody voted on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import chisquare

import duelist
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.votes import VoteDuels
from duelist.experiments.run import NO_ANSWER
from duelist.history.duels import duels_between

TABLE: dict[str, Any] = {
    "first": ["a", "b", "a", "c", "a", "b"],
    "second": ["b", "a", "b", "a", "c", "a"],
    "outcome": ["first", "second", "tie", 1, -1, "-1"],
    "weight": [2.0, 1.0, 4.0, 1.0, 3.0, 0.5],
}
# By hand: a beat b with weight 2 + 1 + 0.5, they tied with 4; c beat a with 1 + 3; b and c never met.


def test_votes_are_counted_by_pair_whatever_the_order() -> None:
    counts = VoteDuels(votes=TABLE).counts
    assert counts.items == ("a", "b", "c")
    assert counts.wins.tolist() == [[0.0, 3.5, 0.0], [0.0, 0.0, 0.0], [4.0, 0.0, 0.0]]
    assert counts.ties.tolist() == [[0.0, 4.0, 0.0], [4.0, 0.0, 0.0], [0.0, 0.0, 0.0]]


def test_the_same_votes_from_files_and_frames_are_the_same(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    pytest.importorskip("pyarrow")
    winner = {**{name: TABLE[name] for name in ("first", "second", "weight")}, "winner": ["a", "a", None, "c", "c", "a"]}
    frame = pandas.DataFrame(winner)
    frame.to_csv(tmp_path / "votes.csv", index=False)
    frame.to_parquet(tmp_path / "votes.parquet")
    expected = VoteDuels(votes=TABLE).counts
    for votes in (frame, polars.DataFrame(winner), str(tmp_path / "votes.csv"), str(tmp_path / "votes.parquet")):
        counts = VoteDuels(votes=votes).counts
        assert counts.items == expected.items
        np.testing.assert_array_equal(counts.wins, expected.wins)
        np.testing.assert_array_equal(counts.ties, expected.ties)


def test_items_that_are_numbers_are_ordered_by_size_and_a_missing_winner_is_a_tie() -> None:
    nan = float("nan")
    counts = VoteDuels(votes={"first": [10, 9], "second": [9, 100], "winner": np.array([10.0, nan])}).counts
    assert counts.items == ("9", "10", "100")
    assert counts.wins[1, 0] == 1.0
    assert counts.ties[0, 2] == 1.0


def test_the_fit_is_the_minimum_of_the_loss_written_out() -> None:
    env = VoteDuels(votes=TABLE, ridge=0.3)

    def loss(utilities: Any) -> float:
        total = 0.15 * float(np.sum(utilities**2))
        for first, second, wins in ((0, 1, 3.5), (2, 0, 4.0), (0, 1, 2.0), (1, 0, 2.0)):  # ties: half a win for each
            total += wins * float(np.log1p(np.exp(utilities[second] - utilities[first])))
        return total

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-9}).x
    np.testing.assert_allclose(env.utilities, best - best.mean(), atol=1e-5)


def test_real_votes_are_drawn_as_often_as_they_weigh() -> None:
    """Chi-square against the weights by hand, at 1e-4, in both orders of the pair."""
    instance = VoteDuels(votes=TABLE, answers="votes").instance(Streams(0, range(50)))
    actions = instance.actions(0)
    for first, second, weights in ((0, 1, (3.5, 4.0, 0.0)), (1, 0, (0.0, 4.0, 3.5)), (0, 2, (0.0, 0.0, 4.0))):
        duels = duels_between(actions, np.full(50, first), np.full(50, second))
        answers = np.concatenate([instance.outcomes(t, duels) for t in range(80)])
        found = [int((answers == value).sum()) for value in (1, 0, -1)]
        expected = 4000 * np.array(weights) / sum(weights)
        assert all(number == 0 for number, chance in zip(found, expected, strict=True) if chance == 0.0)
        if np.count_nonzero(expected) > 1:
            kept = expected > 0.0
            assert chisquare(np.array(found)[kept], expected[kept]).pvalue > 1e-4


def test_pairs_that_nobody_voted_on_follow_the_fit_or_are_refused_or_stay_open() -> None:
    for unseen in ("fit", "refuse", "no answer"):
        env = VoteDuels(votes=TABLE, answers="votes", unseen=unseen)
        instance = env.instance(Streams(0, [0]))
        duels = duels_between(instance.actions(0), np.array([1]), np.array([2]))
        gap = env.utilities[1] - env.utilities[2]
        assert instance.win_probability(0, duels)[0] == pytest.approx(1.0 / (1.0 + np.exp(-gap)))
        assert instance.delay(0, duels).tolist() == [-1 if unseen == "no answer" else 0]
        itself = duels_between(instance.actions(0), np.array([1]), np.array([1]))
        assert instance.delay(0, itself).tolist() == [0]
        if unseen == "refuse":
            with pytest.raises(InvalidInputError, match=r"'b' against 'c'.*round 4"):
                instance.outcomes(4, duels)
            instance.outcomes(4, itself)
    run = duelist.simulate(duelist.Uniform(), VoteDuels(votes=TABLE, answers="votes", unseen="no answer"), rounds=60, trials=3)
    never = np.minimum(run.first, run.second) * 3 + np.maximum(run.first, run.second) == 1 * 3 + 2
    np.testing.assert_array_equal(run.outcomes == NO_ANSWER, never)
    assert never.any()


def test_features_of_items_may_come_in_any_order() -> None:
    vectors = {"c": [3.0, 0.0], "a": [1.0, 5.0], "b": [2.0, 0.0]}
    frame = {"item": ["c", "a", "b"], "x": [3.0, 1.0, 2.0], "y": [0.0, 5.0, 0.0]}
    for features in (vectors, frame, [[1.0, 5.0], [2.0, 0.0], [3.0, 0.0]]):
        env = VoteDuels(votes=TABLE, features=features)
        np.testing.assert_array_equal(env.instance(Streams(0, [0])).actions(0).features[0], [[1, 5], [2, 0], [3, 0]])
        assert env.dim == 2


def test_policies_find_the_item_that_people_like_in_a_table(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    truth = np.linspace(2.0, -2.0, 8)
    first, second = rng.integers(8, size=(2, 3000))
    first, second = first[first != second], second[first != second]
    won = rng.random(len(first)) < 1.0 / (1.0 + np.exp(truth[second] - truth[first]))
    lines = [f"model {a},model {b},{1 if w else -1}" for a, b, w in zip(first, second, won, strict=True)]
    (tmp_path / "votes.csv").write_text("first,second,outcome\n" + "\n".join(lines))
    env = VoteDuels(votes=str(tmp_path / "votes.csv"), answers="votes")
    assert env.counts.items[int(env.utilities.argmax())] == "model 0"
    np.testing.assert_allclose(env.utilities, truth, atol=0.5)
    result = duelist.compare([duelist.FGTS(), duelist.MaxInP(), duelist.Uniform()], env, rounds=300, trials=3)
    final = {name: run.final_regret.mean() for name, run in result.runs.items()}
    assert max(final["FGTS"], final["MaxInP"]) < 0.5 * final["Uniform"]


@pytest.mark.parametrize(
    ("votes", "message"),
    [
        ({"left": ["a"], "right": ["b"]}, "first, second, and outcome or winner"),
        ({"first": ["a"], "second": ["b"]}, "outcome or a column winner"),
        ({"first": ["a"], "second": ["b"], "winner": ["d"]}, "'d' in row 0"),
        ({"first": ["a"], "second": ["b"], "outcome": ["both"]}, "'both' in row 0"),
        ({"first": ["a", "b"], "second": ["b", "b"], "outcome": [1, 1]}, "row 1 .* itself"),
        ({"first": ["a", None], "second": ["b", "a"], "outcome": [1, 1]}, "row 1 does not"),
        ({"first": ["a"], "second": ["b"], "outcome": [1], "weight": [-1]}, "weight"),
        ({"first": ["a"], "second": ["b", "c"], "outcome": [1]}, "one length"),
        ([1, 2], "frame"),
    ],
)
def test_tables_that_cannot_be_read_say_which_row(votes: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        VoteDuels(votes=votes)
