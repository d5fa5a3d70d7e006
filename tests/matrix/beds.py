"""Five engines behind one small interface, each real: the rows of the matrix tests.

A bed makes tables with the engine's own driver, as another program would, and tells the
``--source`` by which dbrag opens them.
"""

from __future__ import annotations

import sqlite3
import time
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, Protocol

import pytest

from tests.servers import MYSQL, POSTGRES, fresh_database


@dataclass(frozen=True)
class Made:
    """A table to be made: column → kind (a key of ``TYPES``), rows, keys, comments."""

    name: str
    columns: dict[str, str]
    rows: list[tuple[Any, ...]] = field(default_factory=list)
    schema: str | None = None
    key: tuple[str, ...] = ()
    foreign: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...] = ()
    comment: str = ""


TYPES: dict[str, dict[str, str]] = {
    "sqlite": {
        "int": "INTEGER", "bigint": "INTEGER", "text": "TEXT", "double": "REAL",
        "bool": "BOOLEAN", "date": "TEXT", "time": "TEXT", "timestamp": "TEXT",
        "bytes": "BLOB", "json": "TEXT", "uuid": "TEXT", "untyped": "",
    },
    "duckdb": {
        "int": "INTEGER", "bigint": "BIGINT", "text": "VARCHAR", "double": "DOUBLE",
        "bool": "BOOLEAN", "decimal": "DECIMAL(38,20)", "date": "DATE", "time": "TIME",
        "timestamp": "TIMESTAMP",
        "timestamptz": "TIMESTAMPTZ", "interval": "INTERVAL", "bytes": "BLOB", "json": "JSON",
        "uuid": "UUID", "array": "INTEGER[]", "enum": "ENUM('sad', 'ok')", "bit": "BIT",
    },
    "postgres": {
        "int": "integer", "bigint": "bigint", "text": "text", "double": "double precision",
        "bool": "boolean", "decimal": "numeric(38,20)", "date": "date", "time": "time",
        "timestamp": "timestamp",
        "timestamptz": "timestamptz", "interval": "interval", "bytes": "bytea", "json": "jsonb",
        "uuid": "uuid", "array": "integer[]", "enum": "mood", "bit": "bit(8)",
    },
    "mariadb": {
        "int": "int", "bigint": "bigint", "text": "longtext", "double": "double",
        "bool": "boolean", "decimal": "decimal(38,20)", "date": "date",
        "time": "time(6)", "timestamp": "datetime(6)", "bytes": "longblob", "json": "json",
        "uuid": "uuid",
        "enum": "enum('sad', 'ok')", "bit": "bit(8)",
    },
    "files": {
        "int": "", "bigint": "", "text": "", "double": "", "bool": "", "decimal": "",
        "date": "", "time": "", "timestamp": "", "timestamptz": "", "uuid": "",
    },
}  # fmt: skip
"""Kinds of values an engine has a type for; others are "not applicable"."""


class Bed(Protocol):
    """One engine with one database (or folder) of its own."""

    name: str
    spec: str
    mark: str
    """What stands around an identifier."""

    def make(self, *tables: Made) -> None:
        """Make tables and fill them."""
        ...

    def do(self, sql: str) -> None:
        """Run a statement of another program: DDL or a change."""
        ...

    def state(self) -> Any:
        """Everything stored, to see afterwards that nothing changed."""
        ...

    def disconnect(self) -> bool:
        """Let the server close all other connections; False where there are none."""
        ...

    def close(self) -> None:
        """Remove it."""
        ...


def quoted(bed: Bed, name: str) -> str:
    """An identifier in the engine's own quotes."""
    return bed.mark + name.replace(bed.mark, bed.mark * 2) + bed.mark


def has(bed: Bed, *kinds: str) -> None:
    """Skip, with the reason, where the engine has no such type."""
    for kind in kinds:
        if kind not in TYPES[bed.name]:
            pytest.skip(f"{bed.name} has no type for it")


