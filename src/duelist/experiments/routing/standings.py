"""What came of the routing experiments, table by table: regret of every policy on every kind of features, and the dial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from duelist.experiments.routing.fixed import BEST_SINGLE, FixedRouter, fixed_routers
from duelist.experiments.routing.problems import DIAL_FEATURES, PAPER
from duelist.experiments.routing.tables import RoutingTable
from duelist.experiments.sweep.runner import Results
from duelist.experiments.sweep.series import Series, extract_series, select


class Dialled(NamedTuple):
    """What FGTS showed at one weight of the cost, mean over rounds, trials and both answers.

    Attributes:
        weight: of the cost.
        score: mean score.
        cost: mean cost.
    """

    weight: float
    score: float
    cost: float


@dataclass(frozen=True, kw_only=True)
class RoutingStandings:
    """One table.

    Attributes:
        table: the scores.
        weight: of the cost, in all but the dial.
        rounds: played per trial.
        runs: of every policy, by kind of features.
        fixed: routers that learn nothing from votes.
        dial: what FGTS showed, by weight of the cost; empty without costs.
    """

    table: RoutingTable = field(repr=False)
    weight: float
    rounds: int
    runs: Mapping[str, tuple[Series, ...]] = field(repr=False)
    fixed: tuple[FixedRouter, ...] = field(repr=False)
    dial: tuple[Dialled, ...] = field(repr=False)

    def find(self, features: str, label: str) -> Series | None:
        """The runs of one policy on one kind of features; None if it did not play there."""
        return next(iter(select(list(self.runs.get(features, ())), label=label)), None)

    @property
    def best_single(self) -> FixedRouter:
        """The model that the offline prompts would choose for all."""
        return next(one for one in self.fixed if one.name == BEST_SINGLE)


def collect_routing(
    tables: Mapping[str, RoutingTable], results: Mapping[tuple[str, str, float], Results]
) -> list[RoutingStandings]:
    """Put the results of `routing_specs` together, one entry per table."""
    collected = []
    for name, table in tables.items():
        own = {key[1:]: one for key, one in results.items() if key[0] == name}
        if not own:
            continue
        weight = next(at for _, at in own)  # of the first spec: the dial comes after the rest
        runs = {kind: tuple(extract_series(one.spec, one.table)) for (kind, at), one in own.items() if at == weight}
        dial = [
            _dialled(table, at, one)
            for (kind, at), one in sorted(own.items(), key=lambda item: item[0][1])
            if table.costs is not None and kind == DIAL_FEATURES and PAPER in one.table.column("label").to_pylist()
        ]
        collected.append(
            RoutingStandings(
                table=table,
                weight=weight,
                rounds=next(iter(own.values())).spec.rounds,
                runs=runs,
                fixed=tuple(fixed_routers(table, weight)),
                dial=tuple(dial),
            )
        )
    return collected


def _dialled(table: RoutingTable, weight: float, results: Results) -> Dialled:
    own = [row for row, label in enumerate(results.table.column("label").to_pylist()) if label == PAPER]
    best = float(table.scores[table.online].max(axis=1).mean())
    lost, cost = (
        float(results.table.column(f"final_{kind}_regret").to_numpy()[own].mean()) / results.spec.rounds
        for kind in ("score", "cost")
    )
    return Dialled(weight, best - lost, cost)
