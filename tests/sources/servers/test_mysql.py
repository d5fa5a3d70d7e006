"""MySQL and MariaDB over real connections: settings, values, streaming, cancelling, life."""

from __future__ import annotations

import secrets
import threading
import time
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy.engine import make_url

from dbrag.errors import ExecutionError, LimitReached, SourceBusy, SourceError, UnknownName
from dbrag.execution.limits import within
from dbrag.sources.servers import mysql_session
from dbrag.sources.servers.mysql import MySqlEngine
from dbrag.sources.servers.source import ServerSource
from tests.servers import MYSQL, TestDatabase, fresh_database

if TYPE_CHECKING:
    from collections.abc import Iterator

DIGITS = "WITH d AS (SELECT 1 AS n UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4)"
ENDLESS = f"{DIGITS} SELECT COUNT(*) FROM " + ", ".join(f"d AS d{i}" for i in range(20))
MILLIONS = f"{DIGITS} SELECT d0.n, REPEAT('x', 200) FROM " + ", ".join(
    f"d AS d{i}" for i in range(12)
)


@pytest.fixture(scope="module")
def database() -> Iterator[TestDatabase]:
    with fresh_database(MYSQL, "mysql") as database:
        yield database


@pytest.fixture
def source(database: TestDatabase) -> Iterator[ServerSource]:
    source = open_source(database)
    yield source
    source.close()


def open_source(database: TestDatabase, **more: Any) -> ServerSource:
    return ServerSource("my", database.parsed, database.url, MySqlEngine(), **more)


def ask(source: ServerSource, sql: str, timeout_s: float | None = None) -> list[tuple[Any, ...]]:
    with source.session(timeout_s) as session:
        session.execute(sql)
        return session.fetch(1000)


def one(source: ServerSource, sql: str) -> Any:
    ((value,),) = ask(source, sql)
    return value


def is_mariadb(database: TestDatabase) -> bool:
    return "mariadb" in str(database.run("SELECT VERSION()")[0][0]).lower()


def running(database: TestDatabase, part: str) -> int:
    """Statements on the server that contain ``part``."""
    rows = database.run("SHOW FULL PROCESSLIST")
    return sum(part in str(row[7]) and "PROCESSLIST" not in str(row[7]) for row in rows)


def wait_until(done: Any, seconds: float = 5.0) -> bool:
    until = time.monotonic() + seconds
    while not done():
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


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


def test_one_session_sees_one_state(database: TestDatabase, source: ServerSource) -> None:
    database.run("DROP TABLE IF EXISTS s", "CREATE TABLE s (i int)", "INSERT INTO s VALUES (1)")
    with source.session() as session:
        session.execute("SELECT COUNT(*) FROM s")
        assert session.fetch(2) == [(1,)]
        database.run("INSERT INTO s VALUES (2)")
        session.execute("SELECT COUNT(*) FROM s")
        assert session.fetch(2) == [(1,)]
    assert one(source, "SELECT COUNT(*) FROM s") == 2


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO w VALUES (2)",
        "INSERT INTO mw VALUES (2)",
        "UPDATE w SET i = 2",
        "DELETE FROM w",
        "REPLACE INTO w VALUES (3)",
        "TRUNCATE w",
        "DROP TABLE w",
        "ALTER TABLE w ADD COLUMN x int",
        "CREATE TABLE x (i int)",
        "CREATE TEMPORARY TABLE x (i int)",
        "CREATE VIEW x AS SELECT 1",
        "CREATE INDEX x ON w (i)",
        "RENAME TABLE w TO x",
        "CREATE USER nobody_of_dbrag",
        "SELECT 1; DELETE FROM w",
        "SELECT do_write()",
        "CALL do_write_too()",
        "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE w",
    ],
)
def test_the_session_refuses_to_write(
    database: TestDatabase, source: ServerSource, statement: str
) -> None:
    database.run(
        "CREATE TABLE IF NOT EXISTS w (i int)",
        "CREATE TABLE IF NOT EXISTS mw (i int) ENGINE = MyISAM",
        "DELETE FROM w",
        "INSERT INTO w VALUES (1)",
        "DROP FUNCTION IF EXISTS do_write",
        "CREATE FUNCTION do_write() RETURNS int MODIFIES SQL DATA BEGIN "
        "INSERT INTO w VALUES (9); RETURN 1; END",
        "DROP PROCEDURE IF EXISTS do_write_too",
        "CREATE PROCEDURE do_write_too() INSERT INTO w VALUES (9)",
    )
    with pytest.raises((ExecutionError, SourceError)):
        ask(source, statement)
    assert database.run("SELECT i FROM w") == [(1,)]
    assert not database.run("SHOW TABLES LIKE 'x'")


