"""MySQL and MariaDB, through PyMySQL; what they need is in the modules ``mysql_*`` beside."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dbrag.sources.servers import (
    mysql_errors,
    mysql_marks,
    mysql_reflect,
    mysql_routines,
    mysql_session,
    mysql_url,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import URL, Connection

    from dbrag.errors import DbragError
    from dbrag.sources.base import ColumnStatistics
    from dbrag.types import Table, TableRef


class MySqlEngine:
    """MySQL 5.7 or later, MariaDB 10.3 or later. A schema is a database of the server."""

    dialect = "mysql"
    engine_arguments: Mapping[str, Any] = MappingProxyType({})

    def url(self, url: URL) -> URL:
        """The URL with PyMySQL as its driver, completed from ``~/.my.cnf``.

        Raises:
            UsageError: a parameter that is not known.
        """
        return mysql_url.complete(url)

    def connect_arguments(self, url: URL) -> Mapping[str, Any]:
        """UTF-8, no local files, encryption as asked for, a password if there is one."""
        return mysql_url.arguments(url)

    def prepare(self, raw: Any) -> None:
        """Pin every setting that results or safety depend on, and allow reading only."""
        mysql_session.prepare(raw)

    def begin(self, raw: Any, timeout_s: float | None) -> None:
        """Start a read-only transaction of one snapshot (InnoDB; other engines have none)."""
        mysql_session.begin(raw, timeout_s)

    def end(self, raw: Any) -> None:
        """Roll the transaction back."""
        mysql_session.end(raw)

    def cursor(self, raw: Any) -> Any:
        """Rows as they come; closing it stops the statement."""
        return mysql_session.cursor(raw)

    def cancel(self, raw: Any) -> None:
        """Stop the running statement by ``KILL QUERY`` over a second connection."""
        mysql_session.cancel(raw)

    def abandon(self, raw: Any) -> None:
        """End a connection on which another thread waits for an answer."""
        mysql_session.hang_up(raw)

    def translate(self, error: BaseException, location: str) -> DbragError:
        """A driver's error as one of ours; never with a password in it."""
        return mysql_errors.translate(error, location)

    def reflect(self, connection: Connection, source: str, schemas: Sequence[str]) -> list[Table]:
        """Tables and views with columns, keys and comments, by schema and name."""
        return mysql_reflect.reflect(connection, source, schemas)

    def marks(
        self, connection: Connection, source: str, schemas: Sequence[str]
    ) -> Mapping[TableRef, str]:
        """A mark of schema and content of each table."""
        return mysql_marks.marks(connection, source, schemas)

    def functions(self, connection: Connection) -> frozenset[str]:
        """The user's own stored functions that only compute, folded."""
        return mysql_routines.functions(connection)

    def statistics(self, connection: Connection, table: Table) -> Mapping[str, ColumnStatistics]:
        """Distinct values of indexed columns, as the indexes estimate them."""
        return mysql_routines.statistics(connection, table)
