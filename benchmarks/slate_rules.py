"""Rules for slates side by side: regret of the mean and of the best that is shown, and what the recommended arm costs.

    python benchmarks/slate_rules.py [--rounds 200] [--trials 24]

All rank four of 32 arms at a time, d = 10, on the same instances. A slate of different arms costs more than nothing whatever is
known, so that mean regret is unfair to rules that show no others: the column of the best of four is theirs.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import duelist
from duelist.policies import CPPL, MAUPO, ListwiseFGTS


def rules() -> dict[str, Any]:
    """The policies."""
    return {
        "ListwiseFGTS": ListwiseFGTS(choices=4, feedback="ranking"),
        "ListwiseFGTS, different arms": ListwiseFGTS(choices=4, feedback="ranking", same_arm="runner-up"),
        "CPPL": CPPL(choices=4),
        "MAUPO": MAUPO(choices=4),
    }


def _with_error(values: np.ndarray[Any, Any]) -> str:
    return f"{values.mean():.3g} ± {values.std(ddof=1) / np.sqrt(len(values)):.2g}"


def main() -> None:
    """Print a table: means with standard errors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--trials", type=int, default=24)
    options = parser.parse_args()
    quarter = max(options.rounds // 4, 1)
    print(f"| rule | regret | of the best shown | recommended after {quarter} | after {4 * quarter} |\n|---|---|---|---|---|")
    for name, policy in rules().items():
        run = duelist.simulate(
            policy,
            duelist.LinearDuels(dim=10, arms=32),
            rounds=options.rounds,
            trials=options.trials,
            seed=0,
            simple_regret=quarter,
            workers=1,
        )
        assert run.simple_regret is not None
        columns = [run.final_regret, run.final_weak_regret, run.simple_regret[:, 0], run.simple_regret[:, 3]]
        print(f"| {name} | {' | '.join(map(_with_error, columns))} |", flush=True)


if __name__ == "__main__":
    main()
