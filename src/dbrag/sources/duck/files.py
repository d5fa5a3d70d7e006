"""``FilesSource``: tables in Parquet files, computed by a DuckDB that opens no file itself.

Arrow reads the files; DuckDB gets the datasets by name and hands back to Arrow which
columns and which rows it needs, so that only those are read from the disk.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from dbrag.errors import DbragError, SourceError, SourceUnreadable
from dbrag.sources.base import Named
from dbrag.sources.duck.engine import Engine, open_engine
from dbrag.sources.duck.errors import is_fatal, opening_error, statement_error
from dbrag.sources.duck.parquet import ParquetTable, marks_of, translate_reading
from dbrag.sources.duck.session import DuckSession
from dbrag.sources.statements import quoted, scanned
from dbrag.types import Column, Table, TableRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from duckdb import DuckDBPyConnection

    from dbrag.options import OpenOptions
    from dbrag.sources.base import ColumnStatistics, Session, SkippedSource
    from dbrag.sources.duck.parser import ParsedSelect
    from dbrag.sources.files.table import FileTable

log = logging.getLogger(__name__)


class FilesSource(Named):
    """Tables in Parquet files, under one name.

    Args:
        name: unique among the open sources.
        tables: their files; their names are unique, letter case ignored.
        location: the folder, file or pattern they were found by, absolute.
        origin: the ``--source`` it came from.
        options: memory and threads.
    """

    def __init__(
        self,
        name: str,
        tables: Sequence[FileTable],
        location: str,
        origin: str,
        options: OpenOptions,
    ) -> None:
        super().__init__(name, location, origin, "duckdb")
        self._tables = {table.name.casefold(): table for table in tables}
        self._options = options
        self._lock = threading.Lock()
        self._opened: dict[str, ParquetTable] = {}
        self._engine = Engine(name, self._start)

    def stamp(self) -> str:
        """A hash of the marks of all tables and of their Parquet files as they are now."""
        digest = hashlib.blake2b(digest_size=16)
        for ref, mark in sorted(self.marks().items()):
            digest.update(f"{ref.name}\0{mark}\1".encode(errors="surrogateescape"))
        return digest.hexdigest()

    def fingerprint(self) -> str:
        """The same as ``stamp``: files are compared by size, times and inode."""
        return self.stamp()

    def marks(self) -> Mapping[TableRef, str]:
        """The mark of each table's file, and of its Parquet files as they are now."""
        found = {}
        for table in self._tables.values():
            now = repr((table.mark, marks_of(table.parquet)))
            mark = hashlib.blake2b(now.encode(errors="surrogateescape"), digest_size=16)
            found[self._ref(table)] = mark.hexdigest()
        return found

    def functions(self) -> frozenset[str]:
        """None: files hold no functions."""
        return frozenset()

    def reflect(self) -> list[Table]:
        """Each table with its columns and its exact number of rows, by name.

        A table whose files cannot be read comes without columns, its comment saying why.

        Raises:
            SourceError: none can be read.
        """
        with self._cursor() as cursor:
            tables = [self._reflected(cursor, key) for key in self._tables]
        if not any(table.columns for table in tables):
            reason = tables[0].comment if tables else "there is no table"
            raise SourceUnreadable(
                f"no table of {self._location!r} can be read: {reason}",
                'mend the files, or tell how to read them: [files."PATTERN"] in dbrag.toml',
            )
        return sorted(tables, key=lambda table: table.ref.name)

    def left_out(self) -> Sequence[SkippedSource]:
        """Nothing: what cannot be read is an error."""
        return ()

    def statistics(self, table: Table) -> Mapping[str, ColumnStatistics]:
        """Extremes and shares of NULL of the whole table, from the footers of its files.

        Raises:
            SourceError: a file cannot be read.
        """
        return self._parquet(table.ref.name.casefold()).statistics()

    @contextmanager
    def session(self, timeout_s: float | None = None) -> Iterator[Session]:
        """A read-only session.

        Args:
            timeout_s: not used: there is no server that could go on after us.

        Raises:
            SourceError: the source is closed.
        """
        with self._session({}) as session:
            yield session

    @contextmanager
    def part_session(self, table: Table, rows: int) -> Iterator[Session | None]:
        """A session that sees at most so many rows of a table, from all over its files.

        Raises:
            SourceError: the source is closed, or a file cannot be read.
        """
        with self._session({table.ref.name.casefold(): rows}) as session:
            yield session

    @contextmanager
    def _session(self, parts: Mapping[str, int]) -> Iterator[Session]:
        """A session; of the tables in ``parts`` it sees only so many rows."""
        registered: dict[str, ParquetTable] = {}

        def prepare(parsed: ParsedSelect) -> None:
            for path in parsed.tables:
                key = path[-1].casefold()
                if key not in self._tables:
                    continue
                parquet = self._parquet(key)
                if registered.get(key) is not parquet:
                    try:
                        parquet.register(cursor, parts.get(key))
                    except (OSError, ValueError) as error:
                        place, reason = parquet.table.path, " ".join(str(error).split())[:200]
                        raise SourceUnreadable(
                            f"cannot read {place!r}: {reason}", "check the file"
                        ) from error
                    registered[key] = parquet

        def check() -> None:
            for parquet in registered.values():
                parquet.check_unchanged()

        def translate(error: Exception) -> DbragError:
            reading = translate_reading(error, registered.values())
            return reading or self._translate(error)

        with self._cursor() as cursor:
            session = DuckSession(cursor, translate, prepare, check)
            try:
                yield session
            finally:
                session.finish()

    def scan(self, table: Table, limit: int) -> AbstractContextManager[Iterator[tuple[Any, ...]]]:
        """At most ``limit`` rows of a table in the order of its files, columns as in ``table``.

        Raises:
            ExecutionError, SourceError: it cannot be read.
        """
        return scanned(self, table, limit)

    def close(self) -> None:
        """Close the engine; a session in use keeps it until it ends."""
        self._engine.close()

    @contextmanager
    def _cursor(self) -> Iterator[DuckDBPyConnection]:
        import duckdb

        try:
            lease = self._engine.lease()
            connection = lease.__enter__()
        except duckdb.Error as error:
            raise opening_error(error, self._location, self._options.memory_mb) from error
        try:
            with connection.cursor() as cursor:
                yield cursor
        finally:
            lease.__exit__(None, None, None)

    def _start(self, spill: str) -> DuckDBPyConnection:
        return open_engine(
            memory_mb=self._options.memory_mb, threads=self._options.threads, spill=spill
        )

    def _ref(self, table: FileTable) -> TableRef:
        return TableRef(self._name, None, table.name)

    def _parquet(self, key: str) -> ParquetTable:
        """The files of a table as they are now; their footers are read once."""
        with self._lock:
            known = self._opened.get(key)
            if known is None or not known.is_current():
                known = self._opened[key] = ParquetTable(self._tables[key])
            return known

    def _reflected(self, cursor: DuckDBPyConnection, key: str) -> Table:
        import duckdb

        file = self._tables[key]
        try:
            parquet = self._parquet(key)
            parquet.register(cursor)
            described = cursor.execute(f"DESCRIBE SELECT * FROM {quoted(file.name)}").fetchall()
        except SourceError as error:
            return self._unreadable(file, error.message)
        except duckdb.Error as error:
            return self._unreadable(file, self._translate(error).message)
        with suppress(duckdb.Error):
            cursor.unregister(file.name)
        kept = [(n, r) for n, r in parquet.readings.items() if r.type is not None]
        # In the order of the readings; behind them the columns made of folder names.
        comments = [reading.comment for _, reading in kept]
        comments += ["from the names of the folders"] * (len(described) - len(kept))
        left_out = [f"{n!r} {r.comment}" for n, r in parquet.readings.items() if r.type is None]
        return Table(
            self._ref(file),
            tuple(
                Column(row[0], row[1], comment=comment)
                for row, comment in zip(described, comments, strict=True)
            ),
            comment="; ".join(left_out),
            row_count=parquet.rows,
            estimate=parquet.rows,
            notes=(*file.guessed, *file.warnings),
            redacted=file.redacted,
        )

    def _unreadable(self, file: FileTable, reason: str) -> Table:
        log.warning("%s is left out: %s", self._ref(file), reason)
        return Table(self._ref(file), (), comment=f"cannot be read: {reason}")

    def _translate(self, error: Exception) -> DbragError:
        if is_fatal(error):
            self._engine.spoil()
        return statement_error(error, self._location, self._options.memory_mb)
