"""`duelist data`: the list, where to get a set, and a first look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from duelist.cli.main import cli
from duelist.core.errors import UnknownNameError
from duelist.datasets import DATASETS, MissingDataError

VOTES = "first,second,winner,voter\n" + "".join(
    f"m{a},m{b},m{min(a, b)},v{a % 2}\n" for a in range(12) for b in range(12) if a != b
)


def said(*arguments: Any) -> str:
    result = CliRunner().invoke(cli, ["data", *map(str, arguments)], catch_exceptions=False, env={"COLUMNS": "200"})
    return result.output


def test_the_list_has_every_set_with_its_licence() -> None:
    text = " ".join(said().split())
    for name, dataset in DATASETS.items():
        assert name in text
        assert dataset.licence in text


@pytest.mark.parametrize("name", DATASETS)
def test_every_set_says_how_to_get_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    monkeypatch.setattr("duelist.datasets.sources._R_LIBRARIES", ())
    monkeypatch.delenv("R_LIBS", raising=False)
    text = said(name)
    assert DATASETS[name].get in text
    assert DATASETS[name].licence in text
    assert f"duelist data {name} --path FILE" in text


def test_a_first_look_counts_and_ranks(tmp_path: Path) -> None:
    path = tmp_path / "votes.csv"
    path.write_text(VOTES + "m0,m1,tie,v0\n")
    text = said("table", "--path", path)
    assert "133 comparisons of 2 of 12 items, 1 ties" in text
    assert "voters: 2" in text
    best = [line.split()[0] for line in text.splitlines() if line.split()[:1] and line.split()[0].startswith("m")]
    assert best == [f"m{place}" for place in range(10)]  # the smaller number won every vote


def test_a_wrong_name_or_path_is_answered() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'train'"):
        said("trains")
    with pytest.raises(MissingDataError, match="train_data"):
        said("train", "--path", "/nowhere")
