"""What an admitted statement really does, seen without the guard's own eyes.

A finding is a text: what happened that must not. Reading the redacted ``people.ssn``
shows by its value in the result.
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.execution.corpus import beds

SECRET = "S3CR3T"
LIMIT_S = 0.5
_ROWS = 50

Detector = Callable[[str], str | None]

_SQLITE_FINE = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
# Read-only transaction, insufficient privilege, no such language or file access.
_POSTGRES_ESCAPES = {"25006", "42501", "58P01", "58030", "55P03", "0LP01", "28000"}
_MYSQL_ESCAPES = {1044, 1045, 1142, 1143, 1227, 1290, 1370, 1792, 1836, 29, 13, 1086}


def _shows_secret(rows: list[Any]) -> bool:
    return SECRET in repr(rows)


def sqlite_detector() -> Detector:
    """An unprotected database in memory, and an authorizer that writes everything down."""
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for statement in beds.script("sqlite"):
        connection.execute(statement)
    for table in ("json_each('[]')", "json_tree('[]')"):
        connection.execute(f"SELECT * FROM {table}").fetchall()
    actions: set[tuple[int, str | None, str | None]] = set()

    def note(action: int, first: str | None, second: str | None, *_: object) -> int:
        actions.add((action, first, second))
        return sqlite3.SQLITE_OK

    def detect(sql: str) -> str | None:
        actions.clear()
        changes = connection.total_changes
        connection.set_authorizer(note)
        connection.set_progress_handler(lambda: 1, 200_000)
        rows: list[Any] = []
        with contextlib.suppress(sqlite3.Error):
            rows = connection.execute(sql).fetchmany(_ROWS)
        connection.set_authorizer(None)
        connection.set_progress_handler(None, 0)
        for action, first, second in actions:
            if action not in _SQLITE_FINE:
                return f"action {action} on {first}"
            if action == sqlite3.SQLITE_READ and str(first).startswith(("sqlite_", "pragma_")):
                return f"reads {first}"
            if action == sqlite3.SQLITE_READ and (first, second) == ("people", "ssn"):
                return "reads people.ssn"
        if connection.total_changes != changes or connection.in_transaction:
            return "changes rows"
        return "shows people.ssn" if _shows_secret(rows) else None

    return detect


def duckdb_detector() -> Detector:
    """A sealed database in memory; a touched lock, or another kind of statement, shows."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1, "memory_limit": "400MB"})
    for statement in beds.script("duckdb"):
        connection.execute(statement)
    connection.execute("SET enable_external_access = false")
    connection.execute("SET python_enable_replacements = false")
    connection.execute("SET lock_configuration = true")
    state = "SELECT count(*), sum(estimated_size) FROM duckdb_tables()"
    before = connection.execute(state).fetchall()

    def detect(sql: str) -> str | None:
        kinds = [statement.type.name for statement in connection.extract_statements(sql)]
        if kinds != ["SELECT"]:
            return f"statements {kinds}"
        timer = threading.Timer(LIMIT_S, connection.interrupt)
        timer.start()
        rows: list[Any] = []
        try:
            rows = connection.execute(sql).fetchmany(_ROWS)
        except duckdb.PermissionException as error:
            return f"asks for a file: {error}"
        except (duckdb.Error, RuntimeError, ValueError) as error:
            if "disabled" in str(error) or "Cannot access" in str(error):
                return f"asks for what is closed: {error}"
        finally:
            timer.cancel()
            timer.join()
        if connection.execute(state).fetchall() != before:
            return "changes the catalog"
        return "shows people.ssn" if _shows_secret(rows) else None

    return detect


@contextmanager
def server_detector(url: str, database: Any) -> Iterator[Detector]:
    """A role that may only read the tables, in read-only transactions.

    Args:
        url: the database as its owner; its tables are made here.
        database: the ``TestDatabase``.
    """
    from tests.servers import open_connection

    kind = "postgres" if url.startswith("postgresql") else "mysql"
    database.run(*beds.script(kind))
    role = f"{database.name}_r"[:32]
    if kind == "postgres":
        names = ", ".join(
            f'"{t.ref.schema}"."{t.ref.name}"' for t in beds.tables(kind) if t.ref.schema
        )
        database.run(
            f"CREATE ROLE {role} LOGIN NOINHERIT",
            f"GRANT USAGE ON SCHEMA public, inventory TO {role}",
            f"GRANT SELECT ON {names} TO {role}",
        )
        drop = [f"DROP OWNED BY {role}", f"DROP ROLE {role}"]
    else:
        at = f"'{role}'@'%'"
        grant = f"GRANT SELECT ON `{database.name}`.* TO {at}"
        database.run(f"CREATE USER {at} IDENTIFIED BY 'x'", grant)
        drop = [f"DROP USER {at}"]
    try:
        raw = open_connection(database.url_as(role, None if kind == "postgres" else "x"))
        try:
            yield (_postgres if kind == "postgres" else _mysql)(raw)
        finally:
            raw.close()
    finally:
        database.run(*drop)


def _postgres(raw: Any) -> Detector:
    import psycopg

    begin = f"BEGIN READ ONLY; SET LOCAL statement_timeout = '{int(LIMIT_S * 1000)}ms'"

    def detect(sql: str) -> str | None:
        raw.execute(begin)
        rows: list[Any] = []
        try:
            cursor = raw.execute(sql.encode())
            rows = cursor.fetchmany(_ROWS) if cursor.description else []
            if cursor.statusmessage and not cursor.statusmessage.startswith("SELECT"):
                return f"does {cursor.statusmessage}"
        except psycopg.Error as error:
            if error.sqlstate in _POSTGRES_ESCAPES:
                return f"{error.sqlstate}: {error}"
        except (ValueError, OverflowError):
            pass  # a date that Python cannot hold
        finally:
            raw.execute("ROLLBACK")
        return "shows people.ssn" if _shows_secret(rows) else None

    return detect


def _mysql(raw: Any) -> Detector:
    import pymysql

    def detect(sql: str) -> str | None:
        rows: list[Any] = []
        with raw.cursor() as cursor:
            cursor.execute(f"SET SESSION max_statement_time = {LIMIT_S}")
            cursor.execute("START TRANSACTION READ ONLY")
            try:
                cursor.execute(sql)
                if cursor.description is None:
                    return "gives no result"
                rows = list(cursor.fetchmany(_ROWS))
            except pymysql.Error as error:
                if error.args and error.args[0] in _MYSQL_ESCAPES:
                    return str(error)
            except ValueError:
                pass
            finally:
                cursor.execute("ROLLBACK")
        return "shows people.ssn" if _shows_secret(rows) else None

    return detect
