"""Duels between arms that were scored in every context, such as language models on prompts: a table is the truth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

from duelist.actions.finite import ActionSet, FiniteActions
from duelist.core.checks import finite_number
from duelist.core.errors import InvalidInputError
from duelist.core.streams import Streams
from duelist.environments.base import Instance, Regret
from duelist.environments.given import Join, check_join, join_arms
from duelist.environments.tables import Table, read_array
from duelist.history.duels import Duels
from duelist.preferences.logistic import win_probability
from duelist.typing import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredDuels:
    """Contexts in which every arm has a score and perhaps a cost; the utility is score - cost_weight * cost.

    No linear function of the features need be behind the table. A trial goes through all contexts in a random order of its own,
    and through the same order again when they are used up. Who wins is drawn from the Bradley-Terry-Luce model with log-odds
    sharpness * (difference of utilities); regret is in units of utility. Where there are costs, two further kinds of regret say
    what a pair was: `score`, the best score in the context minus the mean of the two, and `cost`, the mean cost of the two.

    Args:
        contexts: (n, context_dim), such as the embeddings of prompts, or the path of a file.
        scores: (n, n_arms) in each context, or a path.
        costs: (n, n_arms), or a path; None where nothing costs.
        cost_weight: what a cost of 1 takes from the utility.
        catalogue: (n_arms, arm_dim) features of the arms, or a path; None for none, with "blocks".
        join: features of a context and the arms, as in `ContextDuels`.
        sharpness: log-odds per unit of utility.

    Example:
        >>> env = ScoredDuels(contexts=[[1.0], [-1.0]], scores=[[1.0, 0.0], [0.0, 1.0]])
        >>> env.dim, env.utilities.tolist()
        (2, [[1.0, 0.0], [0.0, 1.0]])
    """

    contexts: Table
    scores: Table
    costs: Table | None = None
    cost_weight: float = 0.0
    catalogue: Table | None = None
    join: Literal["outer", "blocks", "product"] | Join = "blocks"
    sharpness: float = 4.0

    def __post_init__(self) -> None:
        finite_number("cost_weight", self.cost_weight, at_least=0.0)
        finite_number("sharpness", self.sharpness, above=0.0)
        check_join(self.join)
        n, n_arms = self.table.shape
        if n_arms < 2:
            raise InvalidInputError(f"scores must have a column per arm, at least 2; got {n_arms}.")
        for name, found, expected in (
            ("contexts", self.context_table.shape[:1], (n,)),
            ("costs", (n, n_arms) if self.cost_table is None else self.cost_table.shape, (n, n_arms)),
            ("catalogue", self.arms.shape[:1], (n_arms,)),
        ):
            if found != expected:
                raise InvalidInputError(f"{name} must fit scores of shape {(n, n_arms)}: {expected} entries; got {found}.")
        if self.catalogue is None and self.join != "blocks":
            raise InvalidInputError(f'join={self.join!r} needs features of the arms: give catalogue, or use "blocks".')

    @cached_property
    def context_table(self) -> FloatArray:
        """(n, context_dim) the contexts."""
        return read_array("contexts", self.contexts, "(n, context_dim)", 2)

    @cached_property
    def table(self) -> FloatArray:
        """(n, n_arms) the scores."""
        return read_array("scores", self.scores, "(n, n_arms)", 2)

    @cached_property
    def cost_table(self) -> FloatArray | None:
        """(n, n_arms) the costs."""
        return None if self.costs is None else read_array("costs", self.costs, "(n, n_arms)", 2)

    @cached_property
    def arms(self) -> FloatArray:
        """(n_arms, arm_dim) features of the arms; without any (n_arms, 0)."""
        if self.catalogue is None:
            return np.zeros((self.table.shape[1], 0))
        return read_array("catalogue", self.catalogue, "(n_arms, arm_dim)", 2)

    @cached_property
    def utilities(self) -> FloatArray:
        """(n, n_arms) the truth."""
        return self.table if self.cost_table is None else self.table - self.cost_weight * self.cost_table

    @cached_property
    def dim(self) -> int:
        """Length of a feature vector."""
        return int(self.features(self.context_table[:1]).shape[2])

    def features(self, contexts: FloatArray) -> FloatArray:
        """(lanes, n_arms, dim) of contexts (lanes, context_dim)."""
        return join_arms(self.join, contexts, np.broadcast_to(self.arms, (len(contexts), *self.arms.shape)))

    def instance(self, streams: Streams) -> ScoredInstance:
        """The same table in every lane, in another order."""
        return ScoredInstance(self, streams)


class ScoredInstance(Instance):
    """The contexts in the order of each lane."""

    def __init__(self, recipe: ScoredDuels, streams: Streams) -> None:
        self.recipe, self._streams = recipe, streams
        n = len(recipe.table)
        self._order = np.array([streams.generator("context", lane).permutation(n) for lane in range(len(streams))])
        self._round = 0

    def rows(self, round_: int) -> IntArray:
        """(lanes,) the context of this round, as a row of the tables."""
        return np.asarray(self._order[:, round_ % self._order.shape[1]])

    def actions(self, round_: int) -> FiniteActions:
        """The arms in this round's context."""
        self._round = round_
        return FiniteActions(self.recipe.features(self.recipe.context_table[self.rows(round_)]))

    def outcomes(self, round_: int, duels: Duels) -> IntArray:
        """Who wins, (lanes,): +1 the first, -1 the second."""
        self._round = round_
        return np.where(self._streams.uniforms("outcome", round_) < self.win_probability(round_, duels), 1, -1)

    def win_probability(self, round_: int, duels: Duels) -> FloatArray:
        """(lanes,) probability that the first wins."""
        utilities, lanes = self.recipe.utilities[self.rows(round_)], np.arange(len(self._streams))
        return win_probability(self.recipe.sharpness * (utilities[lanes, duels.first] - utilities[lanes, duels.second]))

    def regret(self, actions: ActionSet, duels: Duels) -> Regret:  # noqa: ARG002 - the table knows all
        """What these duels cost in the round that was asked about last; `yue` in probabilities of winning."""
        rows, pair = self.rows(self._round)[:, None], np.stack([duels.first, duels.second], axis=1)
        gaps = self.recipe.utilities[rows[:, 0]].max(axis=1, keepdims=True) - self.recipe.utilities[rows, pair]
        yue = win_probability(self.recipe.sharpness * gaps) - 0.5
        return Regret(gaps.mean(axis=1), gaps.min(axis=1), yue.mean(axis=1), self._others(rows, pair))

    def _others(self, rows: IntArray, pair: IntArray) -> Mapping[str, FloatArray]:
        costs, scores = self.recipe.cost_table, self.recipe.table
        if costs is None:
            return {}
        lost = scores[rows[:, 0]].max(axis=1) - scores[rows, pair].mean(axis=1)
        return {"score": lost, "cost": costs[rows, pair].mean(axis=1)}
