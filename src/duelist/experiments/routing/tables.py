"""A table of scores made ready for an experiment: cleaned, in comparable units, and cut into an offline and an online part."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from duelist.core.errors import InvalidInputError
from duelist.datasets.routing import ScoreTable
from duelist.typing import FloatArray, IntArray

OFFLINE_SHARE = 0.2
MOST_PROMPTS = 6250
_FEW = 10  # offline prompts below which a category is counted as "other"
OTHER = "other"
Embed = Callable[[Sequence[str]], FloatArray]


@dataclass(frozen=True, kw_only=True, eq=False)
class RoutingTable:
    """Prompts by row, models by column.

    Attributes:
        name: short, of letters, digits and -.
        title: in a few words.
        models: names.
        categories: (n,) names.
        scores: (n, K), from about 0 to about 1.
        costs: (n, K), in units of the mean cost of the dearest model; None where there are none.
        embeddings: (n, dim).
        offline: rows of which everything is known beforehand.
        online: rows on which policies play.
    """

    name: str
    title: str
    models: tuple[str, ...]
    categories: npt.NDArray[Any] = field(repr=False)
    scores: FloatArray = field(repr=False)
    costs: FloatArray | None = field(repr=False)
    embeddings: FloatArray = field(repr=False)
    offline: IntArray = field(repr=False)
    online: IntArray = field(repr=False)

    @property
    def paid(self) -> FloatArray:
        """(n, K) costs; zeros where there are none."""
        return np.zeros_like(self.scores) if self.costs is None else self.costs

    def utilities(self, cost_weight: float) -> FloatArray:
        """(n, K) score minus cost_weight times cost."""
        return self.scores - cost_weight * self.paid


def prepare_table(name: str, title: str, table: ScoreTable, *, seed: int, embed: Embed) -> RoutingTable:
    """Clean a table and cut it.

    Prompts without all scores and costs are left out, and of very many a sample is taken. Scores that leave [0, 1] are scaled,
    so that their 5 % and 95 % quantiles are 0 and 1. A category is what its name has before the first hyphen; rare ones are put
    together as "other".

    Args:
        name: of the problem.
        title: in a few words.
        table: what was scored.
        seed: of the sample and the cut.
        embed: makes embeddings of texts, where the table has none.
    """
    whole = np.isfinite(table.scores).all(axis=1)
    if table.costs is not None:
        whole &= np.isfinite(table.costs).all(axis=1)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(np.flatnonzero(whole))[:MOST_PROMPTS]
    n_offline = round(OFFLINE_SHARE * len(rows))
    if n_offline < 2 * _FEW:
        raise InvalidInputError(
            f"{name} must have at least {round(2 * _FEW / OFFLINE_SHARE)} prompts with scores of all models; got {len(rows)}."
        )
    scores = table.scores[rows]
    if scores.min() < 0.0 or scores.max() > 1.0:
        low, high = np.quantile(scores, [0.05, 0.95])
        scores = (scores - low) / (high - low)
    costs = None if table.costs is None else table.costs[rows] / table.costs[rows].mean(axis=0).max()
    return RoutingTable(
        name=name,
        title=title,
        models=table.models,
        categories=_group(table.categories[rows], n_offline),
        scores=scores,
        costs=costs,
        embeddings=_embeddings(name, table, embed)[rows],
        offline=np.arange(n_offline),
        online=np.arange(n_offline, len(rows)),
    )


def _group(categories: npt.NDArray[Any], n_offline: int) -> npt.NDArray[Any]:
    short = np.array([str(category).partition("-")[0] for category in categories])
    names, counts = np.unique(short[:n_offline], return_counts=True)
    return np.where(np.isin(short, names[counts >= _FEW]), short, OTHER)


def _embeddings(name: str, table: ScoreTable, embed: Embed) -> FloatArray:
    if table.embeddings is not None:
        if len(table.embeddings) != len(table.scores) or not np.isfinite(table.embeddings).all():
            raise InvalidInputError(
                f"{name} must have one embedding per prompt, {len(table.scores)} rows of finite numbers; got shape "
                f"{table.embeddings.shape}."
            )
        return table.embeddings
    if len(table.prompts) != len(table.scores):
        raise InvalidInputError(f"{name} must have embeddings, or the texts of its prompts to make some of.")
    return embed(table.prompts)
