"""Do the 95 % intervals of off-policy evaluation cover the truth? Simulated logs, of which the truth is known.

A world has 3 kinds of request and 4 models; utilities are drawn anew for every log, votes are logistic. An agent chooses pairs
and learns from 3,000 votes. Its log then judges a router that somebody else trained (the best model of each kind under
utilities that are off by a normal error of 0.5) against two opponents: any other model, and one model that is always the same.

    python benchmarks/off_policy.py                 # the table of docs/off-policy.md: 200 logs per policy, half an hour
    python benchmarks/off_policy.py --logs 20       # a first look
    python benchmarks/off_policy.py --figure PATH   # only the figure of the how-to page

Columns: share of logs whose interval covers the truth; mean error (bias) and its standard error; root mean squared error; mean
half width of the interval; median effective sample; and the share of logs with a warning, with the coverage of the others.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from duelist import FGTS, Agent, DuelLog, Foresight, MaxInP, Uniform, evaluate_off_policy
from duelist.live import PoorOverlapWarning
from duelist.typing import FloatArray, IntArray

KINDS, MODELS = 3, 4
ESTIMATORS: tuple[Literal["ips", "snips", "dr"], ...] = ("ips", "snips", "dr")
SPREAD, ROUTER_ERROR = 0.8, 0.5
SETS = tuple(
    np.hstack([np.eye(MODELS) if kind == other else np.zeros((MODELS, MODELS)) for other in range(KINDS)])
    for kind in range(KINDS)
)
LOGGERS: dict[str, tuple[Callable[[], Any], float]] = {
    "FGTS() alone": (FGTS, 0.0),
    "FGTS(), exploration=0.05": (FGTS, 0.05),
    "Foresight(), exploration=0.05": (Foresight, 0.05),
    "MaxInP(), exploration=0.05": (MaxInP, 0.05),
    "Uniform()": (Uniform, 0.0),
}


class World(NamedTuple):
    """The truth: (KINDS, MODELS) utilities, and which model the router picks for each kind."""

    utilities: FloatArray
    picks: IntArray

    def router(self, features: FloatArray) -> int:
        """The router's pick: the kind of a request is the block of features that is not zero."""
        return int(self.picks[int(np.argmax(features.any(axis=0))) // MODELS])

    def value(self, against: int | None) -> float:
        """The share of votes that the router wins."""
        shares = []
        for utility, pick in zip(self.utilities, self.picks, strict=True):
            wins = 1.0 / (1.0 + np.exp(utility - utility[pick]))
            shares.append(np.delete(wins, pick).mean() if against is None else wins[against])
        return float(np.mean(shares))


def draw_world(seed: int) -> World:
    """Utilities and a router, by chance."""
    rng = np.random.default_rng([seed, 0])
    utilities = rng.normal(scale=SPREAD, size=(KINDS, MODELS))
    return World(utilities, (utilities + rng.normal(scale=ROUTER_ERROR, size=utilities.shape)).argmax(axis=1))


def play(world: World, policy: Any, exploration: float, votes: int, seed: int) -> DuelLog:
    """The log of a live agent."""
    rng = np.random.default_rng([seed, 1])
    agent = Agent(policy, dim=KINDS * MODELS, seed=seed, exploration=exploration, keep_votes=False)
    rows = []
    for _ in range(votes):
        kind = int(rng.integers(KINDS))
        duel = agent.choose(SETS[kind])
        gap = world.utilities[kind, duel.first] - world.utilities[kind, duel.second]
        outcome = 1 if rng.random() < 1.0 / (1.0 + np.exp(-gap)) else -1
        rows.append((SETS[kind], duel.first, duel.second, outcome, duel.propensity))
        agent.learn(duel, winner="first" if outcome == 1 else "second")
    return DuelLog.of(*zip(*rows, strict=True))


def judge(policy: Any, exploration: float, logs: range, votes: int) -> dict[tuple[str, str], FloatArray]:
    """(opponent, estimator) -> (logs, 6): truth, estimate, low, high, effective sample, whether there was a warning."""
    found: dict[tuple[str, str], list[tuple[float, ...]]] = {}
    for seed in logs:
        world = draw_world(seed)
        log = play(world, policy, exploration, votes, seed)
        for name, opponent in (("any other", None), ("model 0", 0)):
            for estimator in ESTIMATORS:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", PoorOverlapWarning)
                    value = evaluate_off_policy(log, world.router, against=opponent, estimator=estimator)
                row = (value.estimate, value.low, value.high, value.effective_rounds, bool(value.warning))
                found.setdefault((name, estimator), []).append((world.value(opponent), *row))
    return {key: np.array(rows, dtype=np.float64) for key, rows in found.items()}


def covered(rows: FloatArray) -> FloatArray:
    """(logs,) whether the interval holds the truth."""
    truth, _, low, high, *_ = rows.T
    return np.asarray((low <= truth) & (truth <= high))


def draw(path: Path) -> None:
    """Estimate and interval of several routers from one log, beside the truth."""
    import matplotlib.pyplot as plt

    world = draw_world(seed=4)
    log = play(world, FGTS(), 0.1, 3000, seed=4)
    routers = {f"always model {model}": np.full(KINDS, model) for model in range(MODELS)}
    routers |= {"trained elsewhere": world.picks, "best model of each kind": world.utilities.argmax(axis=1)}
    figure, axes = plt.subplots(figsize=(6.4, 3.2))
    for place, picks in enumerate(routers.values()):
        one = World(world.utilities, picks)
        value = evaluate_off_policy(log, one.router)
        error = [[value.estimate - value.low], [value.high - value.estimate]]
        axes.errorbar(
            value.estimate, place, xerr=error, fmt="o", color="C0", capsize=3, label="" if place else "estimate, 95 %"
        )
        axes.plot(one.value(None), place, "x", color="C3", markersize=8, label="" if place else "truth")
    axes.axvline(0.5, color="0.8", zorder=0)
    axes.set_yticks(range(len(routers)), list(routers))
    axes.set_xlabel("share of votes won against any other model")
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=0, help="worlds and votes that nobody has looked at")
    parser.add_argument("--votes", type=int, default=3000)
    parser.add_argument("--only", default="", help="policies whose name contains this")
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    if arguments.figure:
        draw(arguments.figure)
        return
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.logs)
    print(f"{arguments.logs} logs of {arguments.votes} votes.\n")
    print("| logged by | opponent | estimator | covered | bias | RMSE | half width | effective | warned | covered, others |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name, (policy, exploration) in LOGGERS.items():
        if arguments.only not in name:
            continue
        for (opponent, estimator), rows in judge(policy(), exploration, seeds, arguments.votes).items():
            truth, estimate, low, high, effective, warned = rows.T
            error, hits = estimate - truth, covered(rows)
            quiet = f"{hits[warned == 0].mean():.3f}" if (warned == 0).any() else "none"
            spread = error.std() / len(error) ** 0.5
            print(
                f"| {name} | {opponent} | {estimator} | {hits.mean():.3f} | {error.mean():+.4f} ± {spread:.4f} "
                f"| {np.sqrt((error**2).mean()):.4f} | {((high - low) / 2).mean():.4f} | {np.median(effective):.0f} "
                f"| {warned.mean():.2f} | {quiet} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
