"""``ServerSource``: a database on a server, read through SQLAlchemy's pooled connections.

What one kind of server needs on its own is its ``ServerEngine``. A statement runs in
a read-only transaction of one snapshot, limited in time by the server itself; rows come
as they are fetched, and a cancel reaches the server.
"""

from __future__ import annotations

import hashlib
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dbrag.errors import DbragError, SourceBusy, SourceError
from dbrag.sources.base import Named
from dbrag.sources.servers.session import ServerSession
from dbrag.sources.servers.url import location_of, secrets_of, with_password, without_secrets
from dbrag.sources.statements import scanned

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from sqlalchemy import URL, Connection, Engine

    from dbrag.sources.base import ColumnStatistics, Session, SkippedSource
    from dbrag.sources.servers.engine import ServerEngine
    from dbrag.types import Table, TableRef

STATEMENT_S = 3600.0
"""Seconds after which the server stops a statement for which no time was given."""
CATALOG_S = 120.0
"""Seconds for each statement that reads the server's catalog."""

ANSWER_S = 10.0
"""Seconds to wait for the server's answer where no statement is run."""

_FUNCTIONS_KEPT_S = 5.0
_POOL_SIZE = 4
_MAX_CONNECTIONS = 16
_POOL_WAIT_S = 30.0
_RECYCLE_S = 1800