class _SqlBed:
    """What the beds of the four SQL engines share."""

    name = ""
    mark = '"'
    parameter = "?"

    def make(self, *tables: Made) -> None:
        for table in tables:
            if table.schema is not None:
                self.do(f"CREATE SCHEMA IF NOT EXISTS {quoted(self, table.schema)}")
            self.do(f"CREATE TABLE {self._name(table)} ({', '.join(self._parts(table))})")
            marks = ", ".join([self.parameter] * len(table.columns))
            self.fill(f"INSERT INTO {self._name(table)} VALUES ({marks})", table.rows)
            if table.comment:
                text = table.comment.replace("'", "''")
                self.comment(self._name(table), text)

    def _parts(self, table: Made) -> list[str]:
        types = TYPES[self.name]
        parts = [f"{quoted(self, c)} {types[kind]}".strip() for c, kind in table.columns.items()]
        if table.key:
            parts.append(f"PRIMARY KEY ({', '.join(quoted(self, c) for c in table.key)})")
        for ours, target, theirs in table.foreign:
            parts.append(
                f"FOREIGN KEY ({', '.join(quoted(self, c) for c in ours)}) REFERENCES "
                f"{quoted(self, target)} ({', '.join(quoted(self, c) for c in theirs)})"
            )
        return parts

    def _name(self, table: Made) -> str:
        name = quoted(self, table.name)
        return name if table.schema is None else f"{quoted(self, table.schema)}.{name}"

    def disconnect(self) -> bool:
        return False

    def comment(self, name: str, text: str) -> None:
        self.do(f"COMMENT ON TABLE {name} IS '{text}'")

    def do(self, sql: str) -> None:
        raise NotImplementedError

    def fill(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        raise NotImplementedError


class SqliteBed(_SqlBed):
    name = "sqlite"

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "lite"
        self._folder.mkdir()
        self._path = self._folder / "bed.db"
        self.spec = str(self._path)
        self.do("PRAGMA user_version = 1")

    def do(self, sql: str) -> None:
        with closing(sqlite3.connect(self._path)) as connection, connection:
            connection.execute(sql)

    def fill(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        with closing(sqlite3.connect(self._path)) as connection, connection:
            connection.executemany(sql, [tuple(map(_plain, row)) for row in rows])

    def comment(self, name: str, text: str) -> None:
        pytest.skip("sqlite has no comments")

    def state(self) -> Any:
        return self._path.read_bytes(), sorted(p.name for p in self._folder.iterdir())

    def close(self) -> None:
        self._path.unlink(missing_ok=True)


class DuckBed(_SqlBed):
    name = "duckdb"

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "duck"
        self._folder.mkdir()
        self._path = self._folder / "bed.duckdb"
        self.spec = str(self._path)
        self.do("SELECT 1")

    def do(self, sql: str) -> None:
        self._work([(sql, None)])

    def fill(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        self._work([(sql, row) for row in rows])

    def _work(self, work: list[tuple[str, Any]]) -> None:
        import duckdb

        # Within one process a file is open in one way only: dbrag lets go of it soon.
        end = time.monotonic() + 5
        while True:
            try:
                with duckdb.connect(str(self._path)) as connection:
                    for sql, row in work:
                        connection.execute(sql, row)
                return
            except duckdb.ConnectionException:
                if time.monotonic() > end:
                    raise
                time.sleep(0.05)

    def state(self) -> Any:
        return self._path.read_bytes(), sorted(p.name for p in self._folder.iterdir())

    def close(self) -> None:
        self._path.unlink(missing_ok=True)


class PostgresBed(_SqlBed):
    name = "postgres"
    parameter = "%s"

    def __init__(self) -> None:
        self._stack = ExitStack()
        database = self._stack.enter_context(fresh_database(POSTGRES, "bed"))
        self._connection = self._stack.enter_context(database.connect())
        self.spec = f"bed={database.url}"
        self.do("CREATE TYPE mood AS ENUM ('sad', 'ok')")

    def do(self, sql: str) -> None:
        self._connection.execute(sql)
        # A session tells of its changes within ten seconds; here at once.
        self._connection.execute("SELECT pg_stat_force_next_flush()")
        self._connection.execute("SELECT 1")

    def fill(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(sql, rows)

    def disconnect(self) -> bool:
        self.do(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        return True

    def state(self) -> Any:
        names = self._connection.execute(
            "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT IN "
            "('pg_catalog', 'information_schema') ORDER BY 1, 2"
        ).fetchall()
        contents = [
            self._connection.execute(f'SELECT * FROM "{schema}"."{name}"').fetchall()
            for schema, name in names
            if "blind" not in name
        ]
        settings = self._connection.execute(
            "SELECT name, setting FROM pg_settings WHERE source <> 'session' ORDER BY 1"
        ).fetchall()
        return names, repr(contents), settings

    def close(self) -> None:
        self._stack.close()


class MariaBed(_SqlBed):
    name = "mariadb"
    mark = "`"
    parameter = "%s"

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._others: list[str] = []
        database = self._stack.enter_context(fresh_database(MYSQL, "bed"))
        self._connection = self._stack.enter_context(database.connect())
        self.spec = f"bed={database.url}"

    def make(self, *tables: Made) -> None:
        self._others += [t.schema for t in tables if t.schema is not None]
        super().make(*tables)

    def do(self, sql: str) -> None:
        with self._connection.cursor() as cursor:
            cursor.execute(sql)

    def fill(self, sql: str, rows: list[tuple[Any, ...]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(sql, rows)

    def comment(self, name: str, text: str) -> None:
        self.do(f"ALTER TABLE {name} COMMENT = '{text}'")

    def disconnect(self) -> bool:
        with self._connection.cursor() as cursor:
            cursor.execute(
                "SELECT id FROM information_schema.processlist "
                "WHERE db = DATABASE() AND id <> CONNECTION_ID()"
            )
            for (number,) in cursor.fetchall():
                cursor.execute(f"KILL {number}")
        return True

    def state(self) -> Any:
        with self._connection.cursor() as cursor:
            cursor.execute("SHOW TABLES")
            names = [row[0] for row in cursor.fetchall()]
            contents = []
            for name in names:
                cursor.execute(f"SELECT * FROM `{name}`")
                contents.append(cursor.fetchall())
            cursor.execute("SHOW GLOBAL VARIABLES WHERE Variable_name NOT LIKE '%gtid%'")
            return names, repr(contents), cursor.fetchall()

    def close(self) -> None:
        for name in self._others:
            self.do(f"DROP DATABASE IF EXISTS `{name}`")
        self._stack.close()


class FilesBed:
    """A folder of CSV files."""

    name = "files"
    mark = '"'

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "files"
        self.folder.mkdir()
        self.spec = str(self.folder)

    def make(self, *tables: Made) -> None:
        for table in tables:
            if table.schema is not None:
                pytest.skip("files have no schemas")
            with (self.folder / f"{table.name}.csv").open("w", newline="", encoding="utf-8") as out:
                for row in [tuple(table.columns), *table.rows]:
                    out.write(",".join(map(_csv_cell, row)) + "\r\n")

    def do(self, sql: str) -> None:
        pytest.skip("files know no statements")

    def disconnect(self) -> bool:
        return False

    def state(self) -> Any:
        return [(p.name, p.read_bytes()) for p in sorted(self.folder.rglob("*")) if p.is_file()]

    def close(self) -> None:
        for path in self.folder.iterdir():
            path.unlink()


def _csv_cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        text = value.isoformat(sep=" ")
    else:
        text = format(value, "f") if isinstance(value, Decimal) else str(value)
    special = text == "" or any(mark in text for mark in ',"\r\n')
    return '"' + text.replace('"', '""') + '"' if special else text


def _plain(value: Any) -> Any:
    """A value as SQLite keeps it: dates and UUIDs are texts there."""
    if value is None or isinstance(value, (int, float, str, bytes)):
        return value
    return value.isoformat(sep=" ") if isinstance(value, datetime) else str(value)
