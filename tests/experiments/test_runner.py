"""A sweep gives the numbers that `simulate` gives, in a table that does not depend on how it was computed."""

from __future__ import annotations

import errno
import io
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import duelist
from duelist.core.errors import InvalidInputError
from duelist.core.files import write_whole
from duelist.experiments.progress import LiveSweepDisplay
from duelist.experiments.sweep import block_store as parts
from duelist.experiments.sweep.block_store import directory_lock
from duelist.experiments.sweep.blocks import BLOCK_LANES, first_cells, split_cell
from duelist.experiments.sweep.runner import Results, run_spec
from duelist.experiments.sweep.spec import PolicySpec, Spec, load_spec
from duelist.policies.algorithms.uniform import Uniform
from duelist.policies.registry import POLICIES

SMALL = load_spec(Path(__file__).with_name("small.toml"))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return run_spec(SMALL, tmp_path_factory.mktemp("sweep"), workers=1, progress=False)


def rows(results: Results, **wanted: object) -> list[dict[str, Any]]:
    return [row for row in results.table.to_pylist() if all(row[name] == value for name, value in wanted.items())]


def test_every_run_of_the_spec_is_a_row(results: Results) -> None:
    assert not results.failures
    assert len(rows(results, label="FGTS")) == 2 * 4 * 3
    assert len(rows(results, label="tuned", stage="tune")) == 2 * 4 * 4
    assert len(rows(results, label="Uniform")) == 2 * 3
    assert {row["trial"] for row in rows(results, stage="test")} == {0, 1, 2}


def test_every_parameter_is_a_column_defaults_included(results: Results) -> None:
    (row,) = rows(results, label="FGTS", env_dim=4, policy_alpha=1.0, policy_sampler="paper", trial=2)
    assert (row["env_arms"], row["env_theta_norm"], row["env_fresh_arms"]) == (6, 1.0, False)
    assert (row["policy_eta"], row["policy_prior"], row["policy_same_arm"]) == (1.0, "Gaussian(scale=1.0)", "auto")
    assert (row["seed"], row["rounds"]) == (0, 30)
    assert rows(results, label="Uniform")[0]["policy_alpha"] is None


def test_lanes_of_a_grid_give_the_numbers_of_single_runs(results: Results) -> None:
    env = duelist.LinearDuels(dim=4, arms=6)
    for alpha in (0.0, 1.0):
        alone = duelist.simulate(duelist.FGTS(alpha=alpha), env, rounds=30, trials=3, seed=0, workers=1, progress=False)
        found = rows(results, label="FGTS", env_dim=4, policy_alpha=alpha, policy_sampler="mala")
        np.testing.assert_array_equal([row["final_regret"] for row in found], alone.final_regret)
        np.testing.assert_array_equal([row["regret"] for row in found], alone.regret[:, [9, 19, 29]])
        assert found[0]["round"] == [10, 20, 30]


def test_the_chosen_values_are_the_best_on_the_tuning_instances(results: Results) -> None:
    for dim in (3, 4):
        tuned = rows(results, label="tuned", stage="tune", env_dim=dim)
        score = {a: np.mean([r["final_regret"] for r in tuned if r["policy_alpha"] == a]) for a in (0.0, 0.1, 1.0, 10.0)}
        for grid, values in (("few", (0.0, 1.0)), ("many", (0.0, 0.1, 1.0, 10.0))):
            tested = [r for r in rows(results, label="tuned", stage="test", env_dim=dim) if grid in r["chosen_in"].split(",")]
            assert {r["policy_alpha"] for r in tested} == {min(values, key=lambda value: score[value])}
            assert len(tested) == 3
        assert min(r["trial"] for r in tuned) >= 1_000_000


@pytest.mark.slow
def test_the_bytes_do_not_depend_on_the_number_of_workers(results: Results, tmp_path: Path) -> None:
    again = run_spec(SMALL, tmp_path, workers=2, progress=False)
    assert again.path.read_bytes() == results.path.read_bytes()


def test_a_finished_run_is_not_computed_again(results: Results) -> None:
    again = run_spec(results.spec, results.path.parent, workers=2, progress=False)
    assert (again.computed, again.reused) == (0, results.computed + results.reused)
    assert again.path.read_bytes() == results.path.read_bytes()
    assert again.block_seconds == pytest.approx(results.block_seconds)


