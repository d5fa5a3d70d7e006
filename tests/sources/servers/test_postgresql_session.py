"""A session with PostgreSQL: read-only, limited, streamed, cancelled; lost and found again."""

from __future__ import annotations

import threading
import time
import tracemalloc
from typing import TYPE_CHECKING

import psycopg
import pytest

from dbrag.errors import (
    DbragError,
    ExecutionError,
    LimitReached,
    SourceBusy,
    SourceError,
    UnknownName,
)
from dbrag.execution.limits import within
from dbrag.execution.run import run
from dbrag.options import OpenOptions
from dbrag.sources.servers.open import open_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbrag.sources.base import Source
    from tests.servers import TestDatabase


@pytest.fixture(scope="module")
def database(postgres: TestDatabase) -> TestDatabase:
    postgres.run(
        "CREATE SCHEMA sales",
        "CREATE TABLE public.numbers AS SELECT i AS n FROM generate_series(1, 1000) i",
        "CREATE TABLE sales.orders (id int PRIMARY KEY, city text)",
        "INSERT INTO sales.orders VALUES (1, 'Rome'), (2, NULL), (3, '')",
        "CREATE FUNCTION sales.sneak() RETURNS int LANGUAGE plpgsql AS $$ BEGIN "
        "INSERT INTO sales.orders VALUES (99, 'x'); RETURN 1; END $$",
    )
    return postgres


@pytest.fixture
def source(database: TestDatabase) -> Iterator[Source]:
    opened = open_server("db", database.url, database.url, OpenOptions())
    yield opened
    opened.close()


def running(database: TestDatabase, marker: str) -> int:
    """Statements with that text which the server is working on."""
    ((count,),) = database.run(
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' "
        f"AND pid <> pg_backend_pid() AND query LIKE '%{marker}%'"
    )
    return int(count)


def wait_until_running(database: TestDatabase, marker: str, wanted: int = 1) -> None:
    give_up = time.monotonic() + 10
    while running(database, marker) != wanted:
        assert time.monotonic() < give_up, f"never {wanted} statements with {marker!r}"
        time.sleep(0.02)


@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO sales.orders VALUES (4, 'x')",
        "WITH d AS (DELETE FROM sales.orders RETURNING *) SELECT * FROM d",
        "SELECT sales.sneak()",
        "CREATE TABLE made (a int)",
        "CREATE TEMP TABLE made (a int)",
        "SELECT * INTO made FROM sales.orders",
        "TRUNCATE sales.orders",
        "SELECT * FROM sales.orders FOR UPDATE",
        "SELECT set_config('transaction_read_only', 'off', true)",
        "SET TRANSACTION READ WRITE",
        "SET transaction_read_only = off",
        "SELECT 1; DELETE FROM sales.orders",
        "NOTIFY somebody",
        "VACUUM",
    ],
)
def test_nothing_is_written(source: Source, database: TestDatabase, statement: str) -> None:
    with source.session(10) as session:
        with pytest.raises(ExecutionError):
            session.execute(statement)
        # The same session goes on.
        assert session.execute("SELECT count(*) FROM sales.orders") == ["count"]
        assert session.fetch(1) == [(3,)]
    assert database.run("SELECT count(*) FROM sales.orders") == [(3,)]


def test_a_statement_that_ends_the_transaction_gains_nothing(source: Source) -> None:
    with source.session(10) as session:
        with pytest.raises(ExecutionError):
            session.execute("COMMIT")
        with pytest.raises(ExecutionError, match="only reading"):
            session.execute("SELECT sales.sneak()")
    with source.session(10) as session:
        session.execute("SELECT current_setting('default_transaction_read_only')")
        assert session.fetch(1) == [("on",)]


def test_what_the_server_lets_a_read_only_transaction_write_is_undone(
    source: Source, database: TestDatabase
) -> None:
    # Before PostgreSQL 16; the guard refuses the function.
    with source.session(10) as session:
        try:
            session.execute("SELECT lo_create(0)")
        except ExecutionError:
            return
    assert database.run("SELECT count(*) FROM pg_largeobject_metadata") == [(0,)]


