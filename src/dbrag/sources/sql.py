"""``SqlSource``: a database behind SQLAlchemy.

SQLAlchemy gives pooled connections and reflection for every engine; what an engine
needs on its own (SQLite: opening read-only, declared types, error codes) is called
from ``dbrag.sources.sqlite``. This version opens SQLite files.
"""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from dbrag.errors import DbragError, SourceError
from dbrag.sources import sqlite
from dbrag.sources.base import Named
from dbrag.sources.filelocks import session_on
from dbrag.sources.filestate import change_mark
from dbrag.sources.statements import scanned

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import Connection, Engine

    from dbrag.sources.base import ColumnStatistics, Session, SkippedSource
    from dbrag.types import Table, TableRef

_POOL_SIZE = 2
_MAX_CONNECTIONS = 64
_IDLE_SOURCES = 64
"""Sources that keep idle connections; a folder may hold more files than a process may open."""


_idle_lock = threading.Lock()
_idle: OrderedDict[int, weakref.ref[SqlSource]] = OrderedDict()


class SqlSession:
    """One read-only connection to a SQLite file, used by one thread at a time."""

    def __init__(
        self, connection: sqlite3.Connection, path: str, mark: tuple[int, ...] | None
    ) -> None:
        self._connection = connection
        self._path = path
        self._mark = mark
        self._cursor: sqlite3.Cursor | None = None

    def execute(self, sql: str) -> Sequence[str]:
        """Start a statement; the names of its result columns, duplicates kept.

        Raises:
            ExecutionError: the engine rejects it; UnknownName for an unknown name.
            SourceError: the database is locked, malformed or gone.
            LimitReached: a value is too large.
        """
        if self._cursor is not None:
            self._cursor.close()
        try:
            self._cursor = self._connection.cursor()
            self._cursor.execute(sql)
        except Exception as error:
            raise self._translated(error) from error
        return [column[0] for column in self._cursor.description or ()]

    def fetch(self, n: int) -> list[tuple[Any, ...]]:
        """The next at most ``n`` rows of the statement, empty at the end.

        Raises:
            ExecutionError, SourceError, LimitReached: as ``execute``.
        """
        if self._cursor is None:
            return []
        try:
            rows = self._cursor.fetchmany(n)
        except Exception as error:
            raise self._translated(error) from error
        if len(rows) < n:
            self._check_unchanged()
        return rows

    def cancel(self) -> None:
        """Stop the running statement; may be called from another thread."""
        with suppress(Exception):  # closed meanwhile: nothing left to stop
            self._connection.interrupt()

    def finish(self) -> None:
        """End the running statement, so that its lock is released."""
        if self._cursor is not None:
            with suppress(Exception):
                self._cursor.close()
            self._cursor = None

    def _translated(self, error: Exception) -> DbragError:
        if isinstance(error, DbragError):
            return error
        self._check_unchanged()
        return sqlite.translate(error, self._path)

    def _check_unchanged(self) -> None:
        sqlite.check_unchanged(self._path, self._mark)


