"""Files that are whole or absent: written beside their place, forced to disk, then put there in one step."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from duelist.core.errors import SavedStateError


def write_whole(path: Path, data: bytes) -> None:
    """Replace `path` by `data`. A crash at any moment leaves the old file or the new one, never a part of it."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    beside = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    # The new name lives in the directory, which must reach the disk as well. Not every system can open one.
    with contextlib.suppress(OSError):
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def read_whole(path: Path) -> bytes:
    """The bytes of a file that `write_whole` wrote."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise SavedStateError(f"cannot read a saved agent from {path}: {error}. Check the path.") from error
