"""The folder that a command writes to."""

from __future__ import annotations

from pathlib import Path

from duelist.core.errors import InvalidInputError


def make_folder(folder: Path) -> None:
    """Make the folder of --out, before anything is computed that it could not hold."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(
            f"--out must be a folder that can be written to; got {str(folder)!r} ({error.strerror}). Name another."
        ) from error
