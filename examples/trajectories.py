"""Learn what a person wants from comparisons of trajectories: FGTS over plans, on a river and on a slippery grid.

    python examples/trajectories.py docs/figures

Chooses settings of FGTS and DPS on design trials, plays other trials, prints what happened and draws docs/figures/trajectories.
About two minutes of processor time; the same numbers every time.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import duelist
from duelist.core import Streams
from duelist.environments import TrajectoryDuels
from duelist.plotting import line_style, new_figure, save_figure
from duelist.policies import DPS, Policy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

RIVER_REWARDS = np.zeros((6, 2))
RIVER_REWARDS[0, 0], RIVER_REWARDS[5, 1] = 0.005, 1.0  # a little at the left bank, much at the end: the classical ones
PROCESSES = {
    "river": TrajectoryDuels(process="river", theta=RIVER_REWARDS.ravel()),
    "grid": TrajectoryDuels(process="grid"),
}
# Nine settings each: how sharp the posterior is, and how wide the prior.
DPS_SETTINGS = [DPS(sigma=sigma, ridge=ridge) for sigma, ridge in itertools.product((0.25, 0.5, 1.0), (0.1, 1.0, 10.0))]
FGTS_SETTINGS = [
    duelist.FGTS(eta=eta, alpha=0.0, prior=duelist.Gaussian(scale))
    for eta, scale in itertools.product((1.0, 2.0, 4.0), (0.25, 0.5, 1.0))
]
FIRST_DESIGN_TRIAL = 1000


def tune(settings: Sequence[Any], env: TrajectoryDuels, rounds: int, trials: int) -> Any:
    """The policy with the least mean regret on design trials."""
    design = range(FIRST_DESIGN_TRIAL, FIRST_DESIGN_TRIAL + trials)
    regret = [duelist.simulate(policy, env, rounds=rounds, trials=design, seed=0).final_regret.mean() for policy in settings]
    return settings[int(np.argmin(regret))]


def random_plans_cost(env: TrajectoryDuels, trials: int, plans: int = 100) -> float:
    """Mean regret per episode of plans whose every action was drawn uniformly."""
    instance: Any = env.instance(Streams(0, range(trials)))
    arms, generator = instance.actions(0), np.random.default_rng(0)
    values = [np.einsum("ld,ld->l", instance.theta, arms.sample(generator)) for _ in range(plans)]
    return float((arms.best(instance.theta[:, None]).value[:, 0] - np.mean(values, axis=0)).mean())


def draw_runs(axes: Axes, title: str, runs: dict[str, Any]) -> None:
    """Mean regret with the middle half of the trials, one line per policy; what dwarfs the others leaves the panel."""
    for number, (name, run) in enumerate(runs.items()):
        style = line_style(number)
        axes.plot(run.rounds, run.regret.mean(axis=0), color=style.colour, dashes=style.dashes[1] or (None, None), label=name)
        low, high = np.quantile(run.regret, (0.25, 0.75), axis=0)
        axes.fill_between(run.rounds, low, high, color=style.colour, alpha=0.15, linewidth=0)
    learners = [run.regret for name, run in runs.items() if name != "Uniform"]
    axes.set_ylim(0.0, 1.25 * max(float(np.quantile(regret[:, -1], 0.75)) for regret in learners))
    axes.set_title(title, fontsize=10)
    axes.set_xlabel("episode")
    axes.grid(visible=True, color="0.9", linewidth=0.6)


def main(folder: Path, *, rounds: int = 400, trials: int = 40, design: int = 10) -> None:
    """Play both processes, print the table of docs/trajectories.md, and draw its figure."""
    folder.mkdir(parents=True, exist_ok=True)
    figure = new_figure(9.0, 4.0)
    panels = figure.subplots(1, 2)
    for axes, (name, env) in zip(panels, PROCESSES.items(), strict=True):
        fgts, dps = (tune(settings, env, rounds, design) for settings in (FGTS_SETTINGS, DPS_SETTINGS))
        policies: dict[str, Policy[Any]] = {
            "FGTS": duelist.FGTS(),
            "FGTS, tuned": replace(fgts, alpha=0.01),  # tuned without the Feel-Good term, which costs time; played with it
            "DPS, tuned": dps,
            "DPS, its authors'": DPS(),
            "Uniform": duelist.Uniform(),
        }
        runs = duelist.compare(policies, env, rounds=rounds, trials=trials, seed=0).runs
        print(f"{name}: FGTS tuned to eta {fgts.eta}, {fgts.prior}; DPS to sigma {dps.sigma}, ridge {dps.ridge}")
        for policy, run in runs.items():
            final = run.final_regret
            error, late = final.std(ddof=1) / np.sqrt(len(final)), np.diff(run.regret.mean(axis=0))[-50:].mean()
            print(
                f"  {policy:18} regret {final.mean():6.0f} +- {error:3.0f}, median {np.median(final):6.0f}, at last {late:.3f}"
            )
        print(f"  {'random plans':18} regret {rounds * random_plans_cost(env, trials):6.0f}")
        draw_runs(axes, f"{name}, d = {env.dim}, mean of {trials} trials and their middle half", runs)
    panels[0].set_ylabel("cumulative regret")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    save_figure(figure, folder / "trajectories")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures"))
