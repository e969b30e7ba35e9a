"""The figures of the paper, and further views of the same results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from duelist.experiments.sweep.series import GRIDS, PAPER_ALPHA, Series, environment_text, paired_difference, select
from duelist.plotting.panels import Draw, Names, Row, draw_growth, draw_mean, draw_median, log_axis, panel_figure
from duelist.plotting.style import line_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class PaperFigure:
    """A figure with its file name and what it shows."""

    name: str
    caption: str
    figure: Figure


def comparison_figures(
    prefix: str, title: str, series: Sequence[Series], tuning: Sequence[Series], paper_values: Sequence[float]
) -> list[PaperFigure]:
    """FGTS against baselines: a row for each grid in which the baselines were tuned, a column for each environment."""
    everything = list(series)
    names = _number_names(_legend_name(one) for one in everything)
    rows = [
        Row(GRIDS.get(grid, grid), _split_by_environment([one for one in everything if one.grid in ("", grid)]))
        for grid in _grids(everything)
    ]
    exact = _reference_label(everything)

    def reference(one: Series) -> Series:
        return select(everything, label=exact, environment=one.environment)[0]

    figures = _draw_five_ways(prefix, title, rows, reference, "FGTS (exact sampling)", _legend_name, names)
    if tuning:
        panels = [Row("", _split_by_environment(list(tuning)))]
        tuned = {name: number for name, number in names.items() if name in {_legend_name(one) for one in tuning}}
        drawing = panel_figure(panels, make_tuning_drawing(paper_values), _legend_name, tuned)
        figures.append(PaperFigure(f"{prefix}-tuning", _TUNING_CAPTION, drawing))
    return figures


def alpha_figures(prefix: str, title: str, series: Sequence[Series]) -> list[PaperFigure]:
    """FGTS at every alpha: a row for each sampler, a column for each environment."""
    everything = list(series)
    rows = [
        Row(label, _split_by_environment(select(everything, label=label)))
        for label in dict.fromkeys(one.label for one in everything)
    ]

    def reference(one: Series) -> Series:
        return select(everything, label=one.label, environment=one.environment, alpha=PAPER_ALPHA)[0]

    names = _number_names(_alpha_name(one) for one in everything)
    return _draw_five_ways(prefix, title, rows, reference, f"alpha = {PAPER_ALPHA:g}", _alpha_name, names)


def sweep_figures(prefix: str, title: str, series: Sequence[Series]) -> list[PaperFigure]:
    """Any other sweep: a row for each named grid, a column for each environment; differences are to the first policy."""
    everything = list(series)
    rows = [
        Row(GRIDS.get(grid, grid), _split_by_environment([one for one in everything if one.grid in ("", grid)]))
        for grid in _grids(everything)
    ]

    def name_series(one: Series) -> str:
        return one.label if one.grid or not one.setting else f"{one.label}, {one.setting_text}"

    def reference(one: Series) -> Series:
        return select(everything, environment=one.environment)[0]

    return _draw_five_ways(
        prefix,
        title or prefix,
        rows,
        reference,
        name_series(everything[0]),
        name_series,
        _number_names(map(name_series, everything)),
    )


def _draw_five_ways(
    prefix: str,
    title: str,
    rows: Sequence[Row],
    reference: Callable[[Series], Series],
    reference_name: str,
    name: Callable[[Series], str],
    names: Names,
) -> list[PaperFigure]:
    """The same panels as mean, median, distribution, paired differences and growth."""
    against = [Row(row.title, [(place, _without_reference(own, reference)) for place, own in row.panels]) for row in rows]
    ways: list[tuple[str, str, Sequence[Row], Draw]] = [
        ("mean", "Mean cumulative regret with the band of one standard deviation over trials.", rows, draw_mean),
        ("median", "Median cumulative regret with the band from the 5 % to the 95 % quantile.", rows, draw_median),
        ("final", _FINAL_CAPTION, rows, draw_finals),
        ("paired", _PAIRED_CAPTION.format(reference_name), against, make_paired_drawing(reference, reference_name)),
        ("growth", _GROWTH_CAPTION, rows, draw_growth),
    ]
    figures = []
    for kind, caption, wanted, draw in ways:
        if kind in ("final", "paired"):
            longest = max(len(name) for name in names)
            drawing = panel_figure(wanted, draw, name, names, labels=0.2 + 0.057 * longest, legend=False)
        else:
            drawing = panel_figure(wanted, draw, name, names)
        figures.append(PaperFigure(f"{prefix}-{kind}", f"{title}. {caption}", drawing))
    return figures


_FINAL_CAPTION = (
    "Regret after the last round: every trial a dot, box from quartile to quartile, bar at the median, diamond at the mean."
)
_PAIRED_CAPTION = (
    "Regret after the last round minus that of {}, trial by trial: mean, 95 % t interval (bar) and bootstrap interval "
    "(ticks). Right of zero, the reference did better. The axis is linear within 100 and logarithmic beyond."
)
_GROWTH_CAPTION = (
    "Mean regret on logarithmic axes; the number at a line's end is the exponent fitted to its last nine tenths of rounds."
)
_TUNING_CAPTION = (
    "What the tuned parameter costs on the tuning instances. Filled marks lie in the paper's grid, hollow ones only in the "
    "finer one; squares have a ridge of 0.001, triangles one of 0.001 in the covariance only."
)


def _without_reference(series: Sequence[Series], reference: Callable[[Series], Series]) -> list[Series]:
    return [one for one in series if reference(one) is not one]


def _number_names(names: Iterable[str]) -> Names:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def _legend_name(series: Series) -> str:
    """What the legend says. The row's title says how a baseline was set, so its variant in brackets is left out."""
    return series.label.split(" (ridge")[0]


