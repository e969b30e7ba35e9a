"""A log of choices as an environment: a round offers what one voter was offered."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from duelist.actions.finite import FiniteActions
from duelist.core.checks import finite_array, finite_number, one_of
from duelist.core.errors import InvalidInputError, NotConvergedError
from duelist.core.streams import Streams
from duelist.environments.base import NEVER
from duelist.environments.linear_truth import LinearTruth
from duelist.features import outer
from duelist.history.duels import Duels
from duelist.history.statistics import Statistics
from duelist.preferences.fit import fit
from duelist.typing import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class LoggedDuels:
    """Every round offers the items of one logged choice, and is answered by what was chosen then.

    Trials go through the log each in an order of its own, and begin again at its end. The policy picks two of the items. Where
    the chosen one is among them, it wins; a logged tie of two is a tie; where the voter chose a third, the question stays open
    for good. An item against itself is a fair coin.

    Regret is measured by utilities <theta, features>, with theta fitted to the whole log: within a choice, the chosen item
    against each other one, by the Bradley-Terry model. It is what the log says, not what is true.

    What this does not tell: answers exist only where the voter's choice is one of the two. If choices follow Luce's axiom, an
    answer that exists is distributed as if only these two had been offered. Else it is not: an option that shares its
    supporters with a third looks worse than it is. In logs of pairs every pair but an item against itself is answered, and a
    policy can choose only to ask or not.

    Args:
        features: (K, d) of the items.
        shown: (n, q) rows of the items of each choice; -1 where there were fewer.
        chosen: (n,) place of the chosen one; -1 for a tie.
        contexts: (n, c) one vector per choice; features are then the products of the context and those of the item. None for
            none.
        weights: (n,) how often each choice counts in the fit; None for once. A trial meets every choice once all the same.
        answers: "votes" as said above; "fit" draws them from the fitted utilities for any two of the items.
        ridge: of the fit.

    Example:
        >>> env = LoggedDuels(features=[[1.0], [0.0], [-1.0]], shown=[[0, 1], [0, 2], [1, 2]], chosen=[0, 0, 0])
        >>> env.dim, bool(env.theta[0] > 0.0)
        (1, True)
    """

    features: FloatArray
    shown: IntArray
    chosen: IntArray
    contexts: FloatArray | None = None
    weights: FloatArray | None = None
    answers: Literal["fit", "votes"] = "votes"
    ridge: float = 0.1

    def __post_init__(self) -> None:
        one_of("answers", self.answers, ("fit", "votes"))
        finite_number("ridge", self.ridge, above=0.0)
        object.__setattr__(self, "features", finite_array("features", self.features, "(K, d)", 2))
        object.__setattr__(self, "shown", np.asarray(self.shown, dtype=np.int64))
        object.__setattr__(self, "chosen", np.asarray(self.chosen, dtype=np.int64))
        if self.shown.ndim != 2 or self.shown.max() >= len(self.features) or (self.shown[:, :2] < 0).any():
            raise InvalidInputError(
                f"shown must be (n, q), rows of the {len(self.features)} items with at least two in front; got shape "
                f"{self.shown.shape}."
            )
        if self.contexts is not None:
            object.__setattr__(self, "contexts", finite_array("contexts", self.contexts, "(n, c)", 2))
        if self.weights is not None:
            object.__setattr__(self, "weights", finite_array("weights", self.weights, "(n,)", 1))
            if (self.weights < 0.0).any():
                raise InvalidInputError(f"weights must be at least 0; got {self.weights.min():g}.")
        for name in ("chosen", "contexts", "weights"):
            column = getattr(self, name)
            if column is not None and len(column) != len(self.shown):
                raise InvalidInputError(f"{name} must have a row per choice, {len(self.shown)}; got {len(column)}.")

    @property
    def dim(self) -> int:
        """Length of a feature vector."""
        return int(self.features.shape[1] * (1 if self.contexts is None else self.contexts.shape[1]))

    @property
    def lanes_apart(self) -> bool:
        """Questions stay open in some lanes and not in others."""
        return self.answers == "votes"

    @cached_property
    def offered(self) -> IntArray:
        """(n, q) rows of the items of each choice; where there were fewer, the first stands again."""
        return np.where(self.shown >= 0, self.shown, self.shown[:, :1])

    def arms(self, choices: IntArray) -> FloatArray:
        """(m, q, dim) features of what was offered in these choices."""
        items = self.features[self.offered[choices]]
        return items if self.contexts is None else outer(self.contexts[choices], items)

    @cached_property
    def theta(self) -> FloatArray:
        """(dim,) the fitted truth."""
        contrasts, losses, totals = self._contrasts()
        statistics = Statistics(
            np.ascontiguousarray(contrasts.T)[None],
            totals[None],
            losses[None],
            np.array([len(totals)]),
            np.empty((1, 0, self.dim, 0)),
            np.empty(0),
            np.zeros((1, 2, self.dim)),
        )
        found = fit(statistics, ridge=np.array([self.ridge]), weight=np.ones(1), start=np.zeros((1, self.dim)))
        if not found.converged[0]:
            raise NotConvergedError("the fit to the choices did not converge. Raise ridge.")
        return np.asarray(found.theta[0])

    def _contrasts(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(m, dim) features of one item minus those of another, (m,) how often the first lost, a tie half, and of how many."""
        tied = self.chosen < 0
        winner = np.where(tied, 0, self.chosen)
        others = (self.shown >= 0) & (np.arange(self.shown.shape[1]) != winner[:, None])
        others[tied & (others.sum(axis=1) > 1)] = False  # a tie of more than two says nothing
        choice, place = np.nonzero(others)
        counts = np.ones(len(choice)) if self.weights is None else self.weights[choice]
        losses = np.where(tied[choice], 0.5, 0.0) * counts
        if self.contexts is not None:
            arms = self.arms(choice)
            rows = np.arange(len(choice))
            return arms[rows, winner[choice]] - arms[rows, place], losses, counts
        items = len(self.features)
        distinct, which = np.unique(self.shown[choice, winner[choice]] * items + self.shown[choice, place], return_inverse=True)
        first, second = np.divmod(distinct, items)
        lost, total = (np.bincount(which, column) for column in (losses, counts))
        contrasts = self.features[first] - self.features[second]
        return contrasts, np.asarray(lost, dtype=np.float64), np.asarray(total, dtype=np.float64)

    def instance(self, streams: Streams) -> LoggedInstance:
        """An order of the log per lane."""
        return LoggedInstance(self, streams)


