"""Series: the runs of one policy at one setting in one environment, cut out of a result table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from duelist.experiments.records import ENVIRONMENT, POLICY
from duelist.experiments.sweep.spec import PolicySpec, Spec
from duelist.typing import FloatArray

PAPER_ALPHA = 0.1
# How the baselines were tuned, by the name of the grid in the specs.
GRIDS = {
    "paper_ridge": "paper's grid and ridge 0.001",
    "paper_covariance": "paper's grid, 0.001 in covariance",
    "paper": "paper's grid",
    "finer": "finer grid",
    "warm_up": "paper's grid and a warm-up",
}
# What the paper tunes: a confidence radius, and of CoLSTIM the magnitude of the perturbations.
PAPER_TUNES = {"CoLSTIM": "perturbation"}


@dataclass(frozen=True, kw_only=True)
class Series:
    """One policy at one setting in one environment.

    Attributes:
        label: of the policy in the spec.
        policy: its registered name.
        stage: "tune" or "test".
        grid: named grid in which the setting was chosen; empty where nothing was tuned.
        setting: the tuned or varied parameters and their values.
        environment: parameters of the environment that the spec varies, such as dim.
        trials: (n,) trial numbers.
        rounds: (points,) round numbers of the curve.
        regret: (n, points) cumulative average regret.
        final_regret: (n,) the same after the last round.
        final_weak_regret: (n,) final regret of the better of the two arms.
        simple_rounds: (m,) rounds after which policies were asked for a recommendation; None where they were not.
        simple_regret: (n, m) what the recommended arm costs; NaN where none is recommended.
        not_converged: runs whose chains stood far above a point that descents from other starts found.
    """

    label: str
    policy: str
    stage: str
    grid: str
    setting: dict[str, Any]
    environment: dict[str, Any]
    trials: tuple[int, ...]
    rounds: FloatArray = field(repr=False)
    regret: FloatArray = field(repr=False)
    final_regret: FloatArray = field(repr=False)
    final_weak_regret: FloatArray = field(repr=False)
    simple_rounds: FloatArray | None = field(default=None, repr=False)
    simple_regret: FloatArray | None = field(default=None, repr=False)
    not_converged: int = 0

    @property
    def instances(self) -> tuple[Any, ...]:
        """What names the instances and their noise: series of one table with equal ones can be compared trial by trial."""
        return tuple(self.environment.items()), self.trials

    @property
    def title(self) -> str:
        """The label for a reader: a sampler is called exact only where the check of its chains passed in every run."""
        if not self.not_converged:
            return self.label
        failed = f"check of the chains failed in {self.not_converged} of {len(self.trials)} runs"
        return f"{self.label.replace('exact sampling', 'MALA')}: {failed}"

    @property
    def tuned_as_in_the_paper(self) -> bool:
        """Whether its grid is none of the paper's, or the tuned parameter is the one that the paper tunes."""
        wanted = PAPER_TUNES.get(self.policy, "radius")
        return not self.grid.startswith("paper") or not self.setting or wanted in self.setting

    @property
    def setting_text(self) -> str:
        """The setting in words, such as "radius 5"."""
        return ", ".join(
            f"{name} {value:g}" if isinstance(value, float) else str(value) for name, value in self.setting.items()
        )


def extract_series(spec: Spec, table: pa.Table, stage: str = "test") -> list[Series]:
    """Cut a table into its series, in the order of the spec. A setting chosen in two grids is a series of each."""
    if "stage" not in table.column_names:
        return []
    groups: dict[tuple[Any, ...], list[int]] = {}
    varied = _varied_environment(spec)
    policies = {policy.label: policy for policy in spec.policies}
    settings = {label: [*policy.grid, *policy.tune] for label, policy in policies.items()}
    spelled = {label: _spelled_values(policy) for label, policy in policies.items()}
    columns = {
        name: table.column(name).to_pylist()
        for name in table.column_names
        if not name.startswith(("round", "regret", "weak_regret", "yue_regret", "simple_"))
    }
    for row in range(table.num_rows):
        if columns["stage"][row] != stage:
            continue
        label = columns["label"][row]
        place = tuple(columns[ENVIRONMENT + name][row] for name in varied)
        cells = {name: columns[POLICY + name][row] for name in settings[label]}
        setting = tuple(spelled[label][name].get(str(cell), cell) for name, cell in cells.items())
        for grid in columns["chosen_in"][row].split(","):
            groups.setdefault((place, label, grid, setting), []).append(row)
    rounds, curves = _curves(table, "round", "regret")
    asked, simple = _curves(table, "simple_round", "simple_regret") if "simple_regret" in table.column_names else (None, None)
    final, weak = (table.column(name).to_numpy() for name in ("final_regret", "final_weak_regret"))
    # Other policies have no such column, or nothing in it; biased samplers are not called exact and need no check.
    checked = "info_converged" in table.column_names
    converged = table.column("info_converged").to_numpy(zero_copy_only=False) if checked else np.ones(table.num_rows)
    return [
        Series(
            label=label,
            policy=policies[label].policy,
            stage=stage,
            grid=grid,
            setting=dict(zip(settings[label], setting, strict=True)),
            environment=dict(zip(varied, place, strict=True)),
            trials=tuple(columns["trial"][row] for row in rows),
            rounds=rounds,
            regret=curves[rows],
            final_regret=final[rows],
            final_weak_regret=weak[rows],
            simple_rounds=asked,
            simple_regret=None if simple is None else simple[rows],
            not_converged=int((converged[rows] == 0.0).sum()) if "exact" in label else 0,
        )
        for (place, label, grid, setting), rows in groups.items()
    ]


def _curves(table: pa.Table, rounds: str, values: str) -> tuple[FloatArray, FloatArray]:
    """(points,) rounds and (rows, points) values of a column of lists."""
    at = np.array(table.column(rounds)[0].as_py(), dtype=np.float64)
    return at, np.array(table.column(values).combine_chunks().flatten()).reshape(table.num_rows, len(at))


def _spelled_values(policy: PolicySpec) -> dict[str, dict[str, Any]]:
    """The values of each varied parameter by their text: a column in which another policy has a word holds numbers as text."""
    varied = {**policy.grid, **({policy.tuned: policy.tuned_values()} if policy.tune else {})}
    return {name: {str(value): value for value in values} for name, values in varied.items()}


def select(series: list[Series], **wanted: Any) -> list[Series]:
    """The series with these attributes."""
    return [one for one in series if _matches(one, wanted)]


def _matches(series: Series, wanted: dict[str, Any]) -> bool:
    values = {**vars(series), **series.environment, **series.setting}
    return all(values.get(name) == value for name, value in wanted.items())


def _varied_environment(spec: Spec) -> list[str]:
    return [name for name, value in spec.environment.parameters.items() if isinstance(value, tuple)]


def environment_text(environment: dict[str, Any]) -> str:
    """Write the parameters of an environment as text, such as "d = 10"."""
    return ", ".join(f"{'d' if name == 'dim' else name} = {value}" for name, value in environment.items()) or "the environment"
