"""Provenance of the numbers: a digest of the code that computes them, and the versions of the libraries below.

The digest of a policy's numbers leaves out policies, samplers and kernels that it cannot reach by an import: an edit of one
policy or sampler leaves the finished blocks of the others valid. Source of the user's own is no part of it: a block holds that.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterable, Sequence, Set
from dataclasses import fields, is_dataclass
from functools import cache
from importlib import metadata
from pathlib import Path

from duelist.core.references import imports_in
from duelist.policies.registry import POLICIES
from duelist.samplers.registry import SAMPLERS
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
    "environments",
)
_FILES = ("experiments/simulation.py", "experiments/sweep/blocks.py", "experiments/sweep/block_store.py")
_PACKAGE = Path(__file__).parents[2]
_LIBRARIES = ("numpy", "scipy", "numba", "llvmlite")


@cache
def code_digest(policy: str = "", sampler: str = "") -> str:
    """16 hexadecimal digits of the code that computes the numbers of a policy, and of the library versions.

    Without a policy, or with one that is not registered, every policy's code counts; without the name of a sampler that of the
    policy's own default, or every sampler's where it has none.
    """
    class_ = POLICIES.get(policy)
    if class_ is None:
        return tree_digest(_PACKAGE)
    return tree_digest(_PACKAGE, class_.__module__, sampler_module(class_, sampler))


def sampler_module(class_: type, sampler: str = "") -> str:
    """The module of the sampler that a policy draws with; empty where it names none."""
    defaults = {each.name: each.default for each in fields(class_)} if is_dataclass(class_) else {}
    named = SAMPLERS.get(sampler or str(defaults.get("sampler")))
    return named.__module__ if named is not None else ""


def tree_digest(package: Path, module: str = "", sampler: str = "") -> str:
    """The digest for a source tree, the module that holds the policy and the module that holds its sampler."""
    files = {path for room in _ROOMS for path in (package / room).rglob("*.py")} | {package / name for name in _FILES}
    files |= {*_reachable(package, ["kernels"], files), *policy_files(package, module, sampler)}
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(files):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    for name in _LIBRARIES:
        digest.update(f"{name} {_version(name)}\0".encode())
    return digest.hexdigest()


def policy_files(package: Path, module: str, sampler: str = "") -> list[Path]:
    """The files of the rooms `policies`, `samplers` and `kernels` that the modules can reach by imports, wherever they stand.

    The registry of samplers imports all of them, and a policy plays one: that one counts, where it is named.
    """
    everything = {_module_name(package, path): path for path in sorted((package / "policies").rglob("*.py"))}
    samplers = {_module_name(package, path): path for path in sorted((package / "samplers").rglob("*.py"))}
    registry = package / "samplers" / "registry.py"
    roots = [everything[module]] if module in everything else list(everything.values())
    reached = _reachable(package, ["policies", "samplers", "kernels"], roots, not_through={registry})
    if registry in reached:
        drawn = [samplers[sampler]] if sampler in samplers else list(samplers.values())
        reached |= _reachable(package, ["samplers", "kernels"], drawn, not_through={registry})
    return sorted(reached)


def _reachable(package: Path, rooms: Sequence[str], roots: Iterable[Path], not_through: Set[Path] = frozenset()) -> set[Path]:
    """The files of these rooms that the roots can reach by imports, roots in the rooms included."""
    known = {_module_name(package, path): path for room in rooms for path in (package / room).rglob("*.py")}
    inside = set(known.values())
    reached: set[Path] = set()
    waiting = list(roots)
    while waiting:
        path = waiting.pop()
        if path not in reached:
            reached.add(path)
            if path not in not_through:
                waiting += [known[name] for _, name in imports_in(path.read_text(encoding="utf-8")) if name in known]
    return reached & inside


def _module_name(package: Path, path: Path) -> str:
    return ".".join(("duelist", *path.relative_to(package).with_suffix("").parts))


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
