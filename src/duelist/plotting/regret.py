"""Cumulative regret against rounds: the mean with its spread, and beside it the median with quantiles.

Regret has heavy tails: one trial that locks onto a wrong arm moves the mean and not the median, so neither is shown alone.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from duelist.core.checks import FloatArray
from duelist.core.errors import InvalidInputError
from duelist.experiments.compare import Comparison
from duelist.plotting.files import new_figure
from duelist.plotting.lines import line_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 500  # a line: more cannot be told apart, and a PDF of a million points opens in no time at all
_GAP = 4.0  # policies this many times worse than the next leave the frame, or nothing below them could be read


def regret_figure(comparison: Comparison) -> Figure:
    """Draw the cumulative average regret of every run.

    Args:
        comparison: runs over the same number of rounds.

    Returns:
        A matplotlib figure; see `duelist.plotting.files.save_figure`.
    """
    if not comparison.runs:
        raise InvalidInputError("a figure needs at least one run; got an empty comparison.")
    figure = new_figure(9.0, 4.0)
    left, right = figure.subplots(1, 2, sharey=True)
    finals = {name: float(run.final_regret.mean()) for name, run in comparison.runs.items()}
    outside = beyond_the_frame(finals)
    shade = min(0.15, 0.5 / len(comparison.runs))
    top = 0.0
    for number, (name, run) in enumerate(comparison.runs.items()):
        line = line_of(number)
        rounds = _thinned(run.regret.shape[1])
        regret = run.regret[:, rounds - 1]
        mean, sd = regret.mean(axis=0), regret.std(axis=0)
        low, median, high = np.quantile(regret, [0.05, 0.5, 0.95], axis=0)
        for axes, middle, bottom, upper in ((left, mean, mean - sd, mean + sd), (right, median, low, high)):
            axes.plot(rounds, middle, color=line.colour, linestyle=line.dashes, linewidth=1.6, label=name)
            axes.fill_between(rounds, bottom, upper, color=line.colour, alpha=shade, linewidth=0)
            for edge in (bottom, upper):
                # Where bands overlap their shades mix; the thin edges still say whose is whose.
                axes.plot(rounds, edge, color=line.colour, linestyle=line.dashes, linewidth=0.5, alpha=0.7)
            if name not in outside:
                top = max(top, float(upper.max()), float(middle.max()))
    left.set_ylim(0.0, 1.05 * top if top > 0 else 1.0)
    _label(left, right, comparison)
    _legend(figure, left, {name: finals[name] for name in outside})
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


def _thinned(rounds: int) -> FloatArray:
    """At most `_POINTS` round numbers from 1 to the last."""
    return np.unique(np.linspace(1, rounds, min(rounds, _POINTS)).round().astype(np.int64))


def _label(left: Axes, right: Axes, comparison: Comparison) -> None:
    trials, rounds = next(iter(comparison.runs.values())).regret.shape
    left.set_title(f"mean of {trials} trial(s), ± 1 sd", fontsize=10)
    right.set_title("median, 5 % to 95 %", fontsize=10)
    left.set_ylabel("cumulative average regret")
    for axes in (left, right):
        axes.set_xlabel("round")
        axes.set_xlim(0, rounds)
        axes.grid(visible=True, color="0.9", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)


def _legend(figure: Figure, axes: Axes, outside: dict[str, float]) -> None:
    handles, names = axes.get_legend_handles_labels()
    labels = [f"{name} (off scale: mean {outside[name]:,.0f})" if name in outside else name for name in names]
    figure.legend(
        handles, labels, loc="outside lower center", ncols=min(4, len(labels)), frameon=False, handlelength=3.2, fontsize=9
    )
