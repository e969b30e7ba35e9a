"""A log of answered duels with their propensities, from arrays, an agent's journal, or an export of the service."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from duelist.actions.finite import FiniteActions
from duelist.core.checks import finite_array
from duelist.core.errors import InvalidInputError, SavedStateError
from duelist.core.serialize import from_bytes
from duelist.journal.base import COMPACTED, Journal, Record
from duelist.live.agent_log import unpack_set
from duelist.live.vote_log import Selection
from duelist.typing import FloatArray, IntArray

_OUTCOMES = {"first": 1, "second": -1, "tie": 0}
_SIDES = {"left": 1, "right": -1, "tie": 0}


class LoggedDuel(NamedTuple):
    """One answered duel of a log.

    Attributes:
        features: (n_arms, dim) the candidates.
        first: row of one of the two that were shown.
        second: row of the other.
        outcome: +1 where the first won, -1 where the second did, 0 for a tie.
        propensity: probability of the pair in either order; NaN where unknown.
        names: of the candidates; empty where they have none.
    """

    features: FloatArray
    first: int
    second: int
    outcome: int
    propensity: float
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class DuelLog:
    """Answered duels in the order in which they were asked. Make one with `of`, `from_journal` or `from_file`.

    Attributes:
        sets: the distinct candidate sets, (n_arms, dim) each.
        names: of the candidates of each set; empty where they have none.
        set_of: (n,) which set each duel was chosen from.
        first: (n,) row of one of the two that were shown.
        second: (n,) row of the other.
        outcomes: (n,) +1 where the first won, -1 where the second did, 0 for a tie.
        propensities: (n,) probability of the pair in either order; NaN where unknown.
    """

    sets: tuple[FloatArray, ...]
    names: tuple[tuple[str, ...], ...]
    set_of: IntArray
    first: IntArray
    second: IntArray
    outcomes: IntArray
    propensities: FloatArray

    @classmethod
    def of(
        cls,
        features: Any,
        first: npt.ArrayLike,
        second: npt.ArrayLike,
        outcomes: npt.ArrayLike,
        propensities: npt.ArrayLike,
    ) -> DuelLog:
        """A log from arrays.

        Args:
            features: (n_arms, dim) if all duels have the same candidates, else one such array per duel.
            first: (n,) row of one of the two that were shown.
            second: (n,) row of the other.
            outcomes: (n,) +1 where the first won, -1 where the second did, 0 for a tie.
            propensities: (n,) probability of the pair in either order; NaN where unknown.
        """
        rows = [np.asarray(column) for column in (first, second, outcomes)]
        odds = np.asarray(propensities, dtype=np.float64)
        n = len(odds)
        if any(column.shape != (n,) for column in rows):
            shapes = [column.shape for column in rows]
            raise InvalidInputError(f"first, second and outcomes must be ({n},), as propensities are; got {shapes}.")
        alike = len(features) > 0 and np.ndim(features[0]) == 1
        offered = [finite_array("features", one, "(n_arms, dim)", 2) for one in ([features] if alike else features)]
        sets = offered * n if alike else offered
        if len(sets) != n:
            raise InvalidInputError(f"features must be one (n_arms, dim) for all {n} duels or one each; got {len(sets)}.")
        return cls._collect(
            LoggedDuel(one, int(i), int(j), int(y), float(q)) for one, i, j, y, q in zip(sets, *rows, odds, strict=True)
        )

    @classmethod
    def from_journal(cls, journal: Journal) -> DuelLog:
        """The answered duels of an `Agent` on a journal, without those whose answers were taken back."""
        return cls._collect(_duels_of_agent(journal.read))

    @classmethod
    def from_file(cls, path: str | PathLike[str]) -> DuelLog:
        """The answered asks of an arena, from the CSV or Parquet file that the service exports.

        Candidates are items, each with a dimension of its own: a router of such a log always picks one item, by its name, or
        chooses by the rows of the identity that it is given.
        """
        return cls._collect(_duels_of_export(_read_table(Path(path))))

    @classmethod
    def _collect(cls, duels: Iterable[LoggedDuel]) -> DuelLog:
        """Columns from rows; a set that comes again is kept once."""
        places: dict[tuple[bytes, tuple[int, ...], tuple[str, ...]], int] = {}
        sets: list[FloatArray] = []
        columns: list[tuple[int, int, int, int, float]] = []
        for n, (features, first, second, outcome, propensity, names) in enumerate(duels):
            n_arms = len(features)
            if not (0 <= first < n_arms and 0 <= second < n_arms and first != second):
                raise InvalidInputError(f"duel {n} must show two different rows below {n_arms}; got {first} and {second}.")
            if outcome not in (1, -1, 0):
                raise InvalidInputError(f"outcomes must be +1, -1 or 0; got {outcome} in duel {n}.")
            if not (np.isnan(propensity) or 0.0 < propensity <= 1.0 + 1e-9):
                raise InvalidInputError(
                    f"a propensity is a probability above 0, or NaN where it is unknown; got {propensity} in duel {n}."
                )
            key = (features.tobytes(), features.shape, names)
            if key not in places:
                places[key] = len(sets)
                sets.append(features)
            columns.append((places[key], first, second, outcome, propensity))
        if not columns:
            raise InvalidInputError("the log holds no answered duel. Let people vote first.")
        set_of, first_, second_, outcomes, propensities = (np.array(column) for column in zip(*columns, strict=True))
        names_ = tuple(names for *_, names in places)
        return cls(tuple(sets), names_, set_of, first_, second_, outcomes, propensities.astype(np.float64))

    def __len__(self) -> int:
        return len(self.outcomes)

    def select(self, chosen: Any) -> DuelLog:
        """Some of the duels, by a mask, numbers or a slice; the second half is `log.select(slice(len(log) // 2, None))`."""
        columns: list[Any] = [self.set_of, self.first, self.second, self.outcomes, self.propensities]
        return DuelLog(self.sets, self.names, *(column[chosen] for column in columns))

    @property
    def shown(self) -> tuple[FloatArray, FloatArray]:
        """Features (n, dim) of the first and of the second candidate: with `outcomes`, what `Agent.import_votes` takes."""
        pairs = zip(self.set_of, self.first, self.second, strict=True)
        both = np.array([self.sets[one][[i, j]] for one, i, j in pairs])
        return both[:, 0], both[:, 1]


class _Answered(NamedTuple):
    """An answer, and what it is the answer to; None for what came before a compaction."""

    number: int
    outcome: int
    asked: tuple[Any, int, int, float] | None


def _duels_of_agent(read: Callable[[], Iterable[Record]]) -> Iterator[LoggedDuel]:
    """What the events of `duelist.live.agent_log` say."""
    for number, outcome, asked in sorted(_answers_of_agent(read), key=lambda answered: answered.number):
        if asked is None:
            continue
        actions, first, second, propensity = asked
        if not isinstance(actions, FiniteActions):
            raise InvalidInputError(f"duel {number} was chosen from a continuous set, where no pair has a probability.")
        if first != second:  # an arm beside itself says nothing
            yield LoggedDuel(actions.features[0], first, second, outcome, propensity)


def _answers_of_agent(read: Callable[[], Iterable[Record]]) -> Iterator[_Answered]:
    """All answers that were not taken back."""
    taken_back = [(record.position, Selection(**record.body["votes"])) for record in read() if record.kind == "forgot"]
    sets: dict[str, Any] = {}
    asked: dict[int, tuple[Any, int, int, float]] = {}
    is_whole = True
    for record in read():
        body = record.body
        if record.kind == COMPACTED:
            is_whole = False
        elif record.kind == "set":  # of version 0.1.0
            sets[body["set"]] = from_bytes(record.blob)
        elif record.kind == "asked":
            if "first" not in body:
                raise InvalidInputError("the journal holds slates. Only duels can be judged.")
            if body.get("set_bytes"):
                sets[body["set"]] = unpack_set(record.blob[: body["set_bytes"]])
            if body["set"] in sets:
                asked[body["id"]] = (sets[body["set"]], body["first"], body["second"], _propensity_of(body))
        elif record.kind == "told":
            number, told_by, told_at = body["id"], body.get("voter"), body.get("time")
            if is_whole and number not in asked:
                raise SavedStateError(f"duel {number} was answered and never asked. Restore the journal from a copy.")
            if not any(position > record.position and one.meets(number, told_by, told_at) for position, one in taken_back):
                yield _Answered(number, _OUTCOMES[body["winner"]], asked.get(number))


def _propensity_of(body: dict[str, Any]) -> float:
    if "propensity" in body:
        return float("nan") if body["propensity"] is None else float(body["propensity"])
    # Version 0.1.0 wrote down that of the order. Twice that gives the same mean: either order stands for half of the pair.
    known = body.get("probability")
    return float("nan") if known is None else 2.0 * float(known)


def _read_table(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _duels_of_export(rows: list[dict[str, Any]]) -> Iterator[LoggedDuel]:
    """What the columns of `duelist.service.insight.export` say."""
    missing = {"left", "right", "outcome", "probability", "candidates"} - set(rows[0] if rows else ())
    if missing:
        raise InvalidInputError(f"an export has the columns {', '.join(sorted(missing))} as well. Export it with this version.")
    usable = [row for row in rows if row["outcome"] in _SIDES and row["candidates"] and row["left"]]  # without slates
    candidates = [tuple(json.loads(row["candidates"])) for row in usable]
    everything = sorted({name for names in candidates for name in names})
    identity, place = np.eye(len(everything)), {name: n for n, name in enumerate(everything)}
    for row, names in zip(usable, candidates, strict=True):
        odds = float(row["probability"]) if row["probability"] not in (None, "") else float("nan")
        features = identity[[place[name] for name in names]]
        yield LoggedDuel(features, names.index(row["left"]), names.index(row["right"]), _SIDES[row["outcome"]], odds, names)
