"""`duelist run` plays, prints and writes its results."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import duelist
from duelist.cli import run as run_module
from duelist.cli.main import main
from duelist.cli.run import DEFAULT_LINE_UP
from duelist.policies.registry import POLICIES

SMALL = ["run", "--dim", "4", "--arms", "6", "--rounds", "30", "--trials", "3", "--seed", "5"]


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        main(list(arguments))
    code = stopped.value.code
    assert isinstance(code, int)
    return code


def read_rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "results.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.slow
def test_it_writes_figure_data_and_settings_and_says_where(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(*SMALL, "--policy", "FGTS", "--policy", "Uniform", "--out", str(tmp_path / "new" / "folder")) == 0
    folder = tmp_path / "new" / "folder"
    assert {file.name for file in folder.iterdir()} == {"regret.png", "regret.pdf", "results.csv", "curves.csv", "run.json"}
    assert (folder / "regret.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "regret.pdf").read_bytes().startswith(b"%PDF")
    printed = capsys.readouterr().out
    assert str(folder / "regret.png") in printed
    assert re.search(r"FGTS +\d", printed)
    assert re.search(r"Uniform +\d", printed)


@pytest.mark.slow
def test_the_data_are_those_of_simulate_with_every_parameter_a_column(tmp_path: Path) -> None:
    exit_code(*SMALL, "--policy", "FGTS:alpha=0.5", "--policy", "Uniform", "--theta-norm", "2", "--out", str(tmp_path))
    environment = duelist.LinearDuels(dim=4, arms=6, theta_norm=2.0)
    expected = duelist.simulate(duelist.FGTS(alpha=0.5), environment, rounds=30, trials=3, seed=5)
    rows = read_rows(tmp_path)
    assert len(rows) == 6
    mine = [row for row in rows if row["label"] == "FGTS:alpha=0.5"]
    np.testing.assert_array_equal([float(row["final_regret"]) for row in mine], expected.regret[:, -1])
    np.testing.assert_array_equal([float(row["final_weak_regret"]) for row in mine], expected.weak_regret[:, -1])
    np.testing.assert_array_equal([float(row["final_yue_regret"]) for row in mine], expected.yue_regret[:, -1])
    for field in fields(environment):
        assert mine[0][f"env_{field.name}"] == str(getattr(environment, field.name))
    assert mine[0]["policy_alpha"] == "0.5"
    assert mine[0]["seed"] == "5"
    assert [row["trial"] for row in mine] == ["0", "1", "2"]
    floor = next(row for row in rows if row["label"] == "Uniform")
    assert floor["policy_alpha"] == ""


@pytest.mark.slow
def test_the_settings_name_everything_needed_to_run_it_again(tmp_path: Path) -> None:
    problem = ("--fresh-arms", "--unit-norm", "--geometry", "sphere", "--link", "cauchit", "--flips", "0.1")
    exit_code(*SMALL, "--policy", "FGTS:sampler=paper(steps=3)", *problem, "--out", str(tmp_path))
    settings = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    assert settings["complete"] is True
    assert settings["asked"] == ["FGTS:sampler=paper(steps=3)"]
    assert settings["environment"] == {
        "name": "LinearDuels",
        "dim": 4,
        "arms": 6,
        "fresh_arms": True,
        "unit_norm": True,
        "theta_norm": 1.0,
        "geometry": "sphere",
        "link": "cauchit",
        "flips": 0.1,
    }
    assert (settings["rounds"], settings["trials"], settings["seed"]) == (30, 3, 5)
    assert settings["versions"]["duelist"] == duelist.__version__
    assert "steps=3" in settings["policies"]["FGTS:sampler=paper(steps=3)"]["parameters"]["sampler"]
    assert settings["policies"]["FGTS:sampler=paper(steps=3)"]["seconds"] > 0


@pytest.mark.slow
def test_the_number_of_workers_changes_no_number(tmp_path: Path) -> None:
    for workers in ("1", "3"):
        exit_code(*SMALL, "--policy", "FGTS", "--workers", workers, "--out", str(tmp_path / workers))
    assert (tmp_path / "1" / "results.csv").read_bytes() == (tmp_path / "3" / "results.csv").read_bytes()


@pytest.mark.slow
def test_quiet_prints_the_paths_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exit_code(*SMALL, "--policy", "Uniform", "--quiet", "--out", str(tmp_path))
    printed = capsys.readouterr()
    names = ("regret.png", "regret.pdf", "results.csv", "curves.csv", "run.json")
    assert printed.out.splitlines() == [str(tmp_path / name) for name in names]
    assert printed.err == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--policy", "FGST"], "Did you mean 'FGTS'?"),
        (["--policy", "FGTS:alhpa=0"], "Did you mean 'alpha'?"),
        (["--arms", "1"], "arms must be a whole number of at least 2; got 1"),
        (["--rounds", "0"], "rounds must be a whole number of at least 1; got 0"),
        (["--trials", "0"], "trials must be"),
        (["--workers", "0"], "workers must be"),
        (["--seed", "-1"], "seed must be"),
        (["--dim", "two"], "'two' is not a valid integer"),
        (["--theta-norm", "nan"], "theta_norm must be a finite number"),
    ],
)
def test_a_mistake_ends_in_a_clear_line_and_leaves_no_files(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "out"
    assert exit_code(*SMALL, *arguments, "--out", str(folder)) == 2
    printed = capsys.readouterr()
    assert says in printed.err
    assert "Traceback" not in printed.err
    assert printed.out == ""
    assert not folder.exists()


def test_a_folder_that_cannot_be_made_is_refused_before_playing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("in the way")
    assert exit_code(*SMALL, "--policy", "Uniform", "--out", str(tmp_path / "file")) == 2
    assert "--out must be a folder" in capsys.readouterr().err


@pytest.mark.slow
def test_ctrl_c_keeps_the_policies_that_are_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "simulate", _interrupted_at(duelist.FGTS))
    assert exit_code(*SMALL, "--policy", "Uniform", "--policy", "FGTS", "--out", str(tmp_path)) == 130
    assert {row["label"] for row in read_rows(tmp_path)} == {"Uniform"}
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["complete"] is False
    printed = capsys.readouterr().err
    assert "Kept 1 of 2 policies" in printed
    assert "Traceback" not in printed


def test_ctrl_c_before_anything_is_done_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "simulate", _interrupted_at(duelist.Uniform))
    assert exit_code(*SMALL, "--policy", "Uniform", "--out", str(tmp_path)) == 130
    assert list(tmp_path.iterdir()) == []
    assert "nothing was written" in capsys.readouterr().err


def _interrupted_at(policy_class: type[Any]) -> Callable[..., Any]:
    def simulate(policy: Any, *positional: Any, **named: Any) -> Any:
        if isinstance(policy, policy_class):
            raise KeyboardInterrupt
        return duelist.simulate(policy, *positional, **named)

    return simulate


def test_without_matplotlib_it_plays_on_and_says_how_to_get_a_figure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    assert exit_code(*SMALL, "--policy", "Uniform", "--out", str(tmp_path)) == 0
    assert {file.name for file in tmp_path.iterdir()} == {"results.csv", "curves.csv", "run.json"}
    assert 'pip install "duelist[plot]"' in capsys.readouterr().err


@pytest.mark.slow
def test_the_figure_can_be_drawn_again_from_the_curves(tmp_path: Path) -> None:
    exit_code(*SMALL, "--policy", "FGTS", "--policy", "Uniform", "--rounds", "205", "--out", str(tmp_path))
    expected = duelist.simulate(duelist.FGTS(), duelist.LinearDuels(dim=4, arms=6), rounds=205, trials=3, seed=5)
    with (tmp_path / "curves.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["label"] == "FGTS" and row["trial"] == "1"]
    for kind, curve in {"average": expected.regret, "weak": expected.weak_regret, "yue": expected.yue_regret}.items():
        own = {int(row["round"]): float(row["regret"]) for row in rows if row["kind"] == kind}
        assert list(own) == [*range(2, 205, 2), 205]
        np.testing.assert_allclose(list(own.values()), [curve[1, t - 1] for t in own], rtol=1e-6)


@pytest.mark.slow
def test_without_policies_eight_named_ones_play_and_random_play_comes_last(tmp_path: Path) -> None:
    assert len(DEFAULT_LINE_UP) == 8
    assert set(DEFAULT_LINE_UP) <= set(POLICIES)
    assert DEFAULT_LINE_UP[-1] == "Uniform"
    exit_code("run", "--dim", "3", "--arms", "4", "--rounds", "2", "--trials", "1", "--quiet", "--out", str(tmp_path))
    assert list(dict.fromkeys(row["label"] for row in read_rows(tmp_path))) == list(DEFAULT_LINE_UP)
