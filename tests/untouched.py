"""What no test run may change: servers beside our own databases, and files beside our own."""

from __future__ import annotations

import glob
import os
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.servers import MYSQL, POSTGRES, open_connection

Rows = list[tuple[Any, ...]]


def snapshot() -> dict[str, Any]:
    """Databases, tables, rows, roles and settings of the servers; files tests only read."""
    return {"postgres": _postgres(), "mysql": _mysql(), **_files()}


def changes(before: dict[str, Any], after: dict[str, Any]) -> list[str]:
    """What differs, one line each; a server that was not there before is not compared."""
    found = []
    for name, old in before.items():
        if isinstance(old, dict):
            new = after[name] or {}
            found += [f"{name}: {key}" for key in old if old[key] != new.get(key)]
        elif old is not None and old != after[name]:
            found.append(f"{name}: {old!r} became {after[name]!r}"[:300])
    return found


def _rows(connection: Any, sql: str) -> Rows:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def _postgres() -> dict[str, Rows] | None:
    try:
        connection = open_connection(POSTGRES)
    except Exception:
        return None
    with closing(connection):
        return {
            "databases": _rows(
                connection,
                r"SELECT datname, datacl::text FROM pg_database WHERE datname NOT LIKE 'dbrag\_%' "
                "ORDER BY 1",
            ),
            "roles": _rows(
                connection,
                "SELECT rolname, rolsuper, rolcreaterole, rolconfig::text FROM pg_roles "
                r"WHERE rolname NOT LIKE 'dbrag\_%' ORDER BY 1",
            ),
            "settings": _rows(
                connection,
                "SELECT name, setting FROM pg_settings WHERE context NOT IN ('internal') "
                "ORDER BY 1",
            ),
            "tables": _rows(
                connection,
                "SELECT oid, relname, relfilenode FROM pg_class WHERE relnamespace NOT IN "
                "(SELECT oid FROM pg_namespace WHERE nspname ~ '^pg_') ORDER BY 1",
            ),
        }


def _mysql() -> dict[str, Rows] | None:
    try:
        connection = open_connection(MYSQL)
    except Exception:
        return None
    with closing(connection):
        return {
            "databases": [
                row for row in _rows(connection, "SHOW DATABASES") if not row[0].startswith("dbrag")
            ],
            "users": _rows(
                connection,
                r"SELECT User, Host FROM mysql.user WHERE User NOT LIKE 'dbrag\_%' ORDER BY 1, 2",
            ),
            "settings": [
                row
                for row in _rows(connection, "SHOW GLOBAL VARIABLES")
                if not row[0].startswith(("gtid", "innodb_buffer_pool", "timestamp"))
            ],
            "tables": _rows(
                connection,
                "SELECT table_schema, table_name, create_time FROM information_schema.tables "
                r"WHERE table_schema NOT LIKE 'dbrag%' AND table_type = 'BASE TABLE' "
                "ORDER BY 1, 2",
            ),
        }


def _files() -> dict[str, Any]:
    bench = Path(os.environ.get("DBRAG_BENCH") or "../shared/benchmarks").resolve()
    return {
        "benchmarks": [
            (path, os.stat(path).st_size, os.stat(path).st_mtime_ns)
            for path in sorted(map(str, bench.rglob("*")))
            if os.path.isfile(path)
        ],
        "/etc/passwd": (os.stat("/etc/passwd").st_size, os.stat("/etc/passwd").st_mtime_ns),
        "escapes": sorted(glob.glob("/tmp/*dbrag_escape*")),
    }
