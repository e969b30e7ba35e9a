"""The problem families in one figure: every policy's regret over that of the best tuned baseline, family by family."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from duelist.experiments.families.standings import FLOOR, FamilyStandings, mean_regret, ratio, tail_regret
from duelist.experiments.sweep.series import Series
from duelist.plotting.panels import plain_axes
from duelist.plotting.style import line_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_WIDEST = 8.0  # ratios beyond are drawn at the edge with an arrow: they are all "much worse"
_TICKS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)


class _Mark(NamedTuple):
    """The mark of one policy: the number of its line style, and whether it is filled."""

    number: int
    filled: bool

    def style(self) -> dict[str, Any]:
        line = line_style(self.number)
        return {
            "marker": line.marker,
            "color": line.colour,
            "markerfacecolor": line.colour if self.filled else "white",
            "markersize": 8 if self.filled else 5.5,
            "markeredgewidth": 1.3,
            "linestyle": "none",
        }


def family_figure(families: Sequence[FamilyStandings]) -> Figure:
    """Draw means and 95 % quantiles in two panels: one row per family, one mark per policy, 1 the best tuned baseline.

    Random play is left out. Policies under test have filled marks and baselines hollow ones: they differ without colour.
    """
    shown = [family for family in families if family.rival is not None]
    labels = list(dict.fromkeys(one.label for family in shown for one in family.standings if one.policy != FLOOR))
    under_test = {label for family in shown for label in family.under_test}
    ordered = sorted(labels, key=lambda label: label not in under_test)
    marks = {label: _Mark(number, filled=label in under_test) for number, label in enumerate(ordered)}
    figure = new_figure(9.5, 1.6 + 0.34 * len(shown))
    left, right = figure.subplots(1, 2, sharey=True)
    _panel(left, shown, marks, mean_regret, "mean regret")
    _panel(right, shown, marks, tail_regret, "95 % quantile of regret")
    left.set_yticks(range(len(shown)), [family.name for family in reversed(shown)], fontsize=9)
    left.set_ylim(-0.6, len(shown) - 0.4)
    _legend(figure, left, marks)
    return figure


def _panel(
    axes: Axes,
    families: Sequence[FamilyStandings],
    marks: dict[str, _Mark],
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
            if one.label in marks:
                value = ratio(measure(one.chosen), base)
                lowest = min(lowest, value)
                mark = marks[one.label]
                style = mark.style() | ({"marker": ">"} if value > _WIDEST else {})
                axes.plot(min(value, _WIDEST), height, **style, zorder=4 if mark.filled else 3, clip_on=False)
    axes.set_xscale("log")
    axes.set_xlim(0.9 * lowest, 1.15 * _WIDEST)
    axes.set_xticks([tick for tick in _TICKS if tick > 0.9 * lowest], minor=False)
    axes.set_xticks([], minor=True)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_xlabel(f"{what} over that of the best tuned baseline", fontsize=9)
    plain_axes(axes)
    axes.grid(visible=False, axis="y")


def _legend(figure: Figure, axes: Axes, marks: dict[str, _Mark]) -> None:
    handles = [line for label, mark in marks.items() for line in axes.plot([], [], **mark.style(), label=label)]
    figure.legend(handles=handles, loc="outside lower center", ncols=5, frameon=False, fontsize=9)
