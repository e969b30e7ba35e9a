"""What a comparison leaves on disk: one row a policy and trial, and the settings behind them."""

from __future__ import annotations

import csv
import importlib.metadata
import io
import json
import os
import platform
from dataclasses import fields
from pathlib import Path
from typing import Any

from duelist.experiments.compare import Comparison
from duelist.experiments.run import Run
from duelist.version import __version__

RESULTS = "results.csv"
SETTINGS = "run.json"
LEADING = ("policy", "algorithm", "trial", "regret", "weak_regret", "yue_regret", "rounds", "seed")
_LIBRARIES = ("numpy", "scipy", "numba")


def parameters_of(value: Any) -> dict[str, Any]:
    """The parameters of a frozen dataclass: plain values as they are, objects as the text that makes them."""
    plain = (bool, int, float, str, type(None))
    return {f.name: v if isinstance(v := getattr(value, f.name), plain) else repr(v) for f in fields(value)}


def write_results(folder: Path, comparison: Comparison) -> Path:
    """`results.csv`: final regrets of every policy and trial, with every parameter a column; blank where it has none."""
    rows = [row for name, run in comparison.runs.items() for row in _rows(name, run)]
    columns = list(dict.fromkeys([*LEADING, *(column for row in rows for column in row)]))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return _replace(folder / RESULTS, text.getvalue())


def _rows(name: str, run: Run) -> list[dict[str, Any]]:
    shared = {
        "policy": name,
        "algorithm": type(run.policy).__name__,
        "rounds": run.regret.shape[1],
        "seed": run.seed,
        **parameters_of(run.environment),
        **parameters_of(run.policy),
    }
    return [
        {
            **shared,
            "trial": trial,
            "regret": float(run.regret[lane, -1]),
            "weak_regret": float(run.weak_regret[lane, -1]),
            "yue_regret": float(run.yue_regret[lane, -1]),
        }
        for lane, trial in enumerate(run.trials)
    ]


def write_settings(folder: Path, comparison: Comparison, *, asked: list[str], complete: bool) -> Path:
    """`run.json`: what was run, with what, and how long it took."""
    first = next(iter(comparison.runs.values()))
    document = {
        "complete": complete,
        "asked": asked,
        "environment": {"name": type(first.environment).__name__, **parameters_of(first.environment)},
        "rounds": first.regret.shape[1],
        "trials": len(first.trials),
        "seed": first.seed,
        "policies": {
            name: {"algorithm": type(run.policy).__name__, "parameters": parameters_of(run.policy), "seconds": run.seconds}
            for name, run in comparison.runs.items()
        },
        "versions": {
            "duelist": __version__,
            "python": platform.python_version(),
            **{library: importlib.metadata.version(library) for library in _LIBRARIES},
        },
        "platform": platform.platform(),
        "cores": os.cpu_count(),
    }
    return _replace(folder / SETTINGS, json.dumps(document, indent=2) + "\n")


def _replace(path: Path, text: str) -> Path:
    """Write a file whole or not at all: an interruption leaves the one before."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)
    return path