def test_rows_stream_and_an_unfinished_result_ends_at_once(
    database: TestDatabase, source: ServerSource
) -> None:
    started = time.monotonic()
    with source.session() as session:
        session.execute(MILLIONS)
        assert len(session.fetch(10)) == 10
        session.execute("SELECT CONNECTION_ID()")  # the same session goes on
        number = session.fetch(2)
    assert time.monotonic() - started < 3  # 16 million rows are not read
    assert ask(source, "SELECT CONNECTION_ID()") == number
    assert wait_until(lambda: not running(database, "REPEAT('x', 200)"))
    assert one(source, "SELECT 1") == 1


def test_a_short_rest_is_read_and_the_connection_kept(source: ServerSource) -> None:
    number = one(source, "SELECT CONNECTION_ID()")
    with source.session() as session:
        session.execute(f"{DIGITS} SELECT n FROM d")
        assert len(session.fetch(2)) == 2
        session.execute(f"{DIGITS} SELECT n FROM d")
        assert len(session.fetch(4)) == 4
    assert one(source, "SELECT CONNECTION_ID()") == number


def test_a_cursor_that_is_forgotten_reads_nothing(database: TestDatabase) -> None:
    engine = MySqlEngine()
    import pymysql

    parsed = engine.url(database.parsed)
    raw = pymysql.connect(
        host=parsed.host,
        port=parsed.port or 3306,
        user=parsed.username,
        **{"password": parsed.password or "", **engine.connect_arguments(parsed)},
    )
    engine.prepare(raw)
    engine.begin(raw, None)
    cursor = engine.cursor(raw)
    cursor.execute(MILLIONS)
    started = time.monotonic()
    del cursor
    assert time.monotonic() - started < 3
    engine.end(raw)
    raw.close()


def test_cancelling_reaches_the_server(database: TestDatabase, source: ServerSource) -> None:
    with source.session() as session:
        threading.Timer(0.3, session.cancel).start()
        started = time.monotonic()

        def work() -> None:
            session.execute(ENDLESS)
            session.fetch(1)

        with pytest.raises(LimitReached, match="cancelled"):
            work()
        assert time.monotonic() - started < 5
    assert not running(database, "COUNT(*) FROM d AS d0")
    assert one(source, "SELECT 1") == 1


def test_the_time_limit_of_the_caller(database: TestDatabase, source: ServerSource) -> None:
    with source.session() as session:

        def work() -> Any:
            session.execute(ENDLESS)
            return session.fetch(1)

        with pytest.raises(LimitReached, match="time limit"):
            within(session, work, 0.3)
    assert wait_until(lambda: not running(database, "COUNT(*) FROM d AS d0"))


def test_the_server_itself_stops_after_the_time(source: ServerSource) -> None:
    started = time.monotonic()
    with pytest.raises(LimitReached, match="stopped"):
        ask(source, ENDLESS, timeout_s=0.4)
    assert 0.3 < time.monotonic() - started < 3
    # The limit is not left on the pooled connection.
    assert len(ask(source, f"{DIGITS} SELECT n FROM d")) == 4


