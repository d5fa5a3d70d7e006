"""``DuckDatabase``: a user's DuckDB file, opened read-only and sealed."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

from dbrag.errors import DbragError, SourceBusy, SourceUnreadable
from dbrag.sources.base import Named
from dbrag.sources.duck import marks
from dbrag.sources.duck.engine import Engine, open_engine
from dbrag.sources.duck.errors import is_fatal, opening_error, statement_error
from dbrag.sources.duck.session import DuckSession
from dbrag.sources.filelocks import session_on
from dbrag.sources.filestate import file_error
from dbrag.sources.statements import quoted, scanned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from duckdb import DuckDBPyConnection

    from dbrag.options import OpenOptions
    from dbrag.sources.base import ColumnStatistics, Session, SkippedSource
    from dbrag.types import Table, TableRef

_LINGER_S = 0.05
"""A writer must not find the file locked when nobody reads it any more."""


class DuckDatabase(Named):
    """A DuckDB file under a name, opened read-only.

    Several processes may read it at once; while dbrag reads, nobody can write, so it is
    closed soon after the last session.

    Args:
        name: unique among the open sources.
        path: the file; kept as an absolute path.
        origin: the ``--source`` it came from.
        options: memory, threads, schemas.
    """

    def __init__(self, name: str, path: str, origin: str, options: OpenOptions) -> None:
        self._path = os.path.abspath(path)
        super().__init__(name, self._path, origin, "duckdb")
        self._options = options
        self._schemas = options.schemas_of(name)
        self._catalog: str | None = None
        self._held = ExitStack()
        self._mark: tuple[int, ...] = ()
        self._macros: tuple[int, frozenset[str], frozenset[str]] | None = None
        self._lock = threading.Lock()
        self._engine = Engine(name, self._start, self._stop, _LINGER_S)

    def stamp(self) -> str:
        """Size, times, inode and headers of the file and of its write-ahead log.

        Raises:
            SourceError: the file is gone or may not be read.
        """
        return marks.stamp(self._path)

    def fingerprint(self) -> str:
        """BLAKE2b over the bytes of the file and of its log; over 1 GiB: the stamp.

        Raises:
            SourceError: the file is gone or may not be read.
        """
        return marks.fingerprint(self._path)

    def marks(self) -> Mapping[TableRef, str]:
        """Nothing: DuckDB does not tell which table of a file was written."""
        return {}

    def functions(self) -> frozenset[str]:
        """The user's macros that only compute, folded.

        Raises:
            SourceError: the file cannot be read.
        """
        with self._cursor() as cursor:
            return self._user_macros(cursor)[0]

    def reflect(self) -> list[Table]:
        """Tables and views with columns, keys and comments, by schema and name.

        Raises:
            SourceError: it cannot be read, or holds no table.
        """
        from dbrag.sources.duck import reflection

        with self._cursor() as cursor:
            tables = reflection.reflect(cursor, self._name, self._schemas)
        if not tables:
            where = f" in the schemas {', '.join(self._schemas)}" if self._schemas else ""
            raise SourceUnreadable(
                f"database {self._path!r} is empty: it has no tables{where}",
                "name a database with tables",
            )
        return tables

    def left_out(self) -> Sequence[SkippedSource]:
        """Nothing: what cannot be read is an error."""
        return ()

    def statistics(self, table: Table) -> Mapping[str, ColumnStatistics]:
        """About how many distinct values, and extremes, as DuckDB keeps them.

        Raises:
            SourceError: the file cannot be read.
        """
        import duckdb

        from dbrag.sources.duck import reflection

        with self._cursor() as cursor, suppress(duckdb.ProgrammingError):
            return reflection.statistics(cursor, table)
        return {}

    @contextmanager
    def session(self, timeout_s: float | None = None) -> Iterator[Session]:
        """A read-only session.

        Args:
            timeout_s: not used: there is no server that could go on after us.

        Raises:
            SourceError: it cannot be opened, or is locked by a writer.
        """
        with self._cursor() as cursor:
            session = DuckSession(
                cursor,
                self._translate,
                check=self._check_unchanged,
                functions=lambda: self._table_macros(cursor),
            )
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
        """Close the engine; a session in use keeps it until it ends."""
        self._engine.close()

    @contextmanager
    def _cursor(self) -> Iterator[DuckDBPyConnection]:
        """A cursor of the engine over the file as it is now."""
        import duckdb

        if self._engine.is_open and marks.change_mark(self._path) != self._mark:
            self._engine.release()  # another file of the same name
        with ExitStack() as stack:
            try:
                connection = stack.enter_context(self._engine.lease())
                self._check_unchanged()
                cursor = connection.cursor()
                if self._catalog is not None:
                    cursor.execute(f"USE {quoted(self._catalog)}")
            except duckdb.Error as error:
                raise opening_error(error, self._path, self._options.memory_mb) from error
            try:
                yield cursor
            except duckdb.Error as error:
                raise self._translate(error) from error
            finally:
                with suppress(duckdb.Error):
                    cursor.close()

    def _start(self, spill: str) -> DuckDBPyConnection:
        try:
            os.stat(self._path)
            if not marks.is_duckdb(self._path):
                raise SourceUnreadable(
                    f"{self._path!r} is not a DuckDB database", "name a DuckDB file"
                )
        except OSError as error:
            raise file_error(self._path, error) from error
        # While DuckDB holds its lock, closing any other descriptor of the file would drop it.
        self._held.enter_context(session_on(self._path))
        try:
            self._mark = marks.change_mark(self._path)
            connection = self._open(spill, None)
            name, hidden = connection.execute(
                "SELECT current_database(), count(*) FROM duckdb_schemas() "
                "WHERE database_name = current_database() "
                "AND lower(schema_name) = lower(current_database())"
            ).fetchall()[0]
            self._catalog = None
            if hidden:
                # In a file sales.duckdb, "sales.orders" would be ambiguous if there is a
                # schema of that name, too.
                connection.close()
                self._catalog = f"{name}_database"
                connection = self._open(spill, self._catalog)
            return connection
        except BaseException:
            self._held.close()
            raise

    def _open(self, spill: str, catalog: str | None) -> DuckDBPyConnection:
        return open_engine(
            memory_mb=self._options.memory_mb,
            threads=self._options.threads,
            path=self._path,
            catalog=catalog,
            spill=spill,
        )

    def _stop(self) -> None:
        self._held.close()

    def _user_macros(self, cursor: DuckDBPyConnection) -> tuple[frozenset[str], frozenset[str]]:
        """(those that only compute, those that give a table), read once per opening."""
        from dbrag.sources.duck import reflection

        with self._lock:
            if self._macros is None or self._macros[0] != self._engine.generation:
                self._macros = (self._engine.generation, *reflection.macros(cursor))
            return self._macros[1:]

    def _table_macros(self, cursor: DuckDBPyConnection) -> frozenset[str]:
        return self._user_macros(cursor)[1]

    def _translate(self, error: Exception) -> DbragError:
        if is_fatal(error):
            self._engine.spoil()
        return statement_error(error, self._path, self._options.memory_mb)

    def _check_unchanged(self) -> None:
        """DuckDB's lock keeps DuckDB out, but not a program that replaces the file."""
        if marks.change_mark(self._path) != self._mark:
            raise SourceBusy(
                f"database {self._path!r} was changed while it was read", "run it again"
            )
