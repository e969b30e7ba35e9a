"""Files that are complete or absent: written under a temporary name, forced to disk, then renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from duelist.core.errors import SavedStateError

UNFINISHED = ".part"  # suffix of a file that is being written; after a crash one may be left behind


def write_whole(path: Path, data: bytes) -> None:
    """Replace `path` by `data`. A crash at any moment leaves the old file or the new one, never a part of it."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    # The rename is durable once the directory is on disk. Not every system can open a directory.
    with contextlib.suppress(OSError):
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def read_whole(path: Path) -> bytes:
    """Read a file that `write_whole` wrote."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise SavedStateError(f"cannot read a saved agent from {path}: {error}. Check the path.") from error
