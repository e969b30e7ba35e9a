"""Several policies on the same instances with the same noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from duelist.core.errors import InvalidInputError
from duelist.environments.base import Environment
from duelist.experiments.run import Run, spread
from duelist.experiments.simulation import simulate
from duelist.policies.base import Policy

COLUMNS = ("policy", "mean", "sd", "median", "q05", "q95", "weak", "seconds")


@dataclass(frozen=True)
class Comparison:
    """Runs by name, all on the same instances."""

    runs: dict[str, Run]

    def table(self) -> list[dict[str, str | float]]:
        """One row per policy, best first: final average regret over trials, mean final weak regret, and wall time.

        Regret has heavy tails, so the median and the 5 % and 95 % quantiles stand beside the mean.
        """
        rows: list[dict[str, str | float]] = []
        for name, run in self.runs.items():
            final = run.final_regret
            low, median, high = np.quantile(final, [0.05, 0.5, 0.95])
            values = (final.mean(), spread(final), median, low, high, run.weak_regret[:, -1].mean(), run.seconds)
            rows.append({"policy": name, **dict(zip(COLUMNS[1:], map(float, values), strict=True))})
        return sorted(rows, key=lambda row: row["mean"])

    def __str__(self) -> str:
        rows = [[row["policy"], *(f"{row[column]:.1f}" for column in COLUMNS[1:])] for row in self.table()]
        cells = [list(COLUMNS), *([str(cell) for cell in row] for row in rows)]
        widths = [max(len(row[i]) for row in cells) for i in range(len(COLUMNS))]
        return "\n".join(
            "  ".join(cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True)))
            for row in cells
        )


def compare(
    policies: Mapping[str, Policy[Any]] | Sequence[Policy[Any]],
    environment: Environment,
    *,
    rounds: int,
    trials: int | Sequence[int] = 30,
    seed: int = 0,
    workers: int | None = None,
    progress: bool | None = None,
) -> Comparison:
    """Simulate several policies on the same instances; see `simulate` for the arguments.

    Policies without a name are named after their class, which must then differ.

    Example:
        >>> import duelist
        >>> env = duelist.LinearDuels(dim=5, arms=8)
        >>> result = duelist.compare([duelist.FGTS(), duelist.Uniform()], env, rounds=300, trials=4, seed=0)
        >>> [row["policy"] for row in result.table()]
        ['FGTS', 'Uniform']
    """
    named = dict(policies) if isinstance(policies, Mapping) else {type(p).__name__: p for p in policies}
    if len(named) != len(policies):
        raise InvalidInputError(
            "policies of one class need names to tell them apart: pass a mapping such as "
            '{"FGTS alpha=0": FGTS(alpha=0), "FGTS alpha=1": FGTS(alpha=1)}.'
        )
    if not named:
        raise InvalidInputError("compare needs at least one policy; got none.")
    return Comparison(
        {
            name: simulate(policy, environment, rounds=rounds, trials=trials, seed=seed, workers=workers, progress=progress)
            for name, policy in named.items()
        }
    )
