"""What a sample of past action sets does to FGTS where every round has new arms: regret and processor time.

    python benchmarks/feel_good_sets.py --trials 10 --rounds 1500

The same instances for every row: `FGTS(exact_sets=None)` takes the Feel-Good maximum over all past sets, as the paper does,
the default over a sample, and `alpha=0` has none. Time is that of one lane and round, of the last tenth of the rounds too,
and of the slowest tenth: where all sets are read, a round costs more the more there are.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import duelist
from duelist.core import Problem, Streams
from duelist.typing import FloatArray

CASES: dict[str, dict[str, Any]] = {
    "dim 20, 12 arms": {"dim": 20, "arms": 12, "geometry": "sphere", "theta_norm": 2.0},
    "dim 10, 32 arms": {"dim": 10, "arms": 32},
}
ROWS: dict[str, dict[str, Any]] = {
    "no Feel-Good term": {"alpha": 0.0},
    "alpha 0.1, all sets": {"exact_sets": None},
    "alpha 0.1, sample": {},
    "alpha 0.1, sample of 4": {"exact_sets": 16},
    "alpha 1, all sets": {"alpha": 1.0, "exact_sets": None},
    "alpha 1, sample of 16 to 32": {"alpha": 1.0, "exact_sets": 128},
    "alpha 1, default": {"alpha": 1.0},
}


def play(policy: Any, case: dict[str, Any], rounds: int, trials: int) -> tuple[FloatArray, FloatArray]:
    """Regret (trials,), and processor time (rounds,) in ms per lane."""
    streams = Streams(0, list(range(trials)))
    instance = duelist.LinearDuels(fresh_arms=True, **case).instance(streams)
    state = policy.start(Problem(lanes=trials, dim=case["dim"]), streams)
    regret, times = np.zeros(trials), np.empty(rounds)
    for t in range(rounds):
        actions = instance.actions(t)
        begun = time.process_time()
        duels, state = policy.choose(state, actions, streams)
        spent = time.process_time() - begun
        outcomes = instance.outcomes(t, duels)
        begun = time.process_time()
        state = policy.learn(state, actions, duels, outcomes)
        times[t] = 1000.0 * (spent + time.process_time() - begun) / trials
        regret += instance.regret(actions, duels)[0]
    return regret, times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=1500)
    options = parser.parse_args()
    print("| arms | policy | regret | standard error | against all sets | ms per round | slowest tenth | last tenth |")
    print("|---|---|---|---|---|---|---|---|")
    for name, case in CASES.items():
        exact: dict[float, FloatArray] = {}
        for label, settings in ROWS.items():
            play(duelist.FGTS(**settings), case, 300, 2)  # compile
            regret, times = play(duelist.FGTS(**settings), case, options.rounds, options.trials)
            alpha = settings.get("alpha", 0.1)
            exact.setdefault(alpha, regret)
            gap = regret - exact[alpha]
            errors = [values.std(ddof=1) / np.sqrt(len(values)) for values in (regret, gap)]
            tenths = times[: len(times) // 10 * 10].reshape(10, -1).mean(axis=1)
            print(
                f"| {name} | {label} | {regret.mean():.0f} | {errors[0]:.1f} | {gap.mean():+.1f} ({errors[1]:.1f}) "
                f"| {times.mean():.2f} | {tenths.max():.2f} | {tenths[-1]:.2f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
