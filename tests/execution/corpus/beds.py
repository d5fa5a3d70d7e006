"""The same small tables in four engines, and running a statement in each."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from dbrag.types import Column, Table, TableRef

if TYPE_CHECKING:
    from collections.abc import Callable

Run = "Callable[[str], tuple[list[str], list[tuple[Any, ...]]]]"

_COMMON = [
    "CREATE TABLE singer (singer_id INT PRIMARY KEY, {Name} VARCHAR(50), country VARCHAR(50),"
    " age INT, born DATE, salary DECIMAL(12, 2))",
    "INSERT INTO singer VALUES (1, 'Ann', 'France', 30, '1990-05-01', 1000.50),"
    " (2, 'Bob', 'Peru', 41, NULL, 2000), (3, 'it''s me', 'France', NULL, '1971-12-31', NULL),"
    " (4, 'Zoë', 'Chad', 41, '2001-01-01', 12345678.91)",
    "CREATE TABLE concert (concert_id INT PRIMARY KEY, title VARCHAR(50), year INT, extra {json})",
    "INSERT INTO concert VALUES (1, 'Gala', 2014, '{{\"a\": [1, 2]}}'), (2, 'Fête', 2015, NULL)",
    "CREATE TABLE singer_in_concert (concert_id INT, singer_id INT)",
    "INSERT INTO singer_in_concert VALUES (1, 1), (1, 2), (2, 1)",
    "CREATE TABLE {q}Order Details{q} ({q}Order{q} INT, {q}Unit Price{q} DOUBLE PRECISION,"
    " {q}select{q} VARCHAR(9), {quote} VARCHAR(9))",
    "INSERT INTO {q}Order Details{q} VALUES (1, 2.5, 'x', 'y'), (2, 1e10, NULL, '')",
    "CREATE TABLE staff (id INT PRIMARY KEY, boss INT, name VARCHAR(20))",
    "INSERT INTO staff VALUES (1, NULL, 'Top'), (2, 1, 'Mid'), (3, 2, 'Low')",
    "CREATE TABLE {q}客户{q} ({q}名称{q} VARCHAR(9), {q}城市{q} VARCHAR(9))",
    "INSERT INTO {q}客户{q} VALUES ('王', '北京')",
    "CREATE TABLE {q}MixedCase{q} ({q}CustomerId{q} INT, {q}fullName{q} VARCHAR(20),"
    " created_at {timestamp}, update_time {timestamp}, {q}delete{q} INT, {q}insert{q} VARCHAR(9),"
    " {q}OSE{q} VARCHAR(9))",
    "INSERT INTO {q}MixedCase{q} VALUES (1, 'Ann A', '2020-01-01 10:00:00', NULL, 1, 'x', 'OSE'),"
    " (2, 'Bob B', '2021-02-03 04:05:06', '2021-02-03 04:05:06', 0, 'y', 'os')",
    "CREATE TABLE {q}dash-board{q} ({q}a b{q} INT, oid_like INT, {q}2x{q} INT)",
    "INSERT INTO {q}dash-board{q} VALUES (1, 2, 3)",
    "CREATE TABLE people (id INT PRIMARY KEY, name VARCHAR(20), ssn VARCHAR(20))",
    "INSERT INTO people VALUES (1, 'Ann', 'S3CR3T')",
]
_ITEMS = {
    "postgres": [
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        "CREATE TYPE address AS (street text, city text)",
        "CREATE TABLE items (label text, tags text[], data jsonb, home address, feeling mood)",
        "INSERT INTO items VALUES ('one', '{red,blue}',"
        ' \'{"a": 1, "b": {"c": "x"}, "list": [1, 2]}\', \'(Main,Rome)\', \'happy\'),'
        " ('two', '{}', '{\"a\": 2, \"list\": []}', NULL, NULL)",
        "CREATE SCHEMA inventory",
        'CREATE TABLE inventory.orders (id int, "from" text, total numeric(38, 20))',
        "INSERT INTO inventory.orders VALUES (1, 'Rome', 1.5), (2, 'Oslo', 2.00000000000000000001)",
    ],
    "duckdb": [
        "CREATE TABLE items (label VARCHAR, tags VARCHAR[],"
        " home STRUCT(street VARCHAR, city VARCHAR))",
        "INSERT INTO items VALUES ('one', ['red', 'blue'], {'street': 'Main', 'city': 'Rome'}),"
        " ('two', [], NULL)",
    ],
    "mysql": ["ALTER TABLE concert ADD FULLTEXT (title)"],
    "sqlite": [],
}
_SCHEMA = {"sqlite": None, "postgres": "public", "duckdb": "main"}


def script(engine: str) -> list[str]:
    """The statements that make the tables."""
    q = "`" if engine == "mysql" else '"'
    words = {
        "q": q,
        "Name": '"Name"' if engine == "sqlite" else "Name",
        "quote": '`quo"te`' if engine == "mysql" else '"quo""te"',
        "json": {"sqlite": "TEXT", "postgres": "JSONB"}.get(engine, "JSON"),
        "timestamp": "DATETIME" if engine == "mysql" else "TIMESTAMP",
    }
    return [statement.format(**words) for statement in _COMMON] + _ITEMS[engine]


def tables(engine: str, database: str | None = None) -> list[Table]:
    """The same tables as the guard is told of them; ``people.ssn`` is redacted."""
    schema = database if engine == "mysql" else _SCHEMA[engine]
    wanted = {
        "singer": ["singer_id", "Name", "country", "age", "born", "salary"],
        "concert": ["concert_id", "title", "year", "extra"],
        "singer_in_concert": ["concert_id", "singer_id"],
        "Order Details": ["Order", "Unit Price", "select", 'quo"te'],
        "staff": ["id", "boss", "name"],
        "客户": ["名称", "城市"],
        "MixedCase": ["CustomerId", "fullName", "created_at", "update_time", "delete", "insert"],
        "dash-board": ["a b", "oid_like", "2x"],
    }
    wanted["MixedCase"].append("OSE")
    if engine == "postgres":
        wanted["singer"][1] = "name"
    found = [
        Table(TableRef("band", schema, name), tuple(map(Column, columns)))
        for name, columns in wanted.items()
    ]
    people = (Column("id"), Column("name"))
    found.append(Table(TableRef("band", schema, "people"), people, redacted=("ssn",)))
    if engine == "postgres":
        items = ["label:text", "tags:text[]", "data:jsonb", "home:address", "feeling:mood"]
        columns = tuple(Column(*item.split(":")) for item in items)
        found.append(Table(TableRef("band", schema, "items"), columns))
        orders = tuple(Column(name) for name in ("id", "from", "total"))
        found.append(Table(TableRef("band", "inventory", "orders"), orders))
    if engine == "duckdb":
        columns = tuple(Column(name) for name in ("label", "tags", "home"))
        found.append(Table(TableRef("band", schema, "items"), columns))
    return found


def sqlite_run() -> Callable[[str], Any]:
    """A database in memory; runs one statement, names and rows."""
    connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    for statement in script("sqlite"):
        connection.execute(statement)
    return lambda sql: _fetch(connection.cursor(), sql)


def duckdb_run() -> Callable[[str], Any]:
    """A sealed DuckDB in memory; runs one statement, names and rows."""
    import duckdb

    connection = duckdb.connect(config={"threads": 1})
    for statement in script("duckdb"):
        connection.execute(statement)
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return lambda sql: _fetch(connection.cursor(), sql)


def _fetch(cursor: Any, sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    cursor.execute(sql)
    names = [column[0] for column in cursor.description or ()]
    return names, [tuple(row) for row in cursor.fetchall()]


def server_run(connection: Any, begin: str) -> Callable[[str], Any]:
    """Runs each statement in a read-only transaction that is rolled back."""

    def run(sql: str) -> tuple[list[str], list[tuple[Any, ...]]]:
        with connection.cursor() as cursor:
            cursor.execute(begin)
            try:
                return _fetch(cursor, sql)
            finally:
                cursor.execute("ROLLBACK")

    return run
