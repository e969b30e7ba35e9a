"""Where a journal is, as people write it: a file's path, or the address of a PostgreSQL database."""

from __future__ import annotations

from pathlib import Path

from duelist.core.errors import InvalidInputError
from duelist.journal.base import Journal
from duelist.journal.postgres import PostgresJournal, PostgresStore
from duelist.journal.sqlite import SQLiteJournal, SQLiteStore
from duelist.journal.writer import Store

_POSTGRES = ("postgresql://", "postgres://")


def is_shared(data: str) -> bool:
    """Whether processes on several machines may be on the same journal."""
    return data.startswith(_POSTGRES)


def open_journal(data: str) -> Journal:
    """The journal at a path, or at the address of a PostgreSQL database; made if it does not exist."""
    return PostgresJournal(data) if is_shared(data) else SQLiteJournal(_checked_path(data))


def open_store(data: str, *, must_exist: bool = False) -> Store:
    """What a journal there would stand on, without a writer.

    Args:
        data: a path or an address.
        must_exist: refuse a file that does not exist.
    """
    if is_shared(data):
        return PostgresStore(data, "main")
    path = _checked_path(data)
    if must_exist and not path.exists():
        raise InvalidInputError(f"there is no file {data}. Name a journal: a file, or postgresql://...")
    return SQLiteStore(path)


def _checked_path(data: str) -> Path:
    path = Path(data)
    if path.is_dir() or not path.parent.is_dir():
        raise InvalidInputError(f"data must be a file in a folder that exists, or postgresql://...; got {data!r}.")
    return path
