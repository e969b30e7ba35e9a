"""`duelist reproduce` from the command to the report, at a very small size."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from duelist.cli import reproduce as command
from duelist.cli.plan import Options
from duelist.core.errors import InvalidInputError, UnknownNameError
from duelist.experiments.sweep.runner import run_spec
from duelist.experiments.sweep.series import extract_series
from duelist.experiments.sweep.spec import load_shipped_spec, parse_spec
from duelist.plotting import style

# The figures' own specs have many baselines; these have the same shape and compute in a second.
FIGURE1 = """
name = "figure1"
title = "Small Figure 1"
environment = { dim = [3, 4], arms = 6 }
[[policies]]
policy = "FGTS"
label = "FGTS (exact sampling)"
[[policies]]
policy = "MaxPairUCB"
tune.radius = { paper = [0.1, 1.0], finer = [0.1, 1.0, 3.0] }
"""
APPENDIX = """
name = "appendix"
title = "Small appendix"
environment = { dim = [3, 4], arms = 6 }
[[policies]]
policy = "Uniform"
"""
FIGURE2 = """
name = "figure2"
title = "Small Figure 2"
environment = { dim = [3, 4], arms = 6 }
[[policies]]
policy = "FGTS"
grid.alpha = [0.0, 0.1]
"""
SMALL = {"figure1": FIGURE1, "appendix": APPENDIX, "figure2": FIGURE2}


@pytest.fixture(autouse=True)
def coarse_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Drawing takes most of the time, and nothing here depends on the size of an image."""
    monkeypatch.setattr(style, "DOTS_PER_INCH", 40)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "load_shipped_spec", lambda name: parse_spec(SMALL[name]))


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(command.reproduce, list(arguments), catch_exceptions=False)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_all_figures_end_in_a_report_with_nothing_to_load_and_a_second_call_reuses_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = invoke("all", "--rounds", "40", "--trials", "3", "--out", str(tmp_path), "--workers", "1")
    assert done.exit_code == 0, done.output
    for name in ("figure1-mean", "figure1-tuning", "appendix-median", "figure2-paired", "figure2-growth"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    page = html.unescape((tmp_path / "report.html").read_text())
    assert page.count("data:image/png;base64,") == 16  # six ways, five without tuning, five
    assert not re.search(r"""(src|href)=["'](?!data:)""", page)
    assert "<script" not in page
    for words in (
        "mean nothing for the paper",
        "arXiv:2404.06013",
        "Time taken",
        "numpy",
        "seed 0",
        "Small Figure 2",
        "large margin",
    ):
        assert words in page
    assert "Computed again" not in page
    assert "This run has 40 rounds and 3 trials" in done.output
    tables = (tmp_path / "tables.tex").read_text()
    assert tables.count(r"\begin{table}") == page.count("<table>")
    assert r"\caption{Figure 1: final regret." in tables
    table = tmp_path / "figure2-T40-n3-s0.parquet"
    assert pq.read_table(table).num_rows == 2 * 2 * 3

    # A second call computes nothing, draws nothing that is there and writes the same table.
    assert re.search(r"figure2-T40-n3-s0: 2 block\(s\) computed, 0 reused", done.output)
    first = table.read_bytes()
    (tmp_path / "figure2-mean.pdf").unlink()
    drawn: list[str] = []

    def record(figure: Any, stem: Path, *, digest: str) -> list[Path]:
        drawn.append(stem.name)
        return style.save_figure(figure, stem, digest=digest)

    monkeypatch.setattr(command, "save_figure", record)
    again = invoke("figure2", "--rounds", "40", "--trials", "3", "--out", str(tmp_path))
    assert re.search(r"figure2-T40-n3-s0: 0 block\(s\) computed, 2 reused", again.output)
    assert table.read_bytes() == first
    assert drawn == ["figure2-mean"]
    drawn.clear()
    invoke("figure2", "--rounds", "40", "--trials", "3", "--out", str(tmp_path), "--band", "se")
    assert drawn == ["figure2-mean"], "its band is another one"


@pytest.mark.slow
def test_a_sweep_of_ones_own_gets_figures_and_a_report(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(FIGURE2.replace("figure2", "mine").replace("Small Figure 2", "My sweep"))
    done = invoke(str(own), "--rounds", "20", "--trials", "2", "--out", str(tmp_path / "out"), "--quiet")
    assert done.exit_code == 0, done.output
    written = [Path(line) for line in done.output.splitlines()]
    assert {path.name for path in written} >= {"mine-T20-n2-s0.parquet", "mine-mean.png", "report.html"}
    assert all(path.exists() for path in written)
    assert "My sweep" in (tmp_path / "out" / "report.md").read_text()


@pytest.mark.usefixtures("small")
def test_failures_are_told_with_their_cell_and_leave_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from duelist.policies.algorithms.confidence.maxpairucb import MaxPairUCB

    def broken(*_: object) -> None:
        raise ArithmeticError("the fit broke")

    monkeypatch.setattr(MaxPairUCB, "choose", broken)
    done = invoke("figure1", "--rounds", "10", "--trials", "2", "--out", str(tmp_path))
    assert done.exit_code == 1
    assert "Failed: MaxPairUCB (dim=3" in done.output
    assert "ArithmeticError: the fit broke" in done.output
    assert "only what is missing will be computed" in done.output
    assert not (tmp_path / "report.html").exists()
    assert pq.read_table(tmp_path / "figure1-T10-n2-s0.parquet").num_rows == 2 * 2


def test_a_figure_that_does_not_exist_is_told_which_is_near() -> None:
    with pytest.raises(UnknownNameError, match=r"Did you mean 'figure1'\?"):
        invoke("figuer1")


def test_sizes_are_checked_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="--rounds must be"):
        invoke("figure2", "--rounds", "0", "--out", str(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


def test_quick_is_small_and_what_is_asked_for_wins() -> None:
    spec = load_shipped_spec("figure1")
    quick = command.resize(spec, Options(quick=True))
    assert (quick.rounds, quick.trials) == (command.QUICK_ROUNDS, command.QUICK_TRIALS)
    asked = command.resize(spec, Options(quick=True, rounds=70, trials=5, seed=9))
    assert (asked.rounds, asked.trials, asked.tuning.trials, asked.seed) == (70, 5, 5, 9)
    assert command.resize(spec, Options()) == spec


def test_the_figures_specs_ask_for_what_the_paper_shows() -> None:
    figure1, appendix, figure2 = (load_shipped_spec(name) for name in ("figure1", "appendix", "figure2"))
    for spec in (figure1, appendix, figure2):
        assert (spec.rounds, spec.trials) == (2500, 30)
        assert [point["dim"] for point in spec.environment.points()] == [5, 10, 15]
        assert {point["arms"] for point in spec.environment.points()} == {32}
    assert {policy.policy for policy in figure1.policies} == {"FGTS", "MaxInP", "MaxPairUCB", "CoLSTIM", "VACDB"}
    assert {policy.policy for policy in appendix.policies} >= {"StaD", "SupCoLSTIM", "Uniform"}
    paper = {0.01, 0.1, 1.0, 10.0}
    for policy in (*figure1.policies, *appendix.policies):
        for parameter, grids in policy.tune.items():
            assert all(set(values) == paper for name, values in grids.items() if name != "finer")
            assert set(grids.get("finer", ())) > paper or "finer" not in grids or parameter == "scale"
    # What the paper tunes of each, under each reading of its ridge: of CoLSTIM the magnitude of the perturbations.
    for grid in ("paper_ridge", "paper_covariance", "paper"):
        tuned = {(policy.policy, policy.tuned) for policy in figure1.policies if grid in policy.tune.get(policy.tuned, {})}
        assert tuned - {("CoLSTIM", "radius")} == {
            ("MaxInP", "radius"),
            ("MaxPairUCB", "radius"),
            ("CoLSTIM", "perturbation"),
            ("VACDB", "radius"),
        }
    ridges = {"paper_ridge": (0.001, None), "paper_covariance": (0.001, 1e-6), "paper": (1.0, None)}
    for policy in figure1.policies:
        for grid in policy.tune.get(policy.tuned, {}):
            if policy.policy != "VACDB" and grid in ridges:
                assert (policy.parameters["ridge"], policy.parameters.get("fit_ridge")) == ridges[grid]
    assert [dict(policy.grid) for policy in figure2.policies] == [{"alpha": (0.0, 0.01, 0.1, 1.0, 10.0)}] * 2
    assert {policy.parameters["sampler"] for policy in figure2.policies} == {"mala", "paper"}


def test_series_of_an_empty_table_are_none() -> None:
    import pyarrow as pa

    assert extract_series(load_shipped_spec("figure2"), pa.table({"final_regret": pa.array([], pa.float64())})) == []


def test_numbers_beside_a_word_of_another_policy_are_numbers_again(tmp_path: Path) -> None:
    spec = parse_spec(
        """
        name = "words"
        rounds = 10
        trials = 2
        environment = { dim = 3, arms = 4 }
        [[policies]]
        policy = "CoLSTIM"
        grid.radius = [0.1, 2.0]
        [[policies]]
        policy = "CoLSTIM"
        label = "theory"
        parameters = { radius = "theory" }
        """
    )
    table = run_spec(spec, tmp_path, workers=1, progress=False).table
    assert table.column("policy_radius").to_pylist()[0] == "0.1"
    assert [one.setting for one in extract_series(spec, table)] == [{"radius": 0.1}, {"radius": 2.0}, {}]
