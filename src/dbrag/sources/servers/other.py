"""Any other database with an SQLAlchemy dialect: Snowflake, BigQuery, SQL Server, Oracle, …

What SQLAlchemy gives for all of them is used: reflection by its inspector, the driver's
own cursors, transactions rolled back. What each offers beyond that (a read-only session,
a time limit, a cancel) is used where it is known. The wall that always stands is a user
with no other right than ``SELECT``.
"""

from __future__ import annotations

import logging
import socket
import threading
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dbrag.errors import UsageError
from dbrag.sources.servers import other_errors, other_reflect
from dbrag.sources.servers.other_kinds import KINDS, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import URL, Connection

    from dbrag.errors import DbragError
    from dbrag.sources.base import ColumnStatistics
    from dbrag.types import Table, TableRef

log = logging.getLogger(__name__)


class OtherEngine:
    """A database of which dbrag knows only the dialect.

    Args:
        url: tells which one it is.

    Raises:
        UsageError: no SQL parser knows its dialect, so statements cannot be checked.
    """

    engine_arguments: Mapping[str, Any] = MappingProxyType({})

    def __init__(self, url: URL) -> None:
        self._kind = kind_of(url)
        self.dialect = self._kind.dialect
        self._lock = threading.Lock()
        self._cursors: dict[int, Any] = {}
        self._no_limit = False

    def url(self, url: URL) -> URL:
        """The URL as it is."""
        return url

    def connect_arguments(self, url: URL) -> Mapping[str, Any]:
        """None: drivers differ too much; the URL holds what they need."""
        return {}

    def prepare(self, raw: Any) -> None:
        """Make the session read-only where the engine can.

        Raises:
            Exception: the driver's; it should be able to, and does not.
        """
        for statement in self._kind.read_only:
            _run(raw, statement)
        if self._kind.read_only:
            _finish(raw, "commit")  # the settings, not data

    def begin(self, raw: Any, timeout_s: float | None) -> None:
        """Start a read-only transaction, and say how long a statement may take, if possible."""
        limited = timeout_s is None or self._no_limit
        if not limited and not self._limit(raw, timeout_s or 0.0):
            self._no_limit = True
            _finish(raw, "rollback")
        for statement in self._kind.begin:
            _run(raw, statement)

    def end(self, raw: Any) -> None:
        """Roll the transaction back, where there are transactions."""
        with self._lock:
            self._cursors.pop(id(raw), None)
        _finish(raw, "rollback")

    def cursor(self, raw: Any) -> Any:
        """The driver's cursor, giving plain tuples; most of them fetch page by page."""
        cursor = PlainCursor(raw.cursor())
        with self._lock:
            self._cursors[id(raw)] = cursor.driver_cursor
        return cursor

    def cancel(self, raw: Any) -> None:
        """Stop the statement by what the driver has; else close the connection under it."""
        with self._lock:
            cursor = self._cursors.get(id(raw))
        for owner, name in (
            (getattr(cursor, "query_job", None), "cancel"),
            (raw, "cancel_safe"),
            (raw, "cancel"),
            (raw, "interrupt"),
            (cursor, "cancel"),
        ):
            stop = getattr(owner, name, None)
            if callable(stop):
                with suppress(Exception):
                    stop()
                    return
        log.info("this driver has no cancel: the connection is closed")
        sock = getattr(raw, "_sock", None)
        if isinstance(sock, socket.socket):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            return
        with suppress(Exception):
            raw.close()

    def abandon(self, raw: Any) -> None:
        """Nothing: behind some of these a cluster has to start first, which takes minutes."""

    def translate(self, error: BaseException, location: str) -> DbragError:
        """A driver's error as one of ours."""
        return other_errors.translate(error, location)

    def reflect(self, connection: Connection, source: str, schemas: Sequence[str]) -> list[Table]:
        """Tables and views with columns, keys and comments, by schema and name."""
        return other_reflect.reflect(
            connection, source, schemas, self._kind.system, own=self._kind.own_schema
        )

    def marks(
        self, connection: Connection, source: str, schemas: Sequence[str]
    ) -> Mapping[TableRef, str]:
        """Nothing: what tells of changed rows differs from engine to engine."""
        return {}

    def functions(self, connection: Connection) -> frozenset[str]:
        """None: which of the user's functions only compute is not known."""
        return frozenset()

    def statistics(self, connection: Connection, table: Table) -> Mapping[str, ColumnStatistics]:
        """Nothing."""
        return {}

    def _limit(self, raw: Any, timeout_s: float) -> bool:
        """True if the server watches the clock; whoever runs the statement does so anyway."""
        attribute = self._kind.timeout_attribute
        try:
            if attribute and hasattr(raw, attribute):
                milliseconds = attribute == "call_timeout"
                setattr(raw, attribute, max(1, round(timeout_s * (1000 if milliseconds else 1))))
            if self._kind.timeout:
                values = {"ms": max(1, round(timeout_s * 1000)), "s": max(1, round(timeout_s))}
                _run(raw, self._kind.timeout.format(**values))
        except Exception as error:
            log.info("no time limit on the server: %s", type(error).__name__)
            return False
        return True


class PlainCursor:
    """A DB-API cursor that gives tuples of plain values."""

    def __init__(self, driver_cursor: Any) -> None:
        self.driver_cursor = driver_cursor

    @property
    def description(self) -> Any:
        """As DB-API has it: a sequence of columns, their names first."""
        return self.driver_cursor.description

    def execute(self, sql: str) -> None:
        """Start a statement."""
        self.driver_cursor.execute(sql)

    def fetchmany(self, n: int) -> list[tuple[Any, ...]]:
        """The next at most ``n`` rows."""
        return [tuple(map(_plain, row)) for row in self.driver_cursor.fetchmany(n)]

    def close(self) -> None:
        """End the statement."""
        self.driver_cursor.close()


def kind_of(url: URL) -> Kind:
    """What is known of the engine that a URL names.

    Raises:
        UsageError: nothing.
    """
    backend = url.get_backend_name().lower()
    kind = KINDS.get(backend)
    if kind is None:
        raise UsageError(
            f"databases behind {backend + '://…'!r} cannot be read: no SQL parser for them",
            f"these can: {', '.join(sorted(KINDS))}",
        )
    return kind


def _run(raw: Any, statement: str) -> None:
    cursor = raw.cursor()
    try:
        cursor.execute(statement)
    finally:
        cursor.close()


def _finish(raw: Any, how: str) -> None:
    """``commit`` or ``rollback``; some engines have no transactions and say so."""
    try:
        getattr(raw, how)()
    except Exception as error:
        if type(error).__name__ != "NotSupportedError":
            raise


def _plain(value: Any) -> Any:
    return bytes(value) if isinstance(value, (memoryview, bytearray)) else value
