"""Profiles read from real servers and from DuckDB, with every kind of cell."""

from __future__ import annotations

import time
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from dbrag.catalog.profile import profile_table
from dbrag.sources import open_sources
from tests.servers import MYSQL, POSTGRES, fresh_database

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbrag.sources import Source
    from dbrag.types import ColumnProfile, Table
    from tests.servers import TestDatabase

POSTGRES_SCRIPT = """
CREATE SCHEMA "Sales Ä";
CREATE TYPE "Sales Ä".mood AS ENUM ('low', 'high');
CREATE TABLE "Sales Ä"."Dash-board" (
    id int PRIMARY KEY, long text, n numeric(38,20), pic bytea, j jsonb, a int[],
    m "Sales Ä".mood, i interval, u uuid, tz timestamptz, r int4range);
INSERT INTO "Sales Ä"."Dash-board" VALUES
    (1, repeat('ä', 3000000), 1.5, decode(repeat('ff', 3000000), 'hex'), '{"a": 1}', '{1,2}',
     'high', '1 mon', '00000000-0000-0000-0000-000000000001', '2024-01-05 12:00+02', '[1,3)'),
    (2, 'short', -2, '\\x00ff', NULL, NULL, 'low', NULL, NULL, NULL, NULL);
CREATE TABLE far (id int, day date);
INSERT INTO far VALUES (1, 'infinity'), (2, '4713-01-01 BC'), (3, '2024-01-05');
CREATE TABLE big (id int PRIMARY KEY, word text, rare int);
INSERT INTO big SELECT n, 'w' || n % 7, CASE WHEN n % 10 = 0 THEN n END
    FROM generate_series(1, 60000) n;
CREATE MATERIALIZED VIEW seen AS SELECT * FROM big;
CREATE VIEW slow AS SELECT pg_sleep(60)::text AS nap;
CREATE VIEW broken AS SELECT 1 / (id - id) AS x FROM big;
ANALYZE;
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[TestDatabase]:
    with fresh_database(POSTGRES, "profile") as database:
        database.run(POSTGRES_SCRIPT)
        yield database


@pytest.fixture(scope="module")
def source(postgres: TestDatabase) -> Iterator[Source]:
    (opened,), _ = open_sources([postgres.url])
    yield opened
    opened.close()


def tables(source: Source) -> dict[str, Table]:
    return {table.ref.name: table for table in source.reflect()}


def column(table: Table, name: str) -> ColumnProfile:
    return next(p for p in table.profile if p.column == name)


def read(source: Source, name: str, rows: int = 1000, seconds: float = 20) -> Any:
    return profile_table(source, tables(source)[name], profile_rows=rows, profile_s=seconds)


class TestPostgres:
    def test_every_kind_of_cell_and_none_is_huge(self, source: Source) -> None:
        table, rows = read(source, "Dash-board")
        assert (table.row_count, table.sampled, table.comment) == (2, False, "")
        first = dict(zip([c.name for c in table.columns], rows[0], strict=True))
        assert first["long"] == "ä" * 10_000 + "…"
        assert first["pic"] == "<blob 3000000 bytes>"
        assert first["n"] == Decimal("1.5")
        assert (first["j"], first["a"], first["m"], first["r"]) == (
            '{"a": 1}', "{1,2}", "high", "[1,3)",
        )  # fmt: skip
        assert rows[1][3] == b"\x00\xff"
        assert column(table, "n").minimum is not None
        assert Decimal(str(column(table, "n").minimum)) == -2

    def test_what_the_driver_cannot_load_is_still_read(self, source: Source) -> None:
        table, rows = read(source, "far")
        assert table.row_count == 3
        assert [str(row[1])[:4] for row in rows] == ["infi", "4713", "2024"]

    @pytest.mark.parametrize("name", ["big", "seen"])
    def test_a_sample_is_from_all_over_and_always_the_same(self, source: Source, name: str) -> None:
        table, rows = read(source, name, rows=500)
        assert (table.row_count, table.rows_read, table.sampled) == (60_000, 500, True)
        assert max(row[0] for row in rows) - min(row[0] for row in rows) > 5_000
        assert read(source, name, rows=500)[1] == rows
        # What the server knows of the whole, beside what the sample shows.
        word, rare = column(table, "word"), column(table, "rare")
        assert word.distinct == 7
        assert "frequent" in word.whole
        assert sum(n for _, n in word.frequent) == pytest.approx(60_000, rel=0.01)
        assert 50_000 < rare.nulls < 57_000
        assert "nulls" in rare.whole

    def test_a_wrong_estimate_is_found_out(self, source: Source) -> None:
        far = replace(tables(source)["big"], estimate=10**12)
        table, rows = profile_table(source, far, profile_rows=500, profile_s=20)
        assert len(rows) == 500
        assert table.row_count == 60_000

    def test_a_slow_view_is_stopped_on_the_server_and_named(
        self, source: Source, postgres: TestDatabase, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level("INFO", "dbrag.catalog.profile")
        started = time.monotonic()
        table, rows = read(source, "slow", seconds=1)
        assert time.monotonic() - started < 8
        assert (rows, table.sampled, table.row_count, table.comment) == ([], True, None, "")
        assert "slow" in caplog.text
        (running,) = postgres.run(
            "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%nap%' AND state = 'active' "
            "AND pid <> pg_backend_pid()"
        )
        assert running == (0,)

    def test_a_broken_view_says_why(self, source: Source) -> None:
        table, rows = read(source, "broken")
        assert rows == []
        assert table.comment == "cannot be read: division by zero"

    def test_a_locked_table_does_not_stop_the_others(
        self, source: Source, postgres: TestDatabase
    ) -> None:
        with postgres.connect() as connection:
            connection.autocommit = False
            connection.execute("LOCK TABLE far IN ACCESS EXCLUSIVE MODE")
            started = time.monotonic()
            bare = next(t for t in tables_of(postgres) if t.ref.name == "far")
            table, rows = profile_table(source, bare, profile_rows=10, profile_s=1)
            assert time.monotonic() - started < 8
            assert rows == []
            assert table.row_count is None
            connection.rollback()


def tables_of(database: TestDatabase) -> list[Table]:
    (other,), _ = open_sources([database.url])
    try:
        return other.reflect()
    finally:
        other.close()


@pytest.fixture(scope="module")
def mariadb() -> Iterator[Source]:
    with fresh_database(MYSQL, "profile") as database:
        database.run(
            "CREATE TABLE `Dash-b``oard` (id bigint unsigned PRIMARY KEY, t longtext,"
            " pic longblob, j json, e enum('x','y'), b bit(9), g point, n decimal(38,20),"
            " k binary(4))",
            "INSERT INTO `Dash-b``oard` VALUES (1, repeat('ä', 1000000), repeat('z', 1000000),"
            " '{\"a\": 1}', 'x', 5, point(1, 2), 1.5, x'00010203'),"
            " (2, 'short', x'00ff', NULL, NULL, NULL, NULL, NULL, NULL)",
            "CREATE TABLE big (id int PRIMARY KEY, word varchar(20))",
            "INSERT INTO big SELECT seq, concat('w', seq % 7) FROM seq_1_to_20000",
            "ANALYZE TABLE big",
        )
        (opened,), _ = open_sources([database.url])
        yield opened
        opened.close()


class TestMySQL:
    def test_every_kind_of_cell_and_none_is_huge(self, mariadb: Source) -> None:
        table, rows = read(mariadb, "Dash-b`oard")
        assert (table.row_count, table.sampled, table.comment) == (2, False, "")
        first = dict(zip([c.name for c in table.columns], rows[0], strict=True))
        assert first["t"] == "ä" * 10_000 + "…"
        assert first["pic"] == "<blob 1000000 bytes>"
        assert (first["e"], first["b"], first["g"]) == ("x", 5, "POINT(1 2)")
        assert first["n"] == Decimal("1.5")
        assert first["k"] == b"\x00\x01\x02\x03"

    def test_a_sample_is_from_all_over_the_key(self, mariadb: Source) -> None:
        table, rows = read(mariadb, "big", rows=500)
        assert (table.row_count, table.rows_read, table.sampled) == (20_000, 500, True)
        assert len({row[0] for row in rows}) == 500
        assert min(row[0] for row in rows) == 1
        assert max(row[0] for row in rows) > 19_000
        assert read(mariadb, "big", rows=500)[1] == rows


@pytest.mark.parametrize("code", ["58P01", "58030", "08006", "28000", "57P01", "XX001", "XX000"])
def test_a_foreign_table_that_fails_leaves_the_source(postgres: TestDatabase, code: str) -> None:
    """Its server, its file or its pages are not there; ours answers all the same."""
    name = f"far_{code.lower()}"
    postgres.run(
        f"CREATE FUNCTION f_{name}() RETURNS int LANGUAGE plpgsql STABLE AS $$ BEGIN "
        f"RAISE EXCEPTION 'gone' USING ERRCODE = '{code}'; END $$",
        f"CREATE VIEW {name} AS SELECT f_{name}() AS x",
    )
    (source,), _ = open_sources([postgres.url])
    try:
        table, rows = read(source, name)
        assert (table.comment, rows) == ("cannot be read: gone", [])
    finally:
        source.close()
        postgres.run(f"DROP VIEW {name}; DROP FUNCTION f_{name}")


def test_a_long_recursion_is_not_cut() -> None:
    """MariaDB stops after 1,000 steps by default and gives what there is by then."""
    with fresh_database(MYSQL, "recursion") as database:
        database.run("CREATE TABLE t (id int)")
        (source,), _ = open_sources([database.url])
        with source.session(20) as session:
            session.execute(
                "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 5000) "
                "SELECT COUNT(*) FROM r"
            )
            assert session.fetch(2) == [(5000,)]
        source.close()


def test_a_view_whose_definer_is_gone_leaves_the_source() -> None:
    """MariaDB says "access denied", as if it were about the connection."""
    with fresh_database(MYSQL, "definer") as database:
        user, definer = f"{database.name[-20:]}_r@'%'", f"{database.name[-20:]}_d@'%'"
        database.run(
            "CREATE TABLE t (id int)",
            f"CREATE USER {user} IDENTIFIED BY 'pw'",
            f"GRANT SELECT, SHOW VIEW ON {database.name}.* TO {user}",
            f"CREATE USER {definer}",
            f"GRANT SELECT ON {database.name}.* TO {definer}",
            f"CREATE DEFINER={definer} VIEW orphan AS SELECT id FROM t",
            f"DROP USER {definer}",
        )
        (source,), _ = open_sources([database.url_as(f"{database.name[-20:]}_r", "pw")])
        try:
            table, rows = read(source, "orphan")
            assert rows == []
            assert table.comment.startswith("cannot be read: the server refuses to read")
            assert read(source, "t")[0].comment == ""
        finally:
            source.close()
            database.run(f"DROP USER {user}")
