"""A journal in one SQLite file: the embedded default.

Write-ahead log with full synchronisation: a commit is on the disk before it is acknowledged, and readers never wait for the
writer. Two processes may share a file on one machine; a network drive cannot be trusted with it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import struct
import threading
import zlib
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from duelist.journal.base import COMPACTED, JournalDamagedError, JournalError, Snapshot
from duelist.journal.chunks import DROPPED_AT_ONCE, PREFIX, first_chunk
from duelist.journal.writer import GroupedJournal, Row, Saved

SCHEMA = 1
_APPLICATION = 0x6475656C  # "duel": tells a journal from any other SQLite file
_KEPT_SNAPSHOTS = 2  # the newest, and one more in case it is damaged
_PATIENCE = 30.0  # seconds to wait for another process
_CHECKPOINT = 128  # pages of the log that one commit moves into the file; 1000, as SQLite would, take 10 ms
_PAGE = 512  # rows read at a time, so that a long log is never in memory as a whole
_TABLES = """
CREATE TABLE events (
    position INTEGER PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL, blob BLOB NOT NULL, checksum INTEGER NOT NULL
);
CREATE TABLE snapshots (position INTEGER PRIMARY KEY, data BLOB NOT NULL, checksum INTEGER NOT NULL);
"""
# Version 0.1.0 had none, and does not miss it.
# Who has the file open: says of a copy whether the original was in use, and its latest commits elsewhere.
_IN_USE = "CREATE TABLE IF NOT EXISTS in_use (process INTEGER NOT NULL)"
_PIECES = "CREATE TABLE IF NOT EXISTS pieces (name TEXT PRIMARY KEY, data BLOB NOT NULL) WITHOUT ROWID"


class SQLiteStore:
    """Two connections: one for the writer, one for readers outside a turn."""

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = Path(path)
        self.notes: tuple[str, ...] = ()
        left_behind = frames_in_log(self._path)
        had_log = _log_of(self._path).exists()
        make_private(self._path)
        try:
            self._writer = self._connect()
            try:
                self._prepare(left_behind)
                self._mark_in_use(had_log=had_log)
                self._reader = self._connect()
            except BaseException:
                self._writer.close()
                raise
        except sqlite3.OperationalError as error:
            raise JournalError(f"{path} cannot be opened: {error}. Is there such a folder, and may you write to it?") from error
        except sqlite3.DatabaseError as error:
            raise JournalDamagedError(f"{path} cannot be opened as a journal: {error}. Is it another kind of file?") from error
        self._reading = threading.Lock()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {_CHECKPOINT}")
        connection.execute("PRAGMA fullfsync = ON")  # where the system has it, an ordinary sync may stop at the drive's cache
        return connection

    def _prepare(self, left_behind: int) -> None:
        mode = self._writer.execute("PRAGMA journal_mode = WAL").fetchone()[0]
        if mode != "wal":
            raise JournalError(f"{self._path} must allow a write-ahead log; SQLite answered {mode!r}. Use a local disk.")
        if left_behind:
            self._tell_of_recovery(left_behind)
        self._writer.execute("BEGIN IMMEDIATE")
        try:
            self._create_or_check()
            self._writer.execute(_PIECES)
        except BaseException:
            self._writer.execute("ROLLBACK")
            raise
        self._writer.execute("COMMIT")

    def _mark_in_use(self, *, had_log: bool) -> None:
        """Say so in the file itself. One that says so already and has no log beside it was copied without."""
        self._writer.execute(_IN_USE)
        marks = self._writer.execute("SELECT rowid, process FROM in_use").fetchall()
        if marks and not had_log:
            self.notes += (
                f"{self._path.name} is a copy of a file that was in use, without the write-ahead log beside it: the latest "
                "votes are not in it. Copy with `duelist backup`.",
            )
        gone = [(mark,) for mark, process in marks if not had_log or not _is_alive(process)]
        self._writer.executemany("DELETE FROM in_use WHERE rowid = ?", gone)
        self._mark = self._writer.execute("INSERT INTO in_use VALUES (?)", (os.getpid(),)).lastrowid
        if not had_log:  # nobody else has it open: into the file itself, from which people copy
            self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def _create_or_check(self) -> None:
        application = self._writer.execute("PRAGMA application_id").fetchone()[0]
        schema = self._writer.execute("PRAGMA user_version").fetchone()[0]
        if application == 0 and schema == 0 and not self._writer.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            for statement in filter(str.strip, _TABLES.split(";")):
                self._writer.execute(statement)
            self._writer.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._writer.execute(f"PRAGMA user_version = {SCHEMA}")
        elif application != _APPLICATION:
            raise JournalDamagedError(f"{self._path} is a SQLite file of another program. Choose another path.")
        elif schema != SCHEMA:
            raise JournalDamagedError(
                f"{self._path} has journal schema {schema}; this duelist reads {SCHEMA}. Use the version that wrote it."
            )

    def _tell_of_recovery(self, left_behind: int) -> None:
        """A log was found. SQLite keeps every commit in it that is whole and drops what follows; say so."""
        whole = self._writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()[1]
        note = f"{self._path.name} was not closed, or is open elsewhere: every commit in its write-ahead log was kept."
        if whole < left_behind:
            note += f" A torn last record of {left_behind - whole} page(s), which was never acknowledged, was dropped."
        self.notes = (note,)

    def begin(self) -> int:
        """Take the write lock, which keeps other processes out too."""
        self._writer.execute("BEGIN IMMEDIATE")
        return int(self._writer.execute("SELECT coalesce(max(position), 0) FROM events").fetchone()[0])

    def commit(self, rows: Sequence[Row], saved: Saved) -> None:
        """Write the rows and wait for the disk."""
        self._writer.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?)", rows)
        if saved.base:
            for table in ("events", "snapshots"):
                self._writer.execute(f"DELETE FROM {table} WHERE position <= ?", (saved.base.position,))
            self._writer.execute("DELETE FROM pieces")
            self._writer.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", saved.base)
        self._writer.executemany("INSERT OR IGNORE INTO pieces VALUES (?, ?)", saved.pieces.items())
        snapshot = saved.snapshot
        if snapshot:
            values = (*snapshot, zlib.crc32(snapshot.data))
            self._writer.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?)", values)
            kept = "SELECT position FROM snapshots ORDER BY position DESC LIMIT ?"
            self._writer.execute(f"DELETE FROM snapshots WHERE position NOT IN ({kept})", (_KEPT_SNAPSHOTS,))
        if saved.pieces:
            self._drop_stale_chunks()
        self._writer.execute("COMMIT")

    def _drop_stale_chunks(self) -> None:
        """Drop some chunks of snapshots older than those that are kept."""
        oldest = self._writer.execute("SELECT min(position) FROM snapshots").fetchone()[0]
        if oldest is not None:
            stale = "SELECT name FROM pieces WHERE name >= ? AND name < ? LIMIT ?"
            limits = (PREFIX, first_chunk(oldest), DROPPED_AT_ONCE)
            self._writer.execute(f"DELETE FROM pieces WHERE name IN ({stale})", limits)

    def piece(self, name: str) -> bytes | None:
        """A piece by its name."""
        found = self._writer.execute("SELECT data FROM pieces WHERE name = ?", (name,)).fetchone()
        return None if found is None else found[0]

    def pieces(self) -> Iterator[tuple[str, bytes]]:
        """All pieces."""
        with self._reading:
            names = [name for (name,) in self._reader.execute("SELECT name FROM pieces").fetchall()]
            for name in names:
                yield from self._reader.execute("SELECT name, data FROM pieces WHERE name = ?", (name,)).fetchall()

    def has_compacted(self, position: int) -> bool:
        """Whether a row from there on stands for all before it."""
        query = "SELECT EXISTS (SELECT 1 FROM events WHERE position >= ? AND kind = ?)"
        return bool(self._writer.execute(query, (position, COMPACTED)).fetchone()[0])

    def erase(self) -> None:
        """Write the file anew without its free pages, and empty the write-ahead log, which has what was there before."""
        self._writer.execute("PRAGMA secure_delete = ON")
        self._writer.execute("VACUUM")
        busy, *_ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise JournalError(f"another process has been reading {self._path.name} for {_PATIENCE:.0f} seconds")

    def room(self) -> int:
        """Free bytes on its disk."""
        return shutil.disk_usage(self._path.parent).free

    def rollback(self) -> None:
        """End the transaction, if there is one."""
        if self._writer.in_transaction:
            self._writer.rollback()

    def rows(self, after: int, *, in_turn: bool) -> Iterator[Row]:
        """Rows behind `after`, a page at a time."""
        while True:
            page = self._fetch(
                "SELECT * FROM events WHERE position > ? ORDER BY position LIMIT ?", (after, _PAGE), in_turn=in_turn
            )
            yield from (Row(*values) for values in page)
            if len(page) < _PAGE:
                return
            after = page[-1][0]

    def snapshot(self, *, in_turn: bool) -> Snapshot | None:
        """The newest snapshot whose checksum is right."""
        for position, data, checksum in self._fetch("SELECT * FROM snapshots ORDER BY position DESC", (), in_turn=in_turn):
            if zlib.crc32(data) == checksum:
                return Snapshot(position, data)
        return None

    def _fetch(self, query: str, values: tuple[int, ...], *, in_turn: bool) -> list[Any]:
        if in_turn:
            return self._writer.execute(query, values).fetchall()
        with self._reading:
            return self._reader.execute(query, values).fetchall()

    def close(self) -> None:
        """Close both connections, which also empties the write-ahead log."""
        with self._reading:
            self._reader.close()
        with contextlib.suppress(sqlite3.Error):  # a full disk, or another process that writes
            self._writer.execute("PRAGMA busy_timeout = 1000")
            self._writer.execute("DELETE FROM in_use WHERE rowid = ?", (self._mark,))
        self._writer.close()


class SQLiteJournal(GroupedJournal):
    """A journal in one SQLite file, made if it does not exist.

    Args:
        path: the file. SQLite keeps two more beside it while it is open.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder, SQLiteJournal(f"{folder}/votes.db") as journal:
        ...     journal.transact(lambda turn: turn.append("told", {"id": 0, "winner": "first"}))
        1
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(SQLiteStore(path))


def make_private(path: Path) -> None:
    """Make the file, for its owner alone, where it does not exist. SQLite gives the files beside it the same mode.

    A file that exists keeps its mode: its owner may have opened it to others.
    """
    with contextlib.suppress(OSError):  # SQLite says it better when it opens the file
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


_HEADER = struct.Struct(">8I")
_FRAME = struct.Struct(">6I")
_MAGIC = (0x377F0682, 0x377F0683)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # another user's
    return True


def _log_of(database: Path) -> Path:
    return database.with_name(database.name + "-wal")


def frames_in_log(database: Path) -> int:
    """Pages that belong to the current generation of the log, a torn last one included; 0 where there is no log."""
    try:
        with _log_of(database).open("rb") as file:
            start = file.read(_HEADER.size)
            if len(start) < _HEADER.size:
                return 0
            magic, _version, page_size, _sequence, *salts, _sum1, _sum2 = _HEADER.unpack(start)
            if magic not in _MAGIC:
                return 0
            frames = 0
            while len(head := file.read(_FRAME.size)) == _FRAME.size and list(_FRAME.unpack(head)[2:4]) == salts:
                frames += 1
                file.seek(page_size, 1)
            return frames
    except FileNotFoundError:
        return 0
