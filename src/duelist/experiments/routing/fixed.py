"""Routers that learn nothing from votes: what a router on this table could reach, from the offline part and from hindsight."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from duelist.experiments.routing.embeddings import CategoryDirections, category_means
from duelist.experiments.routing.tables import RoutingTable
from duelist.typing import FloatArray, IntArray

BEST_SINGLE = "best single model"
_RIDGE = 1.0


class FixedRouter(NamedTuple):
    """One router, judged on the online prompts.

    Attributes:
        name: what it does.
        regret: mean over prompts of the best utility minus its own.
        score: mean score of its answers.
        cost: their mean cost.
    """

    name: str
    regret: float
    score: float
    cost: float


def fixed_routers(table: RoutingTable, cost_weight: float) -> list[FixedRouter]:
    """Every model alone, and what one can know without a vote; each by the same weight of the cost.

    * The best single model: by mean utility on the offline prompts.
    * The best model of each category: the same by category; the category of an online prompt is told.
    * Of the nearest category: the category is guessed, by the nearest mean of the calibrated embeddings.
    * A ridge regression of the offline utilities on the calibrated embeddings.
    * The best answer to every prompt, which takes luck: models that guess are right now and then.
    """
    utilities = table.utilities(cost_weight)
    offline, online = utilities[table.offline], utilities[table.online]
    known, asked = table.categories[table.offline], table.categories[table.online]
    names = np.unique(known)
    best_of = category_means(offline, known, names).argmax(axis=1)
    overall = int(offline.mean(axis=0).argmax())
    transform = CategoryDirections.fit(table.embeddings[table.offline], known)
    before, now = transform(table.embeddings[table.offline]), transform(table.embeddings[table.online])
    centres = category_means(before, known, names)
    nearest = ((now[:, None] - centres) ** 2).sum(axis=2).argmin(axis=1)
    place = {name: row for row, name in enumerate(names)}
    told = np.array([best_of[place[name]] if name in place else overall for name in asked])
    picks: dict[str, IntArray] = {
        "best answer to every prompt": online.argmax(axis=1),
        "best model of each category, told": told,
        "best model of the nearest category": best_of[nearest],
        "ridge regression on offline scores": _ridge(before, offline, now).argmax(axis=1),
        BEST_SINGLE: np.full(len(online), overall),
        **{model: np.full(len(online), column) for column, model in enumerate(table.models)},
    }
    return [_judge(name, table, online, pick) for name, pick in picks.items()]


def _ridge(known: FloatArray, values: FloatArray, asked: FloatArray) -> FloatArray:
    rows, new = (np.column_stack([each, np.ones(len(each))]) for each in (known, asked))
    return np.asarray(new @ np.linalg.solve(rows.T @ rows + _RIDGE * np.eye(rows.shape[1]), rows.T @ values))


def _judge(name: str, table: RoutingTable, utilities: FloatArray, pick: IntArray) -> FixedRouter:
    rows = np.arange(len(pick))
    regret = utilities.max(axis=1) - utilities[rows, pick]
    scores, costs = (values[table.online][rows, pick] for values in (table.scores, table.paid))
    return FixedRouter(name, float(regret.mean()), float(scores.mean()), float(costs.mean()))
