"""Regret on the hard instances between the lower and the upper bound, against the horizon."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from duelist.core.errors import InvalidInputError
from duelist.experiments.hard_instances import HardResult
from duelist.plotting.files import new_figure
from duelist.plotting.lines import line_of
from duelist.theory.ball_priors import BallPrior
from duelist.theory.lower import hard_gap
from duelist.theory.upper import linear_upper_bound

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def bounds_figure(results: Sequence[HardResult], prior: BallPrior) -> Figure:
    """Draw mean regret with two standard errors: on the left between both bounds, on the right in multiples of the lower one.

    The grey line is what knowing nothing costs, |theta*| a round: four times the lower bound, at every T.

    Args:
        results: of one dimension, from `duelist.experiments.hard_instances.play_hard_instances`.
        prior: the prior of the upper bound.

    Returns:
        A matplotlib figure; see `duelist.plotting.files.save_figure`.
    """
    if len({result.dim for result in results}) != 1:
        raise InvalidInputError("a figure of bounds needs results of one dimension; got none or several.")
    dim = results[0].dim
    lower = {result.horizon: result.lower.value for result in sorted(results, key=lambda r: r.horizon)}
    figure = new_figure(9.0, 4.4)
    left, right = figure.subplots(1, 2)
    for number, name in enumerate(dict.fromkeys(result.policy for result in results)):
        own = sorted((result for result in results if result.policy == name), key=lambda result: result.horizon)
        _policy(left, number, name, own, [1.0] * len(own))
        _policy(right, number, name, own, [lower[result.horizon] for result in own])
    horizons = list(lower)
    upper = [linear_upper_bound(dim=dim, horizon=T, prior=prior).value for T in horizons]
    ignorance = [hard_gap(dim, T) * math.sqrt(dim) * T for T in horizons]
    left.plot(horizons, upper, color="black", linewidth=1.6, label="upper bound (FGTS at theory settings)")
    for axes, unit in ((left, list(lower.values())), (right, [1.0] * len(horizons))):
        nothing = [cost / bound * u for cost, bound, u in zip(ignorance, lower.values(), unit, strict=True)]
        axes.plot(horizons, nothing, color="0.6", linewidth=1.2, linestyle=(0, (1, 1)), label="knowing nothing")
        axes.plot(horizons, unit, color="black", linewidth=1.6, linestyle=(0, (5, 2)), label="lower bound")
        _dress(axes, horizons)
    left.set_yscale("log")
    left.set_ylabel("average regret after T rounds")
    right.set_ylabel("the same, in lower bounds")
    right.set_ylim(bottom=0.0)
    left.set_title(f"hard instances, d = {dim}", fontsize=10)
    right.set_title("mean over draws of theta*, ± 2 standard errors", fontsize=10)
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", frameon=False, fontsize=9, handlelength=3.2, ncols=3)
    return figure


def _policy(axes: Axes, number: int, name: str, results: Sequence[HardResult], unit: Sequence[float]) -> None:
    line = line_of(number)
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


def _dress(axes: Axes, horizons: Sequence[int]) -> None:
    axes.set_xscale("log")
    axes.set_xticks(horizons, [f"{T:,}" for T in horizons])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("horizon T")
    axes.grid(visible=True, color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
