"""`duelist reproduce field` from the command to the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from duelist.cli import reproduce as command
from duelist.core.errors import InvalidInputError, UnknownNameError
from duelist.experiments.sweep import block_store, blocks
from duelist.plotting import style
from duelist.policies.registry import POLICIES


@pytest.fixture(autouse=True)
def coarse_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here depends on the size of an image."""
    monkeypatch.setattr(style, "DOTS_PER_INCH", 40)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(command.reproduce, ["field", *arguments], catch_exceptions=False)


@pytest.mark.slow
def test_the_whole_field_at_a_small_size_plays_every_rule(tmp_path: Path) -> None:
    pytest.importorskip("jax", reason="nonlinear rewards need the extra: pip install 'duelist[jax]'")
    done = invoke("--quick", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "Every block was played." in text
    assert "smaller than the full one" in text
    for name in POLICIES:
        assert f"| {name}" in text, f"{name} is in no table"
    for name in ("overview", "matrix", "contextual", "nonlinear", "slates", "recommendations"):
        assert (tmp_path / f"field-{name}.png").read_bytes().startswith(b"\x89PNG")
    again = invoke("--quick", "--out", str(tmp_path))
    assert again.exit_code == 0
    assert not any(f": {n} block(s) computed" in again.output for n in range(1, 60))


def test_some_problems_and_rules_can_be_asked_for(tmp_path: Path) -> None:
    sizes = ("--rounds", "12", "--trials", "2", "--workers", "1", "--only", "cycle", "--only", "no-winner")
    done = invoke(*sizes, "--policies", "RUCB", "--policies", "DoubleTS", "--policies", "Uniform", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "RUCB †" in text, "beyond its assumptions where no arm beats all others"
    assert "| DoubleTS | 1." in text
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == [
        "cycle-T12-n2-s27.parquet",
        "cycle-T12-n2-s29.parquet",
        "no-winner-T12-n2-s27.parquet",
        "no-winner-T12-n2-s29.parquet",
    ]


def test_a_block_that_fails_is_in_the_report_and_the_command_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = blocks.play

    def failing(block: Any, tick: Any) -> Any:
        if block.data["policy"] == "CCB":
            raise InvalidInputError("this rule is broken.")
        return whole(block, tick)

    monkeypatch.setattr(block_store, "play", failing)
    sizes = ("--rounds", "12", "--trials", "2", "--workers", "1", "--only", "no-winner")
    done = invoke(*sizes, "--policies", "CCB", "--policies", "DoubleTS", "--out", str(tmp_path))
    assert done.exit_code == command.EXIT_FAILED
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "this rule is broken." in text
    assert "| no-winner | CCB | a block failed |" in text
    assert "| DoubleTS | " in text


def test_names_are_checked_before_anything_is_written(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "new"))
    with pytest.raises(UnknownNameError, match="Did you mean 'cycle'"):
        invoke("--only", "cycles", *out)
    with pytest.raises(UnknownNameError, match="Did you mean 'RUCB'"):
        invoke("--policies", "RUCBB", *out)
    with pytest.raises(InvalidInputError, match="none of the rules RUCB plays any of the problems slates"):
        invoke("--only", "slates", "--policies", "RUCB", *out)
    assert not (tmp_path / "new").exists()
