"""Regret on the hard instances between the lower and the upper bound, against the horizon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from duelist.core.errors import InvalidInputError
from duelist.experiments.hard_instances import HardResult
from duelist.plotting.files import new_figure
from duelist.plotting.lines import line_of
from duelist.theory.ball_priors import BallPrior
from duelist.theory.lower import hard_gap
from duelist.theory.upper import linear_upper_bound

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def bounds_figure(results: Sequence[HardResult], prior: BallPrior) -> Figure:
    """Draw mean regret with two standard errors on log-log axes, between the bounds.

    The grey line is what knowing nothing costs, |theta*| a round: on the hard instances even the best rule stays near it.

    Args:
        results: of one dimension, from `duelist.experiments.hard_instances.play_hard_instances`.
        prior: the prior of the upper bound.

    Returns:
        A matplotlib figure; see `duelist.plotting.files.save_figure`.
    """
    if len({result.dim for result in results}) != 1:
        raise InvalidInputError("a figure of bounds needs results of one dimension; got none or several.")
    dim = results[0].dim
    horizons = np.array(sorted({result.horizon for result in results}))
    figure = new_figure(6.5, 4.2)
    axes = figure.subplots()
    for number, name in enumerate(dict.fromkeys(result.policy for result in results)):
        own = sorted((r for r in results if r.policy == name), key=lambda r: r.horizon)
        line = line_of(number)
        axes.errorbar(
            # A small shift to the side keeps error bars of different policies apart.
            [r.horizon * 1.02**number for r in own],
            [r.mean for r in own],
            yerr=[2 * r.standard_error for r in own],
            color=line.colour,
            linestyle=line.dashes,
            marker="o",
            markersize=3,
            capsize=2,
            linewidth=1.3,
            label=name,
        )
    upper = [linear_upper_bound(dim=dim, horizon=int(T), prior=prior).value for T in horizons]
    ignorance = [hard_gap(dim, int(T)) * np.sqrt(dim) * T for T in horizons]
    lower = {result.horizon: result.lower.value for result in results}
    axes.plot(horizons, upper, color="black", linewidth=1.6, label="upper bound (FGTS at theory settings)")
    axes.plot(horizons, ignorance, color="0.6", linewidth=1.2, linestyle=(0, (1, 1)), label="knowing nothing")
    axes.plot(horizons, [lower[T] for T in horizons], color="black", linewidth=1.6, linestyle=(0, (5, 2)), label="lower bound")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("horizon T")
    axes.set_ylabel("average regret after T rounds")
    axes.set_title(f"hard instances, d = {dim}: mean over draws of theta*, ± 2 standard errors", fontsize=10)
    axes.grid(visible=True, which="both", color="0.92", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside right upper", frameon=False, fontsize=8, handlelength=3.0)
    return figure
