"""Where data come from: a path, a frame, or a package that is installed; and tables read from any of them.

Nothing is downloaded, and no package that holds data is imported.
"""

from __future__ import annotations

import contextlib
import csv
import gzip
import importlib.util
import io
import json
import os
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from duelist.core.errors import InvalidInputError
from duelist.datasets.r_files import RObject, read_lazy_data, read_r_file
from duelist.environments.tables import Column, read_columns

Source = Any  # the path of a file or folder, a frame of pandas or polars, a mapping of columns, or None for a package
_File = Path | zipfile.Path
_LONGEST_CELL = 2**31 - 1  # answers of language models are longer than the csv module's limit of 131,072
_R_LIBRARIES = ("/usr/local/lib/R/site-library", "/usr/lib/R/site-library", "/usr/lib/R/library", "/opt/homebrew/lib/R/library")


class MissingDataError(InvalidInputError):
    """The data are not on this machine, or not where they were looked for."""


def is_path(source: Source) -> bool:
    """Whether the source is a path."""
    return isinstance(source, str | os.PathLike)


def read_table(name: str, source: Source, columns: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Column]:
    """Columns of a frame, a mapping or a file: .csv, .json, .jsonl, each perhaps .gz, or .parquet, or a folder of .parquet.

    Args:
        name: of the data, for messages.
        source: what to read.
        columns: that must be there; empty for all.
        optional: that are read where they are there.
    """
    table = _read_file(name, Path(source), (*columns, *optional)) if is_path(source) else _read_frame(name, source)
    missing = [column for column in columns if column not in table]
    if missing:
        raise InvalidInputError(
            f"{name} must have the column{'s' * (len(missing) > 1)} {', '.join(missing)}; got {', '.join(table)}. Is it the "
            f"file that `duelist data {name}` describes?"
        )
    wanted = {column: table[column] for column in (*columns, *optional) if column in table}
    return wanted if columns else table


def _read_frame(name: str, source: Source) -> dict[str, Column]:
    if source is None:
        raise MissingDataError(
            f"{name} is read from a file or a frame that you have. `duelist data {name}` says where to get it."
        )
    return read_columns(name, source)


def _read_file(name: str, path: Path, columns: Sequence[str]) -> dict[str, Column]:
    kind = path.name.removesuffix(".gz").rpartition(".")[2].lower()
    try:
        if path.is_dir() or kind == "parquet":
            return _read_parquet(path, columns)
        if kind == "csv":
            return read_csv(path)
        if kind in ("json", "jsonl"):
            records = list(read_records(path))
            keys = dict.fromkeys(key for record in records for key in record if not columns or key in columns)
            return {key: _as_objects([record.get(key) for record in records]) for key in keys}
    except OSError as error:
        raise MissingDataError(f"{name} cannot be read: {error}. Check the path.") from error
    what = " RouterBench is a pickle, which can run any code: open it yourself and pass the frame." * (
        kind in ("pkl", "pickle")
    )
    raise InvalidInputError(f"{name} must be a .csv, .json, .jsonl or .parquet file, or a frame; got {str(path)!r}.{what}")


def _read_parquet(path: Path, columns: Sequence[str]) -> dict[str, Column]:
    try:
        from pyarrow import dataset
    except ImportError as error:
        raise InvalidInputError(f"{path} needs pyarrow: pip install 'duelist[data]'.") from error
    files = sorted(map(str, path.glob("*.parquet"))) if path.is_dir() else [str(path)]
    if not files:
        raise MissingDataError(f"the folder {path} holds no .parquet file. Name the file itself.")
    table = dataset.dataset(files, format="parquet")
    # Of the columns that are needed only: the texts of an arena are a hundred times the rest.
    wanted = [column for column in table.schema.names if not columns or column in columns]
    read = table.to_table(columns=wanted)
    return {column: _as_objects(read[column].to_pylist()) for column in wanted}


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a JSON array or of JSON lines."""
    with _open(path) as file:
        first = file.readline()
        if first.lstrip().startswith("["):
            yield from json.loads(first + file.read())
            return
        for line in (first, *file):
            if line.strip():
                yield json.loads(line)


def read_csv(path: _File) -> dict[str, Column]:
    """The columns of a CSV file with names; those in which every cell is a number become numbers."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        with _open(path) as file:
            reader = csv.reader(file)
            names = [name.strip() for name in next(reader, [])]
            rows = [row for row in reader if row]
    finally:
        csv.field_size_limit(before)
    wrong = next((number for number, row in enumerate(rows) if len(row) != len(names)), None)
    if wrong is not None:
        raise InvalidInputError(f"{path}: row {wrong + 1} has {len(rows[wrong])} cells, and there are {len(names)} names.")
    return {name: _as_objects([row[place] for row in rows]) for place, name in enumerate(names)}