def test_settings_of_the_session(source: Source) -> None:
    expected = {
        "application_name": "dbrag",
        "transaction_read_only": "on",
        "transaction_isolation": "repeatable read",
        "statement_timeout": "7s",
        "lock_timeout": "10s",
        "idle_in_transaction_session_timeout": "10min",
        "TimeZone": "UTC",
        "search_path": "public, sales, pg_temp",
        "standard_conforming_strings": "on",
    }
    with source.session(7) as session:
        for name, value in expected.items():
            session.execute(f"SELECT current_setting('{name}')")
            assert (name, session.fetch(1)) == (name, [(value,)])
    with source.session() as session:
        session.execute("SELECT current_setting('statement_timeout')")
        assert session.fetch(1) == [("1h",)]


def test_search_path_is_the_users_order_of_what_is_read(database: TestDatabase) -> None:
    separator = "&" if "?" in database.url else "?"
    url = f"{database.url}{separator}options=-c%20search_path%3Dsales,public"
    cases = {(): "sales, public, pg_temp", ("public",): "public, sales, pg_temp"}
    for schemas, path in cases.items():
        opened = open_server("db", url, url, OpenOptions(schemas=schemas))
        with opened.session(5) as session:
            session.execute("SELECT current_setting('search_path')")
            assert session.fetch(1) == [(path,)]
        opened.close()


def test_one_snapshot(source: Source, database: TestDatabase) -> None:
    with source.session(10) as session:
        session.execute("SELECT count(*) FROM numbers")
        before = session.fetch(9)
        database.run("INSERT INTO numbers VALUES (0)")
        session.execute("SELECT count(*) FROM numbers")
        assert session.fetch(9) == before
    database.run("DELETE FROM numbers WHERE n = 0")


def test_a_huge_result_is_not_pulled_whole(source: Source) -> None:
    tracemalloc.start()
    try:
        with source.session(60) as session:
            session.execute("SELECT repeat('x', 100000) FROM generate_series(1, 100000)")
            assert len(session.fetch(10)) == 10
            assert len(session.fetch(25)) == 25
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50 * 2**20
    with pytest.raises(LimitReached, match="10 rows"):
        run(source, "SELECT generate_series(1, 100000000)", timeout_s=30, max_rows=10, max_mb=10)


def test_server_stops_a_slow_statement(source: Source) -> None:
    started = time.monotonic()
    with source.session(0.5) as session:
        with pytest.raises(LimitReached, match=r"0\.5 s"):
            session.execute("SELECT pg_sleep(20)")
        session.execute("SELECT 1 AS n")
        assert session.fetch(1) == [(1,)]
    assert time.monotonic() - started < 5


def test_cancel_reaches_the_server(source: Source, database: TestDatabase) -> None:
    slow = "SELECT /* cancel me */ pg_sleep(30)"

    def work() -> None:
        session.execute(slow)
        session.fetch(1)

    with source.session(60) as session:
        with pytest.raises(LimitReached, match="time limit"):
            within(session, work, 0.5)
        assert running(database, "cancel me") == 0
        session.execute("SELECT 1 AS n")
        assert session.fetch(1) == [(1,)]


def test_cancel_of_a_streaming_result(source: Source, database: TestDatabase) -> None:
    def work() -> None:
        session.execute("SELECT /* stream me */ i, repeat('x', 100) FROM generate_series(1, 1e9) i")
        while session.fetch(1000):
            pass

    with source.session(60) as session, pytest.raises(LimitReached):
        within(session, work, 0.5)
    assert running(database, "stream me") == 0


def test_leaving_a_session_ends_its_statement(source: Source, database: TestDatabase) -> None:
    with source.session(60) as session:
        session.execute("SELECT /* leave me */ generate_series(1, 1e9)")
        session.fetch(1)
    assert running(database, "leave me") == 0


def test_cancel_without_a_statement_does_no_harm(source: Source) -> None:
    for _ in range(20):
        with source.session(60) as session:
            session.execute("SELECT 1 AS n")
            session.cancel()
            session.fetch(1)
            session.cancel()
            session.execute("SELECT 2 AS n")
            assert session.fetch(5) == [(2,)]


