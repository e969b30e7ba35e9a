"""Routing where a learner is told the clusters: which part of the regret of `benchmarks/routing.py` a better rule could save.

    python benchmarks/routing_told.py --worlds 16 --first-world 100

The worlds and votes are those of `benchmarks/routing.py`, and every learner has the same normal posterior over the 8 x 12
utilities of clusters and models, one rank-one step per vote. They differ in their prior and in whom they show. The first rule
is that of the Thompson sampler there; differences to it are taken world by world. "The prior of the worlds" has the variances
that utilities were drawn with, and "value" is that of Foresight's live rule with the rounds left known, pairs with the leader:

    factor * n^(1/3) * gain(m) * (n - m) / m - cost,    n = rounds left / 8,

its gain that of the challenger over the best of the others. What is left above the floor is votes, not features.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.routing import CLUSTERS, EMBEDDING, MODELS, World, error_of, unit
from duelist.typing import FloatArray, IntArray

PLAYS = (1, 4, 16, 64, 256)


class Seen(NamedTuple):
    """What a rule sees: means (worlds, models), covariances (worlds, models, models), the rounds left, a generator."""

    mean: FloatArray
    covariance: FloatArray
    left: int
    rng: np.random.Generator


Rule = Callable[[Seen], tuple[IntArray, IntArray]]  # the two models to show, by world


def prompts_of(seed: int, rounds: int) -> tuple[IntArray, FloatArray]:
    """The clusters (rounds,) and the utilities (rounds, models) of a world's prompts."""
    world, rng = World(seed), np.random.default_rng(1000 + seed)
    clusters, utilities = np.empty(rounds, dtype=np.int64), np.empty((rounds, MODELS))
    for t in range(rounds):
        clusters[t] = rng.choice(CLUSTERS, p=world.shares)
        prompt = unit(world.centres[clusters[t]] + rng.standard_normal(EMBEDDING) / np.sqrt(EMBEDDING))
        utilities[t] = world.by_model + world.by_cluster[clusters[t]] + world.by_prompt @ prompt
    return clusters, utilities


def draw(seen: Seen, size: float) -> FloatArray:
    """A draw of the utilities (worlds, models), its deviation from the mean times `size`."""
    root = np.linalg.cholesky(seen.covariance + 1e-9 * np.eye(MODELS))
    return np.asarray(seen.mean + size * np.einsum("wij,wj->wi", root, seen.rng.standard_normal(seen.mean.shape)))


def best_and_other(leading: FloatArray, following: FloatArray) -> tuple[IntArray, IntArray]:
    """The best of the one score, and the best of the other beside it."""
    first = leading.argmax(axis=1)
    others = following.copy()
    others[np.arange(len(others)), first] = -np.inf
    return first, others.argmax(axis=1)


def two_draws(seen: Seen, *, size: float = 1.0) -> tuple[IntArray, IntArray]:
    """Thompson sampling."""
    return best_and_other(draw(seen, size), draw(seen, size))


def two_best(seen: Seen) -> tuple[IntArray, IntArray]:
    """The two best by the mean, which explores nothing."""
    return best_and_other(seen.mean, seen.mean)


def optimistic(seen: Seen, *, radius: float) -> tuple[IntArray, IntArray]:
    """The leader and the challenger of the highest bound on its difference to the leader."""
    mean, covariance = seen.mean, seen.covariance
    worlds, leader = np.arange(len(mean)), mean.argmax(axis=1)
    own = np.diagonal(covariance, axis1=1, axis2=2)
    variance = own + own[worlds, leader][:, None] - 2.0 * covariance[worlds, leader]
    return best_and_other(mean, mean + radius * np.sqrt(np.maximum(variance, 0.0)))


def most_valuable(seen: Seen, *, factor: float) -> tuple[IntArray, IntArray]:
    """The leader and the challenger whose votes are worth most over the rounds that are left."""
    mean, covariance = seen.mean, seen.covariance
    worlds, n = np.arange(len(mean)), seen.left / CLUSTERS
    leader, runner_up = best_and_other(mean, mean)
    worth = np.full(mean.shape, -np.inf)
    for k in range(MODELS):
        toward = covariance[worlds, :, leader] - covariance[worlds, :, k]
        variance = toward[worlds, leader] - toward[worlds, k]
        win = 1.0 / (1.0 + np.exp(mean[worlds, k] - mean[worlds, leader]))
        rivals = mean.copy()
        rivals[worlds, leader] = rivals[:, k] = -np.inf
        rival = rivals.argmax(axis=1)
        for plays in PLAYS:
            if plays > 1 and n <= plays:
                continue
            told = plays * win * (1.0 - win)
            moves = toward * np.sqrt(told / (1.0 + told * variance))[:, None]
            spread = np.abs(moves[:, k] - moves[worlds, rival]) + 1e-12
            apart = np.abs(mean[:, k] - mean[worlds, rival]) / spread
            gain = spread * (norm.pdf(apart) - apart * norm.sf(apart))
            ahead = 0.5 * factor * max(n, 1.0) ** (1 / 3) * gain * max(n - plays, 0.0) / plays
            worth[:, k] = np.maximum(worth[:, k], ahead - 0.5 * (mean[worlds, runner_up] - mean[:, k]))
    worth[worlds, leader] = -np.inf
    return leader, worth.argmax(axis=1)


