"""MySQL and MariaDB: every type as an exact value, the same whatever the server's settings."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from dbrag.errors import ExecutionError, LimitReached
from dbrag.sources.servers import mysql_session
from dbrag.sources.servers.mysql import MySqlEngine
from dbrag.sources.servers.source import ServerSource
from tests.servers import MYSQL, TestDatabase, fresh_database

from .mysql_bed import DIGITS, ENDLESS, ask, is_mariadb, one, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def database() -> Iterator[TestDatabase]:
    with fresh_database(MYSQL, "mysql") as database:
        yield database


@pytest.fixture
def source(database: TestDatabase) -> Iterator[ServerSource]:
    source = open_source(database)
    yield source
    source.close()


VALUES = [
    ("decimal(38,20)", "'12345678901234567.12345678901234567890'",
     Decimal("12345678901234567.12345678901234567890")),
    ("decimal(65,30)", "'-1e-30'", Decimal("-0.000000000000000000000000000001")),
    ("bigint unsigned", "18446744073709551615", 18446744073709551615),
    ("bigint", "-9223372036854775808", -9223372036854775808),
    ("bit(1)", "b'1'", 1),
    ("bit(64)", "18446744073709551615", 18446744073709551615),
    ("enum('a','ß')", "'ß'", "ß"),
    ("set('x','y')", "'x,y'", "x,y"),
    ("json", """'{"a": 1.10}'""", '{"a": 1.10}'),
    ("date", "'2020-02-29'", date(2020, 2, 29)),
    ("date", "'0000-00-00'", "0000-00-00"),
    ("date", "'2020-00-10'", "2020-00-10"),
    ("date", "'9999-12-31'", date(9999, 12, 31)),
    ("datetime(6)", "'2020-01-02 03:04:05.000006'", datetime(2020, 1, 2, 3, 4, 5, 6)),
    ("datetime", "'0000-00-00 00:00:00'", "0000-00-00 00:00:00"),
    ("timestamp null", "'2020-01-02 03:04:05'", datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC)),
    ("time", "'838:59:59'", "838:59:59"),
    ("time(6)", "'-100:00:00.000001'", "-100:00:00.000001"),
    ("time", "'10:20:30'", "10:20:30"),
    ("year", "2020", 2020),
    ("binary(4)", "'ab'", b"ab\0\0"),
    ("varbinary(20)", "x'00ff'", b"\x00\xff"),
    ("blob", "x'c3a9'", b"\xc3\xa9"),
    ("text character set utf8mb4", "'é😀'", "é😀"),
    ("text", "''", ""),
    ("text", "NULL", None),
    ("varchar(9) character set latin1", "'é'", "é"),
    ("varchar(9) character set utf16", "'日本'", "日本"),
    ("char(5)", "'a  '", "a"),
    ("tinyint(1)", "2", 2),
    ("boolean", "true", 1),
    ("double", "0.1", 0.1),
    ("double", "1.7976931348623157e308", 1.7976931348623157e308),
    ("double", "123456.78901234567", 123456.78901234567),
    ("float", "1.5", 1.5),
    ("float", "16777216", 16777216.0),
    ("float", "123456.789", 123456.79),
    ("float", "0.1", 0.1),
    ("float", "3.40282e38", 3.40282e38),
    ("float", "1e-45", 1e-45),
    ("mediumint", "-8388608", -8388608),
]  # fmt: skip
MARIADB_VALUES = [
    ("uuid", "'123e4567-e89b-12d3-a456-426614174000'", "123e4567-e89b-12d3-a456-426614174000"),
    ("inet6", "'::1'", "::1"),
    ("inet4", "'1.2.3.4'", "1.2.3.4"),
]


@pytest.mark.parametrize(("kind", "written", "expected"), VALUES + MARIADB_VALUES)
def test_every_type_is_exact(
    database: TestDatabase, source: ServerSource, kind: str, written: str, expected: Any
) -> None:
    if (kind, written, expected) in MARIADB_VALUES and not is_mariadb(database):
        pytest.skip("a type of MariaDB")
    database.run(
        "DROP TABLE IF EXISTS v",
        f"CREATE TABLE v (v {kind})",
        "SET SESSION sql_mode = ''",
    )
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        cursor.execute(f"INSERT INTO v VALUES ({written})")
    value = one(source, "SELECT v FROM v")
    assert value == expected
    assert type(value) is type(expected)
    assert ask(source, "SELECT v FROM v GROUP BY v ORDER BY v") == [(expected,)]


def test_a_float_beside_every_other_type(database: TestDatabase, source: ServerSource) -> None:
    """A FLOAT changes the protocol of the whole result: it must say the same as the other."""
    kinds = [kind for kind, _, _ in VALUES if kind != "float"]
    columns = ", ".join(f"c{i} {kind} NULL" for i, kind in enumerate(kinds))
    written = ", ".join(text for kind, text, _ in VALUES if kind != "float")
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        cursor.execute("DROP TABLE IF EXISTS f")
        cursor.execute(f"CREATE TABLE f ({columns}, f float)")
        cursor.execute(f"INSERT INTO f VALUES ({written}, 0.1)")
        cursor.execute(f"INSERT INTO f VALUES ({', '.join(['NULL'] * len(kinds))}, NULL)")
        cursor.execute(f"INSERT INTO f VALUES ({written}, 2e-3)")
    expected = tuple(value for kind, _, value in VALUES if kind != "float")
    rows = ask(source, "SELECT * FROM f")
    assert rows == [(*expected, 0.1), (None,) * len(rows[0]), (*expected, 0.002)]
    assert [list(map(type, row)) for row in rows[:1]] == [[*map(type, expected), float]]
    names = ", ".join(f"c{i}" for i in range(len(kinds)))
    assert ask(source, f"SELECT {names} FROM f")[0] == expected


def test_floats_in_a_long_result(database: TestDatabase, source: ServerSource) -> None:
    database.run("DROP TABLE IF EXISTS f", "CREATE TABLE f (f float, s mediumtext)")
    database.run("INSERT INTO f VALUES (123456.789, REPEAT('x', 70000)), (NULL, REPEAT('y', 300))")
    rows = ask(source, "SELECT s, f, f FROM f")
    assert rows == [("x" * 70000, 123456.79, 123456.79), ("y" * 300, None, None)]
    many = f"{DIGITS} SELECT f.f FROM f, " + ", ".join(f"d AS d{i}" for i in range(12))
    started = time.monotonic()
    with source.session() as session:
        assert session.execute(many) == ["f"]
        assert len(session.fetch(5)) == 5
        session.execute("SELECT MAX(f) FROM f WHERE s LIKE '%y%'")
        assert session.fetch(2) == [(None,)]
    assert time.monotonic() - started < 3
    (held,) = database.run("SHOW GLOBAL STATUS LIKE 'Prepared_stmt_count'")
    source.close()
    assert int(held[1]) == 0


def test_geometry_is_binary_and_bits_count(database: TestDatabase, source: ServerSource) -> None:
    database.run(
        "DROP TABLE IF EXISTS g",
        "CREATE TABLE g (g geometry, b bit(12))",
        "INSERT INTO g VALUES (ST_GeomFromText('POINT(1 2)'), b'101')",
    )
    ((geometry, bits),) = ask(source, "SELECT g, b FROM g")
    assert isinstance(geometry, bytes)
    assert len(geometry) == 25
    assert bits == 5
    assert one(source, "SELECT ST_AsText(g) FROM g") == "POINT(1 2)"
    assert one(source, "SELECT SUM(b) FROM g WHERE b = 5") == 5


def test_duplicate_names_are_kept_and_empty_results_have_columns(source: ServerSource) -> None:
    with source.session() as session:
        assert session.execute("SELECT 1 AS n, 2 AS n") == ["n", "n"]
        assert session.fetch(5) == [(1, 2)]
        assert session.fetch(5) == []
        assert session.execute("SELECT 1 AS `a b`, 'x' AS `ü` LIMIT 0") == ["a b", "ü"]
        assert session.fetch(5) == []


def test_text_that_is_no_utf8_does_not_stop_it(source: ServerSource) -> None:
    from dbrag.sources.servers.mysql_values import converter

    assert converter(253, 45)(b"a\xffb") == "a\ufffdb"
    assert converter(10, 63)(b"20\xff") == "20\ufffd"
    assert one(source, "SELECT CAST(x'61ff62' AS BINARY)") == b"a\xffb"


@pytest.mark.parametrize(
    "mode",
    [
        "ANSI_QUOTES,PIPES_AS_CONCAT,NO_BACKSLASH_ESCAPES,ONLY_FULL_GROUP_BY",
        "ORACLE",
        "HIGH_NOT_PRECEDENCE,PAD_CHAR_TO_FULL_LENGTH,REAL_AS_FLOAT",
    ],
)
def test_statements_mean_the_same_whatever_the_servers_mode(
    database: TestDatabase, mode: str
) -> None:
    if mode == "ORACLE" and not is_mariadb(database):
        pytest.skip("a mode of MariaDB")

    class Wayward(MySqlEngine):
        def connect_arguments(self, url: Any) -> Any:
            # What a server with other defaults would give us.
            return {**super().connect_arguments(url), "init_command": f"SET sql_mode = '{mode}'"}

    source = ServerSource("my", database.parsed, database.url, Wayward())
    assert one(source, 'SELECT "text"') == "text"
    assert one(source, r"SELECT 'a\'b'") == "a'b"
    assert one(source, "SELECT 1 AS `a`") == 1
    assert one(source, "SELECT 'a' || 'b'") == 0
    assert one(source, "SELECT NOT 1 BETWEEN -5 AND 5") == 0
    assert one(source, "SELECT ''") == ""
    assert one(source, "SELECT count (*) FROM (SELECT 1) AS t") == 1
    source.close()


def test_numbers_keep_their_digits_and_sign(source: ServerSource) -> None:
    assert one(source, "SELECT 1 / 3") == Decimal("0.333333333333")
    assert one(source, "SELECT CAST(1 AS UNSIGNED) - 2") == -1
    assert one(source, "SELECT SUM(n) FROM (SELECT 9007199254740993 AS n) AS t") == 9007199254740993
    with pytest.raises(ExecutionError, match="out of range"):
        ask(source, "SELECT 9223372036854775807 + 1")


def test_settings_that_a_server_lacks_are_left_out(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not is_mariadb(database):
        pytest.skip("MariaDB taken for MySQL")
    monkeypatch.setattr(mysql_session, "is_mariadb", lambda raw: False)
    source = open_source(database)
    assert "ONLY_FULL_GROUP_BY" in one(source, "SELECT @@sql_mode")
    assert one(source, "SELECT 1 / 3") == Decimal("0.333333333333")
    assert one(source, "SELECT @@group_concat_max_len") == 2**30
    started = time.monotonic()
    with pytest.raises(LimitReached, match="stopped"):
        ask(source, ENDLESS, timeout_s=0.4)
    assert time.monotonic() - started < 3
    source.close()


def test_dates_and_names_of_months_do_not_depend_on_the_server(source: ServerSource) -> None:
    assert one(source, "SELECT MONTHNAME('2020-01-01')") == "January"
    assert one(source, "SELECT @@session.time_zone") == "+00:00"


def test_nothing_is_cut_without_a_word(database: TestDatabase, source: ServerSource) -> None:
    text = one(source, f"{DIGITS} SELECT GROUP_CONCAT(REPEAT('x', 300000)) FROM d")
    assert len(text) == 4 * 300_000 + 3
    size = int(database.run("SELECT @@max_allowed_packet")[0][0])
    with pytest.raises(LimitReached, match="cut a value"):
        ask(source, f"{DIGITS} SELECT LENGTH(GROUP_CONCAT(REPEAT('x', {size // 3}))) FROM d")
    with pytest.raises(LimitReached, match="cut a value"):
        ask(source, f"SELECT REPEAT('x', {size + 1})")