def _alpha_name(series: Series) -> str:
    return f"alpha = {series.setting['alpha']:g}"


def _split_by_environment(series: list[Series]) -> list[tuple[str, list[Series]]]:
    places = {str(one.environment): one.environment for one in series}.values()
    return [(environment_text(place), select(series, environment=place)) for place in places]


def _grids(series: Sequence[Series]) -> list[str]:
    found = {one.grid for one in series if one.grid}
    return [grid for grid in (*GRIDS, *sorted(found - set(GRIDS))) if grid in found] or [""]


def _reference_label(series: Sequence[Series]) -> str:
    return next((one.label for one in series if one.policy == "FGTS"), series[0].label)


def draw_finals(axes: Axes, series: Sequence[Series], name: Callable[[Series], str], names: Names) -> None:
    """Every trial a dot, over a box from quartile to quartile with the median; the diamond is the mean."""
    for height, one in enumerate(reversed(series)):
        colour = line_style(names[name(one)]).colour
        final = np.maximum(one.final, 1e-3)
        # A fixed zigzag keeps dots apart without a random number.
        jitter = 0.22 * np.sin(np.arange(len(final)) * 2.4)
        axes.plot(final, height + jitter, ".", color=colour, markersize=3.5, alpha=0.7, markeredgewidth=0)
        q1, median, q3 = np.quantile(final, [0.25, 0.5, 0.75])
        axes.plot([q1, q3, q3, q1, q1], height + 0.32 * np.array([-1, -1, 1, 1, -1]), color=colour, linewidth=1.0)
        axes.plot([median, median], [height - 0.32, height + 0.32], color=colour, linewidth=2.2)
        axes.plot(final.mean(), height, "D", color="black", markersize=4, markerfacecolor="white")
    log_axis(axes, "x")
    axes.set_yticks(range(len(series)), [name(one) for one in reversed(series)], fontsize=7)
    axes.set_ylim(-0.6, len(series) - 0.4)
    axes.set_xlabel("regret after the last round", fontsize=8)


def make_paired_drawing(reference: Callable[[Series], Series], reference_name: str) -> Draw:
    """A drawing of differences to a reference policy: 95 % t interval as a bar, bootstrap interval as brackets."""

    def draw(axes: Axes, series: Sequence[Series], name: Callable[[Series], str], names: Names) -> None:
        axes.axvline(0.0, color="0.4", linewidth=0.8)
        for height, one in enumerate(reversed(series)):
            colour = line_style(names[name(one)]).colour
            difference = paired_difference(one, reference(one))
            axes.plot([difference.t.low, difference.t.high], [height, height], color=colour, linewidth=3.0, alpha=0.5)
            axes.plot(difference.t.estimate, height, "o", color=colour, markersize=5)
            ends = [difference.bootstrap.low, difference.bootstrap.high]
            axes.plot(ends, [height, height], "|", color=colour, markersize=9, markeredgewidth=1.4)
        axes.set_xscale("symlog", linthresh=100.0)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:+g}" if value else "0")
        axes.set_yticks(range(len(series)), [name(one) for one in reversed(series)], fontsize=7)
        axes.set_ylim(-0.6, len(series) - 0.4)
        axes.set_xlabel(f"regret minus that of {reference_name}", fontsize=8)

    return draw


def make_tuning_drawing(paper_values: Sequence[float]) -> Draw:
    """A drawing of mean final regret against the tuned parameter; hollow marks lie outside the paper's grid."""

    def draw(axes: Axes, series: Sequence[Series], name: Callable[[Series], str], names: Names) -> None:
        for label in dict.fromkeys(one.label for one in series):
            own = sorted((one for one in series if one.label == label), key=lambda one: next(iter(one.setting.values())))
            line = line_style(names[name(own[0])])
            mark = "o" if name(own[0]) == label else "^" if "covariance" in label else "s"
            values = [next(iter(one.setting.values())) for one in own]
            means = [float(one.final.mean()) for one in own]
            axes.plot(values, means, color=line.colour, linestyle=line.dashes, linewidth=1.2)
            for value, mean in zip(values, means, strict=True):
                fill = line.colour if value in paper_values else "white"
                axes.plot(value, mean, mark, color=line.colour, markersize=5, markerfacecolor=fill)
        log_axis(axes, "x")
        log_axis(axes, "y")
        axes.set_xlabel(" or ".join(dict.fromkeys(parameter for one in series for parameter in one.setting)), fontsize=8)
        axes.set_ylabel("mean regret after the last round", fontsize=8)

    return draw
