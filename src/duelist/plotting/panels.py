"""A figure of panels: environments across, conditions down, one way of drawing, one legend for all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from duelist.experiments.statistics import BandKind, curve_band, growth_exponent
from duelist.experiments.sweep.series import Series
from duelist.plotting.regret import find_off_scale
from duelist.plotting.style import Line, line_style, new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_PANEL = (2.6, 1.9)  # inches inside the axes
_TITLE = 0.4  # inches for the title of a figure
_LEGEND_COLUMNS = 4
Names = dict[str, int]  # what a series is called -> its line, the same in every figure
Legend = Sequence[Any]  # handles of matplotlib
Draw = Callable[["Axes", Sequence[Series], Callable[[Series], str], Names], None]


@dataclass(frozen=True)
class Row:
    """One row of panels: its title, and for every panel a title and its series."""

    title: str
    panels: Sequence[tuple[str, Sequence[Series]]]


def panel_figure(
    rows: Sequence[Row],
    draw: Draw,
    name: Callable[[Series], str],
    names: Names,
    *,
    title: str = "",
    labels: float = 0.75,
    legend: Legend = (),
) -> Figure:
    """Draw every panel in the same way.

    Args:
        rows: the panels.
        draw: how one is drawn.
        name: makes the name of a series.
        names: the line of every name.
        title: of the figure, so that it can be understood alone.
        labels: space left of a panel for its labels, in inches.
        legend: entries of the one legend below all panels: the lines of `line_legend` and what else needs a word.
    """
    columns = max(len(row.panels) for row in rows)
    across = min(_LEGEND_COLUMNS, columns + 1)  # entries of a legend in one line
    legend_height = 0.1 + 0.21 * -(-len(legend) // across) if legend else 0.1
    title_height = _TITLE if title else 0.0
    width = columns * (labels + _PANEL[0] + 0.3)
    height = len(rows) * (_PANEL[1] + 0.95) + legend_height + title_height
    # Positions are computed here: matplotlib's own layout measures every text several times, a second per figure.
    figure = new_figure(width, height, layout=None)
    grid = figure.subplots(len(rows), columns, squeeze=False)
    for down, (line, row) in enumerate(zip(grid, rows, strict=True)):
        for column, (axes, (place, series)) in enumerate(zip(line, row.panels, strict=True)):
            left = column * (labels + _PANEL[0] + 0.3) + labels
            bottom = height - title_height - (down + 1) * (_PANEL[1] + 0.95) + 0.5
            axes.set_position((left / width, bottom / height, _PANEL[0] / width, _PANEL[1] / height))
            draw(axes, series, name, names)
            axes.set_title(
                f"{place}: {row.title}" if row.title else place, fontsize=9, y=1.0
            )  # fixed: looking for room takes long
            plain_axes(axes)
    if title:
        figure.text(0.5, 1.0 - 0.5 * title_height / height, title, ha="center", va="center", fontsize=10.5)
    if legend:
        figure.legend(handles=list(legend), loc="lower center", ncols=across, frameon=False, handlelength=3.2, fontsize=9)
    return figure


def plain_axes(axes: Axes) -> None:
    """Small type, a faint grid, no box."""
    axes.grid(visible=True, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=8)


def log_axis(axes: Axes, which: str) -> None:
    """Make the "x" or "y" axis of a finished drawing logarithmic, with plain numbers at its ticks."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set(**{f"{which}scale": "log"})
    axis, (low, high) = (axes.xaxis, axes.get_xlim()) if which == "x" else (axes.yaxis, axes.get_ylim())
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100 * low else (1.0,)))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def line_legend(names: Names) -> list[Any]:
    """Legend entries: the line of every name."""
    from matplotlib.lines import Line2D

    styles = {name: line_style(number) for name, number in names.items()}
    return [
        Line2D([], [], color=line.colour, linestyle=line.dashes, linewidth=1.6, label=name) for name, line in styles.items()
    ]


