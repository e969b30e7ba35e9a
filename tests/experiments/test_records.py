"""Results as data: the same names everywhere, frames of two libraries, and files that give back every number."""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from scipy import stats

import duelist
from duelist.core.errors import InvalidInputError, SavedStateError
from duelist.environments.tables import make_frame
from duelist.experiments import COLUMNS, Comparison, Described, Run, load_spec, run_spec, summary
from duelist.experiments.records import latex_table
from duelist.kernels.compile import CompileClock, compile_clock

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")
ENV = duelist.LinearDuels(dim=3, arms=5)


@pytest.fixture(scope="module")
def result() -> Comparison:
    policies: dict[str, Any] = {"tilted": duelist.FGTS(alpha=0.5), "floor": duelist.Uniform()}
    return duelist.compare(policies, ENV, rounds=23, trials=[4, 7, 9], seed=3, progress=False)


def is_listed(name: str) -> bool:
    further = name == "final_borda_regret"  # "further kinds of regret have columns of the same form"
    return further or name in COLUMNS or any(name.startswith(prefix) for prefix in ("env_", "policy_", "info_"))


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_a_frame_has_a_row_per_policy_and_trial_and_every_parameter(result: Comparison, backend: Any) -> None:
    frame = result.to_frame(backend)
    assert type(frame).__module__.split(".")[0] == backend
    rows = frame.to_dict("records") if backend == "pandas" else frame.to_dicts()
    assert [(row["label"], row["policy"], row["trial"]) for row in rows] == [
        *(("tilted", "FGTS", trial) for trial in (4, 7, 9)),
        *(("floor", "Uniform", trial) for trial in (4, 7, 9)),
    ]
    assert [row["setting"] for row in rows] == ["alpha 0.5"] * 3 + [""] * 3
    for row, final in zip(rows, [*result.runs["tilted"].final_regret, *result.runs["floor"].final_regret], strict=True):
        assert row["final_regret"] == final
        assert row["env_dim"] == 3
    assert rows[0]["policy_alpha"] == 0.5
    assert pandas.isna(rows[3]["policy_alpha"])
    assert all(is_listed(name) for name in frame.columns)


def test_a_parameter_with_one_value_per_lane_is_that_value_in_its_row() -> None:
    run = duelist.simulate(duelist.FGTS(alpha=(0.0, 1.0)), ENV, rounds=5, trials=2, progress=False)
    frame = run.to_frame("polars")
    assert frame["policy_alpha"].to_list() == [0.0, 1.0]
    assert frame["setting"].to_list()[0] == "alpha 0"


@pytest.mark.parametrize("backend", ["pandas", "polars"])
def test_curves_are_tidy_and_thinned(result: Comparison, backend: Any) -> None:
    frame = result.curves(thin=10, backend=backend)
    rows = frame.to_dict("records") if backend == "pandas" else frame.to_dicts()
    found = {(row["label"], row["trial"], row["round"], row["kind"]): row["regret"] for row in rows}
    wanted = {}
    for label, run in result.runs.items():
        for lane, trial in enumerate(run.trials):
            for round_ in (10, 20, 23):
                wanted[label, trial, round_, "average"] = run.regret[lane, round_ - 1]
                wanted[label, trial, round_, "weak"] = run.weak_regret[lane, round_ - 1]
                wanted[label, trial, round_, "yue"] = run.yue_regret[lane, round_ - 1]
                wanted[label, trial, round_, "borda"] = run.regrets["borda"][lane, round_ - 1]
    assert len(rows) == len(wanted)
    assert found == wanted
    assert all(is_listed(name) for name in frame.columns)


def test_a_missing_library_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(ImportError, match=r"duelist\[data\]"):
        make_frame({"label": []})
    with pytest.raises(InvalidInputError, match="backend"):
        make_frame({"label": []}, "excel")  # type: ignore[arg-type]


def test_a_spec_has_the_same_names_and_says_which_setting_a_row_is(tmp_path: Path) -> None:
    text = """
    name = "small"
    rounds = 20
    trials = 2
    thin = 10
    [environment]
    kind = "LinearDuels"
    dim = 3
    arms = 4
    [[policies]]
    policy = "FGTS"
    parameters = { sampler = "laplace" }
    grid.alpha = [0.0, 0.5]
    """
    (tmp_path / "small.toml").write_text(text, encoding="utf-8")
    results = run_spec(load_spec(tmp_path / "small.toml"), tmp_path, progress=False)
    frame = results.to_frame("pandas")
    assert all(is_listed(name) or name in ("weak_regret", "yue_regret", "borda_regret") for name in frame.columns)
    assert frame["setting"].tolist() == ["sampler laplace, alpha 0"] * 2 + ["sampler laplace, alpha 0.5"] * 2
    assert set(results.policy_seconds) == {"FGTS"}
    assert results.policy_seconds["FGTS"] == results.block_seconds > 0
    env = duelist.LinearDuels(dim=3, arms=4)
    alone = duelist.simulate(duelist.FGTS(alpha=0.5, sampler="laplace"), env, rounds=20, trials=2, progress=False)
    curves = results.curves("pandas")
    for kind, curve in {"average": alone.regret, "weak": alone.weak_regret, "yue": alone.yue_regret}.items():
        own = curves[(curves["kind"] == kind) & (curves["setting"] == "sampler laplace, alpha 0.5") & (curves["trial"] == 1)]
        assert own["round"].tolist() == [10, 20]
        np.testing.assert_array_equal(own["regret"], curve[1, [9, 19]])
    assert set(alone.to_frame("pandas").columns) - {"seconds"} <= set(frame.columns)


