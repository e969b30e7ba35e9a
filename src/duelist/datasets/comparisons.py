"""The one shape of real comparisons: items, what was shown to whom, and what they chose."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from duelist.core.checks import one_of, whole_number
from duelist.core.errors import InvalidInputError
from duelist.datasets.replay import LoggedDuels
from duelist.environments.tables import Backend, Column, make_frame
from duelist.environments.votes import MOST_ITEMS, VoteDuels
from duelist.typing import FloatArray, IntArray

NOBODY = -1  # in `chosen`: a tie; in `shown`: no further option
_ENOUGH_VOTES = 10  # per item, below which a utility of its own would be noise


class Pairs(NamedTuple):
    """Comparisons of two.

    Attributes:
        first: (m,) rows of the items.
        second: (m,) rows of the items.
        outcomes: (m,) +1 where the first won, -1 where the second did, 0 for a tie.
        votes: (m,) which comparison each comes from.
    """

    first: IntArray
    second: IntArray
    outcomes: IntArray
    votes: IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparisons:
    """What people or machines chose, and from what.

    Args:
        name: of the data.
        items: (K,) names.
        shown: (n, q) rows of the items that were compared, from first or left to last or right; -1 where there were fewer.
        chosen: (n,) place in `shown` of the one that won; -1 for a tie.
        features: (K, d) of the items, in the units of their source, NaN where one is missing; None for none.
        feature_names: (d,) of them.
        context: further columns (n,), numbers or text: who voted, on which prompt, in what season.
        voters: (n,) who chose, as text; None where that is not known.
        times: (n,) when, in seconds; None where that is not known.
        strengths: (n,) how much better the winner is; None where nobody said.
        weights: (n,) how often each counts; None for once.
        order_known: whether `shown` is the order in which voters saw the items. If not, it says nothing about position bias.

    Example:
        >>> log = Comparisons(name="three votes", items=("a", "b"), shown=[[0, 1], [1, 0], [0, 1]], chosen=[0, 0, -1])
        >>> log.outcomes.tolist(), len(log)
        ([1, 1, 0], 3)
    """

    name: str
    items: tuple[str, ...]
    shown: IntArray
    chosen: IntArray
    features: FloatArray | None = None
    feature_names: tuple[str, ...] = ()
    context: Mapping[str, Column] = field(default_factory=dict)
    voters: Column | None = None
    times: FloatArray | None = None
    strengths: FloatArray | None = None
    weights: FloatArray | None = None
    order_known: bool = False

    def __post_init__(self) -> None:
        set_ = object.__setattr__
        set_(self, "items", tuple(map(str, self.items)))
        set_(self, "shown", np.asarray(self.shown, dtype=np.int64))
        set_(self, "chosen", np.asarray(self.chosen, dtype=np.int64))
        n, options = self.shown.shape if self.shown.ndim == 2 else (0, 0)
        if not n or options < 2:
            raise InvalidInputError(
                f"shown must be (n, q), the rows of at least two items per comparison; got shape {self.shown.shape}."
            )
        if self.shown.max() >= len(self.items) or self.shown.min() < NOBODY:
            raise InvalidInputError(f"shown must hold rows of the {len(self.items)} items; got {self.shown.max()}.")
        if self.chosen.shape != (n,):
            raise InvalidInputError(
                f"chosen must be as long as shown, which has {n} comparisons; got shape {self.chosen.shape}."
            )
        self._check_rows()
        for name in ("times", "strengths", "weights"):
            if getattr(self, name) is not None:
                set_(self, name, np.asarray(getattr(self, name), dtype=np.float64))
        set_(self, "context", {key: np.asarray(column) for key, column in self.context.items()})
        if self.voters is not None:
            set_(self, "voters", np.array([str(voter) for voter in self.voters], dtype=object))
        lengths = {key: len(column) for key, column in self._columns().items()}
        wrong = next((key for key, length in lengths.items() if length != n), None)
        if wrong is not None:
            raise InvalidInputError(f"{wrong} must be as long as shown, which has {n} comparisons; got {lengths[wrong]}.")
        if self.features is not None:
            set_(self, "features", np.asarray(self.features, dtype=np.float64))
            if self.features.shape != (len(self.items), len(self.feature_names)):
                raise InvalidInputError(
                    f"features must be (items, feature_names), {(len(self.items), len(self.feature_names))}; got "
                    f"{self.features.shape}."
                )

    def _check_rows(self) -> None:
        there = self.shown >= 0
        short = np.flatnonzero((there.sum(axis=1) < 2) | (there[:, 1:] & ~there[:, :-1]).any(axis=1))
        if len(short):
            raise InvalidInputError(
                f"comparison {short[0]} must show at least two items, with -1 only behind them; got {self.shown[short[0]]}."
            )
        repeated = np.sort(np.where(there, self.shown, NOBODY - np.arange(self.shown.shape[1])), axis=1)
        twice = np.flatnonzero((np.diff(repeated, axis=1) == 0).any(axis=1))
        if len(twice):
            names = [self.items[row] for row in self.shown[twice[0]] if row >= 0]
            raise InvalidInputError(f"comparison {twice[0]} shows an item twice: {', '.join(names)}. Remove it.")
        places = self.shown.shape[1]
        outside = np.flatnonzero((self.chosen < NOBODY) | (self.chosen >= places))
        absent = outside if len(outside) else np.flatnonzero((self.chosen >= 0) & ~there[np.arange(len(there)), self.chosen])
        if len(absent):
            raise InvalidInputError(
                f"chosen must be the place of an item that was shown, or -1 for a tie; got {self.chosen[absent[0]]} in "
                f"comparison {absent[0]}."
            )

    def __len__(self) -> int:
        return len(self.shown)

    def __str__(self) -> str:
        return self.summary()

    def _columns(self) -> dict[str, Column]:
        """Every column that has an entry per comparison and is there."""
        own = {"voter": self.voters, "time": self.times, "strength": self.strengths, "weight": self.weights}
        return {**{key: column for key, column in own.items() if column is not None}, **self.context}

    @property
    def most_options(self) -> int:
        """The largest number of items shown together: 2 where all comparisons are of pairs."""
        return int(self.shown.shape[1])

    @property
    def n_voters(self) -> int | None:
        """How many voters there are; None where that is not known."""
        return None if self.voters is None else len(set(self.voters))

    @property
    def outcomes(self) -> IntArray:
        """(n,) of comparisons of two: +1 where the first won, -1 where the second did, 0 for a tie."""
        if self.most_options != 2:
            raise InvalidInputError(
                f"{self.name} has choices from up to {self.most_options} items, which have no outcome of two. Use pairs()."
            )
        return np.array([1, -1, 0])[self.chosen]

    def pairs(self) -> Pairs:
        """The comparisons two by two: of a choice from more, the chosen item against each of the others.

        Where choices follow Luce's axiom, as in the Plackett-Luce model, each of these pairs follows the Bradley-Terry model
        with the same utilities; the pairs of one choice are not independent. A tie between more than two says nothing here.
        """
        if self.most_options == 2:
            return Pairs(self.shown[:, 0], self.shown[:, 1], self.outcomes, np.arange(len(self)))
        places = np.arange(self.most_options)
        decided = np.flatnonzero(self.chosen >= 0)
        others = (self.shown[decided] >= 0) & (places != self.chosen[decided, None])
        which, place = np.nonzero(others)
        votes = decided[which]
        winner, loser = self.shown[votes, self.chosen[votes]], self.shown[votes, place]
        ahead = self.chosen[votes] < place  # so that the first of a pair is the one that was shown first
        return Pairs(np.where(ahead, winner, loser), np.where(ahead, loser, winner), np.where(ahead, 1, -1), votes)

    def select(self, rows: npt.ArrayLike) -> Comparisons:
        """Some of the comparisons, by number or by a mask; the items stay."""
        rows = np.asarray(rows)
        kept = {name: getattr(self, name) for name in ("shown", "chosen", "voters", "times", "strengths", "weights")}
        parts: dict[str, Any] = {name: None if column is None else column[rows] for name, column in kept.items()}
        return dataclasses.replace(self, context={key: column[rows] for key, column in self.context.items()}, **parts)

    def split(self, by: Literal["voter", "random"] = "random", seed: int = 0) -> tuple[Comparisons, Comparisons]:
        """Two halves: one to tune on, one to judge by.

        Args:
            by: "voter" puts all comparisons of a voter into one half, so that nobody is judged by what was tuned on them;
                "random" draws comparisons.
            seed: of the draw.

        Example:
            >>> log = Comparisons(name="x", items=("a", "b"), shown=[[0, 1]] * 5, chosen=[0] * 5, voters=list("uuvvv"))
            >>> sorted(len(half) for half in log.split("voter")), [len(half) for half in log.split()]
            ([2, 3], [2, 3])
        """
        one_of("by", by, ("voter", "random"))
        rng = np.random.default_rng(whole_number("seed", seed))
        if by == "random":
            early = np.zeros(len(self), dtype=bool)
            early[rng.permutation(len(self))[: len(self) // 2]] = True
        else:
            if self.voters is None or (self.n_voters or 0) < 2:
                raise InvalidInputError(f'{self.name} does not say who voted, or names one voter. Use split("random").')
            voters = sorted(set(self.voters))
            drawn = {voters[i] for i in rng.permutation(len(voters))[: len(voters) // 2]}
            early = np.array([voter in drawn for voter in self.voters])
        return self.select(early), self.select(~early)

    @cached_property
    def scaled_features(self) -> FloatArray:
        """(K, d) features as policies get them: each with mean 0 and standard deviation 1 over the items, what is missing 0.

        Unit vectors where items have no features.
        """
        return np.eye(len(self.items)) if self.features is None else standardize(self.features)

    def to_environment(
        self,
        answers: Literal["fit", "votes"] = "votes",
        unseen: Literal["fit", "refuse", "no answer"] = "fit",
        ridge: float = 0.1,
    ) -> VoteDuels:
        """All items as the arms of every round; see `duelist.environments.VoteDuels` for the arguments.

        The truth is a utility per item, fitted to all comparisons. For sets in which an item seldom comes twice, use `replay`.
        """
        if len(self.items) > MOST_ITEMS:
            raise InvalidInputError(
                f"{self.name} has {len(self.items):,} items; a table of all pairs may have {MOST_ITEMS:,}. Use replay(), in "
                f"which a round offers what one voter was offered."
            )
        pairs = self.pairs()
        weights = np.ones(len(pairs.votes)) if self.weights is None else self.weights[pairs.votes]
        kinds, which = np.unique((pairs.first * len(self.items) + pairs.second) * 3 + pairs.outcomes + 1, return_inverse=True)
        names = np.array(self.items, dtype=object)
        first, second = np.divmod(kinds // 3, len(self.items))
        table = {
            "first": names[first],
            "second": names[second],
            "outcome": kinds % 3 - 1,
            "weight": np.bincount(which, weights),
        }
        features = None if self.features is None else dict(zip(self.items, self.scaled_features, strict=True))
        return VoteDuels(votes=table, features=features, answers=answers, unseen=unseen, ridge=ridge)

    def replay(
        self, context: Sequence[str] = (), answers: Literal["fit", "votes"] = "votes", ridge: float = 0.1
    ) -> LoggedDuels:
        """A round offers what one voter was offered, and is answered by what that voter chose; see `LoggedDuels`.

        Args:
            context: columns of `context` that utilities depend on. Features of an item are then the products of (1, context)
                and its own features: numbers with mean 0 and standard deviation 1, text as a column of 0 and 1 per value.
            answers: "votes", or "fit" to draw them from the fitted utilities.
            ridge: of that fit.
        """
        return LoggedDuels(
            features=self.scaled_features,
            shown=self.shown,
            chosen=self.chosen,
            contexts=self.context_numbers(context) if context else None,
            weights=self.weights,
            answers=answers,
            ridge=ridge,
        )

    def context_numbers(self, names: Sequence[str]) -> FloatArray:
        """(n, c) columns of the context as `replay` uses them, with a 1 in front."""
        columns = [np.ones((len(self), 1))]
        for name in [names] if isinstance(names, str) else names:
            one_of("context", name, tuple(self.context))
            column = self.context[name]
            if column.dtype.kind in "fiub":
                columns.append(standardize(column.astype(np.float64)[:, None]))
            else:
                text = np.array([str(cell) for cell in column])
                columns.append((text[:, None] == np.unique(text)[1:]).astype(np.float64))
        return np.concatenate(columns, axis=1)

    def best(self, count: int = 10) -> list[tuple[str, float]]:
        """The items with the largest utilities by a Bradley-Terry fit, best first, with their log-odds.

        A utility per item where there are ten comparisons or more per item, or no features; else a weight per feature, fitted
        to all comparisons.
        """
        if self.fits_items:
            env = self.to_environment(answers="fit")
            named = zip(env.counts.items, env.utilities.tolist(), strict=True)
        else:
            named = zip(self.items, (self.scaled_features @ self.replay().theta).tolist(), strict=True)
        return sorted(named, key=lambda item: -item[1])[:count]

    @property
    def fits_items(self) -> bool:
        """Whether `best` fits a utility per item."""
        return self.features is None or len(self) >= _ENOUGH_VOTES * len(self.items)

    def summary(self) -> str:
        """What is there, in a few lines."""
        options = f"{'up to ' * bool((self.shown < 0).any())}{self.most_options}"
        ties = int((self.chosen == NOBODY).sum())
        lines = [
            f"{self.name}: {len(self):,} comparisons of {options} of {len(self.items):,} items, {ties:,} ties",
            f"voters: {'not known' if self.voters is None else f'{self.n_voters:,}'}; order on the screen: "
            f"{'known' if self.order_known else 'not known'}",
            f"features: {', '.join(self.feature_names) or 'none'}",
        ]
        others = [key for key in self._columns() if key not in ("voter", *self.context)]
        if others:
            lines.append(f"also: {', '.join(others)}")
        if self.context:
            lines.append(f"context: {', '.join(self.context)}")
        return "\n".join(lines)

    def to_frame(self, backend: Backend | None = None) -> Any:
        """One row per comparison, as a frame of pandas or polars, whichever is installed.

        Columns: `first`, `second` and `outcome` for pairs, `option1`, ... and `chosen` for more; `voter`, `time`, `strength`
        and `weight` where they are known; and the context. A table of pairs can be read again by `read_comparisons`.
        """
        names = np.array([*self.items, None], dtype=object)  # -1 is the last
        if self.most_options == 2:
            table: dict[str, Any] = {"first": names[self.shown[:, 0]], "second": names[self.shown[:, 1]]}
            table["outcome"] = self.outcomes
        else:
            table = {f"option{place + 1}": names[self.shown[:, place]] for place in range(self.most_options)}
            won = self.shown[np.arange(len(self)), self.chosen]
            table["chosen"] = names[np.where(self.chosen >= 0, won, NOBODY)]
        return make_frame({**table, **self._columns()}, backend)


def standardize(numbers: FloatArray) -> FloatArray:
    """Columns with mean 0 and standard deviation 1, what is missing 0; a column of equal numbers is 0.

    Example:
        >>> standardize(np.array([[1.0, 5.0], [3.0, 5.0], [np.nan, 5.0]])).tolist()
        [[-1.0, 0.0], [1.0, 0.0], [0.0, 0.0]]
    """
    there = np.isfinite(numbers)
    count = np.maximum(there.sum(axis=0), 1)
    centred = np.where(there, numbers - np.where(there, numbers, 0.0).sum(axis=0) / count, 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) / count)
    return np.asarray(centred / np.where(spread > 0.0, spread, 1.0))
