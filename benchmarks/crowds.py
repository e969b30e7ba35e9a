"""Votes to the same expected loss, with and without reliabilities, on crowds some of whose voters answer at random.

    python benchmarks/crowds.py                    # 200 crowds with 20 % random voters, and 200 with none
    python benchmarks/crowds.py --instances 50

Voters come back in random order and give about `--each` votes in all, on pairs drawn uniformly. After every so many votes the
item with the highest utility is recommended; its loss is how much better the best one is. How many votes reach a loss is read
off lines through the mean curves, both axes logarithmic, at the mean of the losses.
"""

from __future__ import annotations

import argparse

import numpy as np

from duelist.datasets import Comparisons, fit_votes
from duelist.typing import FloatArray

SIZES = np.unique(np.geomspace(200, 3000, 6).astype(int))


def losses(seed: int, share: float, items: int, spread: float, each: int) -> FloatArray:
    """(2, sizes) loss of the recommended item without and with reliabilities."""
    rng = np.random.default_rng(seed)
    utilities = spread * rng.standard_normal(items)
    n = int(SIZES[-1])
    # Voters come back all the time, so that a short prefix has few votes of each and a long one many.
    voters = rng.integers(n // each, size=n)
    slopes = np.where(rng.random(n // each) < share, 0.0, 1.0)
    first = rng.integers(items, size=n)
    second = (first + rng.integers(1, items, size=n)) % items
    wins = rng.random(n) < 1.0 / (1.0 + np.exp(-slopes[voters] * (utilities[first] - utilities[second])))
    votes = Comparisons(
        name="crowd",
        items=tuple(map(str, range(items))),
        shown=np.stack([first, second], axis=1),
        chosen=np.where(wins, 0, 1),
        voters=voters.astype(str).astype(object),
    )
    found = np.empty((2, len(SIZES)))
    for place, size in enumerate(SIZES):
        for row, reliability in enumerate((False, True)):
            fit = fit_votes(votes.select(np.arange(size)), reliability=reliability)
            found[row, place] = utilities.max() - utilities[int(fit.utilities.mean.argmax())]
    return found


def votes_saved(curves: FloatArray) -> float:
    """Share of votes saved: mean over the losses that both curves reach, read off lines through the logarithms."""
    lines = [np.polyfit(np.log(SIZES), np.log(np.maximum(curve, 1e-6)), 1) for curve in curves]
    level = np.log(np.maximum(curves.mean(axis=0), 1e-6)).mean()
    needed = [np.exp((level - intercept) / slope) for slope, intercept in lines]
    return float(1.0 - needed[1] / needed[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--items", type=int, default=30)
    parser.add_argument("--spread", type=float, default=3.0, help="standard deviation of utilities, in log-odds")
    parser.add_argument("--each", type=int, default=50, help="votes per voter in the longest run")
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    for share in (0.2, 0.0):
        every = np.stack(
            [
                losses(seed, share, options.items, options.spread, options.each)
                for seed in range(options.first_seed, options.first_seed + options.instances)
            ]
        )
        again = [votes_saved(every[rng.integers(len(every), size=len(every))].mean(axis=0)) for _ in range(500)]
        low, high = np.quantile(again, [0.025, 0.975])
        print(f"{share:.0%} random voters: {votes_saved(every.mean(axis=0)):+.1%} votes saved, 95 % [{low:+.1%}, {high:+.1%}]")
        for size, (plain, people) in zip(SIZES, every.mean(axis=0).T, strict=True):
            print(f"  {size:5d} votes: loss {plain:.4f} without, {people:.4f} with reliabilities")


if __name__ == "__main__":
    main()
