"""How the site reads the package: what rooms export, and sections of docstrings that are called `Example:`."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^Example:$", re.MULTILINE)
_PACKAGE = Path(__file__).parents[1] / "src" / "duelist"


def exported(stub: Path) -> Iterator[tuple[str, str]]:
    """The names that a stub exports, in its order, each with where it is. A star stands for all names of another stub."""
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name == "*":
                    yield from exported(_PACKAGE.parent.joinpath(*(node.module or "").split("."), "__init__.pyi"))
                else:
                    yield alias.asname or alias.name, f"{node.module}.{alias.name}"


class Rooms(griffe.Extension):
    """Rooms load what they export on first use, so their `__all__` is made at run time: read the stub in its place."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Called when the whole package was read."""
        for stub in _PACKAGE.rglob("__init__.pyi"):
            place = stub.parent.relative_to(_PACKAGE).parts
            room = pkg[place] if place else pkg
            names = dict(exported(stub))
            room.exports = list(names)
            for name, target in names.items():
                if name not in room.members:  # it came by a star
                    room.set_member(name, griffe.Alias(name, target, parent=room))


class ExampleSections(griffe.Extension):
    """A section called `Example:` holds code. The parser of Google docstrings knows the plural only."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called once per object that was read."""
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub("Examples:", obj.docstring.value)
