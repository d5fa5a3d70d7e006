"""What one kind of server needs on its own; everything else is ``source.ServerSource``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import URL, Connection

    from dbrag.errors import DbragError
    from dbrag.sources.base import ColumnStatistics
    from dbrag.types import Table, TableRef


class ServerEngine(Protocol):
    """One kind of database server. Objects hold no connection and are shared by threads."""

    dialect: str
    """sqlglot's name of its SQL dialect."""
    engine_arguments: Mapping[str, Any]
    """For SQLAlchemy's ``create_engine``, beside those that all servers get."""

    def url(self, url: URL) -> URL:
        """The URL with the driver that dbrag uses, and defaults filled in."""
        ...

    def connect_arguments(self, url: URL) -> Mapping[str, Any]:
        """Arguments for the driver: time to connect, character set, exact values."""
        ...

    def prepare(self, raw: Any) -> None:
        """Make a new driver connection read-only, before anything else is done with it."""
        ...

    def begin(self, raw: Any, timeout_s: float | None) -> None:
        """Start a read-only transaction of one snapshot, each statement limited to a time."""
        ...

    def end(self, raw: Any) -> None:
        """Roll the transaction back."""
        ...

    def cursor(self, raw: Any) -> Any:
        """A cursor that does not pull the whole result into memory, where there is one."""
        ...

    def cancel(self, raw: Any) -> None:
        """Stop the running statement on the server; called from another thread."""
        ...

    def abandon(self, raw: Any) -> None:
        """End a connection on which another thread waits for an answer."""
        ...

    def translate(self, error: BaseException, location: str) -> DbragError:
        """A driver's error as one of ours; never with a password in it."""
        ...

    def reflect(self, connection: Connection, source: str, schemas: Sequence[str]) -> list[Table]:
        """Tables, views and the like with columns, keys and comments, by schema and name."""
        ...

    def marks(
        self, connection: Connection, source: str, schemas: Sequence[str]
    ) -> Mapping[TableRef, str]:
        """A cheap mark of schema and content of each table; {} if it cannot be told."""
        ...

    def functions(self, connection: Connection) -> frozenset[str]:
        """The user's own functions that only compute, folded."""
        ...

    def statistics(self, connection: Connection, table: Table) -> Mapping[str, ColumnStatistics]:
        """What the server knows of the columns without reading the table."""
        ...
