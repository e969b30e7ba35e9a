"""The result table: one row per run, one column per parameter, the thinned regret curves as lists; see `records.COLUMNS`.

Rows are in the order of the spec, and nothing in the table depends on when, where or in how many pieces it was computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from duelist.environments.registry import environment_class
from duelist.experiments.records import ENVIRONMENT, INFO, POLICY, kept_rounds, plain_value, setting_text
from duelist.experiments.sweep.blocks import Cell
from duelist.experiments.sweep.parameters import build, list_parameters
from duelist.experiments.sweep.spec import Spec, canonical_json
from duelist.policies.registry import policy_class
from duelist.version import __version__

_FINALS = ("final_regret", "final_weak_regret", "final_yue_regret")


def result_table(spec: Spec, cells: Iterable[tuple[Cell, pa.Table]]) -> pa.Table:
    """Assemble the table of finished cells, each with its blocks in one table."""
    pieces = [(cell, part, _parameters(spec, cell)) for cell, part in cells]
    names = _ordered_names(parameters for _, _, parameters in pieces)
    types = {name: _column_type(value for _, _, columns in pieces for value in columns.get(name, [])) for name in names}
    found = sorted({name for _, part, _ in pieces for name in part.column_names})
    # Regret of further kinds, which only some environments have, and what policies say of themselves.
    own = [name for name in found if name.startswith(("final_", INFO)) and name not in _FINALS]
    tables = [_piece(spec, cell, part, parameters, types, own) for cell, part, parameters in pieces]
    metadata = {
        b"duelist.spec": canonical_json(spec.to_mapping()).encode(),
        b"duelist.hash": spec.hash.encode(),
        b"duelist.version": __version__.encode(),
    }
    # When every cell failed there is still a table, with no rows.
    table = pa.concat_tables(tables).combine_chunks() if tables else pa.table({"final_regret": pa.array([], pa.float64())})
    return table.replace_schema_metadata(metadata)


def _parameters(spec: Spec, cell: Cell) -> dict[str, list[Any]]:
    """Every parameter of environment and policy, defaults included, one value per point of the grid."""
    environment = build("environment", environment_class(spec.environment.kind), cell.environment)
    policy = spec.policies[cell.policy]
    policies = [
        list_parameters(build("policy", policy_class(policy.policy), {**cell.shared, **point})) for point in cell.points
    ]
    columns = {ENVIRONMENT + name: [value] * len(policies) for name, value in list_parameters(environment).items()}
    return columns | {POLICY + name: [values[name] for values in policies] for name in policies[0]}


def _ordered_names(tables: Iterable[Mapping[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for table in tables for name in table)
    return sorted(names, key=lambda name: (not name.startswith(ENVIRONMENT), name))


def _column_type(values: Iterable[Any]) -> pa.DataType:
    """The narrowest type for all values of a column. Words among numbers (eta may be "theory") make it text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool} and kinds:
        return pa.bool_()
    if kinds <= {int} and kinds:
        return pa.int64()
    if kinds <= {int, float}:
        return pa.float64()
    return pa.string()


def _piece(
    spec: Spec, cell: Cell, part: pa.Table, parameters: Mapping[str, list[Any]], types: Mapping[str, Any], own: list[str]
) -> pa.Table:
    n = part.num_rows
    points = np.repeat(np.arange(len(cell.points)), len(cell.trials))
    policy = spec.policies[cell.policy]
    rounds = kept_rounds(spec.rounds, spec.thin)
    settings = [setting_text({k: plain_value(v) for k, v in {**cell.shared, **point}.items()}) for point in cell.points]
    chosen_in = cell.chosen_in or ("",) * len(cell.points)
    columns: dict[str, pa.Array] = {
        "experiment": pa.repeat(spec.name, n),
        "stage": pa.repeat(cell.stage, n),
        "environment": pa.repeat(spec.environment.kind, n),
        "policy": pa.repeat(policy.policy, n),
        "label": pa.repeat(policy.label, n),
        "setting": pa.array([settings[point] for point in points], pa.string()),
        "chosen_in": pa.array([chosen_in[point] for point in points]),
    }
    for name, type_ in types.items():
        values = parameters.get(name, [None] * len(cell.points))
        columns[name] = pa.array([_as(values[point], type_) for point in points], type_)
    columns |= {
        "seed": pa.repeat(pa.scalar(spec.seed, pa.int64()), n),
        "trial": part.column("trial"),
        "rounds": pa.repeat(pa.scalar(spec.rounds, pa.int64()), n),
        **{name: part.column(name) for name in _FINALS},
        "round": pa.array([rounds] * n, pa.list_(pa.int32())),
        "regret": part.column("regret"),
        **{name: part.column(name) for name in ("weak_regret", "yue_regret")},
    }
    if spec.simple_every:
        asked = kept_rounds(spec.rounds, spec.simple_every)
        columns |= {"simple_round": pa.array([asked] * n, pa.list_(pa.int32())), "simple_regret": part.column("simple_regret")}
    for name in own:
        columns[name] = part.column(name) if name in part.column_names else pa.nulls(n, pa.float64())
    return pa.table(columns)


def _as(value: Any, type_: pa.DataType) -> Any:
    return value if value is None or type_ != pa.string() else str(value)
