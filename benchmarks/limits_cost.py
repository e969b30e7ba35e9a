"""What limits cost when a pair is chosen: voters, excluded rows, costs and shares, beside asking freely.

    python benchmarks/limits_cost.py

Twelve candidates of dimension 16 in memory, 300 asks, all answered. Processor time of `choose`, the median over asks, and its
ratio to that of an agent without limits, which plays beside the others in one run. "a voter, 60 pairs seen" is one who was
asked 60 times about these candidates, which have 66 pairs.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time
from typing import Any

import numpy as np

import duelist
from duelist.live import Guardrails

CANDIDATES, DIM, ASKS = 12, 16, 300


def play(policy: Any, features: np.ndarray) -> dict[str, float]:
    """Median processor time of `choose` in microseconds, by what limits it."""
    rng = np.random.default_rng(1)
    utilities = features @ rng.standard_normal(DIM)
    wants: dict[str, dict[str, Any]] = {
        "nothing": {},
        "a voter of few asks": {},
        "a voter, 60 pairs seen": {},
        "three rows excluded": {"exclude": [0, 4, 8]},
        "costs": {"cost": np.linspace(0.0, 1.0, CANDIDATES)},
        "shares": {},
    }
    agents = {name: duelist.Agent(policy, dim=DIM, seed=0) for name in wants}
    agents["shares"].set_guardrails(Guardrails(min_share=0.05, max_share=0.5))
    for _ in range(60):
        agents["a voter, 60 pairs seen"].skip(agents["a voter, 60 pairs seen"].choose(features, voter="late"))
    times: dict[str, list[float]] = {name: [] for name in wants}
    for t in range(ASKS):
        for name, agent in agents.items():
            more = dict(wants[name])
            if name == "a voter of few asks":
                more["voter"] = f"voter {t // 10}"
            if name == "a voter, 60 pairs seen":
                more["voter"] = "late" if t < 6 else f"again {t}"
            begun = time.process_time()
            duel = agent.choose(features, **more)
            if name != "a voter, 60 pairs seen" or t < 6:
                times[name].append(1e6 * (time.process_time() - begun))
            gap = utilities[duel.first] - utilities[duel.second]
            agent.learn(duel, winner="first" if rng.random() < 1.0 / (1.0 + np.exp(-gap)) else "second")
    return {name: float(np.median(found)) for name, found in times.items()}


def main() -> None:
    """Print the table."""
    features = np.random.default_rng(0).standard_normal((CANDIDATES, DIM)) / np.sqrt(DIM)
    policies = {"FGTS": duelist.FGTS(), "CoLSTIM": duelist.CoLSTIM(), "Foresight": duelist.Foresight()}
    found = {name: play(policy, features) for name, policy in policies.items()}
    print("| limits | " + " | ".join(f"{name}, us | ratio" for name in found) + " |")
    print("|---" * (1 + 2 * len(found)) + "|")
    for limit in next(iter(found.values())):
        cells = [f"{times[limit]:.0f} | {times[limit] / times['nothing']:.2f}" for times in found.values()]
        print(f"| {limit} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