def parse_json(cell: Any) -> Any:
    """What a cell holds that may be JSON as text: files of one data set differ in that."""
    if not isinstance(cell, str):
        return cell
    try:
        return json.loads(cell)
    except ValueError:
        return cell


@contextlib.contextmanager
def _open(path: _File) -> Iterator[IO[str]]:
    opener = gzip.open if path.name.endswith(".gz") else contextlib.nullcontext
    with path.open("rb") as raw, opener(raw) as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        yield text


def _as_objects(cells: list[Any]) -> Column:
    """Numbers as numbers, missing ones NaN; anything else as it is."""
    if all(cell is None or cell in ("", "NA") or isinstance(cell, int | float | str) for cell in cells):
        try:
            return np.array([np.nan if cell is None or cell in ("", "NA") else float(cell) for cell in cells])
        except ValueError:
            pass
    column = np.empty(len(cells), dtype=object)
    column[:] = cells
    return column


def package_file(name: str, package: str, member: str, source: Source) -> _File:
    """A file of an installed Python package, of a wheel, or of a folder that holds one of them.

    Args:
        name: of the data, for messages.
        package: as it is imported, which is not done here.
        member: path of the file inside the package.
        source: None for the installed package; or the path of the file itself, a wheel, or a folder.
    """
    if source is None:
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            raise MissingDataError(
                f"{name} is in the package {package.replace('_', '-')}, which is not installed. `duelist data {name}` says how "
                f"to get it without what it depends on."
            )
        return Path(spec.submodule_search_locations[0], member)
    path = Path(source)
    if path.suffix == ".whl":
        return zipfile.Path(path, f"{package}/{member}")
    tried = [path / member, path / package / member, path / Path(member).name] if path.is_dir() else [path]
    found = next((file for file in tried if file.exists()), None)
    if found is None:
        raise MissingDataError(f"{name} is not at {path}. Name the file {Path(member).name}, a wheel, or a folder with it.")
    return found


def r_object(name: str, package: str, source: Source) -> RObject:
    """A data set of an R package.

    Args:
        name: of the data set in R.
        package: that holds it.
        source: None to look where R installs packages; or the path of an .rda file, of the package, or of a library.
    """
    if source is None:
        libraries = [
            path for variable in ("R_LIBS_USER", "R_LIBS") for path in os.environ.get(variable, "").split(os.pathsep) if path
        ]
        folders = [Path(library, package) for library in (*libraries, *_R_LIBRARIES)]
    else:
        path = Path(source)
        if path.is_file():
            return _named(read_r_file(path), name, path)
        folders = [path, path / package]
    for folder in (each / "data" for each in folders):
        if (folder / "Rdata.rdx").exists():
            return read_lazy_data(folder, name)
        for suffix in (".rda", ".RData"):
            if (folder / f"{name}{suffix}").exists():
                return _named(read_r_file(folder / f"{name}{suffix}"), name, folder)
    raise MissingDataError(
        f"{name} is in the R package {package}, which is not at {' or '.join(map(str, folders[:4]))}. "
        f"`duelist data {name.lower()}` says how to get it."
    )


def _named(objects: Mapping[str, RObject], name: str, place: Path) -> RObject:
    if name not in objects:
        raise InvalidInputError(f"{place} has no object {name}; it has {', '.join(objects)}.")
    return objects[name]
