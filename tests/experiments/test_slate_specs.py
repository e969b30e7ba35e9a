"""Slates beside pairs in one spec and in one command: the same instances, the same columns."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.cli.main import main
from duelist.experiments import load_spec, run_spec
from duelist.policies import ListwiseFGTS
from duelist.preferences import LearntDavidson

SPEC = """
name = "slates"
rounds = 15
trials = 3
environment = { dim = 3, arms = 6 }

[[policies]]
policy = "Uniform"

[[policies]]
policy = "ListwiseFGTS"
label = "three"
parameters = { choices = 3, feedback = "ranking" }

[[policies]]
policy = "ListwiseFGTS"
label = "ties"
parameters = { choices = 2, ties = { kind = "LearntDavidson", median = 0.5 } }
"""


def test_a_spec_takes_pairs_and_slates_and_gives_what_simulate_gives(tmp_path: Path) -> None:
    (tmp_path / "spec.toml").write_text(SPEC)
    table = run_spec(load_spec(tmp_path / "spec.toml"), tmp_path / "out", workers=1).table.to_pylist()
    policies: dict[str, Any] = {
        "Uniform": duelist.Uniform(),
        "three": ListwiseFGTS(choices=3, feedback="ranking"),
        "ties": ListwiseFGTS(choices=2, ties=LearntDavidson(0.5)),
    }
    for label, policy in policies.items():
        run = duelist.simulate(policy, duelist.LinearDuels(dim=3, arms=6), rounds=15, trials=3, seed=0)
        found = [row["final_regret"] for row in table if row["label"] == label]
        np.testing.assert_allclose(found, run.final_regret, rtol=1e-12)


def test_the_command_line_compares_them(tmp_path: Path) -> None:
    options = ["--dim", "3", "--arms", "6", "--rounds", "20", "--trials", "2", "--out", str(tmp_path), "--quiet"]
    asked = ["--policy", "Uniform", "--policy", "ListwiseFGTS:choices=3,ties=LearntDavidson(0.5)"]
    with pytest.raises(SystemExit) as done:
        main(["run", *asked, *options])
    assert done.value.code == 0
    with (tmp_path / "results.csv").open() as file:
        rows = list(csv.DictReader(file))
    policy = ListwiseFGTS(choices=3, ties=LearntDavidson(0.5))
    run = duelist.simulate(policy, duelist.LinearDuels(dim=3, arms=6), rounds=20, trials=2, seed=0)
    found = [float(row["final_regret"]) for row in rows if "Listwise" in row["policy"]]
    np.testing.assert_allclose(found, run.final_regret, rtol=1e-6)
