"""Contexts: many users, one catalogue, one agent. What each user likes depends on the user.

    python examples/contexts.py

Every user has a taste vector, every film a genre vector, and a user likes a film by how well the two fit, in a way that the
agent does not know. With `features.outer` the agent learns which taste goes with which genre. With `features.concatenate` it
cannot: the user's part is the same for both films of a duel and cancels, so all get the film that is best on average.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import duelist

TASTES, GENRES, FILMS = 3, 4, 20


def play(make_features: Callable[[Any, Any], Any], *, rounds: int, seed: int = 0) -> float:
    """Mean utility per round that a user loses against the best film, over the last quarter."""
    world = np.random.default_rng(seed)
    catalogue = world.standard_normal((FILMS, GENRES))
    fit = 1.5 * world.standard_normal((TASTES, GENRES))
    dim = make_features(np.zeros(TASTES), catalogue).shape[1]
    agent = duelist.Agent(duelist.FGTS(), dim=dim, seed=seed)
    lost = []
    for _ in range(rounds):
        user = world.standard_normal(TASTES)
        likes = catalogue @ (user @ fit)
        duel = agent.choose(make_features(user, catalogue))  # the one line
        won = world.random() < 1.0 / (1.0 + np.exp(likes[duel.second] - likes[duel.first]))
        agent.learn(duel, winner=duel.first if won else duel.second)
        lost.append(likes.max() - 0.5 * (likes[duel.first] + likes[duel.second]))
    return float(np.mean(lost[-rounds // 4 :]))


def main(*, rounds: int = 600) -> None:
    """Compare what the two kinds of features can learn."""
    print(f"outer:       a round loses {play(duelist.features.outer, rounds=rounds):.2f}")
    print(f"concatenate: a round loses {play(duelist.features.concatenate, rounds=rounds):.2f}")


if __name__ == "__main__":
    main()
