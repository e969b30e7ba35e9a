"""Names of stored classes: every one resolves, old paths stay readable, and nothing without a name is written."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pytest

from duelist.core.errors import InvalidInputError, SavedStateError
from duelist.core.serialize import from_arrays, to_arrays
from duelist.core.stored_names import HOMES, WRITTEN_BY_0_1, class_of, name_of, stored


def _split(version: int, fields: dict[str, Any]) -> dict[str, Any]:
    assert version == 1
    return {"x": fields["both"][0], "y": fields["both"][1]}


@stored("test-point", version=2, upgrade=_split)
class Point(NamedTuple):
    x: float
    y: float


class Unnamed(NamedTuple):
    x: float


def with_class(written: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Arrays that look as if another version had written a class of that name."""
    arrays = to_arrays(Point(1.0, 2.0))
    text = arrays["structure"].tobytes().decode().replace("test-point/2", written)
    plain = ", ".join(f'"{name}": {{"plain": {value}}}' for name, value in fields.items())
    text = re.sub(r'"fields": \{.*?\}\}', f'"fields": {{{plain}}}', text)
    return {"structure": np.frombuffer(text.encode(), dtype=np.uint8)}


@pytest.mark.parametrize("name", HOMES)
def test_every_name_finds_a_class_that_bears_it(name: str) -> None:
    kind, version = class_of(f"{name}/1")
    assert name_of(kind).name == name
    assert version == 1
    assert HOMES[name] == f"{kind.__module__}:{kind.__qualname__}"


@pytest.mark.parametrize("path", WRITTEN_BY_0_1)
def test_every_path_that_0_1_0_wrote_finds_its_class(path: str) -> None:
    kind, version = class_of(path)
    assert version == 1
    assert name_of(kind).version >= 1


def test_a_second_version_needs_a_way_to_read_the_first() -> None:
    with pytest.raises(InvalidInputError, match="needs an upgrade"):
        stored("test-grown", version=2)


def test_names_are_short_words_and_never_module_paths() -> None:
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in HOMES)


def test_what_is_written_names_the_class_and_its_version_and_no_module() -> None:
    text = to_arrays(Point(1.0, 2.0))["structure"].tobytes().decode()
    assert '"class": "test-point/2"' in text
    assert Point.__module__ not in text


def test_an_older_version_is_upgraded() -> None:
    assert from_arrays(with_class("test-point/1", {"both": "[3.0, 4.0]"})) == Point(3.0, 4.0)


def test_a_newer_version_is_refused_by_name() -> None:
    with pytest.raises(SavedStateError, match=r"'test-point/3'.*up to version 2"):
        from_arrays(with_class("test-point/3", {"x": "1.0", "y": "2.0"}))


def test_a_name_that_nobody_registered_is_refused() -> None:
    with pytest.raises(SavedStateError, match=r"'test-nothing'.*does not know"):
        from_arrays(with_class("test-nothing/1", {"x": "1.0", "y": "2.0"}))


def test_a_class_without_a_name_is_refused_before_anything_is_written() -> None:
    with pytest.raises(InvalidInputError, match="Unnamed has no name for files"):
        to_arrays({"state": (Unnamed(1.0),)})


def test_two_classes_cannot_share_a_name() -> None:
    with pytest.raises(InvalidInputError, match="'test-point' belongs to"):
        stored("test-point")(Unnamed)
