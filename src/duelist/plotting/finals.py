"""Final regrets: as a distribution over trials, and as paired differences with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from duelist.experiments.series import Series
from duelist.experiments.statistics import paired_difference
from duelist.plotting.lines import line_of
from duelist.plotting.panels import Draw, Names, log_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw_finals(axes: Axes, series: Sequence[Series], name: Callable[[Series], str], names: Names) -> None:
    """Every trial a dot, over a box from quartile to quartile with the median; the diamond is the mean."""
    for height, one in enumerate(reversed(series)):
        colour = line_of(names[name(one)]).colour
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


def paired_drawing(reference: Callable[[Series], Series], reference_name: str) -> Draw:
    """A drawing of differences to a reference policy: 95 % t interval as a bar, bootstrap interval as brackets."""

    def draw(axes: Axes, series: Sequence[Series], name: Callable[[Series], str], names: Names) -> None:
        axes.axvline(0.0, color="0.4", linewidth=0.8)
        for height, one in enumerate(reversed(series)):
            colour = line_of(names[name(one)]).colour
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
