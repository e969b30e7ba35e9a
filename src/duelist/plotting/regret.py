"""Cumulative regret against rounds: the mean with its spread, and beside it the median with quantiles.

Regret has heavy tails: one trial that locks onto a wrong arm moves the mean and not the median, so neither is shown alone.
A few policies get bands around their curves. Bands of many would hide each other, so many get a whisker each at the end, and
a logarithmic axis that keeps them apart.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from duelist.core.checks import FloatArray, IntArray
from duelist.core.errors import InvalidInputError
from duelist.experiments.compare import Comparison
from duelist.plotting.files import new_figure
from duelist.plotting.lines import Line, line_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_BANDS = 5
_POINTS = 500  # a line: more cannot be told apart, and make a PDF slow to open
_GAP = 4.0  # policies this many times worse than the next leave a linear frame, or nothing below them could be read
_MARGIN = 0.2  # of the width, for whiskers
_DECADES = 2.0  # a logarithmic frame shows at most this much below its top: nobody reads the first rounds


class Curve(NamedTuple):
    """What one panel shows of one policy: a middle and its spread, each (points,), at these rounds."""

    name: str
    line: Line
    rounds: IntArray
    middle: FloatArray
    low: FloatArray
    high: FloatArray


def regret_figure(comparison: Comparison) -> Figure:
    """Draw the cumulative average regret of every run.

    Args:
        comparison: runs over the same number of rounds.

    Returns:
        A matplotlib figure; see `duelist.plotting.files.save_figure`.
    """
    if not comparison.runs:
        raise InvalidInputError("a figure needs at least one run; got an empty comparison.")
    trials, rounds = next(iter(comparison.runs.values())).regret.shape
    means, medians = _curves(comparison)
    figure = new_figure(9.0, 4.0)
    left, right = figure.subplots(1, 2, sharey=True)
    outside: dict[str, float] = {}
    for axes, curves in ((left, means), (right, medians)):
        _middles(axes, curves, markers=len(curves) > MOST_BANDS)
        _dress(axes, rounds)
        if len(curves) <= MOST_BANDS:
            _bands(axes, curves)
        else:
            _whiskers(axes, curves, rounds)
    if len(means) <= MOST_BANDS:
        finals = {curve.name: float(curve.middle[-1]) for curve in means}
        outside = {name: finals[name] for name in beyond_the_frame(finals)}
        _linear(left, [curve for curve in (*means, *medians) if curve.name not in outside])
    else:
        _logarithmic(left, [*means, *medians])
    left.set_title(f"mean of {trials} trials, ± 1 sd" if trials > 1 else "one trial", fontsize=10)
    right.set_title("median, 5 % to 95 %", fontsize=10)
    left.set_ylabel("cumulative average regret")
    _legend(figure, left, outside)
    return figure


def beyond_the_frame(finals: dict[str, float]) -> set[str]:
    """The policies so far above the others that showing them would flatten the rest.

    Example:
        >>> beyond_the_frame({"FGTS": 300.0, "MaxInP": 200.0, "Uniform": 4000.0})
        {'Uniform'}
    """
    ordered = sorted(finals, key=lambda name: finals[name])
    ratios = [finals[worse] / finals[better] if finals[better] > 0 else 1.0 for better, worse in pairwise(ordered)]
    if not ratios or max(ratios) < _GAP:
        return set()
    return set(ordered[ratios.index(max(ratios)) + 1 :])


def _curves(comparison: Comparison) -> tuple[list[Curve], list[Curve]]:
    """The curves of the left panel and of the right one."""
    means, medians = [], []
    for number, (name, run) in enumerate(comparison.runs.items()):
        rounds = run.regret.shape[1]
        at = np.unique(np.linspace(1, rounds, min(rounds, _POINTS)).round().astype(np.int64))
        regret = run.regret[:, at - 1]
        mean, sd = regret.mean(axis=0), regret.std(axis=0)
        low, median, high = np.quantile(regret, [0.05, 0.5, 0.95], axis=0)
        line = line_of(number)
        means.append(Curve(name, line, at, mean, mean - sd, mean + sd))
        medians.append(Curve(name, line, at, median, low, high))
    return means, medians


def _middles(axes: Axes, curves: list[Curve], *, markers: bool) -> None:
    for number, curve in enumerate(curves):
        spacing = max(1, len(curve.rounds) // 5)
        axes.plot(
            curve.rounds,
            curve.middle,
            color=curve.line.colour,
            linestyle=curve.line.dashes,
            linewidth=1.5,
            marker=curve.line.marker if markers else "",
            markersize=4,
            # Each starts elsewhere, so that markers of curves that run together do not cover each other.
            markevery=(spacing * (number + 1) // (len(curves) + 1), spacing),
            label=curve.name,
        )


def _bands(axes: Axes, curves: list[Curve]) -> None:
    for curve in curves:
        axes.fill_between(curve.rounds, curve.low, curve.high, color=curve.line.colour, alpha=0.12, linewidth=0)
        for edge in (curve.low, curve.high):
            # Where bands overlap their shades mix; the thin edges still say whose is whose.
            axes.plot(curve.rounds, edge, color=curve.line.colour, linestyle=curve.line.dashes, linewidth=0.5, alpha=0.7)


def _whiskers(axes: Axes, curves: list[Curve], rounds: int) -> None:
    """The spread after the last round, one whisker a policy side by side, best first, to the right of the curves."""
    ordered = sorted(curves, key=lambda curve: float(curve.middle[-1]))
    places = rounds * (1 + _MARGIN * (np.arange(len(ordered)) + 0.7) / len(ordered))
    for place, curve in zip(places, ordered, strict=True):
        axes.plot([place, place], [curve.low[-1], curve.high[-1]], color=curve.line.colour, linewidth=1.4)
        axes.plot([place], [curve.middle[-1]], color=curve.line.colour, marker=curve.line.marker, markersize=4)
    axes.axvline(rounds, color="0.6", linewidth=0.6)
    axes.set_xlim(0, rounds * (1 + _MARGIN * 1.05))
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= rounds])


def _linear(axes: Axes, curves: list[Curve]) -> None:
    top = max(float(max(curve.high.max(), curve.middle.max())) for curve in curves)
    axes.set_ylim(0.0, 1.05 * top if top > 0 else 1.0)


def _logarithmic(axes: Axes, curves: list[Curve]) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    top = max(float(curve.high[-1]) for curve in curves)
    positive = [float(curve.low[-1]) for curve in curves if curve.low[-1] > 0]
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    if positive and top > 0:
        axes.set_ylim(max(0.3 * min(positive), top * 10**-_DECADES), 1.2 * top)


def _dress(axes: Axes, rounds: int) -> None:
    axes.set_xlabel("round")
    axes.set_xlim(0, rounds)
    axes.grid(visible=True, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _legend(figure: Figure, axes: Axes, outside: dict[str, float]) -> None:
    handles, names = axes.get_legend_handles_labels()
    labels = [f"{name} (off scale: mean {outside[name]:,.0f})" if name in outside else name for name in names]
    columns = min(4 if len(labels) <= 4 else 5, len(labels))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False, handlelength=3.2, fontsize=9)
