"""A user's DuckDB file: what is seen of it, and that it stays as it is."""

from __future__ import annotations

import os
import shutil
import threading
import time
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from dbrag.errors import (
    ExecutionError,
    LimitReached,
    SourceError,
    SourceUnreadable,
    UnknownName,
)
from dbrag.execution.run import run
from dbrag.sources.duck.database import DuckDatabase
from dbrag.sources.duck.engine import _MAX_IDLE
from dbrag.types import Column, ForeignKey, TableRef

from .conftest import OPTIONS, drain, rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCHEMA = """
CREATE SCHEMA hr;
CREATE TABLE "Order Details" (id INTEGER, "from" VARCHAR, größe DECIMAL(38,20),
    twice INTEGER GENERATED ALWAYS AS (id * 2), mood ENUM('ok', 'bad'),
    tags STRUCT(a INTEGER, b VARCHAR[]), PRIMARY KEY (id, "from"));
COMMENT ON TABLE "Order Details" IS 'what was ordered';
COMMENT ON COLUMN "Order Details".größe IS 'in metres';
CREATE TABLE lines (x INTEGER, y VARCHAR,
    FOREIGN KEY (x, y) REFERENCES "Order Details" (id, "from"));
CREATE TABLE hr.people (id INTEGER PRIMARY KEY, boss INTEGER REFERENCES hr.people (id));
INSERT INTO hr.people SELECT i, NULL FROM range(50) r(i);
CREATE VIEW hr.bosses AS SELECT id FROM hr.people;
CREATE TABLE gone (a INTEGER);
CREATE VIEW orphan AS SELECT a FROM gone;
DROP TABLE gone;
CREATE MACRO plus_one(x) AS x + 1;
CREATE MACRO plus_two(x) AS plus_one(x) + 1;
CREATE MACRO roll() AS random();
CREATE MACRO peek() AS (SELECT max(id) FROM hr.people);
CREATE MACRO who() AS current_user;
CREATE MACRO setting(x) AS current_setting(x);
CREATE MACRO up_to(n) AS TABLE SELECT * FROM range(n)
"""


def test_the_schema_is_read(database: Callable[..., Any]) -> None:
    source = database(SCHEMA)
    tables = {str(table.ref): table for table in source.reflect()}
    assert list(tables) == [
        "shop.hr.bosses",
        "shop.hr.people",
        "shop.Order Details",
        "shop.lines",
        "shop.orphan",
    ]
    orders = tables["shop.Order Details"]
    assert orders.primary_key == ("id", "from")
    assert orders.comment == "what was ordered"
    assert orders.columns == (
        Column("id", "INTEGER", False),
        Column("from", "VARCHAR", False),
        Column("größe", "DECIMAL(38,20)", True, "in metres"),
        Column("twice", "INTEGER"),
        Column("mood", "ENUM('ok', 'bad')"),
        Column("tags", "STRUCT(a INTEGER, b VARCHAR[])"),
    )
    target = TableRef("shop", None, "Order Details")
    assert tables["shop.lines"].foreign_keys == (ForeignKey(("x", "y"), target, ("id", "from")),)
    people = tables["shop.hr.people"]
    assert people.estimate == 50
    assert people.foreign_keys == (ForeignKey(("boss",), people.ref, ("id",)),)
    assert tables["shop.hr.bosses"].kind == "view"
    assert tables["shop.hr.bosses"].columns == (Column("id", "INTEGER"),)
    assert tables["shop.orphan"].columns == ()
    assert tables["shop.orphan"].comment.startswith("cannot be read: ")
    assert source.functions() == {"plus_one", "plus_two"}
    assert rows(source, "SELECT plus_two(1), max(n) FROM up_to(3) u(n)") == [(3, 2)]


def test_every_table_can_be_scanned(database: Callable[..., Any]) -> None:
    source = database(SCHEMA)
    for table in source.reflect():
        if table.columns:
            with source.scan(table, 3) as found:
                for row in found:
                    assert len(row) == len(table.columns)