class SqlSource(Named):
    """A SQLite database under a name, opened read-only.

    Args:
        name: unique among the open sources.
        path: the file; kept as an absolute path.
        origin: the ``--source`` it came from.
    """

    def __init__(self, name: str, path: str, origin: str) -> None:
        super().__init__(name, path, origin, "sqlite")
        self._path = path
        self._lock = threading.Lock()
        self._made: Engine | None = None
        self._closed = False

    def stamp(self) -> str:
        """Size, times, inode and header of the file and of its write-ahead log.

        Raises:
            SourceError: the file is gone or may not be read.
        """
        return sqlite.stamp(self._path)

    def fingerprint(self) -> str:
        """BLAKE2b over the bytes of the file and of its write-ahead log.

        Raises:
            SourceError: the file is gone or may not be read.
        """
        return sqlite.fingerprint(self._path)

    def marks(self) -> Mapping[TableRef, str]:
        """Nothing: SQLite does not tell which table of a file was written."""
        return {}

    def functions(self) -> frozenset[str]:
        """None: a SQLite file holds no functions."""
        return frozenset()

    def left_out(self) -> Sequence[SkippedSource]:
        """Nothing: a file is read whole or not at all."""
        return ()

    def statistics(self, table: Table) -> Mapping[str, ColumnStatistics]:
        """Nothing: SQLite keeps no statistics of values."""
        return {}

    def reflect(self) -> list[Table]:
        """Tables and views with columns and keys, ordered by name.

        Raises:
            SourceError: it cannot be read, or holds no table.
        """
        from sqlalchemy.exc import DBAPIError, SQLAlchemyError

        from dbrag.sources.reflection import reflect

        with self._connection() as connection:
            try:
                tables = reflect(connection, self._name, self._path)
            except DBAPIError as error:
                raise sqlite.translate(error.orig or error, self._path) from error
            except SQLAlchemyError as error:
                raise SourceError(
                    f"cannot read the schema of {self._path!r}: {error}", "dbrag doctor looks at it"
                ) from error
            sqlite.check_unchanged(self._path, _mark_of(connection))
            return tables

    @contextmanager
    def session(self, timeout_s: float | None = None) -> Iterator[Session]:
        """A read-only session; its connection goes back to a small pool at the end.

        Args:
            timeout_s: not used: there is no server that could go on after us.

        Raises:
            SourceError: it cannot be opened.
        """
        with self._connection() as connection:
            raw = connection.connection.dbapi_connection
            session = SqlSession(raw, self._path, _mark_of(connection))  # type: ignore[arg-type]
            try:
                yield session
            finally:
                session.finish()

    def scan(self, table: Table, limit: int) -> AbstractContextManager[Iterator[tuple[Any, ...]]]:
        """At most ``limit`` rows of a table in the engine's order, columns as in ``table``.

        Raises:
            ExecutionError, SourceError: it cannot be read.
        """
        return scanned(self, table, limit)

    def close(self) -> None:
        """Close every connection."""
        with self._lock:
            self._closed = True
            engine, self._made = self._made, None
        with _idle_lock:
            _idle.pop(id(self), None)
        if engine is not None:
            engine.dispose()

    def release(self) -> None:
        """Close idle connections; the next session opens a new one."""
        with self._lock:
            engine = self._made
        if engine is not None:
            engine.dispose()

    @property
    def _engine(self) -> Engine:
        with self._lock:
            if self._closed:
                raise SourceError(f"source {self._name!r} is closed", "open it again")
            if self._made is None:
                self._made = _make_engine(self._path)
            return self._made

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        """A connection of the pool that still sees the file as it is."""
        with session_on(self._path):
            connection = self._checkout()
            try:
                yield connection
            finally:
                if connection.info["mode"] == "wal":
                    # An idle reader would keep the database's owner from folding its log in.
                    connection.invalidate()
                connection.close()
        self._remember_idle()

    def _checkout(self) -> Connection:
        from sqlalchemy.exc import DBAPIError

        while True:
            try:
                connection = self._engine.connect()
            except DBAPIError as error:
                raise sqlite.translate(error.orig or error, self._path) from error
            # Changed means: perhaps another file of the same name, or another journal mode.
            fresh = connection.info.pop("fresh", False)
            if fresh or connection.info["mark"] == change_mark(self._path):
                return connection
            connection.invalidate()
            connection.close()

    def _remember_idle(self) -> None:
        with _idle_lock:
            _idle[id(self)] = weakref.ref(self)
            _idle.move_to_end(id(self))
            over = [_idle.popitem(last=False)[1]() for _ in range(len(_idle) - _IDLE_SOURCES)]
        for source in over:
            if source is not None:  # one that was forgotten without being closed
                source.release()


def _mark_of(connection: Connection) -> tuple[int, ...] | None:
    """What must stay the same while reading; None where SQLite's locks see to it."""
    mark: tuple[int, ...] = connection.info["mark"]
    return mark if connection.info["mode"] == "immutable" else None


def _make_engine(path: str) -> Engine:
    from sqlalchemy import create_engine, event
    from sqlalchemy.pool import QueuePool

    opened: dict[int, tuple[str, tuple[int, ...]]] = {}

    def open_connection() -> sqlite3.Connection:
        before = change_mark(path)
        connection, mode = sqlite.connect(path)
        opened[id(connection)] = (mode, before)
        return connection

    engine = create_engine(
        "sqlite://",
        creator=open_connection,
        poolclass=QueuePool,
        pool_size=_POOL_SIZE,
        max_overflow=_MAX_CONNECTIONS - _POOL_SIZE,
        # "no row" results are not rolled back: there is never a transaction
        pool_reset_on_return=None,
    )

    # After SQLAlchemy's own set-up of a connection, which adds functions.
    @event.listens_for(engine, "connect")
    def seal(connection: sqlite3.Connection, record: Any) -> None:
        record.info["mode"], record.info["mark"] = opened.pop(id(connection))
        record.info["fresh"] = True
        sqlite.seal(connection)

    return engine
