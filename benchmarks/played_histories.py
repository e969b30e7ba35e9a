"""The samplers that call themselves exact, on histories that FGTS played: the tables of docs/calibration.md.

Run it with `python benchmarks/played_histories.py`, or one part with `--only d1|d2|nats|agree|tempering`; `make calibrate` runs
it too. It ends with status 1 if a limit is missed. The quick form is tests/statistical/test_played_histories.py.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import stats

# The histories and their exact laws are next to the tests that use them.
sys.path.insert(0, str(Path(__file__).parents[1]))

from duelist.environments.linear import LinearDuels
from duelist.experiments.simulation import simulate
from duelist.policies.algorithms.sampling.fgts import FGTS
from tests.support.exact_laws import exact_play_on_the_line, grid_law, temper
from tests.support.oracles import Floats
from tests.support.played_histories import Play, best_of_descents, play, total_variation

SAMPLERS = ("mala", "polya_gamma")
ERRORS = 2.0  # standard errors by which two mean regrets may differ
DISTANCE = 0.05  # total variation of P(best arm) between grid and draws
NATS = 5.0  # beyond dim / 2, the mean of a Gaussian peak
# A case of the d = 5 and d = 10 table: dimension, rounds, trials, alpha.
CASES = [(dim, 2500, 8, alpha) for dim in (5, 10) for alpha in (0.1, 0.5, 1.0, 10.0)] + [(5, 100_000, 4, 0.1)]


def say(text: str) -> None:
    """A progress line, apart from the tables."""
    print(f"  ... {text}", file=sys.stderr, flush=True)


def with_error(values: Floats) -> str:
    return f"{values.mean():.1f} ± {float(stats.sem(values)):.1f}"


def regret_of(alpha: float, sampler: str, environment: LinearDuels, *, rounds: int, trials: int) -> Floats:
    policy = FGTS(alpha=alpha, sampler=sampler)
    return np.asarray(simulate(policy, environment, rounds=rounds, trials=trials, seed=0, progress=False).final_regret)


def on_the_line() -> list[str]:
    """Dimension 1: mean regret against exact draws by quadrature in the loop."""
    trials, failed = 240, []
    print(f"\nd = 1, arms -1 and 1, T = 400, {trials} trials: mean regret, and its distance from exact in standard errors\n")
    print("| `alpha` | exact draws | `mala` | `polya_gamma` |\n|---|---|---|---|")
    for alpha in (0.0, 0.1, 1.0, 10.0):
        exact = exact_play_on_the_line(alpha, rounds=400, trials=trials, seed=1)
        cells = [with_error(exact)]
        for sampler in SAMPLERS:
            found = regret_of(alpha, sampler, LinearDuels(dim=1, arms=2), rounds=400, trials=trials)
            away = (found.mean() - exact.mean()) / math.hypot(float(stats.sem(exact)), float(stats.sem(found)))
            cells.append(f"{with_error(found)} ({away:+.1f})")
            if abs(away) > ERRORS:
                failed.append(f"d = 1, alpha {alpha:g}, {sampler}: regret {away:+.1f} standard errors from exact draws")
        print(f"| {alpha:g} | " + " | ".join(cells) + " |", flush=True)
    return failed


def describe(played: Play, chains: object, lane: int, j: int) -> str:
    """What the sampler knows of the peaks of a chain that missed a limit."""
    peaks = chains.peaks  # type: ignore[attr-defined]
    share = peaks.accepted[lane, j] / max(peaks.proposed[lane, j], 1.0)
    rows = zip(peaks.centre[lane, j], peaks.energy[lane, j], strict=True)
    known = [f"{point.round(1).tolist()} at {energy:.1f}" for point, energy in rows]
    used = known[: int(peaks.n_peaks[lane, j])] if peaks.n_peaks[lane, j] > 1 else []
    at = chains.position[lane, j]  # type: ignore[attr-defined]
    energy = float(played.policy.potential(played.state).value(chains.position)[lane, j])  # type: ignore[attr-defined]
    return f"trial {lane}, j = {j + 1}: at {at.round(1).tolist()}, {energy:.1f}; jumps taken {share:.2f}; peaks known {used}"


def in_the_plane() -> list[str]:
    """Dimension 2: total variation of P(best arm) between the grid and 4,000 draws at the last potential."""
    failed = []
    print("\nd = 2, 4 corners, T = 500, 10 trials and both draws: total variation of P(best arm), median and largest of 20\n")
    print("| `alpha` | `mala` | `polya_gamma` |\n|---|---|---|")
    for alpha in (0.1, 1.0, 10.0):
        cells = []
        for sampler in SAMPLERS:
            played = play(FGTS(alpha=alpha, sampler=sampler), LinearDuels(dim=2, arms=4), rounds=500, trials=10, seed=0)
            positions, chains = played.draws(4000)
            say(f"alpha {alpha:g}, {sampler}: drawn")
            found = np.empty((10, 2))
            for lane, history in enumerate(played.histories):
                for j in range(2):
                    law = grid_law(history, j)
                    found[lane, j] = total_variation(law.arm_law(history), history.arm_law(positions[lane, j]))
                    if law.edge > 1e-10 or found[lane, j] > DISTANCE:
                        where = describe(played, chains, lane, j)
                        failed.append(f"d = 2, alpha {alpha:g}, {sampler}: distance {found[lane, j]:.2f}; {where}")
            cells.append(f"{np.median(found):.3f}, {found.max():.3f}")
        print(f"| {alpha:g} | " + " | ".join(cells) + " |", flush=True)
    return failed


def above_descents() -> list[str]:
    """Chains' potential, the median over 200 advances, above the best of 50 descents by a general-purpose optimiser."""
    failed = []
    print("\nMedian potential of 200 draws of `mala` minus that of the best of 50 descents, in nats: least and most\n")
    print("| d | T | trials | `alpha` | j = 1 | j = 2 | limit |\n|---|---|---|---|---|---|---|")
    for dim, rounds, trials, alpha in CASES:
        started = time.perf_counter()
        played = play(FGTS(alpha=alpha), LinearDuels(dim=dim, arms=32), rounds=rounds, trials=trials, seed=0)
        positions, chains = played.draws(200)
        say(f"d = {dim}, T = {rounds}, alpha {alpha:g}: played in {time.perf_counter() - started:.0f} s")
        limit, above = dim / 2 + NATS, np.empty((trials, 2))
        for lane, history in enumerate(played.histories):
            for j in range(2):
                median = float(np.median(history.potential(positions[lane, j], j)))
                above[lane, j] = median - best_of_descents(history, j)
                if above[lane, j] > limit:
                    where = describe(played, chains, lane, j)
                    failed.append(
                        f"d = {dim}, T = {rounds}, alpha {alpha:g}: {above[lane, j]:.1f} nats above descents; {where}"
                    )
        ranges = " | ".join(f"{above[:, j].min():.1f} to {above[:, j].max():.1f}" for j in range(2))
        print(f"| {dim} | {rounds:,} | {trials} | {alpha:g} | {ranges} | {limit:g} |", flush=True)
    return failed


