"""The figures of the paper, and further views of the same results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from duelist.experiments.statistics import BANDS, BandKind, paired_difference
from duelist.experiments.sweep.series import GRIDS, PAPER_ALPHA, Series, environment_text, select
from duelist.plotting.panels import (
    Draw,
    Names,
    Row,
    draw_growth,
    line_legend,
    log_axis,
    make_curve_drawing,
    mark_legend,
    panel_figure,
)
from duelist.plotting.style import figure_digest, line_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class PaperFigure:
    """A figure with its file name and what it shows. It is drawn when it is asked for.

    Attributes:
        name: of its files.
        caption: what it shows, in words.
        draw: makes it.
        digest: of the data and the code behind it: an equal one means the same figure.
    """

    name: str
    caption: str
    draw: Callable[[], Figure] = field(repr=False)
    digest: str

    @cached_property
    def figure(self) -> Figure:
        """The figure of matplotlib."""
        return self.draw()


def comparison_figures(
    prefix: str,
    title: str,
    series: Sequence[Series],
    tuning: Sequence[Series],
    paper_values: Sequence[float],
    *,
    band: BandKind = "sd",
) -> list[PaperFigure]:
    """FGTS against baselines: a row for each grid in which the baselines were tuned, a column for each environment."""
    everything = list(series)
    names = _number_names(_legend_name(one) for one in everything)
    rows = [
        Row(_row_title(grid), _split_by_environment([one for one in everything if one.grid in ("", grid)]))
        for grid in _grids(everything)
    ]
    exact = _reference_label(everything)

    def reference(one: Series) -> Series:
        return select(everything, label=exact, environment=one.environment)[0]

    figures = _draw_five_ways(prefix, title, rows, (reference, "FGTS (exact sampling)"), _legend_name, names, band)
    if tuning:
        panels = [Row("", _split_by_environment(list(tuning)))]
        tuned = {name: number for name, number in names.items() if name in {_legend_name(one) for one in tuning}}
        heading = f"Tuning: mean regret over {len(tuning[0].trials)} tuning instances by the value of the tuned parameter"

        def draw_tuning() -> Figure:
            legend = [*line_legend(tuned), *mark_legend(_tuning_marks(tuning, paper_values))]
            draw = make_tuning_drawing(paper_values)
            return panel_figure(panels, draw, _legend_name, tuned, title=heading, legend=legend)

        digest = figure_digest(panels, heading, tuned, list(paper_values))
        figures.append(PaperFigure(f"{prefix}-tuning", _TUNING_CAPTION, draw_tuning, digest))
    return figures


def alpha_figures(prefix: str, title: str, series: Sequence[Series], *, band: BandKind = "sd") -> list[PaperFigure]:
    """FGTS at every alpha: a row for each sampler, a column for each environment."""
    everything = list(series)
    rows = [
        Row(label, _split_by_environment(select(everything, label=label)))
        for label in dict.fromkeys(one.label for one in everything)
    ]

    def reference(one: Series) -> Series:
        return select(everything, label=one.label, environment=one.environment, alpha=PAPER_ALPHA)[0]

    names = _number_names(_alpha_name(one) for one in everything)
    return _draw_five_ways(prefix, title, rows, (reference, f"alpha = {PAPER_ALPHA:g}"), _alpha_name, names, band)


def sweep_figures(prefix: str, title: str, series: Sequence[Series], *, band: BandKind = "sd") -> list[PaperFigure]:
    """Any other sweep: a row for each named grid, a column for each environment; differences are to the first policy."""
    everything = list(series)
    rows = [
        Row(_row_title(grid), _split_by_environment([one for one in everything if one.grid in ("", grid)]))
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
        (reference, name_series(everything[0])),
        name_series,
        _number_names(map(name_series, everything)),
        band,
    )


def _draw_five_ways(
    prefix: str,
    title: str,
    rows: Sequence[Row],
    against_what: tuple[Callable[[Series], Series], str],
    name: Callable[[Series], str],
    names: Names,
    band: BandKind,
) -> list[PaperFigure]:
    """The same panels as mean, median, distribution, paired differences to a reference with its name, and growth."""
    reference, reference_name = against_what
    against = [Row(row.title, [(place, _without_reference(own, reference)) for place, own in row.panels]) for row in rows]
    paired = make_paired_drawing(reference, reference_name)
    ways: list[tuple[str, str, str, Sequence[Row], Draw]] = [
        ("mean", BANDS[band], _CURVE_CAPTION.format(BANDS[band]), rows, make_curve_drawing(band)),
        ("median", BANDS["quantiles"], _CURVE_CAPTION.format(BANDS["quantiles"]), rows, make_curve_drawing("quantiles")),
        ("final", "every trial after the last round", _FINAL_CAPTION, rows, draw_finals),
        ("paired", f"difference to {reference_name}", _PAIRED_CAPTION.format(reference_name), against, paired),
        ("growth", "mean, with the exponent of the second half", _GROWTH_CAPTION, rows, draw_growth),
    ]
    trials = len(rows[0].panels[0][1][0].trials)
    longest = max(len(name) for name in names)
    figures = []
    for kind, heading, caption, wanted, draw in ways:
        panels = partial(panel_figure, wanted, draw, name, names, title=f"{title}: {heading}, n = {trials} trials")
        if kind in ("final", "paired"):
            finish = partial(panels, labels=0.2 + 0.057 * longest)
        else:
            finish = partial(_with_lines, panels, names)
        digest = figure_digest(rows, names, kind, title, heading)
        figures.append(PaperFigure(f"{prefix}-{kind}", f"{title}, {trials} trials. {caption}", finish, digest))
    return figures


def _with_lines(panels: Callable[..., Figure], names: Names) -> Figure:
    """Panels with the lines in the legend, which needs matplotlib and so waits until the figure is drawn."""
    return panels(legend=line_legend(names))


def _row_title(grid: str) -> str:
    return f"baselines tuned on\nthe {GRIDS.get(grid, f'grid {grid}')}" if grid else ""


def _tuning_marks(tuning: Sequence[Series], paper_values: Sequence[float]) -> dict[str, tuple[str, bool]]:
    """What the marks of the tuning figure mean, of those that are in it."""
    shapes = {_tuning_mark(one): one for one in tuning}
    words = {"o": "ridge 1, or the policy's own", "s": "ridge 0.001", "^": "ridge 0.001 in the covariance only"}
    marks = {word: (shape, True) for shape, word in words.items() if shape in shapes}
    if any(value not in paper_values for one in tuning for value in one.setting.values()):
        marks |= {"in the paper's grid": ("o", True), "in the finer grid only": ("o", False)}
    return marks


def _tuning_mark(series: Series) -> str:
    return "o" if _legend_name(series) == series.label else "^" if "covariance" in series.label else "s"


_CURVE_CAPTION = "Cumulative regret: {}."
_FINAL_CAPTION = (
    "Regret after the last round: every trial a dot, box from quartile to quartile, bar at the median, diamond at the mean."
)
_PAIRED_CAPTION = (
    "Regret after the last round minus that of {}, trial by trial: mean, 95 % t interval (bar) and bootstrap interval "
    "(ticks). Right of zero, the reference did better. The axis is linear within 100 and logarithmic beyond."
)
_GROWTH_CAPTION = (
    "Mean regret on logarithmic axes; the number at a line's end is the exponent fitted to the second half of its rounds."
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
        final = np.maximum(one.final_regret, 1e-3)
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
            mark = _tuning_mark(own[0])
            values = [next(iter(one.setting.values())) for one in own]
            means = [float(one.final_regret.mean()) for one in own]
            axes.plot(values, means, color=line.colour, linestyle=line.dashes, linewidth=1.2)
            inside = np.isin(values, list(paper_values))
            for which, fill in ((inside, line.colour), (~inside, "white")):
                at = np.array(values)[which], np.array(means)[which]
                axes.plot(*at, mark, color=line.colour, markersize=5, markerfacecolor=fill)
        log_axis(axes, "x")
        log_axis(axes, "y")
        axes.set_xlabel(" or ".join(dict.fromkeys(parameter for one in series for parameter in one.setting)), fontsize=8)
        axes.set_ylabel("mean regret after the last round", fontsize=8)

    return draw
