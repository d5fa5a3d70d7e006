"""MySQL and MariaDB over real connections: snapshots, streaming, cancelling, life."""

from __future__ import annotations

import secrets
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy.engine import make_url

from dbrag.errors import ExecutionError, LimitReached, SourceBusy, SourceError, UnknownName
from dbrag.execution.limits import within
from dbrag.sources.servers import mysql_session
from dbrag.sources.servers.mysql import MySqlEngine
from dbrag.sources.servers.source import ServerSource
from tests.servers import MYSQL, TestDatabase, fresh_database

from .mysql_bed import DIGITS, ENDLESS, ask, one, open_source, running, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

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
