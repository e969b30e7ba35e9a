"""Compute what no policy can beat on the paper's problem: the table of docs/floor.md.

    python benchmarks/floor.py                     # d = 5, 10, 15 at T = 2500: about three minutes of one core
    python benchmarks/floor.py --rounds 500 --instances 16 --dims 5

At d = 5 the 32 arms are all corners; at d = 10 and 15 they are drawn anew for every instance. The estimate with hidden
magnitudes is for all corners only. Each floor is a mean over `--instances` draws.
"""

from __future__ import annotations

import argparse
import time

from duelist.theory import hidden_magnitude_estimate, regret_floor, sign_values

ARMS = 32
MAGNITUDES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dims", type=int, nargs="+", default=[5, 10, 15])
    parser.add_argument("--rounds", type=int, default=2500)
    parser.add_argument("--instances", type=int, default=96)
    options = parser.parse_args()
    print(
        f"one sign, T = {options.rounds:,}: least expected cost by magnitude, unshifted (exact) and with shifts up to 4 (bound)"
    )
    for magnitude in MAGNITUDES:
        exact = sign_values(magnitude, options.rounds)[-1]
        print(f"  {magnitude:5.2f}  {exact:6.2f}  {sign_values(magnitude, options.rounds, most_shift=4.0)[-1]:6.2f}")
    for dim in options.dims:
        began = time.perf_counter()
        all_corners = 2**dim == ARMS
        floor = regret_floor(dim=dim, arms=ARMS, rounds=options.rounds, instances=options.instances, seed=1)
        print(f"d = {dim}, K = {ARMS}, {time.perf_counter() - began:.0f} s: {floor}", flush=True)
        if all_corners:
            print(hidden_magnitude_estimate(dim=dim, rounds=options.rounds))


if __name__ == "__main__":
    main()
