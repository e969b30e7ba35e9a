"""`duelist bench` times the libraries that are installed, and names those that are not."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from duelist.cli.bench import LEARNERS, Learner, OwnAgent, Speed, bench, measure, speed_table
from duelist.typing import FloatArray


def test_one_live_lane_is_timed_at_every_milestone() -> None:
    speed = measure(OwnAgent, dim=3, arms=5, milestones=(10, 20))
    assert speed.problem == ""
    assert len(speed.at) == 2
    assert all(value > 0 for value in (speed.median, *speed.at))


def test_a_library_that_is_missing_or_broken_gets_a_row_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_features: FloatArray, _seed: int) -> Learner:
        raise ModuleNotFoundError("No module named 'vowpalwabbit'", name="vowpalwabbit")

    def broken(_features: FloatArray, _seed: int) -> Learner:
        raise AttributeError("module 'numpy' has no attribute 'float'.\nmore words")

    assert measure(missing, dim=3, arms=5, milestones=(10,)).problem == "not installed (vowpalwabbit)"
    assert measure(broken, dim=3, arms=5, milestones=(10,)).problem == (
        "does not run: AttributeError: module 'numpy' has no attribute 'float'."
    )
    monkeypatch.setattr("duelist.cli.bench.LEARNERS", {"duelist FGTS": OwnAgent, "Vowpal Wabbit squarecb": missing})
    shown = CliRunner().invoke(bench, ["--dim", "3", "--arms", "5", "--rounds", "10", "--repeats", "2"])
    assert shown.exit_code == 0, shown.output
    assert "duelist FGTS" in shown.output
    assert "not installed" in shown.output


def test_ratios_are_to_vowpal_wabbit() -> None:
    table = speed_table(
        {"duelist FGTS": Speed(50.0, (50.0,)), "Vowpal Wabbit squarecb": Speed(200.0, (200.0,))}, (10,), dim=3, arms=5
    )
    ratios = list(table.columns[2].cells)
    assert ratios == ["0.25", "1.00"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("Vowpal Wabbit squarecb", "vowpalwabbit"),
        ("bayesianbandits logistic TS", "bayesianbandits"),
        ("MABWiser LinTS", "mabwiser"),
    ],
)
def test_every_library_that_is_installed_can_be_played(name: str, module: str) -> None:
    pytest.importorskip(module)
    assert measure(LEARNERS[name], dim=3, arms=4, milestones=(10,)).median > 0