class ServerSource(Named):
    """A database on a server under a name; nothing is connected before the first use.

    Args:
        name: unique among the open sources.
        url: as the user gave it; it may hold a password.
        origin: the ``--source`` it came from, without password.
        engine: what this kind of server needs.
        schemas: schemas to read; empty means all.
        password: looks the password up at each new connection, None: the URL's.
    """

    def __init__(
        self,
        name: str,
        url: URL,
        origin: str,
        engine: ServerEngine,
        schemas: Sequence[str] = (),
        password: Callable[[], str | None] | None = None,
    ) -> None:
        self._url = engine.url(url)
        super().__init__(name, location_of(self._url), origin, engine.dialect)
        self._server = engine
        self._schemas = tuple(schemas)
        self._password = password
        self._secrets = secrets_of(self._url)
        self._lock = threading.Lock()
        self._functions: tuple[float, frozenset[str] | None] = (0.0, None)
        self._pool: Engine | None = None
        self._closed = False

    @property
    def schemas(self) -> tuple[str, ...]:
        """The schemas asked for; empty means all."""
        return self._schemas

    def stamp(self) -> str:
        """A hash of the marks of all tables; where there are none, of the schema.

        Raises:
            SourceError: it cannot be read.
        """
        marks: Mapping[TableRef, str] = self.marks()
        parts = [f"{ref}\0{mark}" for ref, mark in sorted(marks.items(), key=lambda m: str(m[0]))]
        if not marks:
            parts = [repr(table) for table in self.reflect()]
        return hashlib.blake2b("\n".join(parts).encode(), digest_size=16).hexdigest()

    def fingerprint(self) -> str:
        """The same as ``stamp``: reading all rows of a server would not be cheap.

        Raises:
            SourceError: it cannot be read.
        """
        return self.stamp()

    def marks(self) -> Mapping[TableRef, str]:
        """For each table a cheap mark of its schema and content.

        Raises:
            SourceError: it cannot be read.
        """
        with self._catalog("the state of the tables") as connection:
            return self._server.marks(connection, self._name, self._schemas)

    def functions(self) -> frozenset[str]:
        """The user's own functions that only compute, folded; looked up now and then.

        Raises:
            SourceError: it cannot be read.
        """
        with self._lock:
            looked, known = self._functions
        if known is not None and time.monotonic() - looked < _FUNCTIONS_KEPT_S:
            return known
        looked = time.monotonic()
        with self._catalog("the functions") as connection:
            known = self._server.functions(connection)
        with self._lock:
            self._functions = looked, known
        return known

    def left_out(self) -> Sequence[SkippedSource]:
        """Nothing: a server has no files."""
        return ()

    def reflect(self) -> list[Table]:
        """Tables and views with columns and keys, by schema and name.

        Raises:
            SourceError: it cannot be read, holds no table, or lacks a schema asked for.
        """
        with self._catalog("the schema") as connection:
            return self._server.reflect(connection, self._name, self._schemas)

    def statistics(self, table: Table) -> Mapping[str, ColumnStatistics]:
        """What the server knows of a table's columns without reading it; may be empty.

        Raises:
            SourceError: the connection is lost.
        """
        with self._catalog("the statistics") as connection:
            return self._server.statistics(connection, table)

    @contextmanager
    def session(self, timeout_s: float | None = None) -> Iterator[Session]:
        """A read-only session; its connection goes back to a small pool at the end.

        Args:
            timeout_s: the server stops a statement after that time; default one hour.

        Raises:
            SourceError: it cannot be opened.
        """
        with self._transaction(STATEMENT_S if timeout_s is None else timeout_s) as (_, session):
            yield session

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
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.dispose()

    @contextmanager
    def _transaction(self, timeout_s: float) -> Iterator[tuple[Connection, ServerSession]]:
        connection = self._connect()
        try:
            raw = connection.connection.driver_connection
            session = ServerSession(raw, self._server, self._explain, timeout_s)
            try:
                with self._watched(raw):
                    session.begin()
                yield connection, session
            finally:
                with self._watched(raw):
                    reusable = session.finish()
                # A pool that was closed meanwhile would keep what comes back to it.
                if not reusable or self._closed:
                    connection.invalidate()
        finally:
            connection.close()

    @contextmanager
    def _watched(self, raw: Any) -> Iterator[None]:
        """Short exchanges with the server: one that stands still ends them as a lost connection."""
        watch = threading.Timer(ANSWER_S, self._server.abandon, [raw])
        watch.daemon = True
        watch.start()
        try:
            yield
        finally:
            watch.cancel()

    @contextmanager
    def _catalog(self, what: str) -> Iterator[Connection]:
        """A connection for reading the server's catalog; errors become ours."""
        with self._transaction(CATALOG_S) as (connection, session):
            try:
                yield connection
            except DbragError:
                raise
            except Exception as error:
                session.spoiled = True
                ours = self._explain(error)
                if isinstance(ours, SourceError):
                    raise ours from error
                message = f"cannot read {what} of {self._location!r}: {ours.message}"
                raise SourceError(message, ours.hint) from error

    def _connect(self) -> Connection:
        from sqlalchemy.exc import TimeoutError as PoolTimeout

        try:
            return self._engine.connect()
        except DbragError:
            raise
        except PoolTimeout as error:
            raise SourceBusy(
                f"all {_MAX_CONNECTIONS} connections to {self._location!r} are in use",
                "ask fewer questions at once",
            ) from error
        except Exception as error:
            ours = self._explain(error)
            if isinstance(ours, SourceError):
                raise ours from error
            message = f"cannot connect to {self._location!r}: {ours.message}"
            raise SourceError(message, ours.hint or "check the URL") from error

    def _explain(self, error: BaseException) -> DbragError:
        """A driver's error as one of ours, without anything secret."""
        if isinstance(error, DbragError):
            return error
        original = getattr(error, "orig", None) or error
        ours = self._server.translate(original, self._location)
        ours.message = without_secrets(ours.message, self._secrets)
        ours.hint = without_secrets(ours.hint, self._secrets)
        ours.args = (ours.message,)
        return ours

    @property
    def _engine(self) -> Engine:
        with self._lock:
            if self._closed:
                raise SourceError(f"source {self._name!r} is closed", "open it again")
            if self._pool is None:
                self._pool = self._make_pool()
            return self._pool

    def _make_pool(self) -> Engine:
        from sqlalchemy import create_engine, event
        from sqlalchemy.exc import InvalidatePoolError
        from sqlalchemy.pool import QueuePool

        shown = with_password(self._url, None)
        engine = create_engine(
            shown,
            poolclass=QueuePool,
            pool_size=_POOL_SIZE,
            max_overflow=_MAX_CONNECTIONS - _POOL_SIZE,
            pool_timeout=_POOL_WAIT_S,
            pool_recycle=_RECYCLE_S,
            hide_parameters=True,
            **self._server.engine_arguments,
        )

        @event.listens_for(engine, "do_connect")
        def connect(dialect: Any, record: Any, args: list[Any], options: dict[str, Any]) -> Any:
            url = self._with_password()
            args, options = dialect.create_connect_args(url)
            return dialect.connect(*args, **{**options, **self._server.connect_arguments(url)})

        # Before SQLAlchemy's own first statements.
        @event.listens_for(engine, "connect", insert=True)
        def prepare(raw: Any, record: Any) -> None:
            record.info["fresh"] = True
            self._server.prepare(raw)

        # As SQLAlchemy's pool_pre_ping, but for no longer than we wait.
        @event.listens_for(engine, "checkout")
        def ping(raw: Any, record: Any, proxy: Any) -> None:
            if record.info.pop("fresh", False):
                return
            try:
                with self._watched(raw):
                    alive = engine.dialect.do_ping(raw)
            except Exception as error:
                raise InvalidatePoolError from error
            if not alive:
                raise InvalidatePoolError

        return engine

    def _with_password(self) -> URL:
        password = None
        if self._password is not None and not self._url.password:
            password = self._password()
        if password is None:
            return self._url
        self._secrets |= {password}
        return self._url.set(password=password)
