"""Routing in figures: regret over rounds by features and by policy, and quality against cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from duelist.experiments.families.standings import FLOOR
from duelist.experiments.routing.problems import DIAL_FEATURES, PAPER
from duelist.experiments.routing.standings import RoutingStandings
from duelist.experiments.statistics import curve_band
from duelist.experiments.sweep.series import Series
from duelist.plotting.panels import plain_axes
from duelist.plotting.style import line_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LEARNT = "best model of the nearest category"


def routing_regret_figure(standings: Sequence[RoutingStandings]) -> Figure:
    """Draw two panels per table: FGTS on every kind of features, and every policy on one kind."""
    figure = new_figure(10.5, 4.2 * len(standings))
    for one, (left, right) in zip(standings, figure.subplots(len(standings), 2, squeeze=False), strict=True):
        by_features = {kind: series for kind in one.runs if (series := one.find(kind, PAPER)) is not None}
        policies = {series.label: series for series in one.runs.get(DIAL_FEATURES, ()) if series.policy != FLOOR}
        _draw_curves(left, by_features, one)
        _draw_curves(right, policies, one)
        left.set_title(f"{one.table.name}: {PAPER} by features", fontsize=9)
        right.set_title(f"{one.table.name}: policies on {DIAL_FEATURES}", fontsize=9)
    return figure


def _draw_curves(axes: Axes, runs: dict[str, Series], one: RoutingStandings) -> None:
    for number, (name, series) in enumerate(runs.items()):
        line = line_style(number)
        band = curve_band(series.regret, "se")
        axes.plot(series.rounds, band.middle, color=line.colour, linestyle=line.dashes, linewidth=1.5, label=name)
        axes.fill_between(series.rounds, band.low, band.high, color=line.colour, alpha=0.15, linewidth=0)
    slope = one.best_single.regret
    axes.plot([0, one.rounds], [0, slope * one.rounds], color="0.4", linewidth=1.0, label=one.best_single.name)
    plain_axes(axes)
    axes.set_xlabel("duels", fontsize=8)
    axes.set_ylabel("cumulative regret, mean ± 1 standard error", fontsize=8)
    axes.legend(fontsize=7, frameon=False)


def quality_cost_figure(standings: Sequence[RoutingStandings]) -> Figure:
    """Draw mean score against mean cost: every model alone, routers without votes, and FGTS along its dial."""
    shown = [one for one in standings if one.dial]
    figure = new_figure(6.4 * max(len(shown), 1), 4.2)
    for axes, one in zip(figure.subplots(1, max(len(shown), 1), squeeze=False)[0], shown, strict=False):
        alone = [router for router in one.fixed if router.name in one.table.models]
        axes.plot([r.cost for r in alone], [r.score for r in alone], "o", color="0.55", label="every model alone")
        draw_dial(axes, [(at.cost, at.score, at.weight) for at in one.dial], f"{PAPER}, all that was shown")
        guessed = next(router for router in one.fixed if router.name == _LEARNT)
        axes.plot(guessed.cost, guessed.score, "D", color=line_style(2).colour, label=_LEARNT)
        axes.set_xscale("log")
        axes.set_title(one.table.title, fontsize=9)
        axes.set_xlabel("mean cost; 1 is the dearest model", fontsize=8)
        axes.set_ylabel("mean score", fontsize=8)
        plain_axes(axes)
        axes.legend(fontsize=7.5, frameon=False)
    return figure


def draw_dial(axes: Axes, points: Sequence[tuple[float, float, float]], label: str) -> None:
    """Draw (cost, score) at every weight of the cost as a line, with the weights written beside it."""
    line = line_style(0)
    costs, scores, _ = zip(*points, strict=True)
    axes.plot(costs, scores, marker=line.marker, color=line.colour, linewidth=1.5, label=label)
    for cost, score, weight in points:
        axes.annotate(f"{weight:g}", (cost, score), xytext=(4, -9), textcoords="offset points", fontsize=7)
