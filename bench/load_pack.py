"""Copy a pack of SQLite databases into a server: one schema (MySQL: database) for each.

    python bench/load_pack.py PACK_DIR --postgres postgresql://root@127.0.0.1/postgres \
        --database dbrag_spider [--only concert_singer world_1]
    python bench/load_pack.py PACK_DIR --mysql mysql://root@127.0.0.1 --only concert_singer …

A column gets the narrowest type that holds all its values as they are: whole numbers,
floating numbers, else text; names keep their spelling. Keys that the data breaks are left
out and counted. An existing schema of the same name is dropped first: use a server for tests.
"""

from __future__ import annotations

import argparse
import sqlite3
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol

from sqlalchemy import make_url


@dataclass(frozen=True)
class Shape:
    """A table as it will be made: names, kinds ("int", "float", "text", "bytes"), widths."""

    name: str
    columns: list[str]
    kinds: list[str]
    widths: list[int]
    key: list[str]
    foreign: list[tuple[list[str], str, list[str]]]


class Target(Protocol):
    def begin(self, schema: str) -> None: ...
    def create(self, schema: str, shape: Shape) -> None: ...
    def fill(self, schema: str, shape: Shape, rows: list[tuple[Any, ...]]) -> None: ...
    def key(self, schema: str, shape: Shape) -> bool: ...
    def foreign(self, schema: str, shape: Shape) -> int: ...


def quoted(name: str, mark: str = '"') -> str:
    return mark + name.replace(mark, mark * 2) + mark


class Postgres:
    types: ClassVar = {
        "int": "bigint",
        "float": "double precision",
        "text": "text",
        "bytes": "bytea",
    }

    def __init__(self, url: str, database: str) -> None:
        import psycopg

        parsed = make_url(url)
        base = {"host": parsed.host, "port": parsed.port or 5432, "user": parsed.username}
        base["password"] = parsed.password
        with psycopg.connect(**base, dbname=parsed.database, autocommit=True) as admin:
            admin.execute(f"DROP DATABASE IF EXISTS {quoted(database)} WITH (FORCE)")
            admin.execute(f"CREATE DATABASE {quoted(database)}")
        self.connection = psycopg.connect(**base, dbname=database, autocommit=True)

    def begin(self, schema: str) -> None:
        self.connection.execute(f"CREATE SCHEMA {quoted(schema)}")

    def create(self, schema: str, shape: Shape) -> None:
        columns = ", ".join(
            f"{quoted(c)} {self.types[k]}" for c, k in zip(shape.columns, shape.kinds, strict=True)
        )
        self.connection.execute(f"CREATE TABLE {self.name(schema, shape)} ({columns})")

    def fill(self, schema: str, shape: Shape, rows: list[tuple[Any, ...]]) -> None:
        with (
            self.connection.cursor() as cursor,
            cursor.copy(f"COPY {self.name(schema, shape)} FROM STDIN") as copy,
        ):
            for row in rows:
                copy.write_row(row)

    def key(self, schema: str, shape: Shape) -> bool:
        columns = ", ".join(map(quoted, shape.key))
        return self.try_(f"ALTER TABLE {self.name(schema, shape)} ADD PRIMARY KEY ({columns})")

    def foreign(self, schema: str, shape: Shape) -> int:
        made = 0
        for columns, target, theirs in shape.foreign:
            made += self.try_(
                f"ALTER TABLE {self.name(schema, shape)} ADD FOREIGN KEY "
                f"({', '.join(map(quoted, columns))}) REFERENCES "
                f"{quoted(schema)}.{quoted(target)} ({', '.join(map(quoted, theirs))})"
            )
        return made

    def try_(self, sql: str) -> bool:
        import psycopg

        try:
            self.connection.execute(sql)
        except psycopg.Error:
            return False
        return True

    @staticmethod
    def name(schema: str, shape: Shape) -> str:
        return f"{quoted(schema)}.{quoted(shape.name)}"


class MySql:
    def __init__(self, url: str) -> None:
        import pymysql

        parsed = make_url(url)
        self.connection = pymysql.connect(
            host=parsed.host,
            port=parsed.port or 3306,
            user=parsed.username,
            password=parsed.password or "",
            charset="utf8mb4",
            autocommit=True,
        )
        self.cursor = self.connection.cursor()

    def begin(self, schema: str) -> None:
        self.cursor.execute(f"DROP DATABASE IF EXISTS {quoted(schema, '`')}")
        # SQLite compares texts byte by byte.
        self.cursor.execute(
            f"CREATE DATABASE {quoted(schema, '`')} CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin"
        )

    def create(self, schema: str, shape: Shape) -> None:
        columns = ", ".join(
            f"{quoted(c, '`')} {self.type(k, w)}"
            for c, k, w in zip(shape.columns, shape.kinds, shape.widths, strict=True)
        )
        self.cursor.execute(f"CREATE TABLE {self.name(schema, shape)} ({columns})")

    @staticmethod
    def type(kind: str, width: int) -> str:
        if kind == "text":
            return "varchar(255)" if width <= 255 else "longtext"
        return {"int": "bigint", "float": "double", "bytes": "longblob"}[kind]

    def fill(self, schema: str, shape: Shape, rows: list[tuple[Any, ...]]) -> None:
        marks = ", ".join(["%s"] * len(shape.columns))
        for i in range(0, len(rows), 1000):
            self.cursor.executemany(
                f"INSERT INTO {self.name(schema, shape)} VALUES ({marks})", rows[i : i + 1000]
            )

    def key(self, schema: str, shape: Shape) -> bool:
        columns = ", ".join(quoted(c, "`") for c in shape.key)
        return self.try_(f"ALTER TABLE {self.name(schema, shape)} ADD PRIMARY KEY ({columns})")

    def foreign(self, schema: str, shape: Shape) -> int:
        made = 0
        for columns, target, theirs in shape.foreign:
            made += self.try_(
                f"ALTER TABLE {self.name(schema, shape)} ADD FOREIGN KEY "
                f"({', '.join(quoted(c, '`') for c in columns)}) REFERENCES "
                f"{quoted(schema, '`')}.{quoted(target, '`')} "
                f"({', '.join(quoted(c, '`') for c in theirs)})"
            )
        return made

    def try_(self, sql: str) -> bool:
        import pymysql

        try:
            self.cursor.execute(sql)
        except pymysql.Error:
            return False
        return True

    @staticmethod
    def name(schema: str, shape: Shape) -> str:
        return f"{quoted(schema, '`')}.{quoted(shape.name, '`')}"


