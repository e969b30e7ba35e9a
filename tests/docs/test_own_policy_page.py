"""The files, commands and Python of the page on own policies work as they are printed, in a folder of their own."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

import duelist
from duelist.cli.main import main
from duelist.experiments import load_spec, run_spec
from duelist.policies.registry import policy_class
from duelist.testing import check_policy

PAGE = (Path(__file__).parents[2] / "docs" / "own-policy.md").read_text(encoding="utf-8")
_FENCE = re.compile(r"^```(\w+)(?: title=\"(.+?)\")?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [(found[1], found[2] or "", found[3]) for found in _FENCE.finditer(PAGE)]
FILES = {title: text for _, title, text in BLOCKS if title}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "study.toml").write_text(next(text for kind, _, text in BLOCKS if kind == "toml"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in FILES:
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    return tmp_path


def test_the_first_policy_has_at_most_forty_lines_and_no_compiler() -> None:
    assert len(FILES["greedy.py"].strip().splitlines()) <= 40
    assert not any("numba" in text or "kernels" in text for text in FILES.values())


@pytest.mark.slow
def test_the_commands_run(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = [shlex.split(line)[1:] for kind, _, text in BLOCKS if kind == "bash" for line in text.splitlines()]
    for command in commands:
        with pytest.raises(SystemExit) as stopped:
            main([*command, *(["--out", str(folder / "out"), "--workers", "1"] if command[0] == "run" else [])])
        assert stopped.value.code == 0, capsys.readouterr().err
    printed = capsys.readouterr().out
    assert "Greedy:epsilon=0" in printed
    assert "now and then a random one" in printed


@pytest.mark.slow
def test_the_python_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:  # noqa: ARG001 - its files
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for kind, title, text in BLOCKS:
        if kind == "py" and not title:
            exec(compile(text, "own-policy.md", "exec", dont_inherit=True), namespace)
    printed = capsys.readouterr().out
    assert re.search(r"Greedy: (\d+) of \1 checks passed", printed)
    assert re.search(r"Circle: (\d+) of \1 checks passed", printed)


@pytest.mark.slow
def test_the_spec_runs(folder: Path) -> None:
    results = run_spec(load_spec("study.toml"), folder / "out", workers=2, progress=False)
    assert not results.failures
    assert set(results.table.column("label").to_pylist()) == {"Greedy", "FGTS"}


@pytest.mark.parametrize("name", ["one_run.py:Perceptron", "bounds.py:Bounds"])
def test_the_other_policies_pass_the_checks_and_learn(folder: Path, name: str) -> None:
    kind = policy_class(f"{folder}/{name}")
    env = duelist.LinearDuels(dim=3, arms=8)
    floor = duelist.simulate(duelist.Uniform(), env, rounds=200, trials=4, seed=0).final_regret.mean()
    settings: list[dict[str, Any]] = [{}] if "one_run" in name else [{}, {"informative": True}]
    for chosen in settings:
        check_policy(kind(**chosen))
        assert duelist.simulate(kind(**chosen), env, rounds=200, trials=4, seed=0).final_regret.mean() < 0.5 * floor
