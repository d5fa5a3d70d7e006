"""PostgreSQL: sessions, streaming, cancelling; reading its catalog is in the modules beside."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

from dbrag.sources.servers import (
    postgresql_catalog,
    postgresql_errors,
    postgresql_functions,
    postgresql_marks,
    postgresql_statistics,
)
from dbrag.sources.servers.postgresql_values import register_loaders, text_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from psycopg import Connection as RawConnection
    from sqlalchemy import URL, Connection

    from dbrag.errors import DbragError
    from dbrag.sources.base import ColumnStatistics
    from dbrag.types import Table, TableRef

log = logging.getLogger(__name__)

CONNECT_S = 10
LOCK_S = 10
"""Seconds to wait for a table that somebody is altering."""
IDLE_S = 600
"""Seconds after which the server ends a transaction that does nothing."""
CANCEL_S = 3.0
"""Seconds to wait for the server to take a cancel."""
STATISTICS_KEPT_S = 60.0

_PATH_SCHEMAS = 200
_MAX_INT_MS = 2**31 - 1

# A later -c wins over an earlier one, and both over the role's and the database's own settings.
_STARTUP = "-c default_transaction_read_only=on"

_DEFAULTS: Mapping[str, Any] = {
    "application_name": "dbrag",
    "connect_timeout": CONNECT_S,
    # A server that vanished without a word is noticed after about a minute.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}

_SETTINGS: Mapping[str, str] = {
    "standard_conforming_strings": "on",
    "DateStyle": "ISO, YMD",
    "IntervalStyle": "iso_8601",
    # The server's own zone would make results depend on where it runs.
    "TimeZone": "UTC",
    "extra_float_digits": "1",
    "bytea_output": "hex",
    "lock_timeout": f"{LOCK_S}s",
    "idle_in_transaction_session_timeout": f"{IDLE_S}s",
}

# A client that died is noticed even while its statement computes; not every system can.
_CHECK_CLIENT = (
    "SELECT set_config('client_connection_check_interval', '10s', true) "
    "WHERE version() LIKE '%linux%'"
)

# The schemas that are read, in the user's own order; then the rest of the user's path, where
# the types and operators of extensions lie. Unless named, pg_temp would come first.
_SEARCH_PATH = """
SELECT set_config('search_path', coalesce((
    SELECT string_agg(quote_ident(name) || ', ', '' ORDER BY place, own, name) FROM (
        SELECT n.nspname AS name, p.own,
            CASE WHEN NOT ({chosen}) THEN 3 WHEN p.own IS NULL THEN 2 ELSE 1 END AS place
        FROM pg_catalog.pg_namespace n
        LEFT JOIN unnest(current_schemas(false)) WITH ORDINALITY AS p (name, own)
            ON p.name = n.nspname
        WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
            AND (p.own IS NOT NULL OR ({chosen}))
            AND has_schema_privilege(n.oid, 'USAGE')
        ORDER BY place, own, name LIMIT {limit}
    ) AS path), '') || 'pg_temp', true)
