"""From an SQLAlchemy URL to an open source: which engine, which driver, which password."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from dbrag.errors import SourceError, UsageError
from dbrag.sources.servers.passwords import Password
from dbrag.sources.servers.source import ServerSource
from dbrag.sources.servers.url import default_name, parse_url, without_password

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy import URL

    from dbrag.options import OpenOptions
    from dbrag.sources.base import Source
    from dbrag.sources.servers.engine import ServerEngine

TESTED = ("postgresql://", "mysql://", "mariadb://")
"""URLs of the servers that dbrag knows by itself."""
ASYNC_DRIVERS = frozenset(
    {"aiomysql", "aioodbc", "aiosqlite", "asyncmy", "asyncpg", "psycopg_async", "oracledb_async"}
)

_DRIVERS = {"postgresql": "psycopg", "mysql": "pymysql", "mariadb": "pymysql"}


def open_server(name: str | None, place: str, origin: str, options: OpenOptions) -> Source:
    """The database that a URL names; nothing is connected before the first use.

    Args:
        name: the source's name; None takes the database's.
        place: an SQLAlchemy URL, with or without password.
        origin: the ``--source`` it came from; a password in it is taken out.

    Raises:
        UsageError: no URL of a server, an unknown dialect, an asynchronous driver.
        SourceError: its driver is not installed.
    """
    url = parse_url(place)
    named = name if name is not None else default_name(place)
    own = options.sources.get(named)
    schemas = options.schemas_of(named)
    engine = _engine_for(url, schemas)
    # A password in the origin would be stored with the index.
    shown = without_password(origin) if "://" in origin else origin
    return ServerSource(named, url, shown, engine, schemas, Password(named, own).get)


def _engine_for(url: URL, schemas: Sequence[str]) -> ServerEngine:
    backend, _, driver = url.drivername.partition("+")
    if driver in ASYNC_DRIVERS or driver.endswith("_async"):
        raise UsageError(
            f"{url.drivername!r} names an asynchronous driver, which cannot be used",
            f"write {backend}://…",
        )
    if backend in ("sqlite", "duckdb"):
        raise UsageError(f"{backend!r} is not a server", "name its file: --source PATH")
    needed = _DRIVERS.get(backend)
    if needed is not None and importlib.util.find_spec(needed) is None:
        raise SourceError(
            f"the driver {needed!r} for {backend + '://…'!r} is not installed",
            "pip install 'dbrag[servers]'",
        )
    if backend == "postgresql":
        from dbrag.sources.servers.postgresql import PostgresEngine

        return PostgresEngine(schemas)
    if backend in ("mysql", "mariadb"):
        from dbrag.sources.servers.mysql import MySqlEngine

        return MySqlEngine()
    _check_dialect(url)
    from dbrag.sources.servers.other import OtherEngine

    return OtherEngine(url)


def _check_dialect(url: URL) -> None:
    """Raises where SQLAlchemy knows no such dialect, or its driver is missing."""
    from sqlalchemy.exc import NoSuchModuleError

    try:
        dialect = url.get_dialect()
    except NoSuchModuleError as error:
        raise UsageError(
            f"no dialect for {url.drivername + '://…'!r} is installed",
            f"known: {', '.join(TESTED)}; any other SQLAlchemy dialect works once its package "
            "is installed, as: pip install snowflake-sqlalchemy",
        ) from error
    except ImportError as error:
        raise _no_driver(url, error) from error
    if getattr(dialect, "is_async", False):
        raise UsageError(
            f"{url.drivername!r} names an asynchronous driver, which cannot be used",
            f"write {url.get_backend_name()}://…",
        )
    try:
        dialect.import_dbapi()
    except ImportError as error:
        raise _no_driver(url, error) from error


def _no_driver(url: URL, error: ImportError) -> SourceError:
    missing = error.name or str(error)
    return SourceError(
        f"the driver {missing!r} for {url.drivername + '://…'!r} is not installed",
        f"pip install {missing}",
    )