def test_views_over_files_do_not_break_the_others(
    tmp_path: Path, database: Callable[..., Any]
) -> None:
    (tmp_path / "x.csv").write_text("a\n1\n")
    source = database(
        f"CREATE TABLE t AS SELECT 1 AS a; CREATE VIEW v AS SELECT * FROM '{tmp_path}/x.csv'"
    )
    good, bad = source.reflect()
    assert good.columns
    assert bad.columns == ()
    assert "it reads files" in bad.comment or "does not exist" in bad.comment


def test_chosen_schemas_only(database: Callable[..., Any]) -> None:
    source = database(SCHEMA, schemas=("HR",))
    assert {table.ref.schema for table in source.reflect()} == {"hr"}
    nothing = database(SCHEMA, "again.duckdb", schemas=("nope",))
    with pytest.raises(SourceUnreadable, match="nope"):
        nothing.reflect()


@pytest.mark.parametrize("stem", ["sales", "main", "temp", "system", "memory", "select", "a b.c"])
def test_no_file_name_makes_a_schema_ambiguous(stem: str, database: Callable[..., Any]) -> None:
    build = database("CREATE SCHEMA sales; CREATE TABLE sales.t AS SELECT 7 AS a", "build.duckdb")
    path = os.path.join(os.path.dirname(build.location), f"{stem}.duckdb")
    shutil.copy(build.location, path)
    source = DuckDatabase("s", path, path, OPTIONS)
    (table,) = source.reflect()
    assert table.ref.schema == "sales"
    assert rows(source, "SELECT a FROM sales.t") == [(7,)]
    with source.scan(table, 1) as found:
        assert list(found) == [(7,)]
    source.close()


def test_statistics_come_from_duckdb(database: Callable[..., Any]) -> None:
    source = database(
        "CREATE TABLE t AS SELECT i AS a, 'v' || i AS b, repeat('z', 40) AS c, "
        "CASE WHEN i > 5 THEN i END AS d, [i] AS e FROM range(1000) r(i)"
    )
    (table,) = source.reflect()
    known = source.statistics(table)
    assert (known["a"].minimum, known["a"].maximum, known["a"].null_share) == ("0", "999", 0.0)
    assert 900 <= (known["a"].distinct or 0) <= 1100
    assert known["b"].maximum == "v999"
    assert known["c"].maximum is None  # DuckDB keeps only its first bytes
    assert known["d"].null_share is None


def test_marks_change_with_the_file(database: Callable[..., Any]) -> None:
    source = database("CREATE TABLE t AS SELECT 1 AS a")
    stamp, fingerprint = source.stamp(), source.fingerprint()
    assert rows(source, "SELECT a FROM t") == [(1,)]
    assert (source.stamp(), source.fingerprint()) == (stamp, fingerprint)
    source._engine.release()
    with duckdb.connect(source.location) as writer:
        writer.execute("INSERT INTO t VALUES (2)")
    assert source.stamp() != stamp
    assert source.fingerprint() != fingerprint
    assert rows(source, "SELECT a FROM t") == [(1,), (2,)]
    assert source.marks() == {}


@pytest.mark.parametrize(
    ("sql", "name", "near"),
    [
        ("SELECT nam FROM people", "nam", "name"),
        ("SELECT p.nam FROM people p", "nam", "name"),
        ("SELECT x.name FROM people p", "x", "p"),
        ("SELECT * FROM peple", "peple", "people"),
        ("SELECT * FROM no_schema.people", "no_schema.people", None),
        ("SELECT * EXCLUDE (nam) FROM people", "nam", "name"),
    ],
)
def test_an_unknown_name_is_told(
    sql: str, name: str, near: str | None, database: Callable[..., Any]
) -> None:
    source = database("CREATE TABLE people (name VARCHAR)")
    with source.session() as session, pytest.raises(UnknownName) as caught:
        session.execute(sql)
    assert caught.value.names == (name,)
    assert near is None or near in caught.value.suggestions
    assert "LINE 1" not in str(caught.value)