@dataclass(frozen=True)
class Mine:
    """A policy of somebody's own, by its text."""

    strength: float = 2.0


def test_saved_runs_come_back_bit_for_bit_with_what_made_them(result: Comparison, tmp_path: Path) -> None:
    loaded = Comparison.load(result.save(tmp_path / "runs.npz"))
    assert list(loaded.runs) == ["tilted", "floor"]
    for label, run in result.runs.items():
        again = loaded.runs[label]
        assert (again.policy, again.environment, again.seed, again.trials) == (run.policy, ENV, 3, (4, 7, 9))
        for field in fields(Run):
            if isinstance(getattr(run, field.name), np.ndarray):
                np.testing.assert_array_equal(getattr(again, field.name), getattr(run, field.name))
        assert {name: values.tolist() for name, values in again.info.items()} == {
            name: values.tolist() for name, values in run.info.items()
        }
    own = replace(result.runs["floor"], policy=Mine())
    back = Run.load(own.save(tmp_path / "mine.npz"))
    assert back.policy == Described("Mine", "Mine(strength=2.0)")
    assert back.label == "Mine"
    assert back.to_frame("polars")["policy"].to_list() == ["Mine"] * 3
    assert Run.load(back.save(tmp_path / "again.npz")).policy == back.policy


def test_what_is_no_file_of_runs_is_refused(result: Comparison, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match=r"\.npz"):
        result.save(tmp_path / "runs.parquet")
    with pytest.raises(InvalidInputError, match="2 runs"):
        Run.load(result.save(tmp_path / "two.npz"))
    np.savez(tmp_path / "other.npz", theta=np.zeros(3))
    with pytest.raises(SavedStateError):
        Comparison.load(tmp_path / "other.npz")


def test_runs_are_summed_up_and_paired_like_series(result: Comparison) -> None:
    a, b = result.runs["tilted"], result.runs["floor"]
    expected = stats.ttest_rel(a.final_regret, b.final_regret).confidence_interval(0.95)
    difference = a.paired_difference(b)
    assert (difference.t.low, difference.t.high) == pytest.approx((expected.low, expected.high))
    assert result.paired_difference("tilted", "floor") == difference
    assert summary(a).sd == pytest.approx(np.std(a.final_regret, ddof=1))
    assert result.summary()["tilted"] == summary(a)
    with pytest.raises(InvalidInputError, match="same instances"):
        a.paired_difference(replace(b, seed=4))
    with pytest.raises(InvalidInputError, match="same instances"):
        a.paired_difference(replace(b, environment=duelist.LinearDuels(dim=3, arms=6)))


def test_latex_has_the_cells_of_the_table_escaped(result: Comparison) -> None:
    lines = result.to_latex(caption="Regret of 5 % & more").splitlines()
    assert lines[2] == r"\caption{Regret of 5 \% \& more.}"
    assert lines[3] == r"\begin{tabular}{lrrrrrrr}"
    best = result.table()[0]
    assert lines[7].startswith(f"{best['label']} & {best['mean']:.1f} & {best['sd']:.1f} & ")
    assert latex_table(["a_b"], [["x^2\\y"]]).splitlines()[4] == r"x\textasciicircum{}2\textbackslash{}y \\"


def test_compiling_is_counted_apart_and_once() -> None:
    clock = CompileClock()
    clock.on_start(None)
    clock.on_start(None)
    clock.on_end(None)
    assert clock.seconds == 0.0
    clock.on_end(None)
    outer = clock.seconds
    assert outer > 0.0

    def double(x: float) -> float:
        return 2.0 * x

    kernel: Any = numba.njit(double)  # nothing of it is on disk
    with compile_clock() as first:
        kernel(1.0)
    with compile_clock() as second:
        kernel(2.0)
    assert second.seconds == 0.0
    assert first.seconds > 0.0
    run = duelist.simulate(duelist.Uniform(), ENV, rounds=3, trials=1, progress=False)
    assert run.seconds > 0.0
    assert run.compile_seconds >= 0.0


def test_the_page_on_experiments_has_every_column_in_its_words() -> None:
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")
    for name, words in COLUMNS.items():
        assert f"| `{name}` | {words} |" in page
