"""Rules for K arms against public programs, on three problems of Komiyama et al. (2015): T = 10,000.

The figures of the papers are curves. The numbers here are means of runs of two public programs on the same matrices, with the
same settings: github.com/jkomiyama/duelingbanditlib, by the authors of RMED, for RUCB, RMED, Beat the Mean and Interleaved
Filter (200 runs), and github.com/HuasenWu/DuelingBandits, by those of double Thompson sampling, for that, CCB and SCB (100
runs). Regret is the mean over the two arms of P(best beats arm) - 1/2. `python benchmarks/matrix_papers.py`
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import duelist
from duelist.environments import MatrixDuels
from duelist.policies import CCB, RMED1, RMED2F, RUCB, SCB, BeatTheMean, DoubleTS, InterleavedFilter, SelfSparring, VersatileDB

ROUNDS = 10_000
ARITHMETIC = 0.5 + 0.05 * (np.arange(8)[None] - np.arange(8)[:, None])
CYCLIC = [[0.5, 0.6, 0.6, 0.6], [0.4, 0.5, 0.9, 0.1], [0.4, 0.1, 0.5, 0.9], [0.4, 0.9, 0.1, 0.5]]
SIX_RANKERS = [
    [0.50, 0.55, 0.55, 0.54, 0.61, 0.61],
    [0.45, 0.50, 0.55, 0.55, 0.58, 0.60],
    [0.45, 0.45, 0.50, 0.54, 0.51, 0.56],
    [0.46, 0.45, 0.46, 0.50, 0.54, 0.50],
    [0.39, 0.42, 0.49, 0.46, 0.50, 0.51],
    [0.39, 0.40, 0.44, 0.50, 0.49, 0.50],
]
PROBLEMS: dict[str, Any] = {"cyclic": CYCLIC, "arithmetic": ARITHMETIC, "six rankers": SIX_RANKERS}
# Rule, and its final regret by a public program on the three problems, with standard errors.
RULES = [
    ("RUCB", RUCB(), [(78.5, 1.3), (271.9, 4.1), (397.6, 3.2)]),
    ("RMED1", RMED1(), [(50.9, 1.3), (145.9, 2.6), (198.6, 2.4)]),
    ("RMED2F", RMED2F(), [(15.2, 0.8), (195.2, 3.2), (237.3, 3.3)]),
    ("DoubleTS", DoubleTS(), [(33.9, 0.9), (83.6, 2.6), (98.5, 4.2)]),
    ('DoubleTS(tie_break="regret")', DoubleTS(tie_break="regret"), [(34.0, 0.9), (80.0, 2.8), (95.6, 3.9)]),
    ("CCB", CCB(), [(75.0, 2.0), (291.1, 6.2), (396.7, 5.3)]),
    ("SCB", SCB(), [(92.9, 2.1), (1704.4, 28.4), (606.6, 12.1)]),
    ("BeatTheMean(gamma=1.2, width=1)", BeatTheMean(gamma=1.2, width=1.0), [(749.9, 0.2), (1526.7, 3.4), (599.8, 0.1)]),
    ("InterleavedFilter", InterleavedFilter(), [(347.2, 5.7), (1349.1, 20.9), (606.2, 10.9)]),
    ("SelfSparring", SelfSparring(), None),
    ("VersatileDB", VersatileDB(), None),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=200)
    trials = parser.parse_args().trials
    table = Table(title=f"Final regret at T = {ROUNDS:,}, {trials} runs: ours, a public program, ratio", title_justify="left")
    table.add_column("rule")
    for name in PROBLEMS:
        table.add_column(name, justify="right")
    for name, policy, published in RULES:
        cells = []
        for place, matrix in enumerate(PROBLEMS.values()):
            env = MatrixDuels(matrix=matrix)
            run = duelist.simulate(policy, env, rounds=ROUNDS, trials=trials, seed=1, every=ROUNDS, progress=False)
            mean, error = run.final_regret.mean(), run.final_regret.std() / np.sqrt(trials)
            ours = f"{mean:.1f} +- {error:.1f}"
            if published is not None:
                theirs, their_error = published[place]
                ours += f", {theirs:.1f} +- {their_error:.1f}, {mean / theirs:.2f}"
            cells.append(ours)
        table.add_row(name, *cells)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
