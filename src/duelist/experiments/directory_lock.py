"""One run at a time in one results directory. The lock falls with the process, also when it is killed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from duelist.core.errors import InvalidInputError


@contextmanager
def directory_lock(directory: Path) -> Iterator[None]:
    """Hold the directory for this run, or refuse when another run holds it."""
    try:
        import fcntl
    except ImportError:  # no advisory locks on this platform: two runs at once would only compute the same twice
        yield
        return
    directory.mkdir(parents=True, exist_ok=True)
    with (directory / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InvalidInputError(
                f"another run is writing to {directory}. Wait for it to end, or give this one another directory with --out."
            ) from error
        yield