def play(clusters: IntArray, utilities: FloatArray, rule: Rule, *, shared: float, own: float) -> FloatArray:
    """Regret (worlds, rounds) of a rule under a prior with these variances of models and of models in a cluster."""
    n_worlds, rounds = clusters.shape
    rng, worlds, dim = np.random.default_rng(0), np.arange(n_worlds), CLUSTERS * MODELS
    covariance = np.tile(np.kron(np.full((CLUSTERS, CLUSTERS), shared), np.eye(MODELS)) + own * np.eye(dim), (n_worlds, 1, 1))
    mean, regret = np.zeros((n_worlds, dim)), np.empty((n_worlds, rounds))
    for t in range(rounds):
        here = clusters[:, t, None] * MODELS + np.arange(MODELS)
        block = covariance[worlds[:, None, None], here[:, :, None], here[:, None, :]]
        first, second = rule(Seen(mean[worlds[:, None], here], block, rounds - t, rng))
        true = utilities[:, t]
        one, other = true[worlds, first], true[worlds, second]
        regret[:, t] = true.max(axis=1) - 0.5 * (one + other)
        won = rng.random(n_worlds) < 1.0 / (1.0 + np.exp(other - one))
        a, b = here[worlds, first], here[worlds, second]
        spread = covariance[worlds, :, a] - covariance[worlds, :, b]
        chance = 1.0 / (1.0 + np.exp(mean[worlds, b] - mean[worlds, a]))
        weight = chance * (1.0 - chance)
        shrunk = 1.0 + weight * (spread[worlds, a] - spread[worlds, b])
        covariance -= spread[:, :, None] * spread[:, None, :] * (weight / shrunk)[:, None, None]
        mean += spread * ((won - chance) / shrunk)[:, None]
    return regret


def main() -> None:
    parser = argparse.ArgumentParser(description="Routing with clusters and prior known: what a better rule could save.")
    parser.add_argument("--worlds", type=int, default=16)
    parser.add_argument("--first-world", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3000)
    options = parser.parse_args()
    seeds = range(options.first_world, options.first_world + options.worlds)
    played = [prompts_of(seed, options.rounds) for seed in seeds]
    clusters, utilities = np.array([one for one, _ in played]), np.array([both for _, both in played])
    wide, true = {"shared": 1.0, "own": 1.0}, {"shared": 0.25, "own": 1.1}
    rules: dict[str, tuple[Rule, dict[str, float]]] = {
        "two draws, variances 1 and 1": (two_draws, wide),
        "two draws": (two_draws, true),
        "two draws, half as wide": (functools.partial(two_draws, size=0.5), true),
        "the two best by the mean": (two_best, true),
        "optimistic challenger, radius 1.5": (functools.partial(optimistic, radius=1.5), true),
        "value, factor 1, variances 1 and 1": (functools.partial(most_valuable, factor=1.0), wide),
        "value, factor 0.25": (functools.partial(most_valuable, factor=0.25), true),
        "value, factor 0.7": (functools.partial(most_valuable, factor=0.7), true),
        "value, factor 1.75": (functools.partial(most_valuable, factor=1.75), true),
    }
    print(
        f"{options.rounds} rounds, worlds {seeds[0]} to {seeds[-1]}; clusters known, and where not said the prior of the worlds"
    )
    print("| rule | regret (error) | less the first's (error) |\n|---|---|---|")
    plain: FloatArray | None = None
    for name, (rule, prior) in rules.items():
        totals = play(clusters, utilities, rule, **prior).sum(axis=1)
        plain = totals if plain is None else plain
        apart = totals - plain
        change = f"{apart.mean():+.0f} ({error_of(apart):.0f}), {100.0 * apart.mean() / plain.mean():+.0f} %"
        print(f"| {name} | {totals.mean():.0f} ({error_of(totals):.0f}) | {change} |", flush=True)
    order = np.sort(utilities, axis=2)
    print(f"| two best of every prompt | {0.5 * (order[:, :, -1] - order[:, :, -2]).sum(axis=1).mean():.0f} | |")


if __name__ == "__main__":
    main()
