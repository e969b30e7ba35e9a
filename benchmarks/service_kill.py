"""Kill a loaded service with SIGKILL at random moments and check that nothing acknowledged is missing or doubled.

After every kill the service is started again on the same file and asked for all it knows; at the end of every journal the
snapshots of the live processes are compared, bit for bit, with one uninterrupted replay.

Run: python benchmarks/service_kill.py [--kills 200] [--per-journal 20] [--seed 0]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from duelist.service.bootstrap import warm_up
from tests.support.kill_harness import Memory, kill_once, last_check


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--per-journal", type=int, default=20)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warm_up()  # kernels compiled and on disk, so that no start waits for them
    started = time.perf_counter()
    kills = while_starting = asks = answers = events = journals = 0
    with tempfile.TemporaryDirectory() as folder:
        while kills < options.kills:
            data, memory = Path(folder) / f"{journals}.db", Memory()
            for _ in range(min(options.per_journal, options.kills - kills)):
                seed = options.seed * 1_000_000 + kills + 1
                while_starting += not kill_once(data, memory, arena="arena", seed=seed, clients=options.clients)
                kills += 1
            more, _ = last_check(data, memory, arena="arena")
            journals, asks, answers, events = (
                journals + 1,
                asks + len(memory.asks),
                answers + len(memory.answers),
                events + more,
            )
            print(
                f"{kills} kills: {asks} asks and {answers} answers acknowledged, 0 missing, 0 doubled, folds equal", flush=True
            )
    print(f"\n{time.perf_counter() - started:.0f} s\n")
    print(
        "| kills | while starting | journals | asks acknowledged | answers acknowledged | missing | doubled | folds unequal |"
    )
    print("|---|---|---|---|---|---|---|---|")
    print(f"| {kills} | {while_starting} | {journals} | {asks} | {answers} | 0 | 0 | 0 |")


if __name__ == "__main__":
    main()