def mark_legend(marks: Mapping[str, tuple[str, bool]]) -> list[Any]:
    """Legend entries of marks by what they mean: (marker, whether it is filled)."""
    from matplotlib.lines import Line2D

    return [
        Line2D(
            [],
            [],
            color="0.35",
            linestyle="none",
            marker=mark,
            markersize=5,
            markerfacecolor="0.35" if full else "white",
            label=word,
        )
        for word, (mark, full) in marks.items()
    ]


def make_curve_drawing(band: BandKind) -> Draw:
    """A drawing of regret over rounds: the middle and the band of `curve_band`."""

    def draw(axes: Axes, series: Sequence[Series], name: Callable[[Series], str], names: Names) -> None:
        _curves(axes, series, name, names, band)

    return draw


def draw_growth(axes: Axes, series: Sequence[Series], name: Callable[[Series], str], names: Names) -> None:
    """Mean regret on logarithmic axes, with the exponent fitted to the second half of the rounds at the end of each line."""
    for one in series:
        line = line_style(names[name(one)])
        mean = one.regret.mean(axis=0)
        exponent = growth_exponent(one).estimate
        axes.plot(one.rounds, mean, color=line.colour, linestyle=line.dashes, linewidth=1.4)
        axes.annotate(
            f"{exponent:.2f}",
            (one.rounds[-1], mean[-1]),
            xytext=(3, 0),
            textcoords="offset points",
            fontsize=7,
            color=line.colour,
            va="center",
            annotation_clip=False,
        )
    log_axis(axes, "x")
    log_axis(axes, "y")
    _spread_notes(axes)
    axes.set_xlabel("round", fontsize=8)
    axes.set_ylabel("mean cumulative regret", fontsize=8)


def _spread_notes(axes: Axes) -> None:
    """Move exponents apart that would be printed over each other."""
    notes = sorted((note for note in axes.texts), key=lambda note: note.xy[1])  # type: ignore[attr-defined]
    if not notes:
        return
    heights = np.log([note.xy[1] for note in notes])  # type: ignore[attr-defined]
    low, high = axes.get_ylim()
    points = 150.0 / max(np.log(high / max(low, 1e-9)), 1e-9)
    placed = -np.inf
    for note, height in zip(notes, heights * points, strict=True):
        placed = max(height, placed + 8.0)
        note.set_position((3, placed - height))


def _curves(
    axes: Axes,
    series: Sequence[Series],
    name: Callable[[Series], str],
    names: Names,
    band: BandKind,
) -> None:
    outside = find_off_scale({name(one): float(one.final_regret.mean()) for one in series})
    # Random play is named in the corner; it would set a scale that hides the learners.
    outside |= {name(one) for one in series if one.policy == "Uniform" and len(series) > 1}
    shade = min(0.15, 0.6 / max(len(series), 1))
    top = 0.0
    for one in series:
        line: Line = line_style(names[name(one)])
        middle, low, high = curve_band(one.regret, band)
        axes.plot(one.rounds, middle, color=line.colour, linestyle=line.dashes, linewidth=1.6)
        axes.fill_between(one.rounds, low, high, color=line.colour, alpha=shade, linewidth=0)
        if name(one) not in outside:
            # A band much wider than its line is cut: it would flatten all the lines.
            top = max(top, min(float(high.max()), 1.4 * float(middle.max())))
    for number, one in enumerate(one for one in series if name(one) in outside):
        text = f"{name(one)} ends at {one.final_regret.mean():,.0f}"
        axes.text(0.98, 0.97 - 0.08 * number, text, transform=axes.transAxes, ha="right", va="top", fontsize=7, color="0.3")
    axes.set_xlim(0, series[0].rounds[-1])
    axes.set_ylim(0, 1.05 * top if top > 0 else 1.0)
    axes.set_xlabel("round", fontsize=8)
    axes.set_ylabel("cumulative regret", fontsize=8)
