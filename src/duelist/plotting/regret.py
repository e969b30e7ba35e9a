"""Cumulative regret of several policies.

Regret has heavy tails: one trial that locks onto a wrong arm moves the mean and not the median, so neither is shown alone.
Up to five policies get two panels of curves with bands, the mean and the median. Bands of more would hide each other: these get
the mean curves with a name at the end of each, and next to them the distribution after the last round, best policy first.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from duelist.core.errors import InvalidInputError
from duelist.experiments.comparison import Comparison
from duelist.experiments.records import class_name
from duelist.experiments.run import Run
from duelist.experiments.statistics import BANDS, BandKind, curve_band
from duelist.plotting.style import Line, line_style, new_figure
from duelist.theory.floors import Floor
from duelist.typing import FloatArray, Int32Array, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


MOST_BANDS = 5
_POINTS = 500  # per line: more cannot be seen, and make a PDF slow to open
_GAP = 4.0  # policies this many times worse than the next leave a linear frame, so that the others can be read
_LABEL_GAP = 0.055  # of the height, between the names at the ends of two curves


class Curve(NamedTuple):
    """What one panel shows of one policy: a middle and its spread, each (points,), at these rounds."""

    name: str
    line: Line
    rounds: Int32Array | IntArray
    middle: FloatArray
    low: FloatArray
    high: FloatArray


def regret_figure(results: Comparison | Run, *, band: BandKind = "sd", floor: Floor | None = None) -> Figure:
    """Draw the cumulative average regret of every run.

    Args:
        results: a run, or several over the same number of rounds.
        band: what is shaded around the means of up to five policies: "sd", "se", "bootstrap" or "quantiles", as in
            `duelist.experiments.curve_band`. The median with its quantiles stands beside them.
        floor: what no policy's mean can beat on this problem, from `duelist.theory.regret_floor`: a line in the panel of
            means. Medians may lie below it.

    Returns:
        A matplotlib figure; see `duelist.plotting.style.save_figure`.
    """
    comparison = Comparison({results.label: results}) if isinstance(results, Run) else results
    if not comparison.runs:
        raise InvalidInputError("a figure needs at least one run; got an empty comparison.")
    figure = _draw_few(comparison, band) if len(comparison.runs) <= MOST_BANDS else _draw_many(comparison)
    if floor is not None:
        _draw_floor(figure.axes[0], floor, int(next(iter(comparison.runs.values())).rounds[-1]))
    return figure


def _draw_floor(axes: Axes, floor: Floor, rounds: int) -> None:
    if len(floor.curve) < rounds:
        raise InvalidInputError(
            f"the floor must have a curve over all {rounds} rounds of the figure; got one over {len(floor.curve)}. "
            f"Make it with duelist.theory.regret_floor(..., rounds={rounds})."
        )
    shown = np.unique(np.linspace(1, rounds, min(rounds, _POINTS)).round().astype(np.int64))
    curve = floor.curve[shown - 1]
    axes.plot(shown, curve, color="black", linewidth=1.2, linestyle=(0, (1, 1)))
    axes.annotate(
        f"floor of any policy's mean: {curve[-1]:.0f}",
        (shown[-1], curve[-1]),
        xytext=(-4, -4),
        textcoords="offset points",
        ha="right",
        va="top",
        fontsize=8,
    )


def _draw_few(comparison: Comparison, band: BandKind) -> Figure:
    first = next(iter(comparison.runs.values()))
    trials, rounds = len(first.trials), int(first.rounds[-1])
    means, medians = _curves(comparison, band), _curves(comparison, "quantiles")
    finals = {curve.name: float(curve.middle[-1]) for curve in means}
    outside = {name: finals[name] for name in find_off_scale(finals)}
    figure = new_figure(9.0, 4.3)
    figure.suptitle(_title(comparison), fontsize=11)
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, curves in ((left, means), (right, medians)):
        _draw_middles(axes, curves)
        _draw_bands(axes, curves)
        _style_axes(axes, rounds)
    _set_height(left, [curve for curve in (*means, *medians) if curve.name not in outside])
    left.set_title(f"{BANDS[band]}, n = {trials} trials" if trials > 1 else "one trial", fontsize=10)
    right.set_title(BANDS["quantiles"], fontsize=10)
    left.set_ylabel("cumulative average regret")
    handles, names = left.get_legend_handles_labels()
    labels = [f"{name} (off scale: mean {outside[name]:,.0f})" if name in outside else name for name in names]
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False, handlelength=3.2, fontsize=9
    )
    return figure


def _draw_many(comparison: Comparison) -> Figure:
    first = next(iter(comparison.runs.values()))
    trials, rounds = len(first.trials), int(first.rounds[-1])
    means = _curves(comparison, "sd")
    finals = {curve.name: float(curve.middle[-1]) for curve in means}
    outside = find_off_scale(finals)
    figure = new_figure(10.5, 1.9 + 0.33 * max(len(means), 8))
    figure.suptitle(_title(comparison), fontsize=12)
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1.0))
    _draw_middles(left, means)
    _style_axes(left, rounds)
    shown = [curve for curve in means if curve.name not in outside]
    top = 1.08 * max(float(curve.middle.max()) for curve in shown)
    left.set_ylim(0.0, top if top > 0 else 1.0)
    _name_ends(left, means, outside)
    left.set_title(f"cumulative regret, mean of {trials} trials" if trials > 1 else "cumulative regret, one trial", fontsize=10)
    left.set_ylabel("cumulative average regret", fontsize=10)
    _draw_finals(right, {curve.name: (curve.line, comparison.runs[curve.name]) for curve in means})
    right.set_title(f"after round {rounds:,}, best mean first", fontsize=10)
    return figure


def _title(comparison: Comparison) -> str:
    run = next(iter(comparison.runs.values()))
    symbols = {"dim": "d", "arms": "K"}
    sizes = [
        f"{symbol} = {getattr(run.environment, name)}" for name, symbol in symbols.items() if hasattr(run.environment, name)
    ]
    problem = class_name(run.environment) + (f" ({', '.join(sizes)})" if sizes else "")
    return f"Regret on {problem}: lower is better"


def find_off_scale(finals: dict[str, float]) -> set[str]:
    """Name the policies so far above the others that showing them would flatten the rest.

    Example:
        >>> find_off_scale({"FGTS": 300.0, "MaxInP": 200.0, "Uniform": 4000.0})
        {'Uniform'}
    """
    ordered = sorted(finals, key=lambda name: finals[name])
    ratios = [finals[worse] / finals[better] if finals[better] > 0 else 1.0 for better, worse in pairwise(ordered)]
    if not ratios or max(ratios) < _GAP:
        return set()
    return set(ordered[ratios.index(max(ratios)) + 1 :])


def _curves(comparison: Comparison, band: BandKind) -> list[Curve]:
    """The curves of a panel."""
    curves = []
    for number, (name, run) in enumerate(comparison.runs.items()):
        kept = len(run.rounds)
        at = np.unique(np.linspace(1, kept, min(kept, _POINTS)).round().astype(np.int64)) - 1
        curves.append(Curve(name, line_style(number), run.rounds[at], *curve_band(run.regret[:, at], band)))
    return curves


def _draw_middles(axes: Axes, curves: list[Curve]) -> None:
    for curve in curves:
        colour, dashes = curve.line.colour, curve.line.dashes
        axes.plot(curve.rounds, curve.middle, color=colour, linestyle=dashes, linewidth=1.7, label=curve.name)


def _draw_bands(axes: Axes, curves: list[Curve]) -> None:
    for curve in curves:
        axes.fill_between(curve.rounds, curve.low, curve.high, color=curve.line.colour, alpha=0.12, linewidth=0)
        for edge in (curve.low, curve.high):
            # Where bands overlap their shades mix; the thin edges still show which is which.
            axes.plot(curve.rounds, edge, color=curve.line.colour, linestyle=curve.line.dashes, linewidth=0.5, alpha=0.7)


def _name_ends(axes: Axes, curves: list[Curve], outside: set[str]) -> None:
    """Write each policy's name and final mean at the end of its curve; names that would overlap are moved apart."""
    top = axes.get_ylim()[1]
    ordered = sorted(curves, key=lambda curve: float(curve.middle[-1]))
    heights = spread_labels([min(float(curve.middle[-1]) / top, 1.0) for curve in ordered], _LABEL_GAP)
    last = float(ordered[0].rounds[-1])
    for curve, height in zip(ordered, heights, strict=True):
        end = (last, min(float(curve.middle[-1]), top))
        beyond = " (off scale)" if curve.name in outside else ""
        axes.annotate(
            f"{curve.name} {curve.middle[-1]:,.0f}{beyond}",
            end,
            xytext=(1.05, height),
            textcoords="axes fraction",
            color=curve.line.colour,
            fontsize=9,
            va="center",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": curve.line.colour,
                "linewidth": 0.7,
                "shrinkA": 1,
                "shrinkB": 0,
                "relpos": (0.0, 0.5),
            },
        )


