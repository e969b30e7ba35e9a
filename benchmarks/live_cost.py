"""What a live round costs in processor time, by dimension and number of arms, with arms that stay and arms that change.

    python benchmarks/live_cost.py --seconds 10
    python benchmarks/live_cost.py --votes 100000

Processor time of the calling thread: medians of choose and of learn, the 95th percentile and the largest of both together, and
the first 20 rounds by themselves: a policy that fits or factorises often pays then. Contexts are fresh embeddings, in one block
per model where there are 12 arms. With `--votes` one agent of dim 108 plays so many rounds with fresh contexts, and the table
has what a round costs on the way.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import duelist
from duelist.typing import FloatArray

POLICIES: dict[str, Callable[[], Any]] = {
    "FGTS()": duelist.FGTS,
    "FGTS(alpha=0)": lambda: duelist.FGTS(alpha=0.0),
    "CoLSTIM()": duelist.CoLSTIM,
    "Foresight()": duelist.Foresight,
}
# (arms, dim, the milliseconds that choose + learn should stay below)
SIZES = {"108": (12, 108, 1.5), "396": (12, 396, 6.0), "1536": (12, 1536, 60.0), "many": (50_000, 64, 60.0)}


def measure(policy: Any, n_arms: int, dim: int, *, fresh: bool, seconds: float, rounds: int) -> FloatArray:
    """Processor time in ms, (rounds, 2), of choosing and learning; the kernels are compiled before."""
    rng = np.random.default_rng(0)
    theta = 2.0 * rng.standard_normal(dim) / np.sqrt(dim)

    def offer() -> FloatArray:
        if n_arms * 4 > dim or dim % n_arms:
            return rng.standard_normal((n_arms, dim))
        return duelist.features.one_block_per_arm(rng.standard_normal(dim // n_arms), n_arms)

    def play(most: int, seconds: float) -> FloatArray:
        agent, arms = duelist.Agent(policy, dim=dim, seed=0, keep_votes=False), offer()
        times: list[tuple[float, float]] = []
        until = time.perf_counter() + seconds
        while len(times) < most and time.perf_counter() < until:
            arms = offer() if fresh else arms
            begin = time.thread_time()
            duel = agent.choose(arms)
            chosen = time.thread_time() - begin
            gap = float(theta @ (duel.features[0] - duel.features[1]))
            winner = duel.first if rng.random() < 1.0 / (1.0 + np.exp(-gap)) else duel.second
            begin = time.thread_time()
            agent.learn(duel, winner=winner)
            times.append((chosen, time.thread_time() - begin))
        return 1000.0 * np.array(times)

    if dim > 1000:  # what large matrices need is loaded when the first one is factorised, after a quarter as many votes
        measure(policy, n_arms, 516, fresh=fresh, seconds=np.inf, rounds=150)
    play(3 if n_arms > 1000 else min(60, dim // 4 + 4) if dim < 1000 else 3, np.inf)
    return play(rounds, seconds)


def print_long_run(name: str, votes: int) -> None:
    """One row per stretch of a long run."""
    both = measure(POLICIES[name](), 12, 108, fresh=True, seconds=np.inf, rounds=votes).sum(axis=1)
    edges = [0, 100, *(edge for edge in (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000) if edge < votes), votes]
    for begin, end in itertools.pairwise(edges):
        part = both[begin:end]
        middle = np.median(part)
        print(
            f"| {name} | {begin:,} to {end:,} | {middle:.2f} | {np.quantile(part, 0.999):.1f} | {part.max():.1f} |", flush=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0, help="at most so long per row")
    parser.add_argument("--rounds", type=int, default=2000, help="at most so many per row")
    parser.add_argument("--only", nargs="*", default=["FGTS()", "FGTS(alpha=0)", "CoLSTIM()"], choices=list(POLICIES))
    parser.add_argument("--sizes", nargs="*", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--votes", type=int, default=0, help="one long run in place of the table")
    options = parser.parse_args()
    if options.votes:
        print("| policy | votes | both, ms | 99.9 % | largest |\n|---|---|---|---|---|")
        for name in options.only:
            print_long_run(name, options.votes)
        return
    print(
        "| arms | dim | sets | policy | rounds | choose | learn | both, 95 % | largest | largest / median | first 20 | target |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for size in options.sizes:
        n_arms, dim, target = SIZES[size]
        for sets in ("fixed", "fresh"):
            for name in options.only:
                times = measure(
                    POLICIES[name](), n_arms, dim, fresh=sets == "fresh", seconds=options.seconds, rounds=options.rounds
                )
                middle, both = np.median(times, axis=0), times.sum(axis=1)
                print(
                    f"| {n_arms} | {dim} | {sets} | {name} | {len(times)} | {middle[0]:.2f} | {middle[1]:.2f} "
                    f"| {np.quantile(both, 0.95):.1f} | {both.max():.1f} | {both.max() / np.median(both):.1f} "
                    f"| {np.median(both[:20]):.1f} | {target:g} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
