"""Figures of the theory: regret on the hard instances between the bounds, and the parts of the regret of FGTS."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from duelist.core.errors import InvalidInputError
from duelist.experiments.statistics import spread
from duelist.experiments.theory import Decomposition, HardResult
from duelist.plotting.style import line_style, new_figure
from duelist.theory.ball_priors import BallPrior
from duelist.theory.linear_bounds import hard_gap, linear_upper_bound
from duelist.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def bounds_figure(results: Sequence[HardResult], prior: BallPrior) -> Figure:
    """Draw mean regret with two standard errors: on the left between both bounds, on the right in multiples of the lower one.

    The grey line is what knowing nothing costs, |theta*| per round: four times the lower bound, at every T.

    Args:
        results: of one dimension, from `duelist.experiments.hard_instances.play_hard_instances`.
        prior: the prior of the upper bound.

    Returns:
        A matplotlib figure; see `duelist.plotting.style.save_figure`.
    """
    if len({result.dim for result in results}) != 1:
        raise InvalidInputError("a figure of bounds needs results of one dimension; got none or several.")
    dim = results[0].dim
    lower = {result.horizon: result.lower.value for result in sorted(results, key=lambda r: r.horizon)}
    figure = new_figure(9.0, 4.4)
    left, right = figure.subplots(1, 2)
    for number, name in enumerate(dict.fromkeys(result.policy for result in results)):
        own = sorted((result for result in results if result.policy == name), key=lambda result: result.horizon)
        _draw_policy(left, number, name, own, [1.0] * len(own))
        _draw_policy(right, number, name, own, [lower[result.horizon] for result in own])
    horizons = list(lower)
    upper = [linear_upper_bound(dim=dim, horizon=T, prior=prior).value for T in horizons]
    ignorance = [hard_gap(dim, T) * math.sqrt(dim) * T for T in horizons]
    left.plot(horizons, upper, color="black", linewidth=1.6, label="upper bound (FGTS at theory settings)")
    for axes, unit in ((left, list(lower.values())), (right, [1.0] * len(horizons))):
        nothing = [cost / bound * u for cost, bound, u in zip(ignorance, lower.values(), unit, strict=True)]
        axes.plot(horizons, nothing, color="0.6", linewidth=1.2, linestyle=(0, (1, 1)), label="knowing nothing")
        axes.plot(horizons, unit, color="black", linewidth=1.6, linestyle=(0, (5, 2)), label="lower bound")
        _style_horizon_axes(axes, horizons)
    left.set_yscale("log")
    left.set_ylabel("average regret after T rounds")
    right.set_ylabel("regret / lower bound")
    right.set_ylim(bottom=0.0)
    left.set_title(f"hard instances, d = {dim}", fontsize=10)
    right.set_title("mean over draws of theta*, ± 2 standard errors", fontsize=10)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", frameon=False, fontsize=9, handlelength=3.2, ncols=3)
    return figure


def _draw_policy(axes: Axes, number: int, name: str, results: Sequence[HardResult], unit: Sequence[float]) -> None:
    line = line_style(number)
    axes.errorbar(
        # A small shift to the side keeps error bars of different policies apart.
        [result.horizon * 1.025**number for result in results],
        [result.mean / one for result, one in zip(results, unit, strict=True)],
        yerr=[2 * result.standard_error / one for result, one in zip(results, unit, strict=True)],
        color=line.colour,
        linestyle=line.dashes,
        marker="o",
        markersize=3,
        capsize=2,
        linewidth=1.3,
        label=name,
    )


def _style_horizon_axes(axes: Axes, horizons: Sequence[int]) -> None:
    axes.set_xscale("log")
    axes.set_xticks(horizons, [f"{T:,}" for T in horizons])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("horizon T")
    axes.grid(visible=True, color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


_POINTS = 500  # per line: more cannot be seen
_WINDOWS = 40


def decomposition_figure(split: Decomposition) -> Figure:
    """Draw the Bellman errors, the Feel-Good parts and the regret that they add up to.

    On the left, added up over rounds: mean over trials with a band of one standard deviation. On the right, the parts
    per round, averaged over windows of rounds that widen with time, which shows when the errors have died out.

    Args:
        split: what `duelist.experiments.decomposition.decompose` returned.

    Returns:
        A matplotlib figure; see `duelist.plotting.style.save_figure`.
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
        line = line_style(number)
        total = np.cumsum(part, axis=1)[:, shown]
        mean, sd = total.mean(axis=0), spread(total)
        left.plot(shown + 1, mean, color=line.colour, linestyle=line.dashes, linewidth=1.6, label=name)
        left.fill_between(shown + 1, mean - sd, mean + sd, color=line.colour, alpha=0.15, linewidth=0)
        right.plot(*_windows(part, edges), color=line.colour, linestyle=line.dashes, linewidth=1.6)
    left.set_title(f"cumulative, mean of {trials} trial(s), ± 1 sd", fontsize=10)
    right.set_title("per round, mean over windows", fontsize=10)
    right.set_xscale("log")
    _style_round_axes(left)
    _style_round_axes(right)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, handlelength=3.2, fontsize=9)
    return figure


def _windows(part: FloatArray, edges: IntArray) -> tuple[FloatArray, FloatArray]:
    """The middle round of every window, and the mean of the part (trials, rounds) over it."""
    starts, stops = edges[:-1], edges[1:]
    mean = part.mean(axis=0)
    return (starts + stops + 1) / 2, np.array([mean[a:b].mean() for a, b in zip(starts, stops, strict=True)])


def _style_round_axes(axes: Axes) -> None:
    axes.axhline(0.0, color="0.6", linewidth=0.8)
    axes.set_xlabel("round")
    axes.grid(visible=True, color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
