"""The problem families in one figure: every policy's regret over that of the best tuned baseline, family by family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from duelist.experiments.family_standings import FLOOR, NEW_POLICY, FamilyStandings, Standing, mean_of, ratio, tail_of
from duelist.experiments.series import Series
from duelist.plotting.files import new_figure
from duelist.plotting.lines import line_of
from duelist.plotting.panels import plain_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDEST = 8.0  # ratios beyond are drawn at the edge with an arrow: they are all "much worse"
_TICKS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


def family_figure(families: Sequence[FamilyStandings]) -> Figure:
    """Two panels, means and 95 % quantiles; a row a family, a mark a policy, 1 the best tuned baseline.

    The floor, random play, is left out. The new policy has the only filled marks, so that it stands out without colour too.
    """
    shown = [family for family in families if family.rival is not None]
    labels = list(dict.fromkeys(one.label for family in shown for one in family.standings if one.policy != FLOOR))
    numbers = {label: number for number, label in enumerate(sorted(labels, key=lambda label: label != NEW_POLICY))}
    figure = new_figure(9.5, 1.6 + 0.34 * len(shown))
    left, right = figure.subplots(1, 2, sharey=True)
    _panel(left, shown, numbers, mean_of, "mean regret")
    _panel(right, shown, numbers, tail_of, "95 % quantile of regret")
    left.set_yticks(range(len(shown)), [family.name for family in reversed(shown)], fontsize=9)
    left.set_ylim(-0.6, len(shown) - 0.4)
    _legend(figure, left, numbers)
    return figure


def _panel(
    axes: Axes,
    families: Sequence[FamilyStandings],
    numbers: dict[str, int],
    measure: Callable[[Series], float],
    what: str,
) -> None:
    axes.axvline(1.0, color="0.3", linewidth=1.0)
    lowest = 0.8
    for height, family in enumerate(reversed(families)):
        assert family.rival is not None
        axes.axhline(height, color="0.92", linewidth=0.8, zorder=0)
        base = measure(family.rival.chosen)
        for one in family.standings:
            if one.label in numbers:
                value = ratio(measure(one.chosen), base)
                lowest = min(lowest, value)
                _mark(axes, one, min(value, _WIDEST), height, numbers[one.label], beyond=value > _WIDEST)
    axes.set_xscale("log")
    axes.set_xlim(0.9 * lowest, 1.15 * _WIDEST)
    axes.set_xticks([tick for tick in _TICKS if tick > 0.9 * lowest], minor=False)
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel(f"{what} over that of the best tuned baseline", fontsize=9)
    plain_axes(axes)
    axes.grid(visible=False, axis="y")


def _mark(axes: Axes, standing: Standing, value: float, height: int, number: int, *, beyond: bool) -> None:
    line = line_of(number)
    own = standing.policy == NEW_POLICY
    axes.plot(
        value,
        height,
        marker=">" if beyond else line.marker,
        color=line.colour,
        markerfacecolor=line.colour if own else "white",
        markersize=8 if own else 5.5,
        markeredgewidth=1.3,
        linestyle="none",
        zorder=4 if own else 3,
        clip_on=False,
    )


def _legend(figure: Figure, axes: Axes, numbers: dict[str, int]) -> None:
    handles = []
    for label, number in numbers.items():
        line, own = line_of(number), label == NEW_POLICY
        handles += axes.plot(
            [],
            [],
            marker=line.marker,
            color=line.colour,
            markerfacecolor=line.colour if own else "white",
            markersize=8 if own else 5.5,
            markeredgewidth=1.3,
            linestyle="none",
            label=label,
        )
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
