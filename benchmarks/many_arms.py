"""Processor time of a round by policy and number of arms: is FGTS.CDB more efficient than its baselines?

The paper says so because FGTS needs no elimination of arms and no perturbation of each. Run: python benchmarks/many_arms.py
"""

from __future__ import annotations

import time
from typing import Any

import duelist

ARMS = (32, 128, 512)
POLICIES: dict[str, Any] = {
    "FGTS": duelist.FGTS(),
    "FGTS, paper's recipe": duelist.FGTS(sampler="paper"),
    "MaxInP": duelist.MaxInP(),
    "MaxPairUCB": duelist.MaxPairUCB(),
    "CoLSTIM": duelist.CoLSTIM(),
    "VACDB": duelist.VACDB(),
}


def round_cost(policy: Any, arms: int, *, rounds: int = 400, trials: int = 10) -> float:
    """Microseconds of processor time per lane and round."""
    environment = duelist.LinearDuels(dim=10, arms=arms)
    started = time.process_time()
    duelist.simulate(policy, environment, rounds=rounds, trials=trials, seed=0, workers=1, progress=False)
    return 1e6 * (time.process_time() - started) / (rounds * trials)


def main() -> None:
    print(f"| policy | {' | '.join(f'{arms} arms' for arms in ARMS)} |\n|---|{'---|' * len(ARMS)}")
    for name, policy in POLICIES.items():
        round_cost(policy, 8, rounds=40, trials=2)  # compile
        print(f"| {name} | {' | '.join(f'{round_cost(policy, arms):.0f}' for arms in ARMS)} |", flush=True)


if __name__ == "__main__":
    main()