def test_errors_of_statements(database: Callable[..., Any]) -> None:
    source = database("CREATE TABLE t AS SELECT i AS a FROM range(3) r(i)")
    for sql in ("SELEC 1", "SELECT foo(1)", "SELECT 'x'::INT", "SELECT error('boo')"):
        with pytest.raises(ExecutionError):
            rows(source, sql)
    with source.session() as session:
        with pytest.raises(ExecutionError):
            session.execute("SELECT nope(1)")
        assert session.fetch(1) == []
        session.execute("SELECT a FROM t")  # an error ends nothing but its statement
        assert len(session.fetch(5)) == 3


def test_memory_is_limited(database: Callable[..., Any]) -> None:
    source = database("CREATE TABLE t AS SELECT 1 AS a", memory_mb=64)
    with pytest.raises(LimitReached, match="64 MB of memory") as caught:
        rows(source, "SELECT list(i || repeat('x', 100)) FROM range(5_000_000) r(i)")
    assert "DBRAG_ENGINE_MB" in caught.value.hint
    assert rows(source, "SELECT a FROM t") == [(1,)]


def test_a_statement_is_cancelled(database: Callable[..., Any]) -> None:
    source = database("CREATE TABLE t AS SELECT 1 AS a")
    endless = "SELECT sum(a.range * b.range) FROM range(10_000_000) a, range(10_000_000) b"
    started = time.monotonic()
    with pytest.raises(LimitReached, match="time limit"):
        run(source, endless, timeout_s=0.5, max_rows=10, max_mb=10)
    assert time.monotonic() - started < 5
    with source.session() as session:
        threading.Timer(0.3, session.cancel).start()
        with pytest.raises(ExecutionError, match="cancelled"):
            drain(session, endless)
        session.cancel()
    session.cancel()


def test_threads_read_at_once(database: Callable[..., Any]) -> None:
    source = database("CREATE TABLE t AS SELECT i AS a FROM range(100000) r(i)")
    results: list[Any] = []

    def work(n: int) -> None:
        for _ in range(5):
            results.append((n, rows(source, f"SELECT count(*) FROM t WHERE a < {n}")))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 40
    assert all(found == [(n,)] for n, found in results)


def test_a_closed_source_says_so(database: Callable[..., Any]) -> None:
    source = database("CREATE TABLE t AS SELECT 1 AS a")
    with source.session() as session:
        source.close()
        session.execute("SELECT a FROM t")  # a session in use goes on
        assert session.fetch(2) == [(1,)]
    with pytest.raises(SourceError, match="is closed"):
        source.reflect()


def test_many_files_keep_few_engines_open(
    tmp_path: Path, database: Callable[..., Any], opened: Callable[..., Any]
) -> None:
    first = database("CREATE TABLE t AS SELECT 1 AS a")
    sources = []
    for i in range(_MAX_IDLE + 8):
        path = tmp_path / f"copy{i}.duckdb"
        shutil.copy(first.location, path)
        sources.append(opened(DuckDatabase(f"c{i}", str(path), "", OPTIONS)))
    before = threading.active_count()
    for source in sources:
        assert rows(source, "SELECT a FROM t") == [(1,)]
    assert sum(source._engine.is_open for source in sources) <= _MAX_IDLE
    assert threading.active_count() <= before + _MAX_IDLE + 1


def test_an_idle_engine_is_closed(database: Callable[..., Any]) -> None:
    source = database("CREATE TABLE t AS SELECT 1 AS a")
    source._engine._linger_s = 0.05
    with source.session() as session:
        session.execute("SELECT a FROM t")
        spill = source._engine._spill
    end = time.monotonic() + 5
    while spill.alive and time.monotonic() < end:
        time.sleep(0.02)
    assert not source._engine.is_open
    assert not spill.alive
    with duckdb.connect(source.location) as writer:
        writer.execute("INSERT INTO t VALUES (2)")
    assert rows(source, "SELECT count(*) FROM t") == [(2,)]


def test_an_engine_that_broke_is_started_anew(database: Callable[..., Any]) -> None:
    source = database("CREATE TABLE t AS SELECT 1 AS a")
    with source.session() as session:
        session.execute("SELECT a FROM t")
        error = source._translate(duckdb.FatalException("FATAL Error: it was invalidated"))
        assert isinstance(error, SourceError)
    assert not source._engine.is_open
    assert rows(source, "SELECT a FROM t") == [(1,)]
