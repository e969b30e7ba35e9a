"""The worked examples run, at a small size, and say what they promise."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"


def _names(name: str) -> dict[str, Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))


def test_continuous_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _names("continuous")["main"](tmp_path, rounds=60, trials=2, small_rounds=60)
    assert {path.name for path in tmp_path.iterdir()} == {"continuous-ball.png", "continuous-ball.pdf"}
    said = capsys.readouterr().out
    costs = re.findall(r"costs ([\d.]+) at first and ([\d.]+) at last", said)
    assert len(costs) == 7
    assert sum(float(late) < float(early) for early, late in costs) >= 6


def test_finite_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _names("finite_models")["main"](tmp_path, rounds=300, trials=4, table_rounds=400)
    assert {path.name for path in tmp_path.iterdir()} == {"finite-models.png", "finite-models.pdf"}
    said = capsys.readouterr().out
    regret = {name: float(value) for name, value in re.findall(r"^(\w+) +regret +([\d.]+)", said, re.MULTILINE)}
    assert regret["FiniteModels"] < regret["FGTS"] < regret["Uniform"]
    ((early, late),) = re.findall(r"a duel costs ([\d.]+) in the first twentieth and ([\d.]+) in the last", said)
    assert float(late) < 0.25 * float(early)


def test_trajectories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _names("trajectories")["main"](tmp_path, rounds=40, trials=3, design=1)
    assert {path.name for path in tmp_path.iterdir()} == {"trajectories.png", "trajectories.pdf"}
    said = capsys.readouterr().out
    for block in said.split("grid: "):
        regret = {name.strip(): float(value) for name, value in re.findall(r"^  (.+?) +regret +([\d.]+)", block, re.MULTILINE)}
        assert len(regret) == 6
        assert regret["FGTS"] < 0.9 * min(regret["Uniform"], regret["random plans"])


def test_contexts(capsys: pytest.CaptureFixture[str]) -> None:
    _names("contexts")["main"](rounds=240)
    outer, concatenated = map(float, re.findall(r"loses ([\d.]+)", capsys.readouterr().out))
    assert outer < 0.6 * concatenated
