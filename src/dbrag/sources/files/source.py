"""``DataFiles``: all data files of a file, folder or glob as one source."""

from __future__ import annotations

import hashlib
import os
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbrag.errors import SourceError, SourceUnreadable
from dbrag.sources.base import Named

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dbrag.options import OpenOptions
    from dbrag.sources.base import ColumnStatistics, Session, SkippedSource
    from dbrag.sources.duck.files import FilesSource
    from dbrag.types import Table, TableRef

_LOOK_AGAIN_S = 1.0
"""A folder that was looked at so shortly ago is taken to be the same."""


class DataFiles(Named):
    """Looks for the files whenever it is asked, and hands over to an engine that reads them.

    Args:
        name: unique among the open sources.
        place: file, folder or pattern, absolute.
        origin: the ``--source`` it came from.
        options: how to read them.
    """

    def __init__(self, name: str, place: str, origin: str, options: OpenOptions) -> None:
        super().__init__(name, place, origin, "duckdb")
        self._options = options
        self._lock = threading.Lock()
        self._inner: FilesSource | None = None
        self._mark = ""
        self._left_out: tuple[SkippedSource, ...] = ()
        self._odd: dict[str, tuple[str, ...]] = {}
        self._looked = float("-inf")
        self._closed = False

    def stamp(self) -> str:
        """A hash of the marks of all files: new, changed and removed ones count.

        Raises:
            SourceError: there is no file left, or none can be read.
        """
        with self._lock:
            self._look()
            return self._mark

    def fingerprint(self) -> str:
        """The same as ``stamp``: files are compared by size, time and inode.

        Raises:
            SourceError: as ``stamp``.
        """
        return self.stamp()

    def marks(self) -> Mapping[TableRef, str]:
        """The mark of each table's file.

        Raises:
            SourceError: as ``stamp``.
        """
        return self._engine().marks()

    @property
    def loose(self) -> bool:
        """True for a folder or pattern; the sheets of one workbook belong together."""
        return not os.path.isfile(self._location)

    def functions(self) -> frozenset[str]:
        """None: files hold no functions."""
        return frozenset()

    def left_out(self) -> Sequence[SkippedSource]:
        """Files that cannot be read, and why."""
        return self._left_out

    def reflect(self) -> list[Table]:
        """A table for each file or sheet, ordered by name.

        Raises:
            SourceError: as ``stamp``.
        """
        tables = self._engine().reflect()
        return [replace(table, odd=self._odd.get(table.ref.name, ())) for table in tables]

    def statistics(self, table: Table) -> Mapping[str, ColumnStatistics]:
        """What the files themselves tell of a table's columns."""
        return self._engine().statistics(table)

    @contextmanager
    def session(self, timeout_s: float | None = None) -> Iterator[Session]:
        """A read-only session.

        Raises:
            SourceError: as ``stamp``.
        """
        with self._engine().session(timeout_s) as session:
            yield session

    @contextmanager
    def part_session(self, table: Table, rows: int) -> Iterator[Session | None]:
        """A session that sees at most so many rows of a table, from all over it.

        Raises:
            SourceError: as ``stamp``.
        """
        with self._engine().part_session(table, rows) as session:
            yield session

    @contextmanager
    def scan(self, table: Table, limit: int) -> Iterator[Iterator[tuple[Any, ...]]]:
        """At most ``limit`` rows of a table, columns as in ``table``.

        Raises:
            ExecutionError, SourceError: it cannot be read.
        """
        with self._engine().scan(table, limit) as rows:
            yield rows

    def close(self) -> None:
        """Close the engine; the converted files stay in the cache."""
        with self._lock:
            self._closed = True
            inner, self._inner = self._inner, None
        if inner is not None:
            inner.close()

    def _engine(self) -> FilesSource:
        with self._lock:
            return self._look()

    def _look(self) -> FilesSource:
        """The engine over the files as they are now; called with the lock held."""
        from dbrag.sources.duck.files import FilesSource
        from dbrag.sources.files.find import find_tables
        from dbrag.sources.redact import FileRedaction

        if self._closed:
            raise SourceError(f"source {self._name!r} is closed", "open it again")
        if self._inner is not None and time.monotonic() - self._looked < _LOOK_AGAIN_S:
            return self._inner
        redaction = FileRedaction.of(self._name, self._options.redact)
        tables, left_out = find_tables(self._location, self._options, redaction=redaction)
        self._left_out = tuple(left_out)
        self._odd = {table.name: table.warnings for table in tables}
        if not tables:
            reasons = "; ".join(f"{one.location!r}: {one.reason}" for one in left_out[:3])
            raise SourceUnreadable(
                f"no table in {self._location!r}" + (f": {reasons}" if reasons else ""),
                "name a file with rows; how files are read is set in dbrag.toml",
            )
        mark = _mark(tables)
        if self._inner is None or mark != self._mark:
            # An engine that is in use elsewhere goes on, and ends with its last session.
            self._inner = FilesSource(
                self._name, tables, self._location, self._origin, self._options
            )
            self._mark = mark
        self._looked = time.monotonic()
        return self._inner


def _mark(tables: Sequence[Any]) -> str:
    parts = sorted(f"{table.name}\0{table.mark}" for table in tables)
    return hashlib.blake2b("\1".join(parts).encode(), digest_size=16).hexdigest()