def spread_labels(heights: list[float], gap: float) -> list[float]:
    """Move ascending heights in [0, 1] apart by at least `gap`: upwards first, then down from 1 if the top one is above it.

    Example:
        >>> spread_labels([0.5, 0.5, 1.0], gap=0.25)
        [0.5, 0.75, 1.0]
        >>> spread_labels([0.9, 1.0, 1.0], gap=0.25)
        [0.5, 0.75, 1.0]
    """
    placed: list[float] = []
    for height in heights:
        placed.append(max(height, placed[-1] + gap) if placed else height)
    ceiling = 1.0
    for i in range(len(placed) - 1, -1, -1):
        placed[i] = min(placed[i], ceiling)
        ceiling = placed[i] - gap
    return placed


def _draw_finals(axes: Axes, runs: dict[str, tuple[Line, Run]]) -> None:
    """Draw final regrets, one row per policy: 5 % to 95 % (line), quartiles (bar), median (tick) and mean (diamond)."""
    from matplotlib.ticker import LogLocator, NullLocator

    ordered = sorted(runs, key=lambda name: -float(runs[name][1].final_regret.mean()))
    for height, name in enumerate(ordered):
        line, run = runs[name]
        q05, q25, median, q75, q95 = np.quantile(run.final_regret, [0.05, 0.25, 0.5, 0.75, 0.95])
        axes.plot([q05, q95], [height, height], color=line.colour, linewidth=1.4)
        axes.plot([q25, q75], [height, height], color=line.colour, linewidth=6.0, alpha=0.35, solid_capstyle="butt")
        axes.plot(median, height, "|", color=line.colour, markersize=11, markeredgewidth=2.0)
        axes.plot(run.final_regret.mean(), height, "D", color="black", markerfacecolor="white", markersize=5)
    axes.set_yticks(range(len(ordered)), ordered, fontsize=9)
    axes.set_ylim(-0.6, len(ordered) - 0.4)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_xlabel("regret: diamond mean, tick median,\nbar quartiles, line 5 % to 95 %", fontsize=9)
    axes.grid(visible=True, axis="x", color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _set_height(axes: Axes, curves: list[Curve]) -> None:
    top = max(float(max(curve.high.max(), curve.middle.max())) for curve in curves)
    axes.set_ylim(0.0, 1.05 * top if top > 0 else 1.0)


def _style_axes(axes: Axes, rounds: int) -> None:
    axes.set_xlabel("round")
    axes.set_xlim(0, rounds)
    axes.grid(visible=True, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
