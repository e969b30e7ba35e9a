"""Routing prompts between models: regret and processor time of live agents, beside a Thompson sampler of 25 lines.

    python benchmarks/routing.py --seeds 5 --rounds 3000 [--first-seed 0] [--agent-seed 0]

12 models, and prompts of 8 clusters as embeddings of 384 numbers: a centre with a component that all share, plus noise, of
length 1. The utility of a model is its own, plus one for the cluster, plus a small linear term of the prompt; votes are
logistic. The features are 8 principal components of 1,000 past prompts and a 1, in a block per model: dim 108. The regret of
a round is the best utility less the mean of the two that were shown. A live agent never shows a model beside itself, so the
floor is half the gap to the second best: the row `two best`.

Worlds differ more than policies do, so the difference to the Thompson sampler is taken world by world, with the standard error
of that. Settings are tried on other worlds than 0 to 4, which is what `--first-seed` is for.
Two runs of a policy in one world differ by chance as well: `--agent-seed 1000` runs the same worlds again with other draws.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import duelist
from duelist.typing import FloatArray

MODELS, CLUSTERS, EMBEDDING, COMPONENTS = 12, 8, 384, 8
DIM = MODELS * (COMPONENTS + 1)
POLICIES: dict[str, Callable[[], Any]] = {
    "FGTS()": duelist.FGTS,
    "FGTS(alpha=0)": lambda: duelist.FGTS(alpha=0.0),
    "FGTS recommended": lambda: duelist.FGTS(eta=2.0, alpha=0.01, prior=duelist.Gaussian(0.25)),
    "CoLSTIM()": duelist.CoLSTIM,
    "Foresight()": duelist.Foresight,
    "TopTwoTS()": duelist.policies.TopTwoTS,
    "EUBO()": duelist.policies.EUBO,
    "KLPolicy()": duelist.policies.KLPolicy,
    "RCDB()": duelist.policies.RCDB,
    "MaxPairUCB()": duelist.MaxPairUCB,
}


def unit(rows: FloatArray) -> FloatArray:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


class World:
    """Prompts, and what people think of each model's answers."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        common = unit(rng.standard_normal(EMBEDDING))
        self.centres = unit(0.6 * common + unit(rng.standard_normal((CLUSTERS, EMBEDDING))))
        self.by_model = 0.5 * rng.standard_normal(MODELS)
        self.by_cluster = rng.standard_normal((CLUSTERS, MODELS))
        self.by_prompt = 0.3 * rng.standard_normal((MODELS, EMBEDDING))
        self.shares = rng.dirichlet(np.full(CLUSTERS, 3.0))

    def prompt(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """An embedding (384,) and the utilities (12,)."""
        cluster = rng.choice(CLUSTERS, p=self.shares)
        prompt = unit(self.centres[cluster] + rng.standard_normal(EMBEDDING) / np.sqrt(EMBEDDING))
        return prompt, self.by_model + self.by_cluster[cluster] + self.by_prompt @ prompt


class LivePolicy:
    """A policy behind a live agent, fed through the ready-made features."""

    def __init__(self, policy: Any, seed: int) -> None:
        self.agent = duelist.Agent(policy, dim=DIM, seed=seed)

    def choose(self, context: FloatArray) -> tuple[int, int]:
        """Two models for a prompt."""
        self.duel = self.agent.choose(duelist.features.one_block_per_arm(context, MODELS))
        return self.duel.first, self.duel.second

    def learn(self, winner: int) -> None:
        """Take in who won."""
        self.agent.learn(self.duel, winner=winner)


class PlainThompson:
    """Thompson sampling by assumed density filtering: a normal posterior, one rank-one step per vote."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.mean, self.covariance = np.zeros(DIM), np.eye(DIM)

    def choose(self, context: FloatArray) -> tuple[int, int]:
        """Two models for a prompt."""
        self.context = context
        root = np.linalg.cholesky(self.covariance + 1e-9 * np.eye(DIM))
        one, other = ((self.mean + root @ self.rng.standard_normal(DIM)).reshape(MODELS, -1) @ context for _ in range(2))
        other[one.argmax()] = -np.inf
        self.pair = int(one.argmax()), int(other.argmax())
        return self.pair

    def learn(self, winner: int) -> None:
        """Take in who won."""
        blocks = np.zeros((MODELS, COMPONENTS + 1))
        blocks[self.pair[0]], blocks[self.pair[1]] = self.context, -self.context
        z = blocks.ravel()
        chance = 1.0 / (1.0 + np.exp(-self.mean @ z))
        weight, spread = chance * (1.0 - chance), self.covariance @ z
        self.covariance -= np.outer(spread, spread) * weight / (1.0 + weight * (z @ spread))
        self.mean += self.covariance @ z * (float(winner == self.pair[0]) - chance)


def play(learner: LivePolicy | PlainThompson, seed: int, rounds: int, label: str) -> tuple[FloatArray, FloatArray]:
    """Regret (rounds,) and processor time in ms (rounds, 2) of choosing and learning."""
    world, past, rng = World(seed), np.random.default_rng(10_000 + seed), np.random.default_rng(1000 + seed)
    prompts = np.array([world.prompt(past)[0] for _ in range(1000)])
    shorten = duelist.features.PrincipalComponents.fit(contexts=prompts, n_components=COMPONENTS)
    regret, times = np.empty(rounds), np.empty((rounds, 2))
    for t in range(rounds):
        prompt, utilities = world.prompt(rng)
        begin = time.process_time()
        first, second = learner.choose(duelist.features.append_one(shorten(prompt)))
        times[t, 0] = time.process_time() - begin
        winner = first if rng.random() < 1.0 / (1.0 + np.exp(utilities[second] - utilities[first])) else second
        begin = time.process_time()
        learner.learn(winner)
        times[t, 1] = time.process_time() - begin
        regret[t] = utilities.max() - 0.5 * (utilities[first] + utilities[second])
        if t % 250 == 249:
            print(f"\r{label}, seed {seed}: {t + 1} rounds", end="", file=sys.stderr, flush=True)
    print("\r" + " " * 60 + "\r", end="", file=sys.stderr, flush=True)
    return regret, 1000.0 * times


def floor(seed: int, rounds: int) -> FloatArray:
    """Regret (rounds,) of showing the two best models."""
    world, rng = World(seed), np.random.default_rng(1000 + seed)
    best = np.array([np.sort(world.prompt(rng)[1])[-2:] for _ in range(rounds)])
    return np.asarray(0.5 * (best[:, 1] - best[:, 0]))


def error_of(totals: FloatArray) -> float:
    """Standard error of the mean; unknown of one number."""
    return float(totals.std(ddof=1) / np.sqrt(len(totals))) if len(totals) > 1 else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description="Routing prompts between language models, simulated.")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--agent-seed", type=int, default=0, help="added to the seed of the world for that of the agent")
    parser.add_argument("--rounds", type=int, default=3000)
    options = parser.parse_args()
    quarter, seeds = max(1, options.rounds // 4), range(options.first_seed, options.first_seed + options.seeds)
    print(f"{options.rounds} rounds, seeds {seeds[0]} to {seeds[-1]}, dim {DIM}; times are processor time per round")
    print("| policy | regret (error) | less NumPy's (error) | last quarter, per round | choose, ms (99 %) | learn, ms (99 %) |")
    print("|---|---|---|---|---|---|")
    makers: dict[str, Callable[[int], LivePolicy | PlainThompson]] = {
        name: lambda seed, policy=policy: LivePolicy(policy(), seed)  # type: ignore[misc]
        for name, policy in POLICIES.items()
    }
    plain = np.zeros(len(seeds))
    for name, make in {"NumPy, 25 lines": PlainThompson, **makers}.items():
        played = [play(make(options.agent_seed + seed), seed, options.rounds, name) for seed in seeds]
        regrets, times = np.array([regret for regret, _ in played]), np.concatenate([spent for _, spent in played])
        totals = regrets.sum(axis=1)
        plain = totals if make is PlainThompson else plain
        apart = totals - plain
        middle, high = np.median(times, axis=0), np.quantile(times, 0.99, axis=0)
        print(
            f"| {name} | {totals.mean():.0f} ({error_of(totals):.0f}) | {apart.mean():+.0f} ({error_of(apart):.0f}), "
            f"{100.0 * apart.mean() / plain.mean():+.0f} % | {regrets[:, -quarter:].mean():.3f} "
            f"| {middle[0]:.2f} ({high[0]:.1f}) | {middle[1]:.2f} ({high[1]:.1f}) |",
            flush=True,
        )
    least = np.array([floor(seed, options.rounds) for seed in seeds])
    print(f"| two best | {least.sum(axis=1).mean():.0f} | | {least[:, -quarter:].mean():.3f} | | |")


if __name__ == "__main__":
    main()
