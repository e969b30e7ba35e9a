"""The figures of the how-to pages, from what the code of each page computes when it is run from top to bottom.

    python benchmarks/how_to_figures.py             # all of them, into docs/figures
    python benchmarks/how_to_figures.py headlines   # one of them

A figure cannot differ from its page: there is no second copy of the code.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from duelist.plotting.style import OKABE_ITO, new_figure

DOCS = Path(__file__).parents[1] / "docs"
BLUE, ORANGE, GREEN, *_ = OKABE_ITO
GREY = "0.6"
_PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def run_page(name: str) -> dict[str, Any]:
    """What is defined after the Python of a page has run, in a folder of its own."""
    page = DOCS / "how-to" / f"{name}.md"
    values: dict[str, Any] = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for code in _PYTHON.findall(page.read_text(encoding="utf-8")):
            # Without the future imports of this file: the code of a page runs as it is printed.
            exec(compile(code, str(page), "exec", dont_inherit=True), values)
    return values


def draw_route_prompts(page: dict[str, Any]) -> Any:
    """Quality against cost: the dial of the router, and each model alone."""
    figure = new_figure(6.4, 3.6)
    axes = figure.subplots()
    quality, price = np.array(list(page["dial"].values())).T
    axes.plot(price, quality, "o-", color=BLUE, label="router, by weight of cost")
    for weight, x, y in zip(page["dial"], price, quality, strict=True):
        axes.annotate(f"{weight:g}", (x, y), (-4, 5), textcoords="offset points", ha="right", color=BLUE)
    alone = [np.mean([page["TASTE"][topic, row] for topic, _ in page["test"]]) for row in range(len(page["MODELS"]))]
    axes.plot(page["COST"], alone, "s", color=ORANGE, label="one model for everything")
    for model, x, y in zip(page["MODELS"], page["COST"], alone, strict=True):
        axes.annotate(model, (x, y), (7, 0), textcoords="offset points", va="center", color=ORANGE)
    axes.set_xlim(-0.08, 1.18)
    axes.set_xlabel("mean cost of a prompt")
    axes.set_ylabel("mean utility of the answer")
    axes.legend(frameon=False, loc="lower right")
    return figure


def draw_headlines(page: dict[str, Any]) -> Any:
    """The expected loss by votes; the headlines in front with their intervals."""
    figure = new_figure(7.2, 3.6)
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1.0))
    votes, loss, favourite = np.array(page["progress"]).T
    appeal = page["appeal"]
    left.plot(votes, loss, color=BLUE, label="expected by the agent")
    left.step(votes, appeal.max() - appeal[favourite.astype(int)], where="post", color=ORANGE, label="truth")
    forgotten = sum(len(duels) for duels in page["rounds"])
    left.axvline(forgotten, color=GREY, ymax=0.55, zorder=0)
    left.annotate("Max is\nforgotten", (forgotten, 0.7), (5, 0), textcoords="offset points", color="0.4")
    left.axhline(page["ENOUGH"], color=GREY, dashes=(4, 2), zorder=0, label="enough")
    left.set_ylim(bottom=0.0)
    left.set_xlabel("votes given")
    left.set_ylabel("loss with the favourite")
    left.legend(frameon=False)
    belief, front = page["belief"], page["ranking"].order[:10]
    middle = belief.utility[front]
    ends = [middle - belief.low[front], belief.high[front] - middle]
    places = np.arange(len(front))[::-1]
    right.errorbar(middle, places, xerr=ends, fmt="o", color=BLUE, capsize=3, label="belief, 95 %")
    right.plot((page["appeal"] - page["appeal"].mean())[front], places, "x", color=ORANGE, markersize=7, label="truth")
    right.set_yticks(places, [page["headlines"][row] for row in front])
    right.set_xlabel("appeal, log-odds")
    right.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    return figure


def draw_widget(page: dict[str, Any]) -> Any:
    """Regret by visits; events written and events kept."""
    figure = new_figure(7.2, 3.0)
    left, right = figure.subplots(1, 2)
    regret = np.array(page["regret"])
    means = regret.reshape(-1, 50).mean(axis=1)
    left.plot(50 * np.arange(1, len(means) + 1), means, "o-", color=BLUE, markersize=4)
    left.set_ylim(bottom=0.0)
    left.set_xlabel("visits")
    left.set_ylabel("regret, mean of 50 visits")
    kept = page["events"]
    visits = np.linspace(0, len(regret), len(kept) + 1)[1:]
    right.plot([0, len(regret)], [0, page["written"]], color=GREY, dashes=(4, 2), label="written")
    right.plot(visits, kept, color=BLUE, label="in the journal")
    right.set_xlabel("visits")
    right.set_ylabel("events")
    right.set_ylim(bottom=0.0)
    right.legend(frameon=False)
    return figure


def draw_k_arms(page: dict[str, Any]) -> Any:
    """Mean regret of every policy by rounds, one panel per matrix."""
    figure = new_figure(7.2, 3.4)
    panels = figure.subplots(1, 2)
    for axes, (title, result) in zip(panels, page["results"].items(), strict=True):
        for (name, run), colour in zip(result.runs.items(), OKABE_ITO, strict=False):
            mean = run.regret.mean(axis=0)
            error = run.regret.std(axis=0, ddof=1) / np.sqrt(len(run.regret))
            axes.plot(run.rounds, mean, color=colour, label=name, linewidth=1.4)
            axes.fill_between(run.rounds, mean - error, mean + error, color=colour, alpha=0.2, linewidth=0)
        axes.set_title(title)
        axes.set_xlabel("round")
    panels[0].set_ylim(0.0, 250.0)  # Uniform leaves the panel
    panels[1].set_ylim(bottom=0.0)
    panels[0].set_ylabel("Condorcet regret")
    panels[1].legend(frameon=False, loc="upper left")
    return figure


def draw_trust_voters(page: dict[str, Any]) -> Any:
    """Slopes of the voters with intervals; utilities with slopes and without."""
    figure = new_figure(7.2, 3.2)
    left, right = figure.subplots(1, 2)
    trust, order = page["trust"], np.argsort(page["trust"].mean)
    places = np.arange(len(order))
    ends = (trust.mean - trust.low)[order]
    left.errorbar(places, trust.mean[order], yerr=ends, fmt="o", color=BLUE, markersize=3, linewidth=1, label="estimate, 95 %")
    left.plot(places, page["slope"][order], "x", color=ORANGE, markersize=4, label="truth")
    left.axhline(0.0, color=GREY, linewidth=0.8)
    left.set_xlabel("voters, by slope")
    left.set_ylabel("slope")
    left.legend(frameon=False, loc="lower right")
    truth = page["quality"] - page["quality"].mean()
    for shift, (label, name, colour) in enumerate((("without slopes", "plain", GREEN), ("with slopes", "people", BLUE))):
        found = page[name].utilities
        at = truth + 0.08 * (shift - 0.5)
        right.errorbar(at, found.mean, yerr=found.mean - found.low, fmt="o", color=colour, markersize=4, label=label)
    right.plot(truth, truth, color=GREY, dashes=(4, 2), label="truth")
    right.set_xlabel("true utility")
    right.set_ylabel("estimate from half of the votes")
    right.legend(frameon=False)
    return figure


def draw_rank_models(page: dict[str, Any]) -> Any:
    """Utilities with intervals: without and with style control, and in both categories."""
    figure = new_figure(7.2, 3.2)
    panels = figure.subplots(1, 2, sharey=True)
    whole = {"votes as they are": page["fit"].utilities, "at equal length": page["controlled"].utilities}
    apart = {"prose": page["prose"], "code": page["code"]}
    order = np.argsort(page["controlled"].utilities.mean)
    for axes, fits in zip(panels, (whole, apart), strict=True):
        for shift, colour, (label, found) in zip((0.12, -0.12), (ORANGE, BLUE), fits.items(), strict=True):
            middle = found.mean[order]
            ends = [middle - found.low[order], found.high[order] - middle]
            axes.errorbar(middle, np.arange(len(order)) + shift, xerr=ends, fmt="o", color=colour, capsize=3, label=label)
        axes.axvline(0.0, color=GREY, linewidth=0.8, zorder=0)
        axes.set_xlabel("utility, log-odds")
        axes.legend(frameon=False, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2)
    panels[0].set_yticks(np.arange(len(order)), [page["fit"].utilities.names[row] for row in order])
    return figure


FIGURES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "route-prompts": draw_route_prompts,
    "headlines": draw_headlines,
    "widget": draw_widget,
    "k-arms": draw_k_arms,
    "trust-voters": draw_trust_voters,
    "rank-models": draw_rank_models,
}


def main() -> None:
    """Draw what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("page", nargs="?", choices=list(FIGURES), help="all of them if not given")
    page = parser.parse_args().page
    for name in [page] if page else FIGURES:
        path = DOCS / "figures" / f"{name}.png"
        figure = FIGURES[name](run_page(name))
        for axes in figure.axes:
            axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, dpi=150, metadata={"Software": None})
        print(os.path.relpath(path))


if __name__ == "__main__":
    main()
