"""Series: the runs of one policy at one setting in one environment, cut out of a result table, trial by trial."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from duelist.core.checks import FloatArray
from duelist.core.errors import InvalidInputError
from duelist.experiments.spec import Spec
from duelist.experiments.tables import ENVIRONMENT, POLICY


@dataclass(frozen=True, kw_only=True)
class Series:
    """One policy at one setting in one environment.

    Attributes:
        label: what the spec calls the policy.
        policy: its registered name.
        stage: "tune" or "test".
        grid: named grid in which the setting was chosen; empty where nothing was tuned.
        setting: the tuned or varied parameters and their values.
        environment: the parameters of the environment that the spec varies, such as dim.
        trials: (n,) trial numbers.
        rounds: (points,) round numbers of the curve.
        regret: (n, points) cumulative average regret.
        final: (n,) the same after the last round.
        weak: (n,) final regret of the better of the two arms.
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
    final: FloatArray = field(repr=False)
    weak: FloatArray = field(repr=False)

    @property
    def setting_text(self) -> str:
        """The setting for a person, such as "radius 5"."""
        return ", ".join(
            f"{name} {value:g}" if isinstance(value, float) else str(value) for name, value in self.setting.items()
        )


def series_of(spec: Spec, table: pa.Table, stage: str = "test") -> list[Series]:
    """Every series of a table in the order of the spec. A setting chosen in two grids is a series of each."""
    if "stage" not in table.column_names:
        return []
    groups: dict[tuple[Any, ...], list[int]] = {}
    varied = _varied_environment(spec)
    policies = {policy.label: policy for policy in spec.policies}
    settings = {label: [*policy.grid, *policy.tune] for label, policy in policies.items()}
    columns = {name: table.column(name).to_pylist() for name in table.column_names if not name.startswith(("round", "regret"))}
    for row in range(table.num_rows):
        if columns["stage"][row] != stage:
            continue
        label = columns["label"][row]
        place = tuple(columns[ENVIRONMENT + name][row] for name in varied)
        setting = tuple(columns[POLICY + name][row] for name in settings[label])
        for grid in columns["chosen_in"][row].split(","):
            groups.setdefault((place, label, grid, setting), []).append(row)
    rounds = np.array(table.column("round")[0].as_py(), dtype=np.float64)
    curves = np.array(table.column("regret").combine_chunks().flatten()).reshape(table.num_rows, len(rounds))
    final, weak = (table.column(name).to_numpy() for name in ("final_regret", "final_weak_regret"))
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
            final=final[rows],
            weak=weak[rows],
        )
        for (place, label, grid, setting), rows in groups.items()
    ]


def environments_of(spec: Spec) -> list[dict[str, Any]]:
    """The varied parameters of every environment of a spec, in its order."""
    varied = _varied_environment(spec)
    lists = [spec.environment.parameters[name] for name in varied]
    return [dict(zip(varied, values, strict=True)) for values in product(*lists)]  # type: ignore[arg-type]


def only(series: list[Series], **wanted: Any) -> Series:
    """The one series with these attributes; settings and environment parameters may be named too."""
    found = [one for one in series if _matches(one, wanted)]
    if len(found) != 1:
        raise InvalidInputError(f"expected one series with {wanted}; found {len(found)}.")
    return found[0]


def select(series: list[Series], **wanted: Any) -> list[Series]:
    """The series with these attributes."""
    return [one for one in series if _matches(one, wanted)]


def _matches(series: Series, wanted: dict[str, Any]) -> bool:
    values = {**vars(series), **series.environment, **series.setting}
    return all(values.get(name) == value for name, value in wanted.items())


def _varied_environment(spec: Spec) -> list[str]:
    return [name for name, value in spec.environment.parameters.items() if isinstance(value, tuple)]