@pytest.mark.parametrize(
    ("statement", "name"),
    [
        ("SELECT nothing FROM sales.orders", "nothing"),
        ("SELECT o.nothing FROM sales.orders o", "o.nothing"),
        ("SELECT * FROM nowhere", "nowhere"),
        ("SELECT * FROM nowhere.orders", "nowhere.orders"),
        ("SELECT no_such(1)", "no_such"),
        ('SELECT "No Such" FROM sales.orders', "No Such"),
    ],
)
def test_unknown_names(source: Source, statement: str, name: str) -> None:
    with source.session(5) as session, pytest.raises(UnknownName) as caught:
        session.execute(statement)
    assert caught.value.names == (name,)


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("SELECT 1/0", "division by zero"),
        ("SELECT 'a'::int", "invalid input syntax"),
        ("SELECT FROM FROM", "syntax error"),
        ("SELECT 1 || 2", "operator does not exist"),
        ("SELECT '\x01\udcff'", "UTF-8"),
    ],
)
def test_errors_of_a_statement(source: Source, statement: str, words: str) -> None:
    with source.session(5) as session, pytest.raises(ExecutionError, match=words) as caught:
        session.execute(statement)
    assert "\n" not in caught.value.message
    assert "LINE 1" not in caught.value.message


def test_an_error_after_the_first_rows(source: Source) -> None:
    with source.session(5) as session:
        session.execute("SELECT 1 / (500 - i) FROM generate_series(1, 1000) i")
        with pytest.raises(ExecutionError, match="division"):
            session.fetch(1000)


def test_a_locked_table(source: Source, database: TestDatabase) -> None:
    with (
        psycopg.connect(database.url) as other,
        source.session(20) as session,
    ):
        other.execute("LOCK TABLE sales.orders IN ACCESS EXCLUSIVE MODE")
        session.execute("SELECT set_config('lock_timeout', '300ms', true)")
        session.fetch(2)
        with pytest.raises(SourceBusy, match="locked"):
            session.execute("SELECT * FROM sales.orders")


@pytest.mark.parametrize("moment", ["computing", "streaming", "idle"])
def test_a_lost_connection(source: Source, database: TestDatabase, moment: str) -> None:
    statement = {
        "computing": "SELECT /* lose me */ pg_sleep(30)",
        "streaming": "SELECT /* lose me */ generate_series(1, 1e9)",
        "idle": "SELECT /* lose me */ 1",
    }[moment]

    def kill() -> None:
        if moment == "computing":
            wait_until_running(database, "lose me")
        database.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE query LIKE '%lose me%' AND pid <> pg_backend_pid()"
        )

    def ask() -> None:
        killer.start()
        session.execute(statement)
        if moment != "computing":
            session.fetch(100)
            killer.join()
            time.sleep(0.1)
        while session.fetch(100):
            pass
        session.execute(statement)

    killer = threading.Timer(0.2, kill)
    with source.session(60) as session, pytest.raises(SourceError, match="lost") as caught:
        ask()
    assert "password" not in str(caught.value)
    # The next one connects anew, all idle ones were killed too or not.
    with source.session(5) as session:
        session.execute("SELECT 1 AS n")
        assert session.fetch(1) == [(1,)]


def test_idle_connections_that_were_closed_are_opened_again(
    source: Source, database: TestDatabase
) -> None:
    with source.session(5) as session:
        session.execute("SELECT pg_backend_pid()")
        ((pid,),) = session.fetch(1)
    database.run(f"SELECT pg_terminate_backend({pid})")
    time.sleep(0.1)
    with source.session(5) as session:
        session.execute("SELECT pg_backend_pid()")
        assert session.fetch(1) != [(pid,)]


def test_many_threads_share_a_bounded_pool(source: Source, database: TestDatabase) -> None:
    errors: list[DbragError] = []

    def ask(n: int) -> None:
        try:
            for _ in range(5):
                with source.session(20) as session:
                    session.execute(f"SELECT {n} AS n, pg_sleep(0.01)")
                    assert session.fetch(2)[0][0] == n
        except DbragError as error:
            errors.append(error)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dbrag' AND datname = "
    ((left,),) = database.run(f"{count}'{database.name}'")
    assert left <= 4
    source.close()
    time.sleep(0.2)
    assert database.run(f"{count}'{database.name}'") == [(0,)]
    with pytest.raises(SourceError, match="closed"), source.session():
        pass
