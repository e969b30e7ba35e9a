"""Comparisons of R packages, from small files in R's own format and from tables that R exported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.datasets import (
    Comparisons,
    MissingDataError,
    load_cems,
    load_first_names,
    load_flatlizards,
    load_football,
    load_sound_quality,
)
from tests.support.r_writer import Vector, factor, frame, named, rda_bytes, write_lazy_data

NAN = float("nan")
CEMS = named(
    {
        "preferences": frame(
            {
                "student": [1, 1, 2, 2],
                "school1": factor(["London", "London", "Paris", "Milano"]),
                "school2": factor(["Paris", "Milano", "Milano", "London"]),
                "win1": [1, 0, None, 0],
                "win2": [0, 0, None, 1],
                "tied": [0, 1, None, 0],
            }
        ),
        "students": frame(
            {
                name: factor(["good", "poor"]) if name != "SEX" else factor(["male", "female"])
                for name in ("STUD", "ENG", "FRA", "SPA", "ITA", "WOR", "DEG", "SEX")
            }
        ),
        "schools": frame({"Paris": [1.0, 0.0, 0.0], "LAT": [1.0, 0.0, 1.0]}, ["Paris", "London", "Milano"]),
    }
)
FOOTBALL = frame(
    {
        "season": factor(["2008-9", "2008-9", "2009-10"]),
        "home": factor(["Ars", "Che", "Ars"]),
        "away": factor(["Che", "Ars", "Wol"]),
        "result": [1.0, 0.0, -1.0],
    }
)
LIZARDS = named(
    {
        "contests": frame(
            {
                "winner": factor(["lizard010", "lizard003", "lizard003"]),
                "loser": factor(["lizard003", "lizard189", "lizard010"]),
            }
        ),
        "predictors": frame(
            {
                "id": factor(["189", "3", "10"]),
                "SVL": [80.0, 70.0, None],
                "repro.tactic": factor(["resident", "floater", "resident"]),
            }
        ),
    }
)


def paired(values: list[list[float | None]], pairs: list[str], labels: list[str], ordered: bool) -> Vector:
    """A `paircomp` column: a matrix in a data frame, column by column, as psychotools stores it."""
    flat = [row[place] for place in range(len(pairs)) for row in values]
    names = Vector([Vector([], {}, "list"), pairs], {}, "list")
    attributes = {
        "dim": Vector([len(values), len(pairs)], {}, "integer"), "dimnames": names, "labels": labels,
        "mscale": Vector([-1, 1], {}, "integer"), "ordered": Vector([int(ordered)], {}, "logical"), "class": ["paircomp"],
    }  # fmt: skip
    return Vector(flat, attributes, "integer")


SOUND = frame(
    {
        "id": factor(["7", "7", "9"]),
        "time": factor(["before", "after", "before"]),
        "preference": paired([[1, -1, 1], [-1, -1, 1], [1, 1, None]], ["1:2", "1:3", "2:3"], ["Mono", "Stereo", "Wide"], False),
    }
)
NAMES = frame(
    {
        "preference": paired([[1], [-1]], ["1:2"], ["Tim", "Lucas"], False),
        "ordered.pref": paired([[1, None], [None, 1]], ["1:2", "2:1"], ["Tim", "Lucas"], True),
        "age": Vector([46, 24], {}, "integer"),
    }
)
BRADLEY_TERRY = {"CEMS": CEMS, "football": FOOTBALL, "flatlizards": LIZARDS}


def facts(log: Comparisons) -> list[tuple[str, str, int]]:
    """First, second and outcome of every comparison."""
    names = [[log.items[row] for row in log.shown[:, side]] for side in (0, 1)]
    return list(zip(*names, log.outcomes.tolist(), strict=True))


def library(folder: Path) -> Path:
    """What a system that installed both packages has: one with lazy data, one with files."""
    write_lazy_data(folder / "BradleyTerry2", BRADLEY_TERRY)
    (folder / "psychotools" / "data").mkdir(parents=True)
    for name, value in (("SoundQuality", SOUND), ("FirstNames", NAMES)):
        (folder / "psychotools" / "data" / f"{name}.rda").write_bytes(rda_bytes({name: value}))
    return folder


def test_cems_leaves_out_what_was_not_answered_and_knows_students_and_schools(tmp_path: Path) -> None:
    log = load_cems(library(tmp_path))
    assert facts(log) == [("London", "Paris", 1), ("London", "Milano", 0), ("Milano", "London", -1)]
    assert log.voters is not None
    assert log.voters.tolist() == ["1", "1", "2"]
    assert log.context["SEX"].tolist() == ["male", "male", "female"]
    assert log.items == ("London", "Milano", "Paris")
    assert log.feature_names == ("Paris", "LAT")
    assert log.features is not None
    assert log.features.tolist() == [[0, 0], [0, 1], [1, 1]]
    assert not log.order_known


def test_football_has_the_home_team_first(tmp_path: Path) -> None:
    log = load_football(library(tmp_path) / "BradleyTerry2")
    assert facts(log) == [("Ars", "Che", 1), ("Che", "Ars", 0), ("Ars", "Wol", -1)]
    assert log.context["season"].tolist() == ["2008-9", "2008-9", "2009-10"]
    assert log.order_known


def test_lizards_are_joined_to_their_measurements_and_winners_do_not_all_stand_first(tmp_path: Path) -> None:
    log = load_flatlizards(library(tmp_path))
    assert facts(log) == [("lizard003", "lizard010", -1), ("lizard003", "lizard189", 1), ("lizard003", "lizard010", 1)]
    assert log.feature_names == ("SVL", "resident")
    np.testing.assert_array_equal(log.features, [[70, 0], [NAN, 1], [80, 1]])
    assert np.isfinite(log.scaled_features).all()


def test_a_matrix_of_pairs_becomes_one_row_per_answer(tmp_path: Path) -> None:
    log = load_sound_quality(library(tmp_path))
    assert facts(log) == [
        ("Mono", "Stereo", 1), ("Mono", "Wide", -1), ("Stereo", "Wide", 1),
        ("Mono", "Stereo", -1), ("Mono", "Wide", -1), ("Stereo", "Wide", 1),
        ("Mono", "Stereo", 1), ("Mono", "Wide", 1),
    ]  # fmt: skip
    assert log.voters is not None
    assert log.voters.tolist() == ["7"] * 6 + ["9"] * 2
    assert log.context["time"].tolist() == ["before"] * 3 + ["after"] * 3 + ["before"] * 2
    assert not log.order_known


def test_first_names_keep_the_order_in_which_they_were_read_out(tmp_path: Path) -> None:
    log = load_first_names(library(tmp_path) / "psychotools" / "data" / "FirstNames.rda")
    assert facts(log) == [("Tim", "Lucas", 1), ("Lucas", "Tim", 1)]
    assert log.order_known
    assert log.context["age"].tolist() == [46, 24]
    assert log.n_voters == 2


def test_packages_are_found_where_r_is_told_to_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("R_LIBS_USER", str(library(tmp_path)))
    assert len(load_football()) == 3
    assert len(load_first_names()) == 2
    monkeypatch.setenv("R_LIBS_USER", str(tmp_path / "empty"))
    monkeypatch.delenv("R_LIBS", raising=False)
    monkeypatch.setattr("duelist.datasets.sources._R_LIBRARIES", ())
    with pytest.raises(MissingDataError, match="R package BradleyTerry2"):
        load_football()


EXPORTS: list[tuple[Any, str, list[tuple[str, str, int]]]] = [
    (
        load_cems,
        "student,school1,school2,win1,win2,tied\n1,London,Paris,1,0,0\n1,London,Milano,0,0,1\n2,Paris,Milano,NA,NA,NA\n",
        [("London", "Paris", 1), ("London", "Milano", 0)],
    ),
    (load_football, "season,home,away,result\n2008-9,Ars,Che,1\n2009-10,Che,Ars,-1\n", [("Ars", "Che", 1), ("Che", "Ars", -1)]),
    (load_flatlizards, "winner,loser\nlizard010,lizard003\n", [("lizard003", "lizard010", -1)]),
    (
        load_sound_quality,
        "id,Mono:Stereo,Mono:Wide\n7,1,-1\n9,NA,1\n",
        [("Mono", "Stereo", 1), ("Mono", "Wide", -1), ("Mono", "Wide", 1)],
    ),
    (load_first_names, "age,Tim:Lucas,Lucas:Tim\n46,NA,1\n24,-1,NA\n", [("Lucas", "Tim", 1), ("Tim", "Lucas", -1)]),
]


@pytest.mark.parametrize(("load", "text", "expected"), EXPORTS)
def test_tables_that_r_exported_are_read(load: Any, text: str, expected: list[tuple[str, str, int]], tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "export.csv"
    path.write_text(text)
    for source in (path, pandas.read_csv(path)):
        assert facts(load(source)) == expected


def test_a_table_without_pairs_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="columns like Mono:Stereo"):
        load_sound_quality({"id": [1], "mono": [2]})
