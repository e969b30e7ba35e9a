"""The field in figures: all rules on all problems at a glance, the spread of every rule, and recommendations over duels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from duelist.experiments.families.standings import FLOOR, Standing
from duelist.experiments.field.rules import field_rules
from duelist.experiments.field.standings import ProblemStandings
from duelist.plotting.panels import line_legend, log_axis, plain_axes
from duelist.plotting.style import line_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WORST = 16.0  # ratios beyond have the darkest colour: they are all "much worse"
_SMALLEST = 0.01  # of the best mean, or of the highest point of a curve: what is less is drawn there
_COLUMNS = 3
_CURVES = 8
_FROM, _TO = "#0072B2", "#D55E00"  # the usual two of the palette: rules within their assumptions, and beyond


def overview_figure(problems: Sequence[ProblemStandings]) -> Figure:
    """Draw a table of colours: rules by shelf down, problems by kind across, the ratio to the best in every cell."""
    shown = [one for one in problems if one.standings.rival is not None]
    rules = [rule for rule in field_rules() if any(one.standings.find(rule.label) for one in shown)]
    ratios = np.full((len(rules), len(shown)), np.nan)
    figure = new_figure(2.6 + 0.37 * len(shown), 1.6 + 0.2 * len(rules))
    axes = figure.subplots()
    for column, problem in enumerate(shown):
        for row, rule in enumerate(rules):
            standing = problem.standings.find(rule.label)
            if standing is not None:
                ratios[row, column] = value = max(problem.ratio_to_best(standing), 1e-3)
                beyond = "†" if rule.label in problem.standings.under_test and rule.policy != FLOOR else ""
                dark = value > 4.0
                text = f"{value:.1f}" if value < 9.95 else f"{value:.0f}" if value < 1000 else "big"
                axes.text(
                    column, row, text + beyond, ha="center", va="center", fontsize=6.5, color="white" if dark else "0.1",
                    fontweight="bold" if value == 1.0 else "normal",
                )  # fmt: skip
    axes.imshow(np.log(np.clip(ratios, 1.0, _WORST)), aspect="auto", cmap="Blues", vmin=-0.25, vmax=np.log(_WORST))
    axes.set_xticks(
        range(len(shown)), [one.problem.name for one in shown], rotation=60, ha="left", rotation_mode="anchor", fontsize=7.5
    )
    axes.set_yticks(range(len(rules)), [rule.label for rule in rules], fontsize=7.5)
    axes.tick_params(top=True, bottom=False, labeltop=True, labelbottom=False, length=0)
    axes.spines[:].set_visible(False)
    kinds, shelves = [one.problem.kind for one in shown], [rule.shelf for rule in rules]
    for groups, line in ((kinds, axes.axvline), (shelves, axes.axhline)):
        for place in range(1, len(groups)):
            if groups[place] != groups[place - 1]:
                line(place - 0.5, color="0.4", linewidth=0.9)
    for kind in dict.fromkeys(kinds):
        middle = kinds.index(kind) + 0.5 * (kinds.count(kind) - 1)
        axes.text(middle, len(rules) - 0.3, kind, ha="right", va="top", rotation=30, rotation_mode="anchor", fontsize=8)
    return figure


def interval_figure(problems: Sequence[ProblemStandings]) -> Figure:
    """Draw one panel per problem: a line per rule from the 5 % to the 95 % quantile, with median and mean, best mean on top."""
    shown = [one for one in problems if one.standings.standings]
    columns = min(_COLUMNS, max(len(shown), 1))
    rows = [shown[i : i + columns] for i in range(0, len(shown), columns)]
    heights = [0.75 + 0.17 * max(len(one.standings.standings) for one in row) for row in rows]
    figure = new_figure(4.1 * columns, max(sum(heights), 1.0))
    if not rows:
        return figure
    grid = figure.subplots(len(rows), columns, squeeze=False, height_ratios=heights)
    for line, row in zip(grid, rows, strict=True):
        for place, axes in enumerate(line):
            if place < len(row):
                _draw_intervals(axes, row[place])
            else:
                axes.set_visible(False)
    return figure


def _draw_intervals(axes: Axes, problem: ProblemStandings) -> None:
    ranked = problem.ranked
    # Zero, or what rounding left of it, has no place on a logarithmic axis.
    least = _SMALLEST * min((one.mean for one in ranked if one.mean > 0), default=1.0)
    least = max(least, 0.5 * min((value for one in ranked for value in one.chosen.final_regret if value > 0), default=1.0))
    names = []
    for place, one in enumerate(ranked):
        beyond = one.label in problem.standings.under_test and one.policy != FLOOR
        colour = "0.5" if one.policy == FLOOR else _TO if beyond else _FROM
        low, quarter, median, three, high = np.maximum(
            np.quantile(one.chosen.final_regret, [0.05, 0.25, 0.5, 0.75, 0.95]), least
        )
        axes.plot([low, high], [place, place], color=colour, linewidth=0.8)
        axes.plot([quarter, three], [place, place], color=colour, linewidth=3.2, alpha=0.55, solid_capstyle="butt")
        axes.plot(median, place, marker="|", color=colour, markersize=7, markeredgewidth=1.4)
        axes.plot(max(one.mean, least), place, marker="o", color=colour, markersize=3.2, markerfacecolor="white")
        names.append(one.label + (" †" if beyond else ""))
    axes.set_yticks(range(len(names)), names)
    axes.set_ylim(len(names) - 0.4, -0.6)
    log_axis(axes, "x")
    axes.set_title(problem.problem.name, fontsize=9)
    plain_axes(axes)
    axes.tick_params(labelsize=7)
    judged = "weak regret" if problem.problem.regret == "weak" else "regret"
    axes.set_xlabel("mean simple regret" if problem.problem.simple_every else judged, fontsize=7.5)


def recommendation_figure(problems: Sequence[ProblemStandings]) -> Figure:
    """Draw what the recommended arm costs after n duels: one panel per problem, the rules with the best means."""
    shown = [one for one in problems if one.problem.simple_every and one.standings.standings]
    figure = new_figure(4.6 * max(len(shown), 1), 4.6)
    panels = figure.subplots(1, max(len(shown), 1), squeeze=False)[0]
    best = {one.problem.name: [each for each in one.ranked if each.policy != FLOOR][:_CURVES] for one in shown}
    names = {label: i for i, label in enumerate(dict.fromkeys(each.label for ranked in best.values() for each in ranked))}
    for axes, problem in zip(panels, shown, strict=False):
        _draw_recommendations(axes, best[problem.problem.name], names)
        axes.set_title(problem.problem.title.replace("; ", "\n"), fontsize=9)
        axes.set_xlabel("slates" if "slates" in problem.problem.offers else "duels", fontsize=8)
        axes.set_ylabel("mean cost of the recommended arm", fontsize=8)
        plain_axes(axes)
        # Every panel has rules of its own, the best first.
        own = {one.label: names[one.label] for one in best[problem.problem.name]}
        axes.legend(
            handles=line_legend(own), loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False, fontsize=7.5
        )
    return figure


def _draw_recommendations(axes: Axes, ranked: Sequence[Standing], names: Mapping[str, int]) -> None:
    means = {one.label: one.chosen.regret.mean(axis=0) for one in ranked}
    least = _SMALLEST * max((float(mean.max()) for mean in means.values()), default=1.0)
    for one in ranked:
        line = line_style(names[one.label])
        # Zero has no place on a logarithmic axis: a curve that reaches it runs along the lower edge.
        mean = np.maximum(means[one.label], least)
        axes.plot(one.chosen.rounds, mean, color=line.colour, linestyle=line.dashes, linewidth=1.5)
    if least > 0.0:
        axes.set_ylim(bottom=0.9 * least)
        log_axis(axes, "y")