def test_the_table_reads_back_as_it_was(results: Results) -> None:
    assert pq.read_table(results.path).equals(results.table)
    assert results.table.schema.metadata[b"duelist.hash"].decode() == results.spec.hash


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["torn", "flipped", "foreign", "other code"])
def test_a_bad_part_is_reported_and_computed_again(damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = replace(SMALL, rounds=12)
    expected = run_spec(spec, tmp_path, workers=1, progress=False).path.read_bytes()
    victim, other = sorted((tmp_path / "parts").glob("*.parquet"))[:2]
    content = victim.read_bytes()
    if damage == "torn":
        victim.write_bytes(content[: len(content) // 2])
    elif damage == "flipped":
        victim.write_bytes(content[:100] + bytes([content[100] ^ 1]) + content[101:])
    elif damage == "foreign":
        victim.unlink()
        victim = victim.with_name(victim.name.split("-")[0] + "-" + other.name.split("-")[1])
        victim.write_bytes(other.read_bytes())
    else:
        monkeypatch.setattr(parts, "code_digest", lambda *_: "0123456789abcdef")
    again = run_spec(spec, tmp_path, workers=2, progress=False)
    assert again.path.read_bytes() == expected
    assert any(problem.startswith(victim.name) and "computed again" in problem for problem in again.problems)
    assert again.computed == (again.reused + again.computed if damage == "other code" else 1)


def test_an_interrupted_write_is_reported_and_cleared(tmp_path: Path) -> None:
    (tmp_path / "parts").mkdir()
    leftovers = [tmp_path / "parts" / name for name in (".abc.parquet.0123abcd.part", "unfinished-abc.parquet")]
    for leftover in leftovers:
        leftover.write_bytes(b"PAR1")
    result = run_spec(replace(SMALL, rounds=5), tmp_path, workers=1, progress=False)
    assert sum("interrupted" in problem for problem in result.problems) == 2
    assert not any(leftover.exists() for leftover in leftovers)


class Broken(Uniform):
    """Plays three rounds and then raises."""

    def choose(self, state: Any, actions: Any, streams: Any) -> Any:
        if state.asked == 3:
            raise RuntimeError("the policy broke")
        return super().choose(state, actions, streams)


def test_a_failing_policy_is_named_and_the_others_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, "Broken", Broken)
    spec = Spec(name="mixed", rounds=10, trials=2, policies=[PolicySpec(policy="Broken"), PolicySpec(policy="Uniform")])
    result = run_spec(spec, tmp_path, workers=2, progress=False)
    (failure,) = result.failures
    assert failure.cell.startswith("Broken")
    assert "RuntimeError: the policy broke" in failure.reason
    assert set(result.table.column("policy").to_pylist()) == {"Uniform"}
    monkeypatch.setitem(POLICIES, "Broken", Uniform)
    mended = run_spec(spec, tmp_path, workers=2, progress=False)
    assert (mended.computed, mended.reused, mended.failures) == (1, 1, ())


def test_a_sweep_in_which_everything_fails_still_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, "Broken", Broken)
    result = run_spec(Spec(name="bad", rounds=10, trials=2, policies=[PolicySpec(policy="Broken")]), tmp_path, progress=False)
    assert len(result.failures) == 1
    assert result.table.num_rows == 0


def test_a_full_disk_is_reported_and_what_was_written_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = replace(SMALL, rounds=8)
    expected = run_spec(spec, tmp_path / "whole", workers=1, progress=False).path.read_bytes()
    written: list[str] = []

    plain = write_whole

    def write(path: Path, content: bytes) -> None:
        if len(written) == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(path.name)
        plain(path, content)

    with monkeypatch.context() as patched:
        patched.setattr(parts, "write_whole", write)
        full = run_spec(spec, tmp_path / "full", workers=1, progress=False)
    assert "No space left on device" in full.failures[0].reason
    assert all("not computed" in failure.reason for failure in full.failures[1:])
    assert full.computed == 3
    again = run_spec(spec, tmp_path / "full", workers=1, progress=False)
    assert again.reused == 3
    assert again.path.read_bytes() == expected


def test_two_runs_in_one_directory_do_not_meet(tmp_path: Path) -> None:
    with directory_lock(tmp_path), pytest.raises(InvalidInputError, match="another run is writing"):
        run_spec(replace(SMALL, rounds=5), tmp_path, progress=False)


def test_blocks_depend_on_the_spec_alone_and_are_even() -> None:
    spec = Spec(name="wide", trials=50, policies=[PolicySpec(policy="FGTS", grid={"alpha": [0.0, 0.1, 1.0]})])
    (cell,) = first_cells(spec)
    blocks = split_cell(spec, cell)
    assert [block.lanes for block in blocks] == [50, 50, 50]
    assert max(block.lanes for block in blocks) <= BLOCK_LANES
    assert [(a, t) for b in blocks for a, t in zip(b.data["lanes"]["alpha"], b.data["trials"], strict=True)] == [
        (alpha, trial) for alpha in (0.0, 0.1, 1.0) for trial in range(50)
    ]


def test_the_live_display_says_what_runs_and_how_far() -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=120)
    with LiveSweepDisplay("figure1", console) as display:
        tick = display.add("a", "MaxInP (dim=5)", 1000)
        display.add("b", "VACDB (dim=5)", 1000)
        tick(500)
        display._bars.refresh()
        display.finish("a")
        display._bars.refresh()
    shown = screen.getvalue()
    assert "MaxInP (dim=5)" in shown
    assert "VACDB" not in shown  # it has not started
    assert "50%" in shown
    assert "25%" in shown
    assert "1 of 2 blocks" in shown
