"""Data from outside and to it: arrays, lists, frames of pandas or polars, and files that hold the same.

What names a file stays the name of a file in the recipe, so that a spec can write it down.
"""

from __future__ import annotations

import csv
import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from duelist.core.checks import finite_array, one_of
from duelist.core.errors import DuelistError, InvalidInputError
from duelist.typing import FloatArray

Column = npt.NDArray[Any]
# Numbers, or the path of a .csv, .npy or .parquet file.
Table = str | FloatArray | Sequence[Sequence[float]]
# A frame, a mapping of columns, or the path of a .csv or .parquet file.
Frame = Any
Backend = Literal["pandas", "polars"]
_BACKENDS = ("pandas", "polars")


class MissingFramesError(DuelistError, ImportError):
    """A data frame was asked for, and neither pandas nor polars is installed."""


def read_array(name: str, value: Any, expected: str, *ndims: int) -> FloatArray:
    """Return numbers given as an array, nested lists, a frame or a path, checked as by `finite_array`.

    A file of one column is (n, 1); where only one axis is wanted it is that column.

    Args:
        name: of the parameter, for messages.
        value: the numbers, or where they are.
        expected: the shape, for messages.
        *ndims: the numbers of axes that are allowed.
    """
    if isinstance(value, str | Path):
        path = Path(value)
        array: Any = _load_npy(name, path) if path.suffix == ".npy" else _numbers(name, read_columns(name, value))
    elif hasattr(value, "columns"):
        array = _numbers(name, read_columns(name, value))
    else:
        array = value
    if np.ndim(array) == 2 and 2 not in ndims and 1 in np.shape(array):
        array = np.ravel(array)
    return finite_array(name, array, expected, *ndims)


def read_models(theta: Any) -> FloatArray:
    """(N, dim) the truths that theta lists: one row, several, or the path of a file with them."""
    return np.atleast_2d(read_array("theta", theta, "(dim,) or (N, dim)", 1, 2))


def read_columns(name: str, value: Frame) -> dict[str, Column]:
    """The columns of a frame of pandas or polars, a mapping, or a .csv or .parquet file, by name.

    Columns of a CSV file in which every cell is a number become numbers; without a line of names, columns are "0", "1" and so
    on.

    Example:
        >>> read_columns("votes", {"first": ["a", "b"], "second": ["b", "a"]})["second"].tolist()
        ['b', 'a']
    """
    if isinstance(value, str | Path):
        path = Path(value)
        readers = {".csv": _read_csv, ".parquet": _read_parquet}
        if path.suffix not in readers:
            raise InvalidInputError(f"{name} must be a .csv or .parquet file; got {str(value)!r}.")
        try:
            return readers[path.suffix](path)
        except OSError as error:
            raise InvalidInputError(f"{name} cannot be read: {error}. Check the path.") from error
    if isinstance(value, Mapping):
        columns = {str(key): np.asarray(column) for key, column in value.items()}
    elif hasattr(value, "columns"):
        columns = {str(key): value[key].to_numpy() for key in value.columns}
    else:
        raise InvalidInputError(
            f"{name} must be a frame of pandas or polars, a mapping of columns, or a path; got {type(value).__name__}."
        )
    lengths = {key: len(column) for key, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InvalidInputError(f"the columns of {name} must have one length; got {lengths}.")
    return columns


def _load_npy(name: str, path: Path) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise InvalidInputError(
            f"{name} cannot be read from {path} as an array of numbers. Save one with numpy.save."
        ) from error


def _read_csv(path: Path) -> dict[str, Column]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        rows = [row for row in csv.reader(file) if row]
    if not rows:
        raise InvalidInputError(f"{path} is empty.")
    wrong = next((place for place, row in enumerate(rows) if len(row) != len(rows[0])), None)
    if wrong is not None:
        raise InvalidInputError(f"{path}: line {wrong + 1} has {len(rows[wrong])} cells, and the first {len(rows[0])}.")
    has_names = _as_numbers(rows[0]).dtype == object
    names = rows.pop(0) if has_names else [str(i) for i in range(len(rows[0]))]
    return {key.strip(): _as_numbers([row[i].strip() for row in rows]) for i, key in enumerate(names)}


def _read_parquet(path: Path) -> dict[str, Column]:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise InvalidInputError(f"{path} needs pyarrow: pip install 'duelist[data]'.") from error
    table = parquet.read_table(path)
    return {key: table[key].to_numpy() for key in table.column_names}


def _as_numbers(cells: list[str]) -> Column:
    try:
        return np.array([float(cell) for cell in cells])
    except ValueError:
        return np.array(cells, dtype=object)


def _numbers(name: str, columns: dict[str, Column]) -> FloatArray:
    text = [key for key, column in columns.items() if np.asarray(column).dtype.kind not in "fiub"]
    if text:
        raise InvalidInputError(f"{name} must be numbers only; the column {text[0]!r} is not.")
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns.values()], axis=1)


def make_frame(columns: Mapping[str, Any], backend: Backend | None = None) -> Any:
    """Columns as a data frame of pandas or polars, whichever is installed; pandas where both are."""
    if backend is not None:
        one_of("backend", backend, _BACKENDS)
    wanted = _BACKENDS if backend is None else (backend,)
    found = next((name for name in wanted if importlib.util.find_spec(name) is not None), None)
    if found is None:
        raise MissingFramesError(
            f'a data frame needs {" or ".join(wanted)}, which is not installed. Run: pip install "duelist[data]"'
        )
    return importlib.import_module(found).DataFrame(dict(columns))