def tables_of(path: Path) -> list[tuple[Shape, list[tuple[Any, ...]]]]:
    """Every table of a SQLite file with its rows, values fitted to the kinds."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        connection.text_factory = lambda b: b.decode("utf-8", "replace").replace("\0", "")
        names = [
            name
            for (name,) in connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            )
        ]
        return [_read(connection, name, names) for name in names]


def _read(
    connection: sqlite3.Connection, name: str, names: list[str]
) -> tuple[Shape, list[tuple[Any, ...]]]:
    info = connection.execute(f"PRAGMA table_info({quoted(name)})").fetchall()
    columns = [row[1] for row in info]
    rows = connection.execute(f"SELECT * FROM {quoted(name)}").fetchall()
    kinds, widths = [], []
    for i, (_, _, declared, *_) in enumerate(info):
        values = [row[i] for row in rows if row[i] is not None]
        kinds.append(_kind(values, declared))
        widths.append(max((len(str(v)) for v in values), default=0))
    fitted = [tuple(_fit(v, kind) for v, kind in zip(row, kinds, strict=True)) for row in rows]
    key = [row[1] for row in sorted(info, key=lambda row: row[5]) if row[5]]
    by_name = {n.casefold(): n for n in names}
    keys: dict[int, tuple[list[str], str, list[str]]] = {}
    for id_, _, target, ours, theirs, *_ in connection.execute(
        f"PRAGMA foreign_key_list({quoted(name)})"
    ):
        if target.casefold() in by_name and theirs is not None:
            entry = keys.setdefault(id_, ([], by_name[target.casefold()], []))
            entry[0].append(ours)
            entry[2].append(theirs)
    return Shape(name, columns, kinds, widths, key, list(keys.values())), fitted


def _kind(values: list[Any], declared: str) -> str:
    found = {type(v) for v in values}
    if not found:
        kind = declared.upper()
        if "INT" in kind:
            return "int"
        return "float" if any(w in kind for w in ("REAL", "FLOA", "DOUB", "NUM")) else "text"
    if found == {int}:
        return "int" if all(-(2**63) <= v < 2**63 for v in values) else "text"
    if found <= {int, float}:
        return "float"
    return "bytes" if found == {bytes} else "text"


def _fit(value: Any, kind: str) -> Any:
    if value is None or kind in ("int", "bytes"):
        return value
    if kind == "float":
        return float(value)
    return value.hex() if isinstance(value, bytes) else str(value)


def load(target: Target, pack: Path, only: list[str]) -> None:
    started = time.perf_counter()
    files = sorted(path for path in pack.rglob("*.sqlite") if not only or path.stem in only)
    count = keys = missing = 0
    for path in files:
        target.begin(path.stem)
        tables = tables_of(path)
        for shape, rows in tables:
            target.create(path.stem, shape)
            target.fill(path.stem, shape, rows)
            if shape.key:
                target.key(path.stem, shape)
        for shape, _ in tables:
            made = target.foreign(path.stem, shape)
            keys += made
            missing += len(shape.foreign) - made
        count += len(tables)
    seconds = time.perf_counter() - started
    print(
        f"{len(files)} databases, {count} tables, {keys} foreign keys ({missing} left out: the "
        f"data breaks them or their targets are not unique), {seconds:.1f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pack", type=Path)
    parser.add_argument("--postgres", metavar="URL")
    parser.add_argument("--database", default="dbrag_spider")
    parser.add_argument("--mysql", metavar="URL")
    parser.add_argument("--only", nargs="*", default=[])
    arguments = parser.parse_args()
    if arguments.postgres:
        load(Postgres(arguments.postgres, arguments.database), arguments.pack, arguments.only)
    if arguments.mysql:
        load(MySql(arguments.mysql), arguments.pack, arguments.only)
    if not arguments.postgres and not arguments.mysql:
        sys.exit("name a server: --postgres URL or --mysql URL")


if __name__ == "__main__":
    main()