class LoggedInstance(LinearTruth):
    """The log in another order in every lane."""

    def __init__(self, recipe: LoggedDuels, streams: Streams) -> None:
        super().__init__(np.broadcast_to(recipe.theta, (len(streams), recipe.dim)).copy(), streams)
        self.recipe = recipe
        n = len(recipe.shown)
        self._orders = np.stack([streams.generator("order", lane).permutation(n) for lane in range(len(streams))])

    def choices(self, round_: int) -> IntArray:
        """(lanes,) which logged choice this round offers."""
        return np.asarray(self._orders[:, round_ % self._orders.shape[1]])

    def actions(self, round_: int) -> FiniteActions:
        """What was offered in that choice."""
        return FiniteActions(self.recipe.arms(self.choices(round_)))

    def win_probability(self, round_: int, duels: Duels) -> FloatArray:
        """(lanes,) by the fit; for real answers unknown, but for an item against itself."""
        if self.recipe.answers == "fit":
            return super().win_probability(round_, duels)
        return np.where(self._logged(round_, duels) == _ITSELF, 0.5, np.nan)

    def outcomes(self, round_: int, duels: Duels) -> IntArray:
        """Who wins, (lanes,): +1 the first, -1 the second, 0 neither."""
        if self.recipe.answers == "fit":
            return super().outcomes(round_, duels)
        logged = self._logged(round_, duels)
        coin = np.where(self._streams.uniforms("outcome", round_) < 0.5, 1, -1)
        return np.where(logged == _ITSELF, coin, np.where(logged == _UNKNOWN, 0, logged))

    def delay(self, round_: int, duels: Duels) -> IntArray:
        """At once; never where the log has no answer."""
        if self.recipe.answers == "fit":
            return super().delay(round_, duels)
        return np.where(self._logged(round_, duels) == _UNKNOWN, NEVER, 0)

    def _logged(self, round_: int, duels: Duels) -> IntArray:
        """(lanes,) the outcome that the log has for these pairs, or what there is instead."""
        choices, lanes = self.choices(round_), np.arange(len(duels.first))
        offered = self.recipe.offered[choices]
        first, second = offered[lanes, duels.first], offered[lanes, duels.second]
        place = self.recipe.chosen[choices]
        chosen = offered[lanes, place]
        pair = (self.recipe.shown[choices] >= 0).sum(axis=1) == 2
        answer = np.where(chosen == first, 1, np.where(chosen == second, -1, _UNKNOWN))
        answer = np.where(place >= 0, answer, np.where(pair, 0, _UNKNOWN))
        return np.where(first == second, _ITSELF, answer)


_UNKNOWN, _ITSELF = 2, 3  # beside +1, -1 and 0
