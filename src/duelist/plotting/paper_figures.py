"""The figures of the paper, and those that should stand beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duelist.experiments.claims import GRIDS, PAPER_ALPHA, environment_text
from duelist.experiments.series import Series, select
from duelist.plotting.finals import draw_finals, paired_drawing
from duelist.plotting.panels import Draw, Names, Row, draw_growth, draw_mean, draw_median, panel_figure
from duelist.plotting.tuning import tuning_drawing

if TYPE_CHECKING:
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
    names = _numbered(_legend(one) for one in everything)
    rows = [
        Row(GRIDS.get(grid, grid), _places([one for one in everything if one.grid in ("", grid)]))
        for grid in _grids(everything)
    ]
    exact = _reference(everything)

    def reference(one: Series) -> Series:
        return select(everything, label=exact, environment=one.environment)[0]

    figures = _five_ways(prefix, title, rows, reference, "FGTS (exact sampling)", _legend, names)
    if tuning:
        panels = [Row("", _places(list(tuning)))]
        tuned = {name: number for name, number in names.items() if name in {_legend(one) for one in tuning}}
        drawing = panel_figure(panels, tuning_drawing(paper_values), _legend, tuned)
        figures.append(PaperFigure(f"{prefix}-tuning", _TUNING_CAPTION, drawing))
    return figures


def alpha_figures(prefix: str, title: str, series: Sequence[Series]) -> list[PaperFigure]:
    """FGTS at every alpha: a row for each sampler, a column for each environment."""
    everything = list(series)
    rows = [Row(label, _places(select(everything, label=label))) for label in dict.fromkeys(one.label for one in everything)]

    def reference(one: Series) -> Series:
        return select(everything, label=one.label, environment=one.environment, alpha=PAPER_ALPHA)[0]

    names = _numbered(_alpha(one) for one in everything)
    return _five_ways(prefix, title, rows, reference, f"alpha = {PAPER_ALPHA:g}", _alpha, names)


def sweep_figures(prefix: str, title: str, series: Sequence[Series]) -> list[PaperFigure]:
    """Any other sweep: a row for each named grid, a column for each environment; differences are to the first policy."""
    everything = list(series)
    rows = [
        Row(GRIDS.get(grid, grid), _places([one for one in everything if one.grid in ("", grid)]))
        for grid in _grids(everything)
    ]

    def called(one: Series) -> str:
        return one.label if one.grid or not one.setting else f"{one.label}, {one.setting_text}"

    def reference(one: Series) -> Series:
        return select(everything, environment=one.environment)[0]

    return _five_ways(
        prefix, title or prefix, rows, reference, called(everything[0]), called, _numbered(map(called, everything))
    )


def _five_ways(
    prefix: str,
    title: str,
    rows: Sequence[Row],
    reference: Callable[[Series], Series],
    reference_name: str,
    called: Callable[[Series], str],
    names: Names,
) -> list[PaperFigure]:
    """The same panels as mean, median, distribution, paired differences and growth."""
    against = [Row(row.title, [(place, _others(own, reference)) for place, own in row.panels]) for row in rows]
    ways: list[tuple[str, str, Sequence[Row], Draw]] = [
        ("mean", "Mean cumulative regret with the band of one standard deviation over trials.", rows, draw_mean),
        ("median", "Median cumulative regret with the band from the 5 % to the 95 % quantile.", rows, draw_median),
        ("final", _FINAL_CAPTION, rows, draw_finals),
        ("paired", _PAIRED_CAPTION.format(reference_name), against, paired_drawing(reference, reference_name)),
        ("growth", _GROWTH_CAPTION, rows, draw_growth),
    ]
    figures = []
    for kind, caption, wanted, draw in ways:
        if kind in ("final", "paired"):
            longest = max(len(name) for name in names)
            drawing = panel_figure(wanted, draw, called, names, labels=0.2 + 0.057 * longest, legend=False)
        else:
            drawing = panel_figure(wanted, draw, called, names)
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
    "What the radius costs on the tuning instances. Filled marks lie in the paper's grid, hollow ones only in the finer one; "
    "squares have a ridge of 0.001."
)


def _others(series: Sequence[Series], reference: Callable[[Series], Series]) -> list[Series]:
    return [one for one in series if reference(one) is not one]


def _numbered(names: Iterable[str]) -> Names:
    return {name: number for number, name in enumerate(dict.fromkeys(names))}


def _legend(series: Series) -> str:
    """What the legend says. The row's title says how a baseline was set, so its variant in brackets is left out."""
    return series.label.split(" (ridge")[0]


def _alpha(series: Series) -> str:
    return f"alpha = {series.setting['alpha']:g}"


def _places(series: list[Series]) -> list[tuple[str, list[Series]]]:
    places = {str(one.environment): one.environment for one in series}.values()
    return [(environment_text(place), select(series, environment=place)) for place in places]


def _grids(series: Sequence[Series]) -> list[str]:
    found = {one.grid for one in series if one.grid}
    return [grid for grid in (*GRIDS, *sorted(found - set(GRIDS))) if grid in found] or [""]


def _reference(series: Sequence[Series]) -> str:
    return next((one.label for one in series if one.policy == "FGTS"), series[0].label)
