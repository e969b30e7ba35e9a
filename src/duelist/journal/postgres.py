"""A journal in PostgreSQL: for several service processes, on one machine or many, that share it.

A turn locks the journal's row in `duelist_journals`, which holds the position of its last event, so turns of different
processes follow one another and positions have no gaps. A process that dies loses its connection, and with it the lock.
"""

from __future__ import annotations

import contextlib
import threading
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from duelist.journal.base import COMPACTED, JournalDamagedError, JournalError, Snapshot
from duelist.journal.chunks import DROPPED_AT_ONCE, PREFIX, first_chunk
from duelist.journal.writer import GroupedJournal, Row, Saved

if TYPE_CHECKING:
    import psycopg


SCHEMA = 1
_KEPT_SNAPSHOTS = 2
_PAGE = 512
_CREATING = 0x6475656C  # advisory lock while tables are made: two processes may start together
_TABLES = (
    "CREATE TABLE IF NOT EXISTS duelist_schema (version INTEGER NOT NULL)",
    "CREATE TABLE IF NOT EXISTS duelist_journals (name TEXT PRIMARY KEY, head BIGINT NOT NULL)",
    """CREATE TABLE IF NOT EXISTS duelist_events (
        journal TEXT NOT NULL, position BIGINT NOT NULL, kind TEXT NOT NULL, body TEXT NOT NULL, blob BYTEA NOT NULL,
        checksum BIGINT NOT NULL, PRIMARY KEY (journal, position))""",
    """CREATE TABLE IF NOT EXISTS duelist_snapshots (
        journal TEXT NOT NULL, position BIGINT NOT NULL, data BYTEA NOT NULL, checksum BIGINT NOT NULL,
        PRIMARY KEY (journal, position))""",
    """CREATE TABLE IF NOT EXISTS duelist_pieces (
        journal TEXT NOT NULL, name TEXT NOT NULL, data BYTEA NOT NULL, PRIMARY KEY (journal, name))""",
)
_STATEMENT_TIMEOUT = "SET statement_timeout = '60s'"
# A server that is gone without a word is noticed within a minute, not by the system's two hours.
_CONNECTION: dict[str, Any] = {
    "connect_timeout": 10,
    "keepalives_idle": 20,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
# A commit waits for the disk; no process waits for ever for a turn, and one that hangs in its turn loses it.
_SESSION = (
    "SET synchronous_commit = on",
    "SET lock_timeout = '30s'",
    _STATEMENT_TIMEOUT,
    "SET idle_in_transaction_session_timeout = '60s'",
    "SET client_min_messages = warning",
)


class PostgresStore:
    """Two connections, made again when they break: one for the writer, one for readers outside a turn."""

    def __init__(self, address: str, name: str) -> None:
        self._address, self._name = address, name
        self._psycopg = _driver()
        self.notes: tuple[str, ...] = ()
        try:
            self._writer = self._connect()
            try:
                self._prepare()
                self._reader = self._connect()
            except BaseException:
                self._writer.close()
                raise
        except self._psycopg.Error as error:
            said = str(error).partition("\n")[0]  # what follows is advice for the administrator of the server
            raise JournalError(f"the journal {name!r} cannot be opened in PostgreSQL: {said}. Check the address.") from error
        self._reading = threading.Lock()

    def _connect(self) -> psycopg.Connection[Any]:
        connection: psycopg.Connection[Any] = self._psycopg.connect(self._address, autocommit=True, **_CONNECTION)
        for statement in _SESSION:
            connection.execute(statement)
        return connection

    def _prepare(self) -> None:
        with self._writer.transaction():
            self._writer.execute("SELECT pg_advisory_xact_lock(%s)", (_CREATING,))
            for statement in _TABLES:
                self._writer.execute(statement)
            found = self._writer.execute("SELECT version FROM duelist_schema").fetchall()
            if not found:
                self._writer.execute("INSERT INTO duelist_schema VALUES (%s)", (SCHEMA,))
            elif found != [(SCHEMA,)]:
                raise JournalDamagedError(
                    f"the database has journal schema {found[0][0]}; this duelist reads {SCHEMA}. Use the version that made it."
                )
            self._writer.execute("INSERT INTO duelist_journals VALUES (%s, 0) ON CONFLICT DO NOTHING", (self._name,))

    def begin(self) -> int:
        """Lock the journal's row, which keeps other processes out; connect again if the server went away meanwhile."""
        try:
            return self._lock()
        except self._psycopg.OperationalError:
            self.rollback()
            if not self._writer.closed:
                raise
            self._writer = self._connect()
            return self._lock()

    def _lock(self) -> int:
        self._writer.execute("BEGIN")
        row = self._writer.execute("SELECT head FROM duelist_journals WHERE name = %s FOR UPDATE", (self._name,)).fetchone()
        if row is None:
            raise JournalDamagedError(f"the journal {self._name!r} is no longer in the database. Restore it from a copy.")
        return int(row[0])

    def commit(self, rows: Sequence[Row], saved: Saved) -> None:
        """Write the rows and wait for the server's disk."""
        snapshot, base = saved.snapshot, saved.base
        with self._writer.cursor() as cursor:
            if rows:
                values = [(self._name, *row) for row in rows]
                cursor.executemany("INSERT INTO duelist_events VALUES (%s, %s, %s, %s, %s, %s)", values)
                cursor.execute("UPDATE duelist_journals SET head = %s WHERE name = %s", (rows[-1].position, self._name))
            if base:
                for table in ("duelist_events", "duelist_snapshots"):
                    cursor.execute(f"DELETE FROM {table} WHERE journal = %s AND position <= %s", (self._name, base.position))
                cursor.execute("DELETE FROM duelist_pieces WHERE journal = %s", (self._name,))
                cursor.execute("INSERT INTO duelist_events VALUES (%s, %s, %s, %s, %s, %s)", (self._name, *base))
            if saved.pieces:
                pieces = [(self._name, *piece) for piece in saved.pieces.items()]
                cursor.executemany("INSERT INTO duelist_pieces VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", pieces)
            if snapshot:
                cursor.execute(
                    "INSERT INTO duelist_snapshots VALUES (%s, %s, %s, %s) ON CONFLICT (journal, position) "
                    "DO UPDATE SET data = EXCLUDED.data, checksum = EXCLUDED.checksum",
                    (self._name, *snapshot, zlib.crc32(snapshot.data)),
                )
                cursor.execute(
                    "DELETE FROM duelist_snapshots WHERE journal = %s AND position NOT IN "
                    "(SELECT position FROM duelist_snapshots WHERE journal = %s ORDER BY position DESC LIMIT %s)",
                    (self._name, self._name, _KEPT_SNAPSHOTS),
                )
            if any(name.startswith(PREFIX) for name in saved.pieces):
                self._drop_stale_chunks(cursor)
            cursor.execute("COMMIT")

    def _drop_stale_chunks(self, cursor: Any) -> None:
        """Drop some chunks of snapshots older than those that are kept."""
        cursor.execute("SELECT min(position) FROM duelist_snapshots WHERE journal = %s", (self._name,))
        oldest = cursor.fetchone()[0]
        if oldest is not None:
            # By the order of bytes, whatever the order of letters in the database.
            cursor.execute(
                "DELETE FROM duelist_pieces WHERE journal = %s AND name IN (SELECT name FROM duelist_pieces WHERE journal = %s "
                'AND name LIKE %s AND name COLLATE "C" < %s LIMIT %s)',
                (self._name, self._name, f"{PREFIX}%", first_chunk(oldest), DROPPED_AT_ONCE),
            )

    def piece(self, name: str) -> bytes | None:
        """A piece by its name."""
        query = "SELECT data FROM duelist_pieces WHERE journal = %s AND name = %s"
        found = self._writer.execute(query, (self._name, name)).fetchone()
        return None if found is None else bytes(found[0])

    def pieces(self) -> Iterator[tuple[str, bytes]]:
        """All pieces."""
        names = self._fetch("SELECT name FROM duelist_pieces WHERE journal = %s", (self._name,), in_turn=False)
        query = "SELECT name, data FROM duelist_pieces WHERE journal = %s AND name = %s"
        for (name,) in names:
            yield from ((found, bytes(data)) for found, data in self._fetch(query, (self._name, name), in_turn=False))

    def has_compacted(self, position: int) -> bool:
        """Whether a row from there on stands for all before it."""
        query = "SELECT EXISTS (SELECT 1 FROM duelist_events WHERE journal = %s AND position >= %s AND kind = %s)"
        found = self._writer.execute(query, (self._name, position, COMPACTED)).fetchone()
        return found is not None and bool(found[0])

    def room(self) -> None:
        """Not known: the disk is the server's."""

    def erase(self) -> None:
        """Free the rows that were dropped. The server's own log and its backups keep them as long as they are set up to."""
        self._writer.execute("SET statement_timeout = 0")  # it takes as long as it takes
        self._writer.execute("VACUUM duelist_events, duelist_snapshots, duelist_pieces")
        self._writer.execute(_STATEMENT_TIMEOUT)

    def rollback(self) -> None:
        """End the transaction, if there is one and the connection still stands."""
        with contextlib.suppress(self._psycopg.Error):
            self._writer.execute("ROLLBACK")

    def rows(self, after: int, *, in_turn: bool) -> Iterator[Row]:
        """Rows behind `after`, a page at a time."""
        query = (
            "SELECT position, kind, body, blob, checksum FROM duelist_events "
            "WHERE journal = %s AND position > %s ORDER BY position LIMIT %s"
        )
        while True:
            page = self._fetch(query, (self._name, after, _PAGE), in_turn=in_turn)
            yield from (Row(*values) for values in page)
            if len(page) < _PAGE:
                return
            after = page[-1][0]

    def snapshot(self, *, in_turn: bool) -> Snapshot | None:
        """The newest snapshot whose checksum is right."""
        query = "SELECT position, data, checksum FROM duelist_snapshots WHERE journal = %s ORDER BY position DESC"
        for position, data, checksum in self._fetch(query, (self._name,), in_turn=in_turn):
            if zlib.crc32(data) == checksum:
                return Snapshot(position, data)
        return None

    def _fetch(self, query: str, values: tuple[object, ...], *, in_turn: bool) -> list[Any]:
        if in_turn:
            return self._writer.execute(query, values).fetchall()
        with self._reading:
            try:
                return self._reader.execute(query, values).fetchall()
            except self._psycopg.OperationalError:
                if not self._reader.closed:
                    raise
                self._reader = self._connect()
                return self._reader.execute(query, values).fetchall()

    def close(self) -> None:
        """Close both connections."""
        with self._reading:
            self._reader.close()
        self._writer.close()


class PostgresJournal(GroupedJournal):
    """A journal in PostgreSQL, made if it does not exist.

    Args:
        address: where the database is, as libpq understands it: "postgresql://user@host/name" or "host=... dbname=...".
        name: which of the journals in that database.
    """

    def __init__(self, address: str, *, name: str = "main") -> None:
        super().__init__(PostgresStore(address, name))


def _driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise JournalError(
            "a journal in PostgreSQL needs psycopg, which is not installed. Run: pip install 'duelist[postgres]'."
        ) from error
    return psycopg
