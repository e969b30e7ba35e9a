"""Regret against the tuned parameter: how much hangs on the radius, and which values each grid can reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from duelist.experiments.series import Series
from duelist.plotting.lines import line_of
from duelist.plotting.panels import Draw, Names, log_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def tuning_drawing(paper_values: Sequence[float]) -> Draw:
    """A drawing of mean and median final regret against the radius; hollow marks lie outside the paper's grid."""

    def draw(axes: Axes, series: Sequence[Series], name: Callable[[Series], str], names: Names) -> None:
        for label in dict.fromkeys(one.label for one in series):
            own = sorted((one for one in series if one.label == label), key=lambda one: next(iter(one.setting.values())))
            line = line_of(names[name(own[0])])
            mark = "o" if name(own[0]) == label else "s"
            radii = [next(iter(one.setting.values())) for one in own]
            means = [float(one.final.mean()) for one in own]
            axes.plot(radii, means, color=line.colour, linestyle=line.dashes, linewidth=1.2)
            for radius, mean in zip(radii, means, strict=True):
                fill = line.colour if radius in paper_values else "white"
                axes.plot(radius, mean, mark, color=line.colour, markersize=5, markerfacecolor=fill)
        log_axis(axes, "x")
        log_axis(axes, "y")
        axes.set_xlabel("radius", fontsize=8)
        axes.set_ylabel("mean regret after the last round", fontsize=8)

    return draw
