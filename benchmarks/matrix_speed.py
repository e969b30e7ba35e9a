"""What a round of every rule for K arms costs: processor time per lane of `choose` and `learn`, 30 lanes together.

The least of several windows is reported: other work on the machine only ever adds. `python benchmarks/matrix_speed.py`
"""

from __future__ import annotations

import argparse
import time

from rich.console import Console
from rich.table import Table

from duelist.core.lanes import Problem
from duelist.core.streams import Streams
from duelist.environments import MatrixDuels
from duelist.policies.parts.matrix_policy import MatrixPolicy
from duelist.policies.registry import duel_policies

LANES, HORIZON, WINDOW = 30, 100_000, 50
GOAL = 5.0  # microseconds at K = 100


def cost_of(policy: MatrixPolicy, arms: int, rounds: int) -> float:
    """Microseconds of processor time per lane and round, in the cheapest window of 50 rounds."""
    streams = Streams(0, range(LANES))
    instance = MatrixDuels(matrix="bradley-terry", arms=arms).instance(streams)
    state = policy.start(Problem(dim=arms, lanes=LANES, horizon=HORIZON), streams)
    windows, spent = [], 0.0
    for t in range(rounds):
        actions = instance.actions(t)
        started = time.process_time()
        duels, state = policy.choose(state, actions, streams)
        chosen = time.process_time()
        outcomes = instance.outcomes(t, duels)
        told = time.process_time()
        state = policy.learn(state, actions, duels, outcomes)
        spent += chosen - started + time.process_time() - told
        if (t + 1) % WINDOW == 0:
            windows.append(spent)
            spent = 0.0
    return 1e6 * min(windows[1:]) / (WINDOW * LANES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--arms", type=int, nargs="+", default=[10, 100])
    parser.add_argument("--rounds", type=int, default=3000)
    parser.add_argument("--only", nargs="*", default=[], help="names of rules; none for all")
    options = parser.parse_args()
    table = Table(title=f"microseconds per lane and round, {LANES} lanes; goal at K = 100: {GOAL:g}", title_justify="left")
    table.add_column("rule")
    for arms in options.arms:
        table.add_column(f"K = {arms}", justify="right")
    for name, kind in duel_policies().items():
        if issubclass(kind, MatrixPolicy) and (not options.only or name in options.only):
            table.add_row(name, *(f"{cost_of(kind(), arms, options.rounds):.1f}" for arms in options.arms))
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
