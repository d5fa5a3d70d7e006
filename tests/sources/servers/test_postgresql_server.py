"""A PostgreSQL server of our own: passwords, what refuses a connection, crashes."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from dbrag.catalog.profile import profile_table
from dbrag.errors import DbragError, LimitReached, SourceBusy, SourceError
from dbrag.execution import limits
from dbrag.execution.run import run
from dbrag.options import OpenOptions, SourceOptions
from dbrag.sources.servers import postgresql
from dbrag.sources.servers import source as server_source
from dbrag.sources.servers.open import open_server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dbrag.sources.base import Source
    from tests.servers import PrivatePostgres


@pytest.fixture(autouse=True)
def _no_password_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))


@pytest.fixture
def source(private_postgres: PrivatePostgres) -> Iterator[Source]:
    url = private_postgres.database.url
    opened = open_server("db", url, url, OpenOptions())
    yield opened
    opened.close()


def ask(url: str, options: SourceOptions | None = None) -> None:
    sources = {} if options is None else {"db": options}
    opened = open_server("db", url, url, OpenOptions(sources=sources))
    try:
        with opened.session(5) as session:
            session.execute("SELECT 1 AS n")
            assert session.fetch(2) == [(1,)]
    finally:
        opened.close()


def test_every_way_to_give_a_password(
    private_postgres: PrivatePostgres, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    database, secret = private_postgres.database, private_postgres.PASSWORD
    ask(database.url)
    bare = database.url_as("boss")
    monkeypatch.setenv("THEIRS", secret)
    ask(bare, SourceOptions(password_env="THEIRS"))
    ask(bare, SourceOptions(password_command="printenv THEIRS"))
    monkeypatch.setenv("PGPASSWORD", secret)
    ask(bare)
    monkeypatch.delenv("PGPASSWORD")
    file = tmp_path / "pgpass"
    escaped = secret.replace("\\", r"\\").replace(":", r"\:")
    file.write_text(f"127.0.0.1:{private_postgres.port}:*:boss:{escaped}\n", encoding="utf-8")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))
    ask(bare)


def test_what_refuses_a_connection(
    private_postgres: PrivatePostgres, caplog: pytest.LogCaptureFixture
) -> None:
    url = private_postgres.database.parsed
    cases = [
        (url.set(password="wr0ng s3cret"), "refuses the connection", "password_env"),
        (url.set(username="nobody"), "refuses the connection", "password_env"),
        (url.set(database="nowhere"), "nowhere", "psql -l"),
        (url.set(port=1), "Connection refused", "server runs"),
        (url.update_query_dict({"sslmode": "require"}), "encryption", "sslmode"),
        (url.update_query_dict({"nosuch": "x"}), "nosuch", "URL"),
    ]
    with caplog.at_level(logging.DEBUG):
        for bad, words, hint in cases:
            with pytest.raises(SourceError) as caught:
                ask(bad.render_as_string(hide_password=False))
            error = caught.value
            assert words in error.message
            assert hint in error.hint
            assert error.exit_code == 3
            assert str(bad.port) in error.message
            text = f"{error.message} {error.hint} {error!r} {error.__cause__!r}"
            assert str(bad.password) not in text
        with pytest.raises(SourceError, match="no password supplied"):
            ask(private_postgres.database.url_as("boss"))
    assert private_postgres.PASSWORD not in caplog.text


def test_a_server_that_does_not_answer() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        started = time.monotonic()
        with pytest.raises(SourceError, match="does not answer"):
            ask(f"postgresql://ann:s3cret@127.0.0.1:{port}/db?connect_timeout=2")
        assert time.monotonic() - started < 8


def test_too_many_connections(private_postgres: PrivatePostgres) -> None:
    url = private_postgres.database.url
    sources = [open_server("db", url, url, OpenOptions()) for _ in range(15)]

    def fill() -> None:
        for source in sources:
            stack.callback(source.close)
        for source in sources:
            stack.enter_context(source.session(5))

    with ExitStack() as stack, pytest.raises(SourceBusy, match="no more connections"):
        fill()


def test_a_crash_in_the_middle_and_life_after_it(
    private_postgres: PrivatePostgres, source: Source
) -> None:
    database = private_postgres.database
    database.run(
        "CREATE TABLE IF NOT EXISTS kept AS SELECT i AS n FROM generate_series(1, 1000) i",
        "CHECKPOINT",
    )
    (table,) = source.reflect()
    marks = source.marks()

    def question() -> None:
        run(source, "SELECT pg_sleep(30)", timeout_s=60, max_rows=10, max_mb=10)

    def indexing() -> None:
        while True:
            profile_table(source, table, profile_rows=1000, profile_s=5)
            source.marks()

    for work in (question, indexing):
        threading.Timer(0.5, private_postgres.stop).start()
        started = time.monotonic()
        with pytest.raises(SourceError) as caught:
            work()
        assert time.monotonic() - started < 10
        assert private_postgres.PASSWORD not in str(caught.value)
        give_up = time.monotonic() + 10
        while not _is_down(private_postgres):
            assert time.monotonic() < give_up
            time.sleep(0.05)
        with pytest.raises(SourceError, match=str(private_postgres.port)):
            source.reflect()
        private_postgres.start()
        profiled, _ = profile_table(source, table, profile_rows=10_000, profile_s=5)
        assert profiled.row_count == 1000
        # A crash takes the server's counters with it: the table is read again.
        assert source.marks().keys() == marks.keys()


def _is_down(server: PrivatePostgres) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", server.port)) != 0


def test_a_server_that_stands_still(
    private_postgres: PrivatePostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_GRACE_S", 1.0)
    monkeypatch.setattr(postgresql, "CANCEL_S", 0.5)
    monkeypatch.setattr(server_source, "ANSWER_S", 1.0)
    url = f"{private_postgres.database.url}?connect_timeout=2"
    opened = open_server("db", url, url, OpenOptions())

    def ask() -> None:
        run(opened, "SELECT pg_sleep(60)", timeout_s=1, max_rows=1, max_mb=1)

    started = time.monotonic()
    with ExitStack() as stack:
        freeze = threading.Timer(0.5, stack.enter_context, [private_postgres.frozen()])
        freeze.start()
        with pytest.raises(LimitReached, match="time limit"):
            ask()
        freeze.join()
        with pytest.raises(SourceError, match="does not answer"):
            ask()
    assert time.monotonic() - started < 15
    assert run(opened, "SELECT 1", timeout_s=5, max_rows=1, max_mb=1).rows == ((1,),)
    # Also where a connection lies idle, and in the middle of a session.
    with private_postgres.frozen(), pytest.raises(SourceError, match="does not answer"):
        ask()
    assert run(opened, "SELECT 1", timeout_s=5, max_rows=1, max_mb=1).rows == ((1,),)
    with ExitStack() as stack:
        with opened.session(5) as session:
            session.execute("SELECT 1")
            stack.enter_context(private_postgres.frozen())
        assert time.monotonic() - started < 30
    assert run(opened, "SELECT 1", timeout_s=5, max_rows=1, max_mb=1).rows == ((1,),)
    opened.close()


def test_an_interrupted_statement_is_gone(
    private_postgres: PrivatePostgres, source: Source
) -> None:
    with pytest.raises(LimitReached, match="time limit"):
        run(source, "SELECT /* mine */ pg_sleep(30)", timeout_s=0.5, max_rows=1, max_mb=1)
    assert private_postgres.database.run(
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%mine%' "
        "AND state = 'active' AND pid <> pg_backend_pid()"
    ) == [(0,)]


def test_ctrl_c_cancels_on_the_server(private_postgres: PrivatePostgres, source: Source) -> None:
    import _thread

    threading.Timer(0.7, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        run(source, "SELECT /* theirs */ pg_sleep(30)", timeout_s=60, max_rows=1, max_mb=1)
    assert private_postgres.database.run(
        "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%theirs%' "
        "AND state = 'active' AND pid <> pg_backend_pid()"
    ) == [(0,)]


def test_a_planted_password_is_in_no_error(private_postgres: PrivatePostgres) -> None:
    # Even where the server itself repeats it.
    url = private_postgres.database.url
    opened = open_server("db", url, url, OpenOptions())
    with opened.session(5) as session, pytest.raises(DbragError) as caught:
        session.execute(f"SELECT '{private_postgres.PASSWORD}'::int")
    assert private_postgres.PASSWORD not in caught.value.message
    assert "***" in caught.value.message
    opened.close()