def agreement() -> list[str]:
    """Regret of the two exact samplers, which share the jumps and nothing else, on the same instances.

    Of the first 30 instances alone a paired difference beyond two standard errors is to be expected one time in ten, at two
    strengths; the limit is on all 120, where an error half as large would show.
    """
    failed = []
    print("\nd = 5, K = 32, T = 1,000: mean regret, and the difference in paired and in unpaired standard errors\n")
    print("| `alpha` | trials | `mala` | `polya_gamma` | difference | paired | unpaired |\n|---|---|---|---|---|---|---|")
    for alpha in (1.0, 10.0):
        both = []
        for sampler in SAMPLERS:
            both.append(regret_of(alpha, sampler, LinearDuels(dim=5, arms=32), rounds=1000, trials=120))
            say(f"alpha {alpha:g}, {sampler}: played")
        for trials in (30, 120):
            mala, other = both[0][:trials], both[1][:trials]
            difference = other - mala
            paired = difference.mean() / float(stats.sem(difference))
            unpaired = difference.mean() / math.hypot(float(stats.sem(mala)), float(stats.sem(other)))
            print(
                f"| {alpha:g} | {trials} | {with_error(mala)} | {with_error(other)} | {with_error(difference)} "
                f"| {paired:+.1f} | {unpaired:+.1f} |",
                flush=True,
            )
        if abs(paired) > ERRORS:
            failed.append(f"d = 5, alpha {alpha:g}: mala and polya_gamma differ by {paired:+.1f} standard errors")
    return failed


def against_tempering() -> list[str]:
    """P(best arm) of chains against parallel tempering, whose own noise is the distance of its two halves."""
    failed = []
    print(
        "\n`alpha` = 0.1, K = 32, T = 2,500, 2 trials and both draws: total variation of P(best arm), 1,000 draws of `mala`\n"
    )
    print("| d | from tempering | tempering's halves | P(best of arms): tempering, `mala` |\n|---|---|---|---|")
    for dim, steps in ((5, 4000), (15, 8000)):
        played = play(FGTS(alpha=0.1), LinearDuels(dim=dim, arms=32), rounds=2500, trials=2, seed=0)
        positions, _ = played.draws(1000)
        rows = []
        for lane, history in enumerate(played.histories):
            for j in range(2):
                tempered = temper(history, j, steps=steps)
                one, two = (history.arm_law(half) for half in tempered.halves)
                ours, law = history.arm_law(positions[lane, j]), 0.5 * (one + two)
                rows.append((total_variation(law, ours), total_variation(one, two), law.max(), ours[law.argmax()]))
                say(f"d = {dim}, trial {lane}, j = {j + 1}: distance {rows[-1][0]:.3f}, least swap {tempered.least_swap:.2f}")
                if rows[-1][0] > DISTANCE + rows[-1][1]:
                    failed.append(f"d = {dim}, trial {lane}, j = {j + 1}: {rows[-1][0]:.3f} from tempering")
        columns = [", ".join(f"{row[i]:.3f}" for row in rows) for i in range(2)]
        shares = ", ".join(f"{row[2]:.2f} {row[3]:.2f}" for row in rows)
        print(f"| {dim} | {columns[0]} | {columns[1]} | {shares} |", flush=True)
    return failed


PARTS: dict[str, Callable[[], list[str]]] = {
    "d1": on_the_line,
    "d2": in_the_plane,
    "nats": above_descents,
    "agree": agreement,
    "tempering": against_tempering,
}


def check_played_histories(parts: list[str] | None = None) -> list[str]:
    """Print the tables of these parts, all if None; what missed its limit."""
    failed = []
    for name in parts or list(PARTS):
        started = time.perf_counter()
        failed += PARTS[name]()
        say(f"{name}: {time.perf_counter() - started:.0f} s")
    return failed


def main() -> int:
    parser = argparse.ArgumentParser(description="Samplers on histories that FGTS played.")
    parser.add_argument("--only", choices=list(PARTS), help="one part alone")
    only = parser.parse_args().only
    failed = check_played_histories([only] if only else None)
    print("\n" + ("every limit was kept" if not failed else "FAILED:\n" + "\n".join(failed)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
