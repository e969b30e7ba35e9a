"""What made a number: a digest of the code that computes, and the versions of what it stands on."""

from __future__ import annotations

import hashlib
import platform
from functools import cache
from importlib import metadata
from pathlib import Path

from duelist.version import __version__

# Rooms and files whose code decides the numbers of a run. A changed plot or command line leaves finished blocks valid.
_ROOMS = ("core", "preferences", "posteriors", "rewards", "theory", "samplers", "policies", "environments")
_FILES = ("experiments/simulate.py", "experiments/blocks.py", "experiments/parts.py")
_BENEATH = ("numpy", "scipy", "numba", "llvmlite")


@cache
def code_digest() -> str:
    """16 hexadecimal digits of the computing code and of the versions beneath it."""
    package = Path(__file__).parents[1]
    files = [path for room in _ROOMS for path in sorted((package / room).rglob("*.py"))]
    digest = hashlib.blake2b(digest_size=8)
    for path in [*files, *(package / name for name in _FILES)]:
        digest.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    for name in _BENEATH:
        digest.update(f"{name} {_version(name)}\0".encode())
    return digest.hexdigest()


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
