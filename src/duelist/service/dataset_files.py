"""Data sets of prompts and answers as files: JSON Lines and CSV become rows, as the API takes them.

JSON Lines has an object per line, {"prompt": ..., "answers": {item: answer, ...}}. CSV has a column "prompt" and a column per
item, where an empty cell is no answer; or the columns "prompt", "model" and "answer", where the rows of one prompt belong
together. The standard library only: the client reads files with it too.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from duelist.service.errors import RefusedError

Row = dict[str, Any]
_LONG = {"prompt", "model", "answer"}


def rows_of_file(text: str, kind: str) -> Iterator[tuple[str, Row]]:
    """Every prompt of a file, each after its place in the file.

    Args:
        text: what the file holds.
        kind: "jsonl" or "csv".

    Example:
        >>> text = chr(10).join(["prompt,small,large", "Why?,So.,Because."])
        >>> [row for _, row in rows_of_file(text, "csv")]
        [{'prompt': 'Why?', 'answers': {'small': 'So.', 'large': 'Because.'}}]
    """
    return _json_lines(text) if kind == "jsonl" else _csv(text)


def _json_lines(text: str) -> Iterator[tuple[str, Row]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise RefusedError(f"line {number} of the file is no JSON: {error}. Nothing was added.") from None
        if not isinstance(row, dict):
            raise RefusedError(f"line {number} of the file must be an object with prompt and answers. Nothing was added.")
        yield f"line {number}", row


def _csv(text: str) -> Iterator[tuple[str, Row]]:
    reader = csv.DictReader(io.StringIO(text.removeprefix("\ufeff")))
    try:
        columns = list(reader.fieldnames or ())
        if "prompt" not in columns or len(set(columns)) < max(len(columns), 3):
            raise RefusedError(
                f'CSV needs a column "prompt" and one for each of at least two items, all named differently; got '
                f"{', '.join(map(repr, columns))[:200] or 'nothing'}. Nothing was added."
            )
        if set(columns) == _LONG:
            yield from _long(reader)
            return
        for row in reader:
            if None in row:
                raise RefusedError(f"line {reader.line_num} of the file has more cells than columns. Nothing was added.")
            answers = {name: said for name, said in row.items() if name != "prompt" and said}
            yield f"line {reader.line_num}", {"prompt": row["prompt"], "answers": answers}
    except csv.Error as error:
        raise RefusedError(f"line {reader.line_num} of the file is no CSV: {error}. Nothing was added.") from None


def _long(reader: csv.DictReader[str]) -> Iterator[tuple[str, Row]]:
    answers: dict[str, dict[str, str]] = {}
    places: dict[str, str] = {}
    for row in reader:
        mine = answers.setdefault(row["prompt"], {})
        if row["model"] in mine:
            raise RefusedError(
                f"line {reader.line_num} of the file is a second answer of {row['model']!r} to one prompt. Nothing was added."
            )
        mine[row["model"]] = row["answer"]
        places.setdefault(row["prompt"], f"line {reader.line_num}")
    for prompt, given in answers.items():
        yield places[prompt], {"prompt": prompt, "answers": given}
