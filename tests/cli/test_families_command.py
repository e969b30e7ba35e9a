"""`duelist reproduce families` from the command to the report, at a very small size."""

from __future__ import annotations

import html
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from duelist.cli import reproduce as command
from duelist.core.errors import InvalidInputError, UnknownNameError
from duelist.plotting import style

SMALL = ("--rounds", "15", "--trials", "2", "--workers", "1")


@pytest.fixture(autouse=True)
def coarse_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing here depends on the size of an image."""
    monkeypatch.setattr(style, "DOTS_PER_INCH", 40)


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(command.reproduce, list(arguments), catch_exceptions=False)


@pytest.mark.slow
def test_families_end_in_a_report_with_a_figure_and_a_table_for_each(tmp_path: Path) -> None:
    done = invoke("families", *SMALL, "--only", "tiny", "--only", "faint", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert (tmp_path / "families.png").read_bytes().startswith(b"\x89PNG")
    page = html.unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    for words in (
        "4 arms in the plane",
        "Against the best tuned baseline",
        "MaxPairUCB (local) at every setting",
        "[families.wide]",
    ):
        assert words in page
    assert "Foresight: mean regret at most the rival's" in (tmp_path / "report.md").read_text(encoding="utf-8")
    table = pq.read_table(tmp_path / "tiny-T15-n2-s7.parquet")
    assert table.num_rows == 2 * (7 * 6 + 4 + 3)
    # On the final instances only chosen settings and defaults: at most three per policy.
    judged = pq.read_table(tmp_path / "tiny-T15-n2-s9.parquet")
    assert 2 * 11 <= judged.num_rows <= 2 * (7 * 3 + 3 + 3)
    again = invoke("families", *SMALL, "--only", "tiny", "--only", "faint", "--out", str(tmp_path))
    assert "0 block(s) computed" in again.output
    assert not any(f"{n} block(s) computed" in again.output for n in range(1, 20))


@pytest.mark.slow
def test_the_design_stage_never_touches_the_final_instances(tmp_path: Path) -> None:
    done = invoke(
        "families", *SMALL, "--stage", "design", "--only", "tiny", "--policies", "Foresight", "--policies", "FGTS",
        "--out", str(tmp_path),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert [path.name for path in tmp_path.glob("*.parquet")] == ["tiny-T15-n2-s7.parquet"]
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "design instances only" in text
    assert "nothing here has touched the final instances" in text


def test_one_policy_alone_has_tables_without_rivals(tmp_path: Path) -> None:
    done = invoke("families", *SMALL, "--only", "tiny", "--policies", "Foresight", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert "tiny: 4 arms in the plane" in (tmp_path / "report.md").read_text(encoding="utf-8")
    assert not (tmp_path / "families.png").exists()


def test_the_settings_of_fgts_are_ranked_on_the_design_instances(tmp_path: Path) -> None:
    done = invoke("families-fgts", *SMALL, "--only", "tiny", "--only", "faint", "--out", str(tmp_path))
    assert done.exit_code == 0, done.output
    assert sorted(path.name for path in tmp_path.glob("*.parquet")) == ["faint-T15-n2-s7.parquet", "tiny-T15-n2-s7.parquet"]
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert text.count("| eta ") == 3 * 4 * 4
    assert "eta 0.5, alpha 0, Gaussian(scale=0.25)" in text


def test_names_are_checked_before_anything_is_written(tmp_path: Path) -> None:
    out = ("--out", str(tmp_path / "new"))
    with pytest.raises(UnknownNameError, match="Did you mean 'tiny'"):
        invoke("families", "--only", "tinny", *out)
    with pytest.raises(UnknownNameError, match="Did you mean 'MaxInP'"):
        invoke("families", "--policies", "MaxInp", *out)
    with pytest.raises(UnknownNameError, match="Did you mean 'design'"):
        invoke("families", "--stage", "desgin", *out)
    with pytest.raises(InvalidInputError, match="families or the field; got them with 'figure1'"):
        invoke("figure1", "--only", "tiny", *out)
    with pytest.raises(UnknownNameError, match="Did you mean 'families'"):
        invoke("familys", *out)
    assert not (tmp_path / "new").exists()
