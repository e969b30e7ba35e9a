"""What an agent costs after years: python benchmarks/long_lived.py [--votes 100000] [--only bounded] [--journal] [--regret].

Every duel offers new contexts, one block per arm (12 arms, d = 108). Printed is the memory beyond the two vectors of every
vote; the median of the second thousand of votes, that of the last thousand and the longest single call of
choose and of learn; how many votes took more than ten times the median; and on a journal the size of the file and how long a
restart takes. Times are processor time: of the calling thread in memory, and of the process on a journal, where the writer's
thread does the work, and packs snapshots meanwhile. `bounded` is `FGTS(sampler="online")`; it and `fgts` are made with
`keep_votes=False`, without which the sets of all duels are kept too, as by `fgts-keeping`.

Before the first vote that counts, all that was made so far is taken out of reach of the garbage collector (`gc.freeze`), as a
server should do when it has started: a full collection of the imported libraries takes 90 ms. With `--twice` the same votes are
played again, and of every call the shorter time counts: both runs do the same, so what only one of them waits for is the
machine. With `--blocks` contexts are offered as `duelist.features.blocks`. `--regret` plays the running Gaussian beside the
exact sampler instead: 20 trials of 2,500 rounds, d = 10, 32 arms, fresh in every round and fixed.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import duelist

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.agent_memory import resident
from duelist.journal import SQLiteJournal
from duelist.typing import FloatArray

_ARMS, _DIM = 12, 108
Offer = Callable[[FloatArray, int], Any]  # what is offered for a context and a number of arms
AGENTS: dict[str, tuple[Any, bool]] = {
    "bounded": (duelist.FGTS(sampler="online"), False),
    "fgts": (duelist.FGTS(), False),
    "fgts-keeping": (duelist.FGTS(), True),
    "fgts-plain": (duelist.FGTS(alpha=0.0), True),
    "colstim": (duelist.CoLSTIM(), True),
    "foresight": (duelist.Foresight(), True),
}


def play(
    agent: duelist.Agent,
    votes: int,
    seed: int,
    *,
    clock: Callable[[], float] = time.thread_time,
    seconds: float = np.inf,
    offer: Offer = duelist.features.one_block_per_arm,
) -> FloatArray:
    """Processor time in ms, (votes played, 2), of choosing and learning; fewer votes where the seconds are over."""
    until = time.perf_counter() + seconds
    rng = np.random.default_rng(seed)
    theta = 2.0 * np.random.default_rng(0).standard_normal(_DIM) / np.sqrt(_DIM)
    times = np.empty((votes, 2))
    for t in range(votes):
        features = offer(rng.standard_normal(_DIM // _ARMS), _ARMS)
        begin = clock()
        duel = agent.choose(features)
        times[t, 0] = clock() - begin
        chance = 1.0 / (1.0 + np.exp(-float(theta @ (duel.features[0] - duel.features[1]))))
        winner = duel.first if rng.random() < chance else duel.second
        begin = clock()
        agent.learn(duel, winner=winner)
        times[t, 1] = clock() - begin
        if time.perf_counter() > until:
            return 1000.0 * times[: t + 1]
    return 1000.0 * times


def measure(name: str, votes: int, seconds: float, folder: Path, *, on_journal: bool, twice: bool, offer: Offer) -> str:
    """One row of the table."""
    policy, keep_votes = AGENTS[name]
    settings: dict[str, Any] = {"dim": _DIM, "seed": 0, "keep_votes": keep_votes}
    # Compiles everything, also what long histories need.
    play(duelist.Agent(policy, **settings), min(votes, 2300), seed=1, offer=offer)
    path, before = folder / f"{name}.db", resident()
    if not on_journal:
        freeze()
        agent = duelist.Agent(policy, **settings)
        times, grown = play(agent, votes, seed=0, seconds=seconds, offer=offer), resident() - before
        votes, size, restart = len(times), "", ""
        if twice:
            del agent
            times = np.minimum(times, play(duelist.Agent(policy, **settings), votes, seed=0, offer=offer))
    else:
        with SQLiteJournal(folder / "warm-up.db") as journal:
            play(duelist.Agent(policy, **settings, journal=journal), 600, seed=1, offer=offer)
        (folder / "warm-up.db").unlink()
        freeze()
        with SQLiteJournal(path) as journal:
            agent = duelist.Agent(policy, **settings, journal=journal)
            times = play(agent, votes, seed=0, clock=time.process_time, seconds=seconds, offer=offer)
            grown = resident() - before
        votes = len(times)
        size = f"{path.stat().st_size / votes:,.0f}"
        begin = time.process_time()
        with SQLiteJournal(path) as journal:
            agent = duelist.Agent(policy, **settings, journal=journal)
            restart = f"{time.process_time() - begin:.1f}"
        assert agent.rounds == votes
    beyond = grown - votes * 2 * _DIM * 8 / 2**20
    both = times.sum(axis=1)
    early, last, most = np.median(times[1000:2000], axis=0), np.median(times[-1000:], axis=0), times.max(axis=0)
    return (
        f"| {name} | {votes:,} | {beyond:+.0f} | {early[0]:.2f} / {last[0]:.2f} / {most[0]:.1f} "
        f"| {early[1]:.2f} / {last[1]:.2f} / {most[1]:.1f} | {np.median(both[-1000:]) / np.median(both[1000:2000]):.2f} "
        f"| {both.max() / np.median(both):.1f} | {(both > 10.0 * np.median(both)).sum()} | {size} | {restart} |"
    )


def freeze() -> None:
    """Take all that there is out of reach of the garbage collector."""
    gc.collect()
    gc.freeze()


def compare_regret() -> None:
    """Print what the running Gaussian costs in regret."""
    for fresh in (True, False):
        env = duelist.LinearDuels(dim=10, arms=32, fresh_arms=fresh)
        policies = {name: duelist.FGTS(sampler=name) for name in ("mala", "online")}
        print(f"fresh arms: {fresh}\n{duelist.compare(policies, env, rounds=2500, trials=20, seed=0)}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--votes", type=int, default=100_000)
    parser.add_argument("--only", nargs="*", default=["bounded", "fgts", "fgts-plain", "colstim"], choices=list(AGENTS))
    parser.add_argument("--seconds", type=float, default=np.inf, help="at most so long per row")
    parser.add_argument("--journal", action="store_true")
    parser.add_argument("--twice", action="store_true")
    parser.add_argument("--blocks", action="store_true")
    parser.add_argument("--regret", action="store_true")
    options = parser.parse_args()
    if options.regret:
        compare_regret()
        return
    columns = ("agent", "votes", "memory beyond the vectors, MB", "choose, ms: early / last / longest", "learn, ms")
    ratios = "both, last / early | both, longest / median | calls above 10 medians"
    print(f"| {' | '.join(columns)} | {ratios} | journal, bytes a duel | restart, s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name in options.only:
            row = measure(
                name,
                options.votes,
                options.seconds,
                Path(folder),
                on_journal=options.journal,
                twice=options.twice and not options.journal,
                offer=duelist.features.blocks if options.blocks else duelist.features.one_block_per_arm,
            )
            print(row, flush=True)


if __name__ == "__main__":
    main()