"""


class PostgresEngine:
    """PostgreSQL 12 or later, through psycopg 3.

    Args:
        schemas: schemas that are read; empty means all.
    """

    dialect = "postgres"
    engine_arguments: Mapping[str, Any] = {"use_native_hstore": False}

    def __init__(self, schemas: Sequence[str] = ()) -> None:
        self._schemas = tuple(schemas)
        self._lock = threading.Lock()
        self._statistics: dict[str, tuple[float, postgresql_statistics.OfSchema]] = {}

    def url(self, url: URL) -> URL:
        """The URL with psycopg as its driver."""
        return url.set(drivername="postgresql+psycopg")

    def connect_arguments(self, url: URL) -> Mapping[str, Any]:
        """Time to connect, keep-alive, UTF-8, no prepared statements (poolers lose them)."""
        chosen = {name: value for name, value in _DEFAULTS.items() if name not in url.query}
        if os.environ.get("PGCONNECT_TIMEOUT"):
            chosen.pop("connect_timeout", None)
        own = url.query.get("options", os.environ.get("PGOPTIONS", ""))
        options = own if isinstance(own, str) else " ".join(own)
        return {
            **chosen,
            "options": f"{options} {_STARTUP}".strip(),
            "client_encoding": "UTF8",
            "autocommit": True,
            "prepare_threshold": None,
        }

    def prepare(self, raw: RawConnection[Any]) -> None:
        """Exact values; that it only reads was said when it was opened."""
        register_loaders(raw)

    def begin(self, raw: RawConnection[Any], timeout_s: float | None) -> None:
        """Start a read-only transaction of one snapshot, with settings of its own.

        The first query takes the snapshot; from then on PostgreSQL refuses to make the
        transaction a writing one.
        """
        settings = dict(_SETTINGS)
        milliseconds = 0 if timeout_s is None else max(1, min(_MAX_INT_MS, round(timeout_s * 1000)))
        settings["statement_timeout"] = str(milliseconds)
        sets = "; ".join(f"SET LOCAL {name} = '{value}'" for name, value in settings.items())
        parts = ["BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", sets, self._search_path()]
        if raw.info.server_version >= 140000:
            parts.append(_CHECK_CLIENT)
        raw.execute("; ".join(parts).encode())

    def end(self, raw: RawConnection[Any]) -> None:
        """Roll the transaction back."""
        raw.execute("ROLLBACK")

    def cursor(self, raw: RawConnection[Any]) -> StreamCursor:
        """Rows as they come. (A declared cursor would forbid parallel plans.)"""
        return StreamCursor(raw)

    def cancel(self, raw: RawConnection[Any]) -> None:
        """Stop the running statement on the server; called from another thread."""
        raw.cancel_safe(timeout=CANCEL_S)

    def abandon(self, raw: RawConnection[Any]) -> None:
        """End a connection on which another thread waits for an answer."""
        try:
            with socket.fromfd(raw.fileno(), socket.AF_INET, socket.SOCK_STREAM) as copy:
                copy.shutdown(socket.SHUT_RDWR)
        except Exception as error:  # closed meanwhile
            log.debug("abandon: %s", type(error).__name__)

    def translate(self, error: BaseException, location: str) -> DbragError:
        """A driver's error as one of ours; never with a password in it."""
        return postgresql_errors.translate(error, location)

    def reflect(self, connection: Connection, source: str, schemas: Sequence[str]) -> list[Table]:
        """Tables, views and the like with columns, keys and comments, by schema and name.

        Raises:
            SourceError: a schema asked for is missing, or there is no table to read.
        """
        with self._lock:
            self._statistics.clear()
        return postgresql_catalog.reflect(_raw(connection), source, schemas)

    def marks(
        self, connection: Connection, source: str, schemas: Sequence[str]
    ) -> Mapping[TableRef, str]:
        """A cheap mark of schema and content of each table."""
        return postgresql_marks.marks(_raw(connection), source, schemas)

    def functions(self, connection: Connection) -> frozenset[str]:
        """The user's own functions that only compute, folded."""
        return postgresql_functions.functions(_raw(connection), self._schemas)

    def statistics(self, connection: Connection, table: Table) -> Mapping[str, ColumnStatistics]:
        """What ``pg_stats`` says of the columns; read once for a whole schema."""
        schema = table.ref.schema or "public"
        with self._lock:
            kept = self._statistics.get(schema)
        if kept is None or time.monotonic() - kept[0] > STATISTICS_KEPT_S:
            kept = time.monotonic(), postgresql_statistics.of_schema(_raw(connection), schema)
            with self._lock:
                self._statistics[schema] = kept
        return postgresql_statistics.of_table(kept[1], table)

    def _search_path(self) -> str:
        from psycopg import sql

        chosen = "true"
        if self._schemas:
            names = ", ".join(sql.quote(schema) for schema in self._schemas)
            chosen = f"n.nspname IN ({names})"
        return _SEARCH_PATH.format(chosen=chosen, limit=_PATH_SCHEMAS)


class StreamCursor:
    """A cursor that fetches while the server computes, in pieces of a few rows."""

    def __init__(self, raw: RawConnection[Any]) -> None:
        self._raw = raw
        self._cursor = raw.cursor()
        self._rows: Iterator[tuple[Any, ...]] | None = None
        self._first: list[tuple[Any, ...]] = []
        self.description: list[tuple[str]] = []

    def execute(self, sql: str) -> None:
        """Start a statement; returns when its first rows are there."""
        # Row by row: of larger chunks the driver holds all rows before our limits see one.
        # With 100 MB cells chunks of 16 took 2.4 GB, this 1.0; small rows take a third longer.
        self._rows = iter(self._cursor.stream(sql.encode(), size=1))
        self._first = [row for row in (next(self._rows, None),) if row is not None]
        if self._first:
            self.description = [
                (text_of(self._raw, column.name),) for column in self._cursor.description or ()
            ]
        else:
            self.description = [(name,) for name in self._names(sql)]

    def fetchmany(self, n: int) -> list[tuple[Any, ...]]:
        """The next at most ``n`` rows."""
        from itertools import islice

        if self._rows is None:
            return []
        rows, self._first = self._first[:n], self._first[n:]
        rows += islice(self._rows, n - len(rows))
        return rows

    def close(self) -> None:
        """Stop the statement if it has not ended."""
        rows, self._rows = self._rows, None
        if rows is not None:
            rows.close()  # type: ignore[attr-defined]
        self._cursor.close()

    def _names(self, sql: str) -> list[str]:
        """Columns of a statement that gave no row: a stream only tells them with one."""
        from psycopg.pq import ExecStatus

        connection = self._raw.pgconn
        if connection.prepare(b"", sql.encode()).status != ExecStatus.COMMAND_OK:
            return []
        described = connection.describe_prepared(b"")
        return [(described.fname(i) or b"").decode() for i in range(described.nfields)]


def _raw(connection: Connection) -> RawConnection[Any]:
    raw: Any = connection.connection.driver_connection
    return raw  # type: ignore[no-any-return]
