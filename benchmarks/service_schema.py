"""Schemathesis against a running service: thousands of requests made from its OpenAPI document, good and bad.

Run: python benchmarks/service_schema.py [--cases 5000]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.schema_fuzz import ARENA, fuzz
from tests.support.services import running_service


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=5000)
    wanted = parser.parse_args().cases
    counts: Counter[str] = Counter()
    started = time.perf_counter()
    seed = 0
    while sum(counts.values()) < wanted:
        # A fresh service for every pass, so that one pass does not fill the arena for the next.
        with running_service() as service:
            service.create(id=ARENA)
            counts += fuzz(service.url, service.secret, examples=60, seed_=seed)
        seed += 1
        print(f"{sum(counts.values())} cases, {seed} passes", flush=True)
    print(f"\n{sum(counts.values())} cases, 0 failures, {time.perf_counter() - started:.0f} s\n")
    print("| status | cases |\n|---|---|")
    for status, n in sorted(counts.items()):
        print(f"| {status} | {n} |")


if __name__ == "__main__":
    main()
