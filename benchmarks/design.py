"""What a design of pairs is worth: the error of predicted utilities after n votes on designed pairs, over that on random pairs.

    python benchmarks/design.py [--instances 200] [--votes 5] [--only few-arms tiny]

For every family whose arms differ from the others' and stay the same: n = votes x dim pairs are asked about, all chosen before
any answer, theta is fitted with the ridge of the design, and the error is the root mean square of predicted minus true
differences of utilities over all pairs. Votes are logistic. Intervals are of the mean log ratio over instances.
"""

from __future__ import annotations

import argparse

import numpy as np

from duelist import LinearDuels
from duelist.core.streams import Streams
from duelist.experiments import family_names, family_spec
from duelist.experiments.sweep.parameters import build
from duelist.history.statistics import Statistics
from duelist.posteriors import design_pairs
from duelist.preferences.fit import fit
from duelist.typing import FloatArray, IntArray

SAME_ARMS = ("short", "long", "wrong-link", "flipped")  # as paper-10, but for rounds and votes


def predicted_error(items: FloatArray, truth: FloatArray, pairs: IntArray, uniforms: FloatArray) -> float:
    """Root mean square error of differences of utilities, after one vote on each pair."""
    z = items[pairs[:, 0]] - items[pairs[:, 1]]
    lost = (uniforms > 1.0 / (1.0 + np.exp(-(z @ truth)))).astype(float)
    n, dim = z.shape
    statistics = Statistics(
        np.ascontiguousarray(z.T)[None], np.ones((1, n)), lost[None], np.array([n]),
        np.empty((1, 0, dim, 0)), np.empty(0), np.zeros((1, 2, dim)),
    )  # fmt: skip
    theta = fit(statistics, ridge=np.ones(1), weight=np.ones(1), start=np.zeros((1, dim))).theta[0]
    off = items @ (theta - truth)
    return float(np.sqrt(2.0) * np.std(off))


def main() -> None:
    """Print a table: family, ratio of errors with its interval, for D and A."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--instances", type=int, default=200)
    parser.add_argument("--votes", type=int, default=5)
    parser.add_argument("--only", nargs="*", default=[], help="families; none for all")
    options = parser.parse_args()
    print("| family | D over random | A over random |\n|---|---|---|")
    for name in options.only or family_names():
        env = build("environment", LinearDuels, family_spec(name, "design").environment.parameters)
        if name in SAME_ARMS or env.fresh_arms or env.arms > 64:
            continue
        instance = env.instance(Streams(7, range(options.instances)))
        arms, truths = instance.actions(0).features, instance.theta
        ratios: dict[str, list[float]] = {"D": [], "A": []}
        for trial, (items, truth) in enumerate(zip(arms, truths, strict=True)):
            rng = np.random.default_rng([11, trial])
            n = options.votes * items.shape[1]
            uniforms = rng.random(n)
            random = np.array([rng.choice(len(items), 2, replace=False) for _ in range(n)])
            plain = predicted_error(items, truth, random, uniforms)
            for criterion, found in ratios.items():
                pairs = design_pairs(items, n, criterion=criterion)  # type: ignore[arg-type]
                found.append(np.log(predicted_error(items, truth, pairs, uniforms) / plain))
        cells = []
        for found in ratios.values():
            mean, error = np.mean(found), np.std(found) / np.sqrt(len(found))
            cells.append(f"{np.exp(mean):.2f} ({np.exp(mean - 1.96 * error):.2f} to {np.exp(mean + 1.96 * error):.2f})")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
