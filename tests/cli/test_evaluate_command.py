"""`duelist evaluate` judges routers by an export or a journal."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from duelist import Agent, DuelLog, Uniform, evaluate_off_policy
from duelist.cli.evaluate import evaluate
from duelist.journal import SQLiteJournal
from duelist.service.insight.export import as_csv, table_of
from tests.support.arenas import Stage

pytestmark = pytest.mark.filterwarnings("ignore::duelist.live.PoorOverlapWarning")


def lines_of(arguments: list[str]) -> list[str]:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(evaluate, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return [line for line in done.output.splitlines() if line.strip()]


def test_a_journal_judges_rows_and_policies(tmp_path: Path) -> None:
    path = tmp_path / "votes.db"
    rng = np.random.default_rng(0)
    with SQLiteJournal(path) as journal:
        agent = Agent(Uniform(), dim=3, journal=journal)
        for _ in range(400):
            duel = agent.choose(np.eye(3))
            better, worse = sorted(duel.rows)
            agent.learn(duel, winner=better if rng.random() < 0.85 else worse)
        log = DuelLog.from_journal(journal)
    lines = lines_of([str(path)])
    assert [line.split()[1] for line in lines[-3:]] == ["0", "1", "2"], "best first"
    assert f"{evaluate_off_policy(log, 0).estimate:.3f}" in lines[-3]
    half = log.select(slice(200, None))
    lines = lines_of([str(path), "--policy", "FGTS", "--always", "2", "--against", "1", "--estimator", "ips"])
    assert "favourite of FGTS" in lines[-2]
    assert f"{evaluate_off_policy(half, 0, against=1, estimator='ips').estimate:.3f}" in lines[-2], "row 0 is the favourite"
    assert f"{evaluate_off_policy(half, 2, against=1, estimator='ips').estimate:.3f}" in lines[-1]


def test_an_export_judges_items_by_name(tmp_path: Path) -> None:
    stage = Stage(items=3)
    stage.crowd(200, spread=0.5)
    path = tmp_path / "votes.csv"
    path.write_text(as_csv(table_of(stage.arena)))
    log = DuelLog.from_file(path)
    name = log.names[0][1]
    lines = lines_of([str(path), "--always", name])
    row = next(line for line in lines if f"always {name}" in line)
    assert f"{evaluate_off_policy(log, name).estimate:.3f}" in row
