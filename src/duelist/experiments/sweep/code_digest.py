"""Provenance of the numbers: a digest of the code that computes them, and the versions of the libraries below.

The digest of a policy's numbers leaves out policies and kernels that it cannot reach by an import: an edit of one policy
leaves the finished blocks of the others valid.
"""

from __future__ import annotations

import ast
import hashlib
import platform
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from importlib import metadata
from pathlib import Path

from duelist.policies.registry import POLICIES
from duelist.version import __version__

# Rooms and files whose code decides the numbers of a run. A changed plot or command line leaves finished blocks valid.
_ROOMS = (
    "core",
    "actions",
    "history",
    "preferences",
    "rewards",
    "theory",
    "posteriors",
    "samplers",
    "environments",
)
_FILES = ("experiments/simulation.py", "experiments/sweep/blocks.py", "experiments/sweep/block_store.py")
_LIBRARIES = ("numpy", "scipy", "numba", "llvmlite")


@cache
def code_digest(policy: str = "") -> str:
    """16 hexadecimal digits of the code that computes the numbers of a policy, and of the library versions.

    Without a policy, or with one that is not registered, every policy's code counts.
    """
    class_ = POLICIES.get(policy)
    return tree_digest(Path(__file__).parents[2], class_.__module__ if class_ is not None else "")


def tree_digest(package: Path, module: str = "") -> str:
    """The digest for a source tree and the module that holds the policy."""
    files = {path for room in _ROOMS for path in (package / room).rglob("*.py")} | {package / name for name in _FILES}
    files |= {*_reachable(package, ["kernels"], files), *policy_files(package, module)}
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(files):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    for name in _LIBRARIES:
        digest.update(f"{name} {_version(name)}\0".encode())
    return digest.hexdigest()


def policy_files(package: Path, module: str) -> list[Path]:
    """The files of the rooms `policies` and `kernels` that `module` can reach by imports, wherever in a file they stand."""
    everything = sorted((package / "policies").rglob("*.py"))
    home = next((path for path in everything if _module_name(package, path) == module), None)
    return sorted(_reachable(package, ["policies", "kernels"], everything if home is None else [home]))


def _reachable(package: Path, rooms: Sequence[str], roots: Iterable[Path]) -> set[Path]:
    """The files of these rooms that the roots can reach by imports, roots in the rooms included."""
    known = {_module_name(package, path): path for room in rooms for path in (package / room).rglob("*.py")}
    inside = set(known.values())
    reached: set[Path] = set()
    waiting = list(roots)
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            waiting += [known[name] for name in _imported_names(path.read_bytes()) if name in known]
    return reached & inside


def _module_name(package: Path, path: Path) -> str:
    return ".".join(("duelist", *path.relative_to(package).with_suffix("").parts))


@lru_cache(maxsize=1024)
def _imported_names(source: bytes) -> tuple[str, ...]:
    """Full names of everything that a source imports; a name that is no module does no harm."""
    names: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return tuple(names)


def versions() -> dict[str, str]:
    """Versions for a report: duelist, Python, and every library that touches the numbers or the files."""
    libraries = (*_LIBRARIES, "pyarrow", "matplotlib")
    return {
        "duelist": __version__,
        "code": code_digest(),
        "Python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        **{name: _version(name) for name in libraries},
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"
