"""Measure the package itself: number of modules, fragments, folder sizes, long signatures, long functions, import cycles.

    python benchmarks/house.py            # a table; exits with 1 beyond a limit
    python benchmarks/house.py --list     # and what stands behind each number

Imports are read from the syntax tree of `src/duelist`, those inside functions included, so nothing is imported or run. A
room imports what its stub `__init__.pyi` lists, because `duelist.exports` does so at run time; `__init__` itself is no module.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGE = Path(__file__).parents[1] / "src" / "duelist"
MOST_MODULES = 215  # outside the shelves
# Rooms in which a file is one paper's rule, one problem or one source of data: they grow by a file whenever somebody adds one.
SHELVES = ("policies.algorithms", "environments", "datasets")
MOST_SINGLE_IMPORTERS = 0.20  # share of modules that exactly one other imports: a fragment of that one
MOST_FILES_IN_FOLDER = 16
MOST_WIDE_FUNCTIONS = 10  # with more than MOST_PARAMETERS parameters, outside kernels
MOST_PARAMETERS = 8
_LONGEST = 8  # functions to show


class Function(NamedTuple):
    """One function of the package."""

    where: str
    lines: int
    parameters: int
    compiled: bool


class Measure(NamedTuple):
    """One row of the table.

    Attributes:
        name: what is measured.
        value: the result as text.
        limit: the limit as text; empty without one.
        within: whether the limit is kept.
        details: what stands behind the number.
    """

    name: str
    value: str
    limit: str = ""
    within: bool = True
    details: tuple[str, ...] = ()


def measure(package: Path = PACKAGE) -> list[Measure]:
    """All measures of a package's source tree."""
    trees = {_module(package, path): ast.parse(path.read_bytes()) for path in sorted(package.rglob("*.py"))}
    modules = [name for name in trees if not _is_package(package, name)]
    imports = {name: _imports(name, tree, trees) for name, tree in trees.items()}
    stubs = {f"{_module(package, path)} (stub)": ast.parse(path.read_bytes()) for path in sorted(package.rglob("*.pyi"))}
    exports = {name: _imports(name, tree, trees) for name, tree in stubs.items()}
    single = _imported_once(modules, imports | exports)
    internal = _imported_once(modules, imports)
    folders: dict[str, int] = {}
    for name in modules:
        folder = name.rpartition(".")[0]
        folders[folder] = folders.get(folder, 0) + 1
    largest = max(folders, key=lambda folder: folders[folder])
    functions = [function for name, tree in trees.items() for function in _functions(name, tree)]
    wide = [one for one in functions if one.parameters > MOST_PARAMETERS]
    outside, inside = [one for one in wide if not one.compiled], [one for one in wide if one.compiled]
    longest = sorted(functions, key=lambda one: -one.lines)[:_LONGEST]
    cycles = _cycles({name: {other for other in found if other in modules} for name, found in imports.items()})
    share = len(single) / len(modules)
    shelves = tuple(f"{package.name}.{shelf}." for shelf in SHELVES)
    built = [name for name in modules if not name.startswith(shelves)]
    return [
        Measure("modules", f"{len(modules)}"),
        Measure("the same, shelves not counted", f"{len(built)}", f"at most {MOST_MODULES}", len(built) <= MOST_MODULES),
        Measure(
            "imported by exactly one other",
            f"{len(single)} ({share:.1%})",
            f"at most {MOST_SINGLE_IMPORTERS:.0%}",
            share <= MOST_SINGLE_IMPORTERS,
            tuple(f"{name} <- {other}" for name, other in single.items()),
        ),
        Measure(
            "the same, exports by rooms not counted",
            f"{len(internal)} ({len(internal) / len(modules):.1%})",
            details=tuple(f"{name} <- {other}" for name, other in internal.items()),
        ),
        Measure(
            "largest folder",
            f"{folders[largest]} ({largest})",
            f"at most {MOST_FILES_IN_FOLDER}",
            folders[largest] <= MOST_FILES_IN_FOLDER,
        ),
        Measure(
            f"more than {MOST_PARAMETERS} parameters, outside kernels",
            f"{len(outside)}",
            f"at most {MOST_WIDE_FUNCTIONS}",
            len(outside) <= MOST_WIDE_FUNCTIONS,
            tuple(f"{one.where}: {one.parameters}" for one in outside),
        ),
        Measure(
            f"more than {MOST_PARAMETERS} parameters, inside kernels",
            f"{len(inside)}",
            details=tuple(f"{one.where}: {one.parameters}" for one in inside),
        ),
        Measure(
            "longest functions, in lines",
            ", ".join(str(one.lines) for one in longest[:3]),
            details=tuple(f"{one.where}: {one.lines}" for one in longest),
        ),
        Measure("import cycles", f"{len(cycles)}", "none", not cycles, tuple(" -> ".join(cycle) for cycle in cycles)),
    ]


def _module(package: Path, path: Path) -> str:
    parts = (package.name, *path.relative_to(package).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _is_package(package: Path, name: str) -> bool:
    return (package.parent / Path(*name.split(".")) / "__init__.py").exists()


def _imports(name: str, tree: ast.AST, known: dict[str, ast.Module]) -> set[str]:
    """The modules of the package that a module imports, itself left out."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            # `from package import module` names a module, `from module import name` a member of one.
            found |= {full if (full := f"{node.module}.{alias.name}") in known else node.module for alias in node.names}
    return {other for other in found if other in known and other != name}


def _imported_once(modules: list[str], imports: dict[str, set[str]]) -> dict[str, str]:
    """The modules that exactly one other imports, each with that one."""
    importers = {name: [other for other in imports if name in imports[other]] for name in modules}
    return {name: found[0] for name, found in importers.items() if len(found) == 1}


def _functions(module: str, tree: ast.AST, prefix: str = "") -> Iterator[Function]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield from _functions(module, node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = node.args
            every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
            count = sum(argument.arg not in ("self", "cls") for argument in every)
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield Function(f"{module}.{prefix}{node.name}", lines, count, ".kernels." in f"{module}.")
        else:
            yield from _functions(module, node, prefix)


def _cycles(graph: dict[str, set[str]]) -> list[list[str]]:
    """One shortest import cycle through each module that lies on one; cycles of the same modules are given once."""
    cycles: dict[frozenset[str], list[str]] = {}
    for start in graph:
        paths = [[start]]
        seen = {start}
        while paths:
            path = paths.pop(0)
            following = graph.get(path[-1], set())
            if start in following:
                cycles.setdefault(frozenset(path), [*path, start])
                break
            paths += [[*path, other] for other in sorted(following - seen)]
            seen |= following
    return list(cycles.values())


def main() -> None:
    """Print the table and exit with 1 if a limit is broken."""
    parser = argparse.ArgumentParser(description="Measure the package's modules, functions and imports.")
    parser.add_argument("--list", action="store_true", help="also list what stands behind each number")
    wants_details = parser.parse_args().list
    measures = measure()
    print(f"{'measure':<42} {'value':<32} limit")
    for one in measures:
        print(f"{one.name:<42} {one.value:<32} {one.limit}{'' if one.within else '  BROKEN'}")
        if wants_details or not one.within:
            for detail in one.details:
                print(f"    {detail}")
    sys.exit(0 if all(one.within for one in measures) else 1)


if __name__ == "__main__":
    main()