def test_a_cancel_without_a_server_to_take_it_hangs_up(
    source: ServerSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(raw: Any) -> None:
        raise OSError("too many connections")

    monkeypatch.setattr(mysql_session, "kill_query", refuse)
    with source.session() as session:
        threading.Timer(0.3, session.cancel).start()

        def work() -> None:
            session.execute("SELECT SLEEP(20)")
            session.fetch(1)

        with pytest.raises(SourceError, match="lost"):
            work()


def test_nobody_elses_statement_is_killed_behind_a_load_balancer(
    database: TestDatabase, source: ServerSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = mysql_session._identity
    with source.session() as session:
        monkeypatch.setattr(mysql_session, "_identity", lambda raw: (*own(raw)[:2], "another"))
        threading.Timer(0.3, session.cancel).start()

        def work() -> None:
            session.execute("SELECT SLEEP(2), 'balanced'")
            session.fetch(1)

        with pytest.raises(SourceError, match="lost"):
            work()
        assert running(database, "balanced") == 1  # it was not stopped there: it ends by itself


def test_a_user_with_a_single_connection(database: TestDatabase) -> None:
    name = f"dbrag_{secrets.token_hex(4)}"
    database.run(
        f"CREATE USER {name}@'%' IDENTIFIED BY 'p' WITH MAX_USER_CONNECTIONS 1",
        f"GRANT SELECT ON {database.name}.* TO {name}@'%'",
    )
    url = make_url(database.url_as(name, "p"))
    source = ServerSource("my", url, "here", MySqlEngine())
    try:
        with source.session() as session:
            with pytest.raises(SourceBusy, match="no more connections"), source.session():
                pass
            threading.Timer(0.3, session.cancel).start()

            def work() -> None:
                session.execute("SELECT SLEEP(3)")
                session.fetch(1)

            with pytest.raises(SourceError, match="lost"):
                work()
        source.close()
    finally:
        database.run(f"DROP USER {name}@'%'")


def test_a_killed_connection_is_told_and_reopened(
    database: TestDatabase, source: ServerSource
) -> None:
    number = one(source, "SELECT CONNECTION_ID()")
    database.run(f"KILL {number}")
    assert one(source, "SELECT 1") == 1  # was idle in the pool: nobody notices

    def kill() -> None:
        assert wait_until(lambda: running(database, "COUNT(*) FROM d AS d0"))
        rows = database.run("SHOW FULL PROCESSLIST")
        (number,) = [row[0] for row in rows if "COUNT(*) FROM d AS d0" in str(row[7])]
        database.run(f"KILL {number}")

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(SourceError, match="was lost"):
        ask(source, ENDLESS)
    thread.join()
    assert one(source, "SELECT 1") == 1


def test_a_table_that_is_being_altered_is_busy(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = [(n, "1" if n == "lock_wait_timeout" else v) for n, v in mysql_session._SETTINGS]
    monkeypatch.setattr(mysql_session, "_SETTINGS", tuple(settings))
    database.run("DROP TABLE IF EXISTS l", "CREATE TABLE l (i int)")
    source = open_source(database)
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("LOCK TABLES l WRITE")
        with pytest.raises(SourceBusy, match="changed by another"):
            ask(source, "SELECT * FROM l")
    source.close()


def test_unknown_names_are_told(source: ServerSource) -> None:
    for statement, name in (
        ("SELECT nope FROM (SELECT 1 AS a) AS t", "nope"),
        ("SELECT * FROM nope", "nope"),
    ):
        with pytest.raises(UnknownName) as caught:
            ask(source, statement)
        assert caught.value.names[0].endswith(name)


def test_threads_have_connections_of_their_own(source: ServerSource) -> None:
    numbers: list[int] = []
    barrier = threading.Barrier(3)

    def work() -> None:
        with source.session() as session:
            session.execute("SELECT CONNECTION_ID()")
            numbers.append(session.fetch(1)[0][0])
            barrier.wait(10)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(numbers)) == 3
