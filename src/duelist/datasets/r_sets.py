"""Paired comparisons that come with R packages, read where R or the system installed them; no R is needed.

A data frame or a CSV file that R wrote is taken too, where one table holds the comparisons.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from duelist.core.errors import InvalidInputError
from duelist.datasets.builders import pairs_of_names
from duelist.datasets.comparisons import NOBODY, Comparisons
from duelist.datasets.r_files import RObject
from duelist.datasets.sources import Source, is_path, r_object, read_table
from duelist.environments.tables import Column

_BRADLEY_TERRY, _PSYCHOTOOLS = "BradleyTerry2", "psychotools"
_STUDENT = ("STUD", "ENG", "FRA", "SPA", "ITA", "WOR", "DEG", "SEX")


def load_cems(source: Source = None) -> Comparisons:
    """Which of two schools of management students would rather go to, with ties and what is known of the students.

    Comparisons without an answer are left out.

    Args:
        source: None for the installed package BradleyTerry2; the path of the package, of a library or of an .rda file; or
            `CEMS$preferences` as a CSV file or a frame, which comes without students and features of schools.
    """
    if _is_table(source):
        return _schools(read_table("cems", source, ("student", "school1", "school2", "win1", "win2", "tied")), {}, None)
    parts = r_object("CEMS", _BRADLEY_TERRY, source).parts()
    return _schools(parts["preferences"].columns(), parts["students"].columns(), parts["schools"])


def _schools(table: dict[str, Column], students: dict[str, Column], schools: RObject | None) -> Comparisons:
    won = [np.nan_to_num(table[name].astype(np.float64)) > 0 for name in ("win1", "win2", "tied")]
    kept = np.logical_or.reduce(won)
    student = np.array([int(float(cell)) for cell in table["student"][kept]])
    others: dict[str, Any] = {}
    if schools is not None:
        order = np.argsort(schools.row_names())  # as items are sorted
        columns = schools.columns()
        others = {
            "features": np.stack([column.astype(np.float64)[order] for column in columns.values()], axis=1),
            "feature_names": tuple(columns),
        }
    return pairs_of_names(
        "cems",
        table["school1"][kept],
        table["school2"][kept],
        np.where(won[2], NOBODY, np.where(won[0], 0, 1))[kept],
        voters=student,
        context={name: students[name][student - 1] for name in _STUDENT if name in students},
        **others,
    )


def load_football(source: Source = None) -> Comparisons:
    """Matches of the English Premier League, the home team first, with draws.

    Args:
        source: as in `load_cems`; one table: season, home, away, result.
    """
    columns = ("season", "home", "away", "result")
    table = (
        read_table("football", source, columns) if _is_table(source) else r_object("football", _BRADLEY_TERRY, source).columns()
    )
    result = table["result"].astype(np.int64)
    chosen = np.where(result > 0, 0, np.where(result < 0, 1, NOBODY))
    seasons = {"season": table["season"]}
    return pairs_of_names("football", table["home"], table["away"], chosen, context=seasons, order_known=True)


def load_flatlizards(source: Source = None) -> Comparisons:
    """Contests between male lizards, with what was measured of each of them.

    The source lists the winner first; here the one with the smaller name stands first.

    Args:
        source: None for the installed package BradleyTerry2; the path of the package, of a library or of an .rda file; or
            `flatlizards$contests` as a CSV file or a frame, which comes without measurements.
    """
    if _is_table(source):
        return _contests(read_table("flatlizards", source, ("winner", "loser")))
    parts = r_object("flatlizards", _BRADLEY_TERRY, source).parts()
    measured = parts["predictors"].columns()
    animals = measured.pop("id")
    measured["resident"] = (measured.pop("repro.tactic") == "resident").astype(np.float64)
    rows = {_lizard(animal): row for row, animal in enumerate(animals)}
    log = _contests(parts["contests"].columns())
    order = [rows[item] for item in log.items]
    numbers = np.stack([column.astype(np.float64)[order] for column in measured.values()], axis=1)
    return Comparisons(
        name=log.name, items=log.items, shown=log.shown, chosen=log.chosen, features=numbers, feature_names=tuple(measured)
    )


def _contests(table: dict[str, Column]) -> Comparisons:
    winner, loser = (np.array([_lizard(cell) for cell in table[name]], dtype=object) for name in ("winner", "loser"))
    ahead = np.array([a < b for a, b in zip(winner, loser, strict=True)])
    sides = np.where(ahead, winner, loser), np.where(ahead, loser, winner)
    return pairs_of_names("flatlizards", *sides, np.where(ahead, 0, 1))


def _lizard(cell: Any) -> str:
    """Contests say "lizard003" where the measurements say 3."""
    return f"lizard{int(re.sub(r'[^0-9.]', '', str(cell)).split('.')[0]):03d}"


def load_sound_quality(source: Source = None) -> Comparisons:
    """Which of two ways to reproduce a piece of music listeners prefer: 28 pairs, asked again and again.

    Args:
        source: None for the installed package psychotools; the path of the package, of a library or of an .rda file; or a CSV
            file or a frame in which a column "Mono:Stereo" holds 1 where the first of the two was preferred, -1 where the
            second was.
    """
    return _paired("sound-quality", "SoundQuality", "preference", "id", source)


def load_first_names(source: Source = None) -> Comparisons:
    """Which of two boys' names parents would rather give, read out in a known order.

    Args:
        source: as in `load_sound_quality`.
    """
    return _paired("first-names", "FirstNames", "ordered.pref", None, source)


def _paired(name: str, r_name: str, column: str, voter: str | None, source: Source) -> Comparisons:
    """One row per respondent, one column per pair; the order is known where both orders have a column."""
    if _is_table(source):
        table = read_table(name, source, ())
        answers = {tuple(key.split(":")): table.pop(key) for key in list(table) if key.count(":") == 1}
        if not answers:
            raise InvalidInputError(f"{name} must have columns like Mono:Stereo, one per pair; got {', '.join(table)}.")
    else:
        frame = r_object(r_name, _PSYCHOTOOLS, source)
        table, matrix = frame.columns(), frame.parts()[column]
        labels, pairs = matrix.text("labels"), list(matrix.attributes["dimnames"].value[1].value)
        numbers = np.asarray(matrix.value).reshape(len(pairs), -1)  # R stores columns one after the other
        answers = {
            tuple(labels[int(place) - 1] for place in pair.split(":")): row for pair, row in zip(pairs, numbers, strict=True)
        }
    values = np.stack([row.astype(np.float64) for row in answers.values()], axis=1)
    who, which = np.nonzero(np.isfinite(values))
    sides = np.array(list(answers), dtype=object)[which]
    said = values[who, which]
    respondents = np.arange(1, len(values) + 1) if voter is None or voter not in table else table[voter]
    return pairs_of_names(
        name,
        sides[:, 0],
        sides[:, 1],
        np.where(said > 0, 0, np.where(said < 0, 1, NOBODY)),
        voters=respondents[who],
        context={key: cells[who] for key, cells in table.items() if key != voter},
        order_known=any(pair[::-1] in answers for pair in answers),
    )


def _is_table(source: Source) -> bool:
    """Whether the source is one table, and not an R package or file."""
    return source is not None and not (is_path(source) and not str(source).lower().endswith((".csv", ".csv.gz", ".parquet")))
