"""Comparisons from columns: names become rows of items, words become outcomes, vectors become items."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from duelist.core.errors import InvalidInputError
from duelist.datasets.comparisons import NOBODY, Comparisons
from duelist.datasets.sources import Source, read_table
from duelist.environments.tables import Column
from duelist.typing import FloatArray, IntArray

# Places of the winner, by the words of the sources that are read here.
_WORDS = {
    **dict.fromkeys(("first", "left", "a", "model_a", "1", "+1"), 0),
    **dict.fromkeys(("second", "right", "b", "model_b", "-1"), 1),
    **dict.fromkeys(("tie", "both_bad", "tie (bothbad)", "bothbad", "tie (inconsistent)", "0", "", "none", "nan"), NOBODY),
}
_OWN = ("voter", "time", "strength", "weight")


def pairs_of_names(name: str, first: Column, second: Column, chosen: IntArray, **others: Any) -> Comparisons:
    """Comparisons of two named items each; items are sorted.

    Args:
        name: of the data.
        first: (n,) names of the items shown first.
        second: (n,) of those shown second.
        chosen: (n,) 0 where the first won, 1 where the second did, -1 for a tie.
        **others: fields of `Comparisons`.
    """
    sides = [[item_name(cell) for cell in column.tolist()] for column in (first, second)]
    items = sorted({*sides[0], *sides[1]}, key=_natural_order)
    rows = {item: row for row, item in enumerate(items)}
    shown = np.array([[rows[a], rows[b]] for a, b in zip(*sides, strict=True)], dtype=np.int64)
    return Comparisons(name=name, items=tuple(items), shown=shown, chosen=chosen, **others)


def item_name(cell: Any) -> str:
    """An item as text: a number without a fraction is the same item however a file stores it."""
    return str(int(cell) if isinstance(cell, float) and cell.is_integer() else cell)


def _natural_order(item: str) -> tuple[int, str]:
    return (int(item), "") if item.isdigit() else (0, item)


def winners(name: str, words: Column, first: Column, second: Column) -> IntArray:
    """(n,) places of the winners, from words such as "model_a", "left" and "tie", from +1, -1 and 0, or from items' names.

    Args:
        name: of the data, for messages.
        words: (n,) who won. Nothing at all means a tie.
        first: (n,) names of the items shown first.
        second: (n,) of those shown second.
    """
    places = np.empty(len(words), dtype=np.int64)
    for row, (word, a, b) in enumerate(zip(words.tolist(), first.tolist(), second.tolist(), strict=True)):
        text = item_name(word)
        if text in (item_name(a), item_name(b)):
            places[row] = int(text != item_name(a))
        elif text.lower() in _WORDS:
            places[row] = _WORDS[text.lower()]
        else:
            raise InvalidInputError(
                f"the winner of {name} must be an item of the row, or one of {', '.join(filter(None, _WORDS))}; got {text!r} "
                f"in row {row}, where {a!r} met {b!r}."
            )
    return places


def choices_of_vectors(
    name: str,
    feature_names: Sequence[str],
    vectors: FloatArray,
    chosen: IntArray,
    available: Column | None = None,
    **others: Any,
) -> Comparisons:
    """Choices between options that are known by their features: equal vectors are one item.

    Args:
        name: of the data.
        feature_names: (d,) names.
        vectors: (n, q, d) features of the options.
        chosen: (n,) place of the chosen one.
        available: (n, q) which options there were; None for all.
        **others: fields of `Comparisons`.
    """
    there = np.ones(vectors.shape[:2], dtype=bool) if available is None else available.astype(bool)
    distinct, rows = np.unique(vectors[there], axis=0, return_inverse=True)
    shown = np.full(there.shape, NOBODY)
    shown[there] = rows.ravel()
    order = np.argsort(~there, axis=1, kind="stable")  # options that are there in front
    return Comparisons(
        name=name,
        items=tuple(_describe(feature_names, vector) for vector in distinct),
        shown=np.take_along_axis(shown, order, axis=1),
        chosen=(order == chosen[:, None]).argmax(axis=1),
        features=distinct,
        feature_names=tuple(feature_names),
        **others,
    )


def _describe(names: Sequence[str], vector: FloatArray) -> str:
    return ", ".join(f"{name}={value:g}" for name, value in zip(names, vector, strict=True) if value) or "all zero"


def read_comparisons(
    source: Source,
    *,
    columns: Mapping[str, str] | None = None,
    features: Source = None,
    name: str = "votes",
    order_known: bool = False,
) -> Comparisons:
    """Comparisons of two from a table of your own.

    Args:
        source: a frame of pandas or polars, a mapping of columns, or the path of a .csv, .json, .jsonl or .parquet file.
            `first` and `second` name the items; `winner` names the one that won, or says first, left, model_a or a; second,
            right, model_b or b; tie or nothing. Or instead `outcome`, +1, -1 and 0. `voter`, `time`, `strength` and `weight`
            are read where they are there, and every other column is context.
        columns: where yours have other names: {"first": "model_a", "second": "model_b"}.
        features: a table with a column `item` and columns of numbers; None for none.
        name: of the data.
        order_known: whether `first` is what voters saw first, or on the left.

    Example:
        >>> log = read_comparisons({"first": ["a", "a"], "second": ["b", "c"], "winner": ["b", "tie"], "prompt": [1, 2]})
        >>> log.items, log.outcomes.tolist(), list(log.context)
        (('a', 'b', 'c'), [-1, 0], ['prompt'])
    """
    table = read_table(name, source, ())
    for known, yours in (columns or {}).items():
        if yours not in table:
            raise InvalidInputError(f"{name} must have a column {yours} for {known}; got {', '.join(table)}.")
        table[known] = table.pop(yours)
    won = next((key for key in ("outcome", "winner") if key in table), None)
    if won is None or "first" not in table or "second" not in table:
        raise InvalidInputError(
            f"{name} must have columns first, second, and outcome or winner; got {', '.join(table)}. Say which are which with "
            f'columns={{"first": ..., "second": ..., "winner": ...}}.'
        )
    first, second = table.pop("first"), table.pop("second")
    chosen = winners(name, table.pop(won), first, second)
    own = {f"{key}s": table.pop(key) for key in _OWN if key in table}
    log = pairs_of_names(name, first, second, chosen, order_known=order_known, context=table, **own)
    return log if features is None else _with_features(log, features)


def _with_features(log: Comparisons, features: Source) -> Comparisons:
    table = read_table("features", features, ())
    if "item" not in table:
        raise InvalidInputError(f"features must have a column item; got {', '.join(table)}.")
    places = {item_name(item): place for place, item in enumerate(table.pop("item").tolist())}
    missing = [item for item in log.items if item not in places]
    if missing:
        raise InvalidInputError(f"features are missing for {len(missing)} item(s), among them {missing[0]!r}.")
    rows = [places[item] for item in log.items]
    numbers = np.stack([column.astype(np.float64)[rows] for column in table.values()], axis=1)
    return dataclasses.replace(log, features=numbers, feature_names=tuple(table))
