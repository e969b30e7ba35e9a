"""A table of real votes as an environment: a truth fitted to them, or the votes themselves drawn again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np

from duelist.actions.finite import ActionSet
from duelist.core.checks import finite_number, one_of
from duelist.core.errors import InvalidInputError, NotConvergedError
from duelist.core.streams import Streams
from duelist.environments.base import NEVER, Regret
from duelist.environments.matrix import PairTruth
from duelist.environments.tables import Column, Frame, read_array, read_columns
from duelist.history.duels import Duels
from duelist.history.statistics import Statistics
from duelist.preferences.fit import fit
from duelist.preferences.logistic import win_probability
from duelist.typing import FloatArray, IntArray

MOST_ITEMS = 3000  # three matrices of so many squared are 200 MB
_WORDS = {"first": 1, "left": 1, "1": 1, "second": -1, "right": -1, "-1": -1, "tie": 0, "0": 0}
_NOBODY = ("", "tie", "None", "nan")


class VoteCounts(NamedTuple):
    """Votes counted by pair.

    Attributes:
        items: names, in the order of the rows of the arms.
        wins: (K, K) weight of the votes in which the row's item won against the column's.
        ties: (K, K) weight of the ties, symmetric.
    """

    items: tuple[str, ...]
    wins: FloatArray
    ties: FloatArray


@dataclass(frozen=True, kw_only=True, eq=False)
class VoteDuels:
    """Items, and who wins as in a table of votes.

    The truth that regret is measured by is the Bradley-Terry-Luce model fitted to all votes, ties as half a win for each:
    utilities are log-odds, and the truth is the same in every trial. What the policy is told is drawn from it
    (`answers="fit"`, in which nothing ties), or is a real vote (`answers="votes"`): one of those on that pair, each as likely
    as its weight, ties among them. `unseen` says what happens where a pair has no votes.

    Args:
        votes: a frame of pandas or polars, a mapping of columns, or the path of a .csv or .parquet file. Columns: `first` and
            `second`, the items; `outcome`, +1 or "first", -1 or "second", 0 or "tie"; or instead `winner`, the item that won,
            empty or "tie" for neither; and perhaps `weight`, how often a row counts.
        features: of the items: a frame or a file with a column `item` and columns of numbers, a mapping from item to vector, or
            (K, dim) in the order of `env.counts.items`, which is sorted; None for unit vectors.
        answers: "fit" or "votes".
        unseen: with "votes", for a pair without votes: "fit" draws from the fitted model, "refuse" raises an error that names
            the pair, "no answer" leaves the question open for good. An item against itself is a fair coin.
        ridge: of the fit, which keeps items that won every vote finite.

    Example:
        >>> table = {"first": ["a", "a", "b"], "second": ["b", "c", "c"], "outcome": [1, 1, 0]}
        >>> env = VoteDuels(votes=table)
        >>> env.counts.items, int(env.utilities.argmax())
        (('a', 'b', 'c'), 0)
    """

    votes: Frame | str
    features: Any | str | None = None
    answers: Literal["fit", "votes"] = "fit"
    unseen: Literal["fit", "refuse", "no answer"] = "fit"
    ridge: float = 0.1

    def __post_init__(self) -> None:
        one_of("answers", self.answers, ("fit", "votes"))
        one_of("unseen", self.unseen, ("fit", "refuse", "no answer"))
        finite_number("ridge", self.ridge, above=0.0)
        _ = self.counts, self.dim  # which read the tables

    @cached_property
    def counts(self) -> VoteCounts:
        """The votes, counted."""
        return count_votes(read_columns("votes", self.votes))

    @cached_property
    def utilities(self) -> FloatArray:
        """(K,) the fitted truth: log-odds, with mean 0."""
        return fit_utilities(self.counts, self.ridge)

    @cached_property
    def item_features(self) -> FloatArray:
        """(K, dim) of the items."""
        return _read_features(self.features, self.counts.items)

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return int(self.item_features.shape[1])

    @property
    def lanes_apart(self) -> bool:
        """Where some questions stay open, answers come at another time in every lane."""
        return self.answers == "votes" and self.unseen == "no answer"

    def instance(self, streams: Streams) -> VoteInstance:
        """The same truth in every lane."""
        return VoteInstance(self, streams)


class VoteInstance(PairTruth):
    """The items of a table of votes, the same in every lane."""

    def __init__(self, recipe: VoteDuels, streams: Streams) -> None:
        self.recipe = recipe
        fitted = win_probability(recipe.utilities[:, None] - recipe.utilities)
        win, tie, self._seen = fitted, None, np.ones(fitted.shape, dtype=bool)
        if recipe.answers == "votes":
            wins, ties = recipe.counts.wins, recipe.counts.ties
            total = wins + wins.T + ties
            counted = total > 0.0
            self._seen = counted | np.eye(len(total), dtype=bool)
            win = np.where(counted, wins / np.where(counted, total, 1.0), fitted)
            tie = np.where(counted, ties / np.where(counted, total, 1.0), 0.0)
        lanes = len(streams)
        super().__init__(
            np.broadcast_to(win, (lanes, *win.shape)),
            None if tie is None else np.broadcast_to(tie, (lanes, *tie.shape)),
            recipe.item_features,
            streams,
        )

    def outcomes(self, round_: int, duels: Duels) -> IntArray:
        """Who wins, (lanes,): +1 the first, -1 the second, 0 neither."""
        if self.recipe.unseen == "refuse":
            unseen = np.flatnonzero(~self._seen[duels.first, duels.second])
            if len(unseen):
                items = self.recipe.counts.items
                first, second = (items[rows[unseen[0]]] for rows in (duels.first, duels.second))
                raise InvalidInputError(
                    f"there is no vote on {first!r} against {second!r}, which were chosen in round {round_}. Let unseen be "
                    f'"fit" to draw from the fitted model, or "no answer".'
                )
        return super().outcomes(round_, duels)

    def delay(self, round_: int, duels: Duels) -> IntArray:  # noqa: ARG002 - the same in every round
        """At once; never for a pair without votes where that means no answer."""
        open_for_good = (self.recipe.unseen == "no answer") & ~self._seen[duels.first, duels.second]
        return np.where(open_for_good, NEVER, 0)

    def regret(self, actions: ActionSet, duels: Duels) -> Regret:  # noqa: ARG002 - an instance's signature
        """What these duels cost by the fitted utilities."""
        utilities = self.recipe.utilities
        gaps = utilities.max() - utilities[np.stack([duels.first, duels.second], axis=1)]
        return Regret(gaps.mean(axis=1), gaps.min(axis=1), (win_probability(gaps) - 0.5).mean(axis=1))


def count_votes(columns: Mapping[str, Column]) -> VoteCounts:
    """The votes of a table by pair; see `VoteDuels` for its columns.

    Example:
        >>> table = {"first": ["a", "b", "a"], "second": ["b", "a", "b"], "winner": ["a", "a", "tie"]}
        >>> counts = count_votes(read_columns("votes", table))
        >>> counts.wins.tolist(), counts.ties.tolist()
        ([[0.0, 2.0], [0.0, 0.0]], [[0.0, 1.0], [1.0, 0.0]])
    """
    for name in ("first", "second"):
        if name not in columns:
            raise InvalidInputError(
                f"votes must have columns first, second, and outcome or winner; got {', '.join(columns)}. Rename them."
            )
    names = [_names(columns[name]) for name in ("first", "second")]
    items, places = _number_items(np.concatenate(names))
    nameless = np.flatnonzero([item in ("", "None", "nan") for item in items])
    if len(nameless):
        row = int(np.flatnonzero(places == nameless[0])[0]) % len(names[0])
        raise InvalidInputError(f"first and second must name an item in every row of votes; row {row} does not. Remove it.")
    if len(items) < 2:
        raise InvalidInputError(f"votes must be about at least two items; got {len(items)}.")
    if len(items) > MOST_ITEMS:
        raise InvalidInputError(f"votes may be about at most {MOST_ITEMS} items; got {len(items)}. Keep those with most votes.")
    first, second = places.reshape(2, -1)
    itself = np.flatnonzero(first == second)
    if len(itself):
        raise InvalidInputError(f"row {itself[0]} of votes has {items[first[itself[0]]]!r} against itself. Remove such rows.")
    outcomes = _outcomes(columns, *names)
    weights = read_array("weight", columns["weight"], "(n,)", 1) if "weight" in columns else np.ones(len(first))
    if (weights < 0.0).any():
        raise InvalidInputError(f"weight must be at least 0; got {weights.min():g} in row {weights.argmin()}.")
    wins, ties = np.zeros((len(items), len(items))), np.zeros((len(items), len(items)))
    winner, loser = np.where(outcomes > 0, first, second), np.where(outcomes > 0, second, first)
    decided = outcomes != 0
    np.add.at(wins, (winner[decided], loser[decided]), weights[decided])
    np.add.at(ties, (first[~decided], second[~decided]), weights[~decided])
    return VoteCounts(items, wins, ties + ties.T)


def fit_utilities(counts: VoteCounts, ridge: float) -> FloatArray:
    """(K,) log-odds of the Bradley-Terry-Luce model with mean 0, ties as half a win for each."""
    arms = len(counts.items)
    ahead, behind = np.nonzero(np.triu(counts.wins + counts.wins.T + counts.ties, 1))
    contrasts = np.zeros((1, arms, len(ahead)))
    contrasts[0, ahead, np.arange(len(ahead))] = 1.0
    contrasts[0, behind, np.arange(len(ahead))] = -1.0
    lost = counts.wins[behind, ahead] + 0.5 * counts.ties[ahead, behind]
    total = counts.wins[ahead, behind] + counts.wins[behind, ahead] + counts.ties[ahead, behind]
    statistics = Statistics(
        contrasts,
        total[None],
        lost[None],
        np.array([len(ahead)]),
        np.empty((1, 0, arms, 0)),
        np.empty(0),
        np.zeros((1, 2, arms)),
    )
    found = fit(statistics, ridge=np.array([ridge]), weight=np.ones(1), start=np.zeros((1, arms)))
    if not found.converged[0]:
        raise NotConvergedError("the fit to the votes did not converge. Raise ridge.")
    return np.asarray(found.theta[0] - found.theta[0].mean())


def _names(column: Column) -> Column:
    """Items as text: numbers without a fraction, however a file or a frame has stored them, are the same item."""
    cells = np.asarray(column).tolist()
    return np.array([str(int(c) if isinstance(c, float) and c.is_integer() else c) for c in cells], dtype=object)


def _number_items(names: Column) -> tuple[tuple[str, ...], IntArray]:
    """The distinct items, sorted, whole numbers by their size; and where in them each name is."""
    distinct = {*names.tolist()}
    items = sorted(distinct, key=int if all(item.isdigit() for item in distinct) else str)
    place = {item: i for i, item in enumerate(items)}
    return tuple(items), np.array([place[name] for name in names.tolist()])


def _outcomes(columns: Mapping[str, Column], first: Column, second: Column) -> IntArray:
    """(n,) +1, -1 and 0, from either column."""
    if "outcome" in columns:
        words = [str(word).lower().removesuffix(".0").removeprefix("+") for word in columns["outcome"].tolist()]
        unknown = next((row for row, word in enumerate(words) if word not in _WORDS), None)
        if unknown is not None:
            raise InvalidInputError(
                f'outcome must be +1 or "first", -1 or "second", 0 or "tie"; got {words[unknown]!r} in row {unknown}.'
            )
        return np.array([_WORDS[word] for word in words])
    if "winner" not in columns:
        raise InvalidInputError(
            f"votes must have a column outcome or a column winner; got {', '.join(columns)}. Rename the one that says who won."
        )
    winners = _names(columns["winner"])
    outcomes = np.where(winners == first, 1, np.where(winners == second, -1, 0))
    odd = [row for row in np.flatnonzero(outcomes == 0) if winners[row] not in _NOBODY]
    if odd:
        raise InvalidInputError(
            f"winner must be one of the two items, or empty or tie for neither; got {winners[odd[0]]!r} in row {odd[0]}, where "
            f"{first[odd[0]]!r} met {second[odd[0]]!r}."
        )
    return outcomes


def _read_features(features: Any, items: tuple[str, ...]) -> FloatArray:
    if features is None:
        return np.eye(len(items))
    if isinstance(features, Mapping) and "item" not in features:
        known = {str(item): vector for item, vector in features.items()}
    elif isinstance(features, str | Mapping) or hasattr(features, "columns"):
        columns = read_columns("features", features)
        if "item" not in columns:
            raise InvalidInputError(f"features must have a column item; got {', '.join(columns)}.")
        numbers = np.stack([column.astype(np.float64) for name, column in columns.items() if name != "item"], axis=1)
        known = dict(zip(_names(columns["item"]), numbers, strict=True))
    else:
        table = read_array("features", features, "(K, dim)", 2)
        if len(table) != len(items):
            raise InvalidInputError(f"features must have one row per item, {len(items)}; got {len(table)}.")
        return table
    missing = [item for item in items if item not in known]
    if missing:
        raise InvalidInputError(f"features are missing for {len(missing)} item(s), among them {missing[0]!r}.")
    return read_array("features", np.array([known[item] for item in items]), "(K, dim)", 2)
