"""Environments by name in a spec: with files for tables, and the same numbers as in Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.environments.registry import ENVIRONMENTS

PARAMETERS: dict[str, dict[str, Any]] = {
    "ContinuousDuels": {"dim": 2, "actions": "box"},
    "ContextDuels": {"contexts": "contexts.csv", "arms": 4, "join": "blocks"},
    "GivenDuels": {"features": "arms.csv", "theta": "theta.npy"},
    "ListedDuels": {"models": "models.npy", "arms": 4},
    "MatrixDuels": {"matrix": "cycle", "arms": 5},
    "QuadraticDuels": {"dim": 2, "arms": 5},
    "ScoredDuels": {"contexts": "contexts.csv", "scores": "scores.csv", "join": "blocks"},
    "TrajectoryDuels": {"process": "grid", "theta_norm": 0.5},
    "VoteDuels": {"votes": "votes.csv", "answers": "votes"},
}


@pytest.mark.parametrize("kind", PARAMETERS)
def test_an_environment_in_a_spec_is_the_one_in_python(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    from duelist.experiments.sweep.runner import run_spec
    from duelist.experiments.sweep.spec import parse_spec

    monkeypatch.chdir(tmp_path)
    np.save("theta.npy", [1.0, -1.0])
    np.save("models.npy", [[1.0, 0.0], [0.0, 2.0]])
    Path("arms.csv").write_text("x,y\n1,0\n0,1\n0.5,0.5\n")
    Path("contexts.csv").write_text("1,0\n0,1\n")
    Path("scores.csv").write_text("a,b,c\n1,0,0.5\n0,1,0.5\n")
    Path("votes.csv").write_text("first,second,winner\na,b,a\nb,c,tie\nc,a,a\n")
    lines = [f"{name} = {value!r}".replace("'", '"') for name, value in PARAMETERS[kind].items()]
    text = f'name = "one"\nrounds = 20\ntrials = 3\nthin = 5\n[environment]\nkind = "{kind}"\n' + "\n".join(lines)
    spec = parse_spec(text + '\n[[policies]]\npolicy = "FGTS"\n')
    results = run_spec(spec, tmp_path / "out", workers=1, progress=False)
    run = duelist.simulate(duelist.FGTS(), ENVIRONMENTS[kind](**PARAMETERS[kind]), rounds=20, trials=3)
    np.testing.assert_allclose(sorted(results.table["final_regret"].to_pylist()), sorted(run.final_regret))
