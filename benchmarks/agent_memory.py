"""What an agent in memory holds on to: python benchmarks/agent_memory.py [--arms 20000] [--dim 64] [--duels 100].

Every duel offers a new set, as a recommender does. Printed is how much the process grew, and the size of a saved agent. With
`--votes 100000` agents that keep their votes (12 arms, d = 108) answer so many duels instead, and printed is by how much they
grew beyond the two vectors of every vote: with features that are all used, and with one block per arm.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import duelist

_PAGE = 4096


def resident() -> float:
    """Memory of this process that is in use, in MB."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * _PAGE / 2**20


def measure(policy: Any, arms: int, dim: int, duels: int, **settings: Any) -> None:
    """Print how much an agent grows over so many duels, answered or not."""
    for answered in (True, False):
        generator = np.random.default_rng(0)
        agent = duelist.Agent(policy, dim=dim, seed=0, **settings)
        agent.learn(agent.choose(generator.standard_normal((4, dim))), "first")
        before = resident()
        for _ in range(duels):
            number = agent.choose(generator.standard_normal((arms, dim))).id
            if answered:
                agent.learn(number, "first")
        grown = resident() - before
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "agent"
            agent.save(path)
            size = path.stat().st_size / 2**20
        words = ", ".join(f"{name}={value}" for name, value in settings.items())
        print(
            f"{policy!r:.40} {words} K={arms} d={dim}: {duels} duels {'answered' if answered else 'waiting'}: "
            f"+{grown:.0f} MB, file {size:.1f} MB, one set {arms * dim * 8 / 2**20:.1f} MB",
            flush=True,
        )


def measure_votes(policy: Any, votes: int, *, dense: bool) -> None:
    """Print by how much an agent grows beyond the vectors of its votes."""
    n_arms, dim = 12, 108

    def play(agent: duelist.Agent, votes: int) -> None:
        generator = np.random.default_rng(0)
        for _ in range(votes):
            if dense:
                features = generator.standard_normal((n_arms, dim))
            else:
                features = duelist.features.one_block_per_arm(generator.standard_normal(dim // n_arms), n_arms)
            agent.learn(agent.choose(features).id, "first" if generator.random() < 0.5 else "second")

    play(duelist.Agent(policy, dim=dim, seed=0), 300)  # compiles everything
    before = resident()
    agent = duelist.Agent(policy, dim=dim, seed=0)
    play(agent, votes)
    grown, vectors = resident() - before, votes * 2 * dim * 8 / 2**20
    print(
        f"{policy!r:.40} {'dense' if dense else 'one block per arm'}: {votes:,} votes, {grown - vectors:+.0f} MB beyond "
        f"{vectors:.0f} MB of vectors",
        flush=True,
    )


def main() -> None:
    """Measure the policies that read pairs only, and one that reads sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--votes", type=int, default=0)
    parser.add_argument("--arms", type=int, default=20000)
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--duels", type=int, default=100)
    options = parser.parse_args()
    if options.votes:
        measure_votes(duelist.CoLSTIM(), options.votes, dense=True)
        measure_votes(duelist.FGTS(alpha=0.0), options.votes, dense=True)
        measure_votes(duelist.FGTS(), options.votes, dense=False)
        return
    measure(duelist.Uniform(), options.arms, options.dim, options.duels)
    measure(duelist.Uniform(), options.arms, options.dim, options.duels, keep_votes=False)
    measure(duelist.FGTS(), max(options.arms // 100, 2), options.dim, options.duels)


if __name__ == "__main__":
    main()
