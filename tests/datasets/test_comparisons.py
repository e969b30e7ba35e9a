"""The one shape: pairs out of choices, halves, frames, environments, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.datasets import Comparisons, load, read_comparisons
from duelist.datasets.comparisons import standardize
from duelist.history.duels import duels_between

# Three voters choose from two or three of four items; the last of them is a tie of two.
CHOICES: dict[str, Any] = {
    "name": "choices",
    "items": ("a", "b", "c", "d"),
    "shown": [[0, 1, 2], [3, 0, -1], [2, 1, 0], [1, 3, 2], [0, 3, -1]],
    "chosen": [1, 0, 2, 0, -1],
    "voters": ["u", "u", "v", "w", "w"],
    "times": [1.0, 2.0, 3.0, 4.0, 5.0],
    "context": {"age": [30, 30, 40, 50, 50], "town": ["x", "x", "y", "z", "z"]},
}


def make(**fields: Any) -> Comparisons:
    """Comparisons from lists, as a notebook would write them."""
    return Comparisons(**fields)


def test_a_choice_is_the_winner_against_each_of_the_others_in_the_order_shown() -> None:
    pairs = make(**CHOICES).pairs()
    found = list(zip(pairs.first.tolist(), pairs.second.tolist(), pairs.outcomes.tolist(), pairs.votes.tolist(), strict=True))
    # By hand: b of (a, b, c); d of (d, a); a of (c, b, a); b of (b, d, c). A tie in a log of larger sets says nothing.
    assert sorted(found) == sorted(
        [(0, 1, -1, 0), (1, 2, 1, 0), (3, 0, 1, 1), (2, 0, -1, 2), (1, 0, -1, 2), (1, 3, 1, 3), (1, 2, 1, 3)]
    )


def test_pairs_have_outcomes_and_larger_choices_refuse_them() -> None:
    log = make(name="x", items=("a", "b"), shown=[[0, 1], [1, 0], [0, 1]], chosen=[0, 1, -1])
    assert log.outcomes.tolist() == [1, -1, 0]
    with pytest.raises(InvalidInputError, match="up to 3 items"):
        _ = make(**CHOICES).outcomes


def test_a_summary_counts_what_is_there() -> None:
    said = make(**CHOICES, features=np.ones((4, 1)), feature_names=("size",)).summary()
    assert said.splitlines() == [
        "choices: 5 comparisons of up to 3 of 4 items, 1 ties",
        "voters: 3; order on the screen: not known",
        "features: size",
        "also: time",
        "context: age, town",
    ]


@pytest.mark.parametrize("seed", range(5))
def test_halves_have_every_comparison_once_and_no_voter_in_both(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 101
    log = make(
        name="x", items=("a", "b"), shown=[[0, 1]] * n, chosen=rng.integers(2, size=n), voters=rng.integers(9, size=n),
        times=np.arange(n), context={"row": np.arange(n)},
    )  # fmt: skip
    for by in ("voter", "random"):
        early, late = log.split(by, seed=seed)
        rows = np.concatenate([early.context["row"], late.context["row"]])
        assert sorted(rows.tolist()) == list(range(n))
        for half in (early, late):
            np.testing.assert_array_equal(half.times, half.context["row"])
            np.testing.assert_array_equal(half.chosen, log.chosen[half.context["row"]])
        if by == "voter":
            assert early.voters is not None
            assert late.voters is not None
            assert not set(early.voters) & set(late.voters)
            assert len(set(early.voters)) == 4
        else:
            assert (len(early), len(late)) == (50, 51)
            assert not np.array_equal(early.context["row"], log.split(seed=seed + 1)[0].context["row"])
            np.testing.assert_array_equal(early.context["row"], log.split(seed=seed)[0].context["row"])


def test_halves_by_voter_need_voters() -> None:
    with pytest.raises(InvalidInputError, match='split\\("random"\\)'):
        make(name="x", items=("a", "b"), shown=[[0, 1]], chosen=[0]).split("voter")


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_a_frame_of_pairs_can_be_read_again(backend: Any, tmp_path: Path) -> None:
    pytest.importorskip(backend)
    log = make(
        name="votes", items=("a", "b", "c"), shown=[[0, 1], [2, 0], [1, 2]], chosen=[1, -1, 0], voters=["u", "v", "u"],
        strengths=[2.0, 0.0, 1.0], weights=[1.0, 3.0, 1.0], times=[5.0, 6.0, 7.0], context={"town": ["x", "y", "x"]},
    )  # fmt: skip
    frame = log.to_frame(backend)
    write = frame.write_csv if backend == "polars" else lambda path: frame.to_csv(path, index=False)
    write(tmp_path / "votes.csv")
    for source in (frame, tmp_path / "votes.csv"):
        again = read_comparisons(source)
        assert again.items == log.items
        np.testing.assert_array_equal(again.shown, log.shown)
        np.testing.assert_array_equal(again.chosen, log.chosen)
        assert again.voters is not None
        assert again.voters.tolist() == ["u", "v", "u"]
        for name in ("times", "strengths", "weights"):
            np.testing.assert_array_equal(getattr(again, name), getattr(log, name))
        assert again.context["town"].tolist() == ["x", "y", "x"]


def test_a_frame_of_choices_names_the_options_and_the_winner() -> None:
    frame = make(**CHOICES).to_frame("pandas")
    assert frame["chosen"].fillna("nobody").tolist() == ["b", "d", "a", "b", "nobody"]
    assert frame["option3"].fillna("nothing").tolist() == ["c", "nothing", "a", "c", "nothing"]


def test_the_environment_counts_every_pair_with_its_weight() -> None:
    log = make(
        name="x", items=("b", "a", "c"), shown=[[0, 1], [1, 0], [0, 1], [2, 1]], chosen=[0, 0, -1, 0], weights=[2, 1, 4, 3],
        features=[[1.0, 5.0], [2.0, 5.0], [6.0, np.nan]], feature_names=("x", "y"),
    )  # fmt: skip
    env = log.to_environment()
    assert env.counts.items == ("a", "b", "c")
    # a beat b once, b beat a with weight 2, they tied with 4, c beat a with 3.
    assert env.counts.wins.tolist() == [[0, 1, 0], [2, 0, 0], [3, 0, 0]]
    assert env.counts.ties.tolist() == [[0, 4, 0], [4, 0, 0], [0, 0, 0]]
    mean, spread = 3.0, np.sqrt((4 + 1 + 9) / 3)
    expected = [[(2 - mean) / spread, 0.0], [(1 - mean) / spread, 0.0], [(6 - mean) / spread, 0.0]]
    np.testing.assert_allclose(env.item_features, expected)


def test_too_many_items_for_a_table_of_pairs_are_sent_to_replay() -> None:
    log = make(name="x", items=tuple(map(str, range(3001))), shown=[[0, 1]], chosen=[0])
    with pytest.raises(InvalidInputError, match="replay"):
        log.to_environment()


def test_the_best_items_are_those_of_a_fit_written_out() -> None:
    """A weight per feature where items seldom come twice, a utility per item where they do."""
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 2))
    shown = np.array([rng.choice(40, size=3, replace=False) for _ in range(120)])
    chosen = (features[shown] @ [1.0, -2.0] + rng.gumbel(size=(120, 3))).argmax(axis=1)
    names = tuple(f"item {i}" for i in range(40))
    log = make(name="x", items=names, shown=shown, chosen=chosen, features=features, feature_names=("p", "q"))
    assert not log.fits_items
    scaled = (features - features.mean(axis=0)) / features.std(axis=0)

    def loss(theta: Any) -> float:
        total = 0.05 * float(theta @ theta)
        for row, place in zip(shown, chosen, strict=True):
            for other in row:
                if other != row[place]:
                    total += float(np.log1p(np.exp(-(scaled[row[place]] - scaled[other]) @ theta)))
        return total

    theta = minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-8}).x
    np.testing.assert_allclose(log.replay().theta, theta, atol=1e-5)
    utilities = scaled @ theta
    best = log.best(3)
    assert [name for name, _ in best] == [names[i] for i in np.argsort(-utilities)[:3]]
    np.testing.assert_allclose([value for _, value in best], np.sort(utilities)[::-1][:3], atol=1e-4)
    many = make(name="x", items=("a", "b"), shown=[[0, 1]] * 20, chosen=[1] * 15 + [0] * 5)
    env = many.to_environment(answers="fit")
    ((name, value),) = many.best(1)
    assert (name, value) == ("b", float(env.utilities.max()))


def test_context_columns_become_numbers() -> None:
    log = make(**CHOICES)
    ages = standardize(np.array([[30.0], [30], [40], [50], [50]]))[:, 0]
    expected = np.stack([np.ones(5), ages, [0, 0, 1, 0, 0], [0, 0, 0, 1, 1]], axis=1)
    np.testing.assert_allclose(log.context_numbers(["age", "town"]), expected)
    with pytest.raises(InvalidInputError, match="'age'"):
        log.context_numbers(["agee"])


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"shown": [[0, 4]], "chosen": [0]}, "rows of the 4 items"),
    ({"shown": [[0]], "chosen": [0]}, "at least two items"),
    ({"shown": [[0, -1]], "chosen": [0]}, "at least two items"),
    ({"shown": [[0, -1, 1]], "chosen": [0]}, "only behind"),
    ({"shown": [[1, 1]], "chosen": [0]}, "twice: b, b"),
    ({"shown": [[0, 1, -1]], "chosen": [2]}, "place of an item"),
    ({"shown": [[0, 1]], "chosen": [2]}, "place of an item"),
    ({"shown": [[0, 1]], "chosen": [0, 1]}, "chosen must be as long"),
    ({"shown": [[0, 1]], "chosen": [0], "context": {"x": [1, 2]}}, "x must be as long"),
    ({"shown": [[0, 1]], "chosen": [0], "features": [[1.0]], "feature_names": ("x",)}, "features must be"),
]


@pytest.mark.parametrize(("fields", "message"), WRONG)
def test_what_cannot_be_is_refused(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make(name="x", items=("a", "b", "c", "d"), **fields)


def test_a_table_with_other_names_of_columns_is_read(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(
        'left_model,right_model,verdict,who\n"a, b",c,left,ann\nc,"a, b",right,bob\nc,"a, b","a, b",bob\nc,d,,ann\n'
    )
    features = {"item": ["d", "c", "a, b"], "size": [4.0, 3.0, 1.0]}
    columns = {"first": "left_model", "second": "right_model", "winner": "verdict", "voter": "who"}
    log = read_comparisons(path, columns=columns, features=features, order_known=True)
    assert log.items == ("a, b", "c", "d")
    assert log.outcomes.tolist() == [1, -1, -1, 0]
    assert log.n_voters == 2
    assert log.features is not None
    assert log.features[:, 0].tolist() == [1.0, 3.0, 4.0]
    for wrong, message in (({"first": "nothing"}, "column nothing for first"), ({}, "Say which are which")):
        with pytest.raises(InvalidInputError, match=message):
            read_comparisons(path, columns=wrong)
    with pytest.raises(InvalidInputError, match=r"got 'draw' in row 1, where 'c' met 'd'"):
        load("table", {"first": ["a", "c"], "second": ["b", "d"], "winner": ["a", "draw"]})
    with pytest.raises(InvalidInputError, match="missing for 1 item"):
        read_comparisons(path, columns=columns, features={"item": ["c", "a, b"], "size": [4.0, 3.0]})


def test_real_votes_come_out_of_the_environment() -> None:
    """Where a pair has one kind of answer only, that is what a policy is told."""
    log = make(name="x", items=("a", "b", "c"), shown=[[0, 1], [1, 2], [0, 2]], chosen=[1, -1, 0])
    instance = log.to_environment().instance(Streams(0, range(8)))
    for first, second, outcome in ((0, 1, -1), (1, 0, 1), (1, 2, 0), (0, 2, 1)):
        duels = duels_between(instance.actions(0), np.full(8, first), np.full(8, second))
        assert instance.outcomes(3, duels).tolist() == [outcome] * 8
