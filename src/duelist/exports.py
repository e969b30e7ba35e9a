"""Lazy names of a package: what its `__init__.pyi` lists is loaded on first use (PEP 562).

The stub is the one list. Type checkers, documentation and this module read it, so that a room has no second table to keep in
step. Importing a room costs nothing until one of its names is used.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

_LINE = re.compile(r"^from ([\w.]+) import (\*|\w+)(?: as (\w+))?", re.MULTILINE)


def lazy_exports(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` for the package whose `__init__.py` is `file`.

    A stub may hold lines `from module import name as name`, and `from package import *` for a package that has a stub itself.

    Example:
        >>> import duelist.actions
        >>> "FiniteActions" in duelist.actions.__all__
        True
    """
    homes = _homes(Path(file).with_suffix(".pyi"))

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}.{_nearest(name, homes)}")
        module, attribute = homes[name]
        # What a room lists as its own is a module, such as `duelist.features`.
        value = (
            importlib.import_module(f"{module}.{attribute}")
            if module == package
            else getattr(importlib.import_module(module), attribute)
        )
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(homes), list(homes)


def _nearest(name: str, known: Collection[str]) -> str:
    import difflib  # here: it takes as long to import as the rest of the package

    by_lower_case = {each.lower(): each for each in known}
    near = difflib.get_close_matches(name.lower(), list(by_lower_case), n=1, cutoff=0.6)
    return f" Did you mean {by_lower_case[near[0]]!r}?" if near else ""


def _homes(stub: Path) -> dict[str, tuple[str, str]]:
    """Every exported name, with the module that defines it and its name there."""
    homes: dict[str, tuple[str, str]] = {}
    # A pattern and not `ast.parse`: a room may first be imported in a thread, and Python 3.11 parses in one thread at a time.
    for module, name, alias in _LINE.findall(stub.read_text(encoding="utf-8")):
        if name == "*":
            homes |= {exported: (module, exported) for exported in importlib.import_module(module).__all__}
        else:
            homes[alias or name] = (module, name)
    return homes
