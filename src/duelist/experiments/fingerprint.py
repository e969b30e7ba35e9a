"""What made a number: a digest of the code that computes, and the versions of what it stands on.

The digest of a policy's numbers leaves out policies that it cannot reach by an import: an edit of one policy leaves the
finished blocks of the others valid.
"""

from __future__ import annotations

import ast
import hashlib
import platform
from functools import cache
from importlib import metadata
from pathlib import Path

from duelist.policies.registry import POLICIES
from duelist.version import __version__

# Rooms and files whose code decides the numbers of a run. A changed plot or command line leaves finished blocks valid.
_ROOMS = ("core", "preferences", "posteriors", "rewards", "theory", "samplers", "environments")
_FILES = ("experiments/simulate.py", "experiments/blocks.py", "experiments/parts.py")
_BENEATH = ("numpy", "scipy", "numba", "llvmlite")
_POLICIES = "duelist.policies"


@cache
def code_digest(policy: str = "") -> str:
    """16 hexadecimal digits of the code that computes the numbers of a policy, and of the versions beneath it.

    Without a policy, or with one from elsewhere, every policy's code counts.
    """
    class_ = POLICIES.get(policy)
    return tree_digest(Path(__file__).parents[1], class_.__module__ if class_ is not None else "")


def tree_digest(package: Path, module: str = "") -> str:
    """The digest for a source tree and the module that holds the policy."""
    files = [path for room in _ROOMS for path in sorted((package / room).rglob("*.py"))]
    digest = hashlib.blake2b(digest_size=8)
    for path in [*files, *policy_files(package, module), *(package / name for name in _FILES)]:
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    for name in _BENEATH:
        digest.update(f"{name} {_version(name)}\0".encode())
    return digest.hexdigest()


def policy_files(package: Path, module: str) -> list[Path]:
    """The files of the room `policies` that `module` can reach by imports, wherever in a file they stand."""
    folder = package / "policies"
    known = {f"{_POLICIES}.{path.stem}": path for path in sorted(folder.rglob("*.py"))}
    if module not in known:
        return list(known.values())
    reached, waiting = {f"{_POLICIES}.__init__"}, [module]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting += [other for other in _imported(known[name]) if other in known]
    return [known[name] for name in sorted(reached)]


def _imported(path: Path) -> list[str]:
    """Full names of everything that a file imports; a name that is no module harms nobody."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            home = f"{_POLICIES}.{node.module or ''}".rstrip(".") if node.level else node.module or ""
            names += [home, *(f"{home}.{alias.name}" for alias in node.names)]
    return names


def versions() -> dict[str, str]:
    """Versions for a report: duelist, Python, and every library that touches the numbers or the files."""
    libraries = (*_BENEATH, "pyarrow", "matplotlib")
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
