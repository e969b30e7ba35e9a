"""The problems behind the stored reference posteriors, and the recipe that computed them.

Recipe: importance sampling, which needs no chain and shares no code with the samplers. The proposal is a multivariate Student t
with 10 degrees of freedom, centred at the minimiser of the potential that a general-purpose optimiser finds, with the
inverse of the likelihood's and prior's Hessian there as its scale matrix. The potential is the paper's formula in plain
NumPy. Weighted means and standard deviations of every coordinate, and the effective sample size of the weights, are
stored in reference_posteriors.json. Run `python -m tests.support.reference_problems` from the root of the project
to compute them again (some minutes).
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize

Floats = npt.NDArray[np.float64]

STORED = Path(__file__).with_name("reference_posteriors.json")
_BATCH = 20_000


@dataclass(frozen=True, kw_only=True)
class Reference:
    """A table of comparisons and a posterior for it.

    One shared action set is offered in every row if `fixed_arms`, else one a row. The truth is a unit vector;
    `separable` makes the better candidate win always. `radius` is that of a ball prior, 0 for none, and `precision`
    that of the Gaussian, 0 for none.
    """

    name: str
    dim: int
    rows: int
    arms: int = 6
    mu: float = 0.0
    eta: float = 1.0
    precision: float = 1.0
    radius: float = 0.0
    fixed_arms: bool = False
    separable: bool = False
    draws: int = 400_000
    seed: int = 0

    def table(self) -> tuple[Floats, npt.NDArray[np.int64], Floats, Floats]:
        """Contrasts (rows, dim), outcomes (rows,), action sets (rows or 1, arms, dim) and adversaries (rows, dim)."""
        generator = np.random.default_rng([2024, self.seed, self.dim, self.rows])
        theta = generator.standard_normal(self.dim)
        theta /= np.linalg.norm(theta)
        sets = generator.standard_normal((1 if self.fixed_arms else self.rows, self.arms, self.dim))
        first, second = generator.integers(self.arms, size=(2, self.rows))
        which = np.zeros(self.rows, dtype=np.int64) if self.fixed_arms else np.arange(self.rows)
        contrasts = sets[which, first] - sets[which, second]
        logits = contrasts @ theta
        noise = 0.0 if self.separable else generator.logistic(size=self.rows)
        return contrasts, np.where(logits + noise > 0, 1, -1), sets, sets[which, second]

    def potentials(self, theta: Floats) -> Floats:
        """-log density up to a constant at theta (n, dim): (n,), by the paper's formula."""
        contrasts, outcomes, sets, adversaries = self.table()
        total = 0.5 * self.precision * (theta**2).sum(axis=1)
        # Rows that occur often are counted, which is all that makes a table of 2500 rows quick.
        rows, counts = np.unique(outcomes[:, None] * contrasts, axis=0, return_counts=True)
        total += self.eta * np.logaddexp(0.0, -(theta @ rows.T)) @ counts
        if self.mu:
            for arms in sets:
                total -= self.mu * (self.rows / len(sets)) * (theta @ arms.T).max(axis=1)
            total += self.mu * (theta @ adversaries.sum(axis=0))
        if self.radius:
            total[(theta**2).sum(axis=1) > self.radius**2] = math.inf
        return np.asarray(total)


REFERENCES = (
    Reference(name="low dimension, few duels", dim=2, rows=8),
    Reference(name="low dimension, few duels, Feel-Good", dim=2, rows=8, mu=0.1),
    Reference(name="low dimension, many duels", dim=3, rows=1000, fixed_arms=True),
    Reference(name="ball", dim=4, rows=40, precision=0.0, radius=1.2),
    Reference(name="ball, Feel-Good", dim=4, rows=40, precision=0.5, radius=1.2, mu=0.05),
    Reference(name="separable", dim=4, rows=15, separable=True),
    Reference(name="tempered", dim=5, rows=150, eta=0.25),
    Reference(name="tempered, Feel-Good", dim=5, rows=150, eta=0.25, mu=0.02),
    Reference(name="the paper's size", dim=10, rows=2500, arms=32, fixed_arms=True),
    Reference(name="the paper's size, Feel-Good", dim=10, rows=2500, arms=32, fixed_arms=True, mu=0.01),
    Reference(name="high dimension, few duels", dim=20, rows=60, draws=1_500_000),
    Reference(name="high dimension, few duels, Feel-Good", dim=20, rows=60, mu=0.01, draws=1_500_000),
    Reference(name="high dimension, many duels", dim=50, rows=400, draws=600_000),
)


def _computed(problem: Reference) -> dict[str, Any]:
    contrasts, outcomes, *_ = problem.table()
    ridge = problem.precision + ((problem.dim + 2) / problem.radius**2 if problem.radius else 0.0)

    def smooth(theta: Floats) -> float:
        loss = problem.eta * np.logaddexp(0.0, -outcomes * (contrasts @ theta)).sum()
        return float(0.5 * ridge * theta @ theta + loss)

    mode = minimize(smooth, np.zeros(problem.dim), method="BFGS", options={"gtol": 1e-8}).x
    chance = 1.0 / (1.0 + np.exp(-contrasts @ mode))
    hessian = ridge * np.eye(problem.dim) + problem.eta * (contrasts.T * (chance * (1 - chance))) @ contrasts
    if problem.mu:  # the tilt has no curvature to speak of, but it has a slope, which moves the centre
        _, _, sets, adversaries = problem.table()
        best = sum(arms[np.argmax(arms @ mode)] for arms in sets) * (problem.rows / len(sets))
        mode = mode + np.linalg.solve(hessian, problem.mu * (best - adversaries.sum(axis=0)))
    factor = np.linalg.cholesky(np.linalg.inv(hessian))
    generator = np.random.default_rng(7)
    freedom = 10.0
    kept, log_weights = [], []
    for _ in range(problem.draws // _BATCH):
        normal = generator.standard_normal((_BATCH, problem.dim))
        scale = np.sqrt(freedom / generator.chisquare(freedom, size=_BATCH))
        theta = mode + (normal * scale[:, None]) @ factor.T
        squared = (normal**2).sum(axis=1) * scale**2
        log_weights.append(-problem.potentials(theta) + 0.5 * (freedom + problem.dim) * np.log1p(squared / freedom))
        kept.append(theta)
    theta, log_weight = np.concatenate(kept), np.concatenate(log_weights)
    weight = np.exp(log_weight - log_weight.max())
    weight /= weight.sum()
    mean = weight @ theta
    return {
        "problem": asdict(problem),
        "effective": round(float(1.0 / (weight**2).sum())),
        "mean": [float(v) for v in mean],
        "sd": [float(v) for v in np.sqrt(weight @ (theta - mean) ** 2)],
    }


def stored() -> dict[str, dict[str, Any]]:
    """The stored answers by the name of their problem."""
    answers: list[dict[str, Any]] = json.loads(STORED.read_text())["references"]
    return {answer["problem"]["name"]: answer for answer in answers}


if __name__ == "__main__":
    answers = [_computed(problem) for problem in REFERENCES]
    recipe = " ".join((__doc__ or "").split("Recipe: ")[1].split())
    STORED.write_text(json.dumps({"recipe": recipe, "references": answers}, indent=1) + "\n")
