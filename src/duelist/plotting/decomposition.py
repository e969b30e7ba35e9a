"""The parts of the regret against rounds: what errors cost, what optimism pays back, and what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from duelist.core.checks import FloatArray, IntArray
from duelist.experiments.decomposition import Decomposition
from duelist.plotting.files import new_figure
from duelist.plotting.lines import line_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_POINTS = 500  # a line: more cannot be told apart
_WINDOWS = 40


def decomposition_figure(split: Decomposition) -> Figure:
    """Draw the Bellman errors, the Feel-Good parts and the regret that they add up to.

    On the left, added up over rounds: mean over trials with a band of one standard deviation. On the right, a round's parts
    on average over windows of rounds that widen with time, which shows when the errors have died out.

    Args:
        split: what `duelist.experiments.decomposition.decompose` returned.

    Returns:
        A matplotlib figure; see `duelist.plotting.files.save_figure`.
    """
    figure = new_figure(9.0, 4.0)
    left, right = figure.subplots(1, 2)
    parts = {
        "Bellman error, (BE1 + BE2) / 2": split.from_errors,
        "Feel-Good part, -(FG1 + FG2) / 2": split.from_optimism,
        "regret: their sum": split.regret,
    }
    trials, rounds = split.regret.shape
    shown = np.unique(np.linspace(0, rounds - 1, min(rounds, _POINTS)).round().astype(np.int64))
    edges = np.unique(np.geomspace(1, rounds + 1, min(rounds, _WINDOWS) + 1).round().astype(np.int64)) - 1
    for number, (name, part) in enumerate(parts.items()):
        line = line_of(number)
        total = np.cumsum(part, axis=1)[:, shown]
        mean, sd = total.mean(axis=0), total.std(axis=0)
        left.plot(shown + 1, mean, color=line.colour, linestyle=line.dashes, linewidth=1.6, label=name)
        left.fill_between(shown + 1, mean - sd, mean + sd, color=line.colour, alpha=0.15, linewidth=0)
        right.plot(*_windows(part, edges), color=line.colour, linestyle=line.dashes, linewidth=1.6)
    left.set_title(f"cumulative, mean of {trials} trial(s), ± 1 sd", fontsize=10)
    right.set_title("a round, mean over windows", fontsize=10)
    right.set_xscale("log")
    _dress(left)
    _dress(right)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, handlelength=3.2, fontsize=9)
    return figure


def _windows(part: FloatArray, edges: IntArray) -> tuple[FloatArray, FloatArray]:
    """The middle round of every window, and the mean of the part (trials, rounds) over it."""
    starts, stops = edges[:-1], edges[1:]
    mean = part.mean(axis=0)
    return (starts + stops + 1) / 2, np.array([mean[a:b].mean() for a, b in zip(starts, stops, strict=True)])


def _dress(axes: Axes) -> None:
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    axes.set_xlabel("round")
    axes.grid(visible=True, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
