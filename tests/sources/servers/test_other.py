"""Any SQLAlchemy dialect, tried on engines that can be had here: SQLite, PostgreSQL, MariaDB."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.engine import make_url

from dbrag.catalog.profile import profile_table
from dbrag.errors import (
    DbragError,
    ExecutionError,
    LimitReached,
    SourceError,
    SourceNotFound,
    SourceUnreadable,
    UnknownName,
    UsageError,
)
from dbrag.sources.servers.other import OtherEngine, kind_of
from dbrag.sources.servers.other_errors import translate
from dbrag.sources.servers.other_kinds import KINDS
from dbrag.sources.servers.source import ServerSource
from dbrag.types import ForeignKey
from tests.servers import MYSQL, POSTGRES, fresh_database

TABLES = (
    "CREATE TABLE a (x int NOT NULL, y int NOT NULL, PRIMARY KEY (y, x))",
    "CREATE TABLE b (i int PRIMARY KEY, y int, x int, n decimal(30,10), s varchar(50),"
    " FOREIGN KEY (y, x) REFERENCES a (y, x))",
    "CREATE VIEW v AS SELECT i, s FROM b",
    "INSERT INTO a VALUES (1, 2)",
    "INSERT INTO b VALUES (1, 2, 1, 12345678901234567890.0123456789, 'ä')",
    "INSERT INTO b VALUES (2, NULL, NULL, NULL, '')",
)


class Bed:
    """One engine, read through nothing but its SQLAlchemy dialect."""

    def __init__(self, url: str, run: Any, schema: str | None) -> None:
        self.url, self.run, self.schema = url, run, schema

    def source(self) -> ServerSource:
        url = make_url(self.url)
        schemas = (self.schema,) if self.schema else ()
        return ServerSource("o", url, "here", OtherEngine(url), schemas)


@pytest.fixture(params=["sqlite", "postgresql", "mysql"])
def bed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bed]:
    if request.param == "sqlite":
        path = tmp_path / "o.sqlite"

        def run(*statements: str) -> list[Any]:
            connection = sqlite3.connect(path)
            rows: list[Any] = []
            for statement in statements:
                rows = connection.execute(statement).fetchall()
            connection.commit()
            connection.close()
            return rows

        run(*TABLES)
        yield Bed(f"sqlite:///{path}", run, None)
        return
    with fresh_database(MYSQL if request.param == "mysql" else POSTGRES, "other") as database:
        database.run(*TABLES)
        driver = "mysql+pymysql" if request.param == "mysql" else "postgresql+psycopg"
        url = database.parsed.set(drivername=driver).render_as_string(hide_password=False)
        yield Bed(url, database.run, database.name if request.param == "mysql" else "public")


def test_reflection(bed: Bed) -> None:
    source = bed.source()
    found = {table.ref.name: table for table in source.reflect()}
    assert list(found) == ["a", "b", "v"]
    assert found["a"].ref.schema == bed.schema
    assert found["a"].primary_key == ("y", "x")
    assert [c.nullable for c in found["a"].columns] == [False, False]
    assert [c.name for c in found["b"].columns] == ["i", "y", "x", "n", "s"]
    assert "(30, 10)" in found["b"].columns[3].type
    assert found["b"].foreign_keys == (ForeignKey(("y", "x"), found["a"].ref, ("y", "x")),)
    assert found["v"].kind == "view"
    assert [c.name for c in found["v"].columns] == ["i", "s"]
    assert source.marks() == {}
    assert source.functions() == frozenset()
    assert source.statistics(found["a"]) == {}
    stamp = source.stamp()
    bed.run("CREATE TABLE c (i int)")
    assert source.stamp() != stamp
    source.close()


def test_rows_and_profiles(bed: Bed) -> None:
    source = bed.source()
    found = {table.ref.name: table for table in source.reflect()}
    profiled, rows = profile_table(source, found["b"], profile_rows=10, profile_s=10)
    assert profiled.row_count == 2
    assert [row[4] for row in rows] == ["ä", ""]
    if source.dialect != "sqlite":
        assert str(rows[0][3]) == "12345678901234567890.0123456789"
    with source.session() as session:
        assert session.execute("SELECT 1 AS n, 2 AS n") == ["n", "n"]
        assert session.fetch(9) == [(1, 2)]
        session.execute("SELECT COUNT(*) FROM a WHERE 'x' LIKE '%x%'")
        assert session.fetch(9) == [(1,)]
    source.close()


@pytest.mark.parametrize(
    "statement",
    ["INSERT INTO a VALUES (7, 7)", "DELETE FROM b", "DROP TABLE b", "CREATE TABLE x (i int)"],
)
def test_the_session_only_reads_where_the_engine_can(bed: Bed, statement: str) -> None:
    source = bed.source()
    for _ in range(2):  # also on a connection of the pool that has been used
        with pytest.raises(ExecutionError, match="only reading"), source.session() as session:
            session.execute(statement)
    source.close()
    assert len(bed.run("SELECT * FROM b")) == 2
    assert len(bed.run("SELECT * FROM a")) == 1


def test_unknown_names(bed: Bed) -> None:
    source = bed.source()
    for statement in ("SELECT nope FROM a", "SELECT * FROM nope"):
        with pytest.raises(UnknownName), source.session() as session:
            session.execute(statement)
    source.close()


ENDLESS = "WITH RECURSIVE d(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM d WHERE n < 300) " + (
    "SELECT COUNT(*) FROM d AS d1, d AS d2, d AS d3, d AS d4"
)


def test_cancelling(bed: Bed) -> None:
    source = bed.source()
    with source.session() as session:
        threading.Timer(0.3, session.cancel).start()
        started = time.monotonic()

        def work() -> None:
            session.execute(ENDLESS)
            session.fetch(1)

        with pytest.raises((LimitReached, SourceError)):
            work()
        assert time.monotonic() - started < 8
    with source.session() as session:  # the next one has a connection that works
        session.execute("SELECT 1")
        assert session.fetch(2) == [(1,)]
    source.close()


def test_a_missing_schema(bed: Bed) -> None:
    if bed.schema is None:
        pytest.skip("SQLite has no schemas")
    url = make_url(bed.url)
    source = ServerSource("o", url, "here", OtherEngine(url), ("nope",))
    with pytest.raises(SourceNotFound, match="no schema 'nope'"):
        source.reflect()


def test_nothing_to_read(tmp_path: Path) -> None:
    url = make_url(f"sqlite:///{tmp_path / 'empty.sqlite'}")
    with pytest.raises(SourceUnreadable, match="nothing to read"):
        ServerSource("o", url, "here", OtherEngine(url)).reflect()


def test_a_server_that_is_down() -> None:
    url = make_url("postgresql+psycopg://u:s3cret@127.0.0.1:1/db")
    with pytest.raises(SourceNotFound, match="cannot reach") as caught:
        ServerSource("o", url, "here", OtherEngine(url)).reflect()
    assert "s3cret" not in f"{caught.value} {caught.value.hint}"


def test_an_unknown_dialect_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UsageError, match="access") as caught:
        OtherEngine(make_url("access+pyodbc://h/db"))
    assert "snowflake" in caught.value.hint


def test_the_documentation_says_which_sessions_only_read() -> None:
    docs = (Path(__file__).parents[3] / "docs" / "sources.md").read_text(encoding="utf-8")
    lines = [line.split("|") for line in docs.splitlines() if "://`" in line and "|" in line]
    told = {cells[2].strip(" `").partition(":")[0].partition("+")[0]: cells for cells in lines}
    assert len(told) >= 10
    for backend, cells in told.items():
        kind = KINDS[backend]
        assert cells[5].strip() == ("yes" if kind.read_only or kind.begin else "no"), backend
        limited = bool(kind.timeout or kind.timeout_attribute)
        # MySQL and MariaDB have an engine of their own, which does limit the time.
        assert (cells[6].strip() != "dbrag") == (limited or backend == "mysql"), backend


@pytest.mark.parametrize("backend", sorted(KINDS))
def test_every_dialect_has_a_parser(backend: str) -> None:
    assert kind_of(make_url(f"{backend}://h/db")).dialect == KINDS[backend].dialect
    assert sqlglot.parse_one("SELECT 1 AS x", dialect=KINDS[backend].dialect)


def test_names_that_the_engine_folds_come_as_they_must_be_quoted() -> None:
    from sqlalchemy.dialects.oracle import dialect

    from dbrag.sources.servers.other_reflect import _real_name

    class Inspected:
        pass

    inspected: Any = Inspected()
    inspected.dialect = dialect()
    real = _real_name(inspected)
    assert real("orders") == "ORDERS"
    assert real("Orders") == "Orders"


class Column:
    """A driver of an engine without transactions, cancelled by its cursor."""

    cancelled = False
    description = (("x",),)

    def execute(self, sql: str) -> None: ...

    def fetchmany(self, n: int) -> list[Any]:
        return [[memoryview(b"ab"), bytearray(b"c"), 1]]

    def cancel(self) -> None:
        Column.cancelled = True

    def close(self) -> None: ...


class NotSupportedError(Exception):
    pass


class Raw:
    def cursor(self) -> Column:
        return Column()

    def rollback(self) -> None:
        raise NotSupportedError("no transactions here")


def test_drivers_differ() -> None:
    url = make_url("trino://u@h/catalog")
    engine = OtherEngine(url)
    raw: Any = Raw()
    engine.prepare(raw)
    engine.begin(raw, 2)
    cursor = engine.cursor(raw)
    assert cursor.fetchmany(3) == [(b"ab", b"c", 1)]
    engine.cancel(raw)
    assert Column.cancelled
    engine.end(raw)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SQL compilation error: invalid identifier 'NOPE'", UnknownName),
        ("[42S22] Invalid column name 'nope'. (207)", UnknownName),
        ("ORA-00942: table or view does not exist", UnknownName),
        ("line 1:8: Column 'nope' cannot be resolved", UnknownName),
        ("Unrecognized name: nope at [1:8]", UnknownName),
        ("[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column cannot be resolved", UnknownName),
        ("ORA-03156: OCI call timed out", LimitReached),
        ("Statement reached its statement or warehouse timeout", LimitReached),
        ("ORA-01031: insufficient privileges", ExecutionError),
        ("Query exceeded the maximum execution time limit", LimitReached),
        ("something else", ExecutionError),
    ],
)
def test_what_other_servers_say(text: str, kind: type[DbragError]) -> None:
    class ProgrammingError(Exception):
        pass

    assert type(translate(ProgrammingError(text), "x://h")) is kind


@given(st.text(max_size=120))
def test_any_error_becomes_ours(text: str) -> None:
    class OperationalError(Exception):
        pass

    assert isinstance(translate(OperationalError(text), "x://h"), DbragError)
