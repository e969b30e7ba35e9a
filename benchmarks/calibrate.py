"""The full form of the calibration suite: every sampler against reference posteriors, simulated truths and played histories.

Run it with `make calibrate`. It prints the tables of docs/calibration.md, writes results/calibration.json, and ends
with status 1 if a sampler that calls itself exact fails a check. The quick form is tests/statistical.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

# The problems are next to the tests that use them.
sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.played_histories import check_played_histories
from duelist.core.streams import Streams
from duelist.posteriors.priors import Gaussian, GaussianBall, Prior, UniformBall
from duelist.samplers.base import Sampler
from duelist.samplers.calibration.checks import joint_test, stein_test, truth_ranks, uniformity
from duelist.samplers.calibration.joint_model import JointModel
from duelist.samplers.curvature import refresh_curvature, unknown_curvature
from duelist.samplers.diagnostics import PoorSamplingWarning
from duelist.samplers.posterior import FeelGood, sample_posterior
from duelist.samplers.registry import SAMPLERS, sampler_named
from tests.support.reference_problems import REFERENCES, Reference, stored

ALARM = 0.001
# The paper's recipe freezes by design; as an offline sampler it would only show where it was put.
NAMES = [name for name in SAMPLERS if name != "paper"]
MODELS = {
    "d = 3": JointModel(lanes=1000),
    "d = 3, Feel-Good": JointModel(lanes=1000, mu=0.15),
    "d = 10": JointModel(lanes=1000, dim=10, rounds=60),
    "d = 10, Feel-Good": JointModel(lanes=1000, dim=10, rounds=60, mu=0.03),
}


def prior_of(problem: Reference) -> Prior:
    if not problem.radius:
        return Gaussian(problem.precision**-0.5)
    if not problem.precision:
        return UniformBall(problem.radius)
    return GaussianBall(problem.precision**-0.5, problem.radius)


def against_reference(problem: Reference, name: str) -> dict[str, float]:
    contrasts, outcomes, sets, adversaries = problem.table()
    tilt = FeelGood(mu=problem.mu, action_sets=sets[0] if problem.fixed_arms else sets, adversaries=adversaries)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PoorSamplingWarning)
        found = sample_posterior(
            contrasts,
            outcomes,
            prior=prior_of(problem),
            eta=problem.eta,
            feel_good=tilt if problem.mu else None,
            sampler=name,
            draws=2000,
        )
    answer = stored()[problem.name]
    mean, sd = np.array(answer["mean"]), np.array(answer["sd"])
    checks = found.diagnostics
    return {
        "mean": float((np.abs(found.mean - mean) / sd).max()),
        "narrowest": float((found.sd / sd).min()),
        "widest": float((found.sd / sd).max()),
        "rhat": float(max(checks.rhat.max(), checks.energy_rhat)),
        "ess": float(min(checks.ess_bulk.min(), checks.ess_tail.min(), checks.energy_ess)),
    }


def reference_fails(error: dict[str, float]) -> bool:
    return (
        error["mean"] > 0.1 or error["narrowest"] < 0.95 or error["widest"] > 1.05 or error["rhat"] > 1.01 or error["ess"] < 400
    )


def stein_p_value(sampler: Sampler, lanes: int = 1000) -> float:
    model = JointModel(lanes=1, dim=4, rounds=40, seed=5)
    generator = np.random.default_rng(0)
    outcomes = model.draw_outcomes(model.draw_theta(generator), generator)
    same = JointModel(lanes=lanes, dim=4, rounds=40, seed=5)
    same.__dict__["sets"] = np.repeat(model.sets, lanes, axis=0)
    potential = same.potential(np.repeat(outcomes, lanes, axis=0))
    streams = Streams(0, range(lanes))
    chains = sampler.start(potential.prior, streams, chains=1, dim=4)
    for call in range(80):
        chains = sampler.advance(potential, chains, streams, call)
    whitener = refresh_curvature(unknown_curvature(lanes, 4), potential).whitener[0]
    return stein_test(chains.position[:, 0], potential.gradient(chains.position)[:, 0], whitener).p_value


def corrected(p_values: Any) -> float:
    """The smallest p-value times their number (Bonferroni), at most 1."""
    return float(min(1.0, p_values.min() * p_values.size))


def main() -> int:
    failed: list[str] = []
    results: dict[str, Any] = {"references": {}, "ranks": {}, "joint": {}, "stein": {}}
    print("mean error in posterior sd, then smallest and largest ratio of standard deviations\n")
    print("| reference | " + " | ".join(f"`{name}`" for name in NAMES) + " |\n|---" + "|---" * len(NAMES) + "|")
    for problem in REFERENCES:
        cells = []
        for name in NAMES:
            error = against_reference(problem, name)
            results["references"][f"{problem.name} / {name}"] = error
            cells.append(f"{error['mean']:.2f}, {error['narrowest']:.2f}-{error['widest']:.2f}")
            if sampler_named(name).exact and reference_fails(error):
                failed.append(f"{name} on {problem.name}: {error}")
        print(f"| {problem.name} | " + " | ".join(cells) + " |", flush=True)
    print("\np-values after Bonferroni\n")
    print("| check | " + " | ".join(f"`{name}`" for name in NAMES) + " |\n|---" + "|---" * len(NAMES) + "|")
    for label, model in MODELS.items():
        for what in ("ranks", "joint"):
            cells = []
            for name in NAMES:
                sampler = sampler_named(name)
                p_values = uniformity(truth_ranks(sampler, model), 63) if what == "ranks" else joint_test(sampler, model)
                results[what][f"{label} / {name}"] = corrected(p_values)
                cells.append(f"{corrected(p_values):.2g}")
                if sampler.exact and corrected(p_values) < ALARM:
                    failed.append(f"{name}, {what}, {label}: p = {corrected(p_values):.2g}")
            print(f"| {'truth ranks' if what == 'ranks' else 'joint test'}, {label} | " + " | ".join(cells) + " |", flush=True)
    cells = []
    for name in NAMES:
        results["stein"][name] = stein_p_value(sampler_named(name))
        cells.append(f"{results['stein'][name]:.2g}")
        if sampler_named(name).exact and results["stein"][name] < ALARM:
            failed.append(f"{name}, Stein test: p = {results['stein'][name]:.2g}")
    print("| Stein test, d = 4 | " + " | ".join(cells) + " |")
    failed += check_played_histories()
    out = Path("results")
    out.mkdir(exist_ok=True)
    (out / "calibration.json").write_text(json.dumps(results, indent=1) + "\n")
    print("\n" + ("every exact sampler passed" if not failed else "FAILED: " + "; ".join(failed)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
