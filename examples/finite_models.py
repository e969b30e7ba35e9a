"""A finite list of models: the exact posterior, streaming, against FGTS that knows no list.

    python examples/finite_models.py docs/figures

A policy that knows that the truth is one of a thousand parameters should learn faster than one that does not. Then the same
with rewards that are linear in nothing: a table of rewards, one row a model.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

import duelist
from duelist.core import Problem, Streams
from duelist.environments import ListedDuels
from duelist.experiments import compare
from duelist.plotting import regret_figure, save_figure
from duelist.policies import Policy
from duelist.theory import finite_class_upper_bound

N_MODELS, DIM = 1000, 10


def listed(folder: Path, *, rounds: int, trials: int) -> None:
    """Truth from a list of unit vectors: with the list, and without it."""
    models = np.random.default_rng(0).standard_normal((N_MODELS, DIM))
    models /= np.linalg.norm(models, axis=1, keepdims=True)
    policies: dict[str, Policy[Any]] = {
        "FiniteModels": duelist.FiniteModels(models=models),
        "FGTS": duelist.FGTS(),
        "Uniform": duelist.Uniform(),
    }
    comparison = compare(policies, ListedDuels(models=models, arms=32), rounds=rounds, trials=trials, seed=0)
    save_figure(regret_figure(comparison), folder / "finite-models")
    for name, run in comparison.runs.items():
        print(f"{name:14} regret {run.final_regret.mean():7.1f}, median {np.median(run.final_regret):7.1f}")
    # Arms of {-1, 1}^10 have norm sqrt(10), so rewards are at most sqrt(10): the bound holds, and says little.
    bound = finite_class_upper_bound(models=N_MODELS, bound=DIM**0.5, horizon=rounds, decoupling=float(DIM))
    print(f"the theorem's bound at eta = 1/4 and its own mu: {bound.value:.0f}")


def table(rounds: int) -> tuple[float, float]:
    """Rewards that peak somewhere on a line, forty places by two widths: what a duel costs at first, and at last.

    Models of neighbouring places hardly differ, so which of them is true stays open; it hardly matters for what is shown.
    """
    places, shops = np.linspace(0.0, 1.0, 40), np.linspace(0.0, 1.0, 15)
    rewards = np.array([3.0 * np.exp(-((shops - place) ** 2) / width) for place in places for width in (0.02, 0.1)])
    truth = rewards[33]
    policy, streams = duelist.FiniteModels(rewards=rewards), Streams(0, [0])
    state = policy.start(Problem(dim=len(shops), live=True), streams)
    arms, people = duelist.FiniteActions(np.eye(len(shops))), np.random.default_rng(1)
    costs = []
    for _ in range(rounds):
        duels, state = policy.choose(state, arms, streams)
        better = truth[duels.first[0]] - truth[duels.second[0]]
        costs.append(truth.max() - 0.5 * (truth[duels.first[0]] + truth[duels.second[0]]))
        won = people.random() < 1.0 / (1.0 + np.exp(-better))
        state = policy.learn(state, arms, duels, np.array([1 if won else -1]))
    return float(np.mean(costs[: rounds // 20])), float(np.mean(costs[-rounds // 4 :]))


def main(folder: Path, *, rounds: int = 2500, trials: int = 30, table_rounds: int = 1000) -> None:
    """Play both, and draw the first."""
    folder.mkdir(parents=True, exist_ok=True)
    listed(folder, rounds=rounds, trials=trials)
    early, late = table(table_rounds)
    print(f"reward table: a duel costs {early:.2f} in the first twentieth and {late:.2f} in the last quarter")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures"))
