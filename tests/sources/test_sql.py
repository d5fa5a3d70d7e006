"""Opening, reading and marking SQLite files without touching them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from dbrag.errors import (
    DbragError,
    ExecutionError,
    LimitReached,
    SourceError,
    UnknownName,
)
from tests.sources.conftest import opened, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Make = Callable[..., Path]


# -- reading ----------------------------------------------------------------------


def test_rows_come_as_they_are(make_db: Make) -> None:
    source = opened(make_db())
    with source.session() as session:
        names = session.execute(
            "SELECT 1 AS n, 2 AS n, 9223372036854775807, 0.1, 'x', x'00ff', NULL"
        )
        assert list(names[:2]) == ["n", "n"]
        assert session.fetch(10) == [(1, 2, 2**63 - 1, 0.1, "x", b"\x00\xff", None)]
        assert session.fetch(10) == []


def test_fetch_in_parts(make_db: Make) -> None:
    source = opened(make_db(script="CREATE TABLE t (a); INSERT INTO t VALUES (1), (2), (3)"))
    with source.session() as session:
        session.execute("SELECT a FROM t ORDER BY a")
        assert [session.fetch(2), session.fetch(2), session.fetch(2)] == [[(1,), (2,)], [(3,)], []]


def test_text_that_is_not_utf8_is_shown_with_marks(make_db: Make) -> None:
    source = opened(
        make_db(script="CREATE TABLE t (a); INSERT INTO t VALUES (CAST(x'61ff62' AS TEXT))")
    )
    assert rows_of(source, "SELECT a FROM t") == [("a\ufffdb",)]


def test_scan_gives_columns_of_the_table_and_long_blobs_by_their_size(make_db: Make) -> None:
    source = opened(
        make_db(
            script='CREATE TABLE t ("a b", b BLOB, c);'
            "INSERT INTO t VALUES (1, zeroblob(5000), 'x'), (2, x'00', 'y'), (3, 'text', 'z')"
        )
    )
    (table,) = source.reflect()
    with source.scan(table, 2) as rows:
        assert list(rows) == [(1, "<blob 5000 bytes>", "x"), (2, b"\x00", "y")]


def test_threads_have_sessions_of_their_own(make_db: Make) -> None:
    source = opened(make_db())
    results: list[object] = []

    def read() -> None:
        for _ in range(20):
            results.extend(rows_of(source, "SELECT a FROM t"))

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [(1,)] * 160


def test_a_closed_source_says_so(make_db: Make) -> None:
    source = opened(make_db())
    source.reflect()
    source.close()
    with pytest.raises(SourceError, match="closed"), source.session():
        pass


def test_cancel_from_another_thread(make_db: Make) -> None:
    source = opened(make_db())
    endless = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c"
    with source.session() as session:
        threading.Timer(0.1, session.cancel).start()
        with pytest.raises(ExecutionError, match="interrupted"):
            session.execute(endless)
        session.execute("SELECT 1")
        assert session.fetch(1) == [(1,)]


# -- the wall ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM t",
        "INSERT INTO t VALUES (2)",
        "UPDATE t SET a = 2",
        "DROP TABLE t",
        "CREATE TABLE u (a)",
        "CREATE TEMP TABLE u (a)",
        "CREATE TEMP VIEW v AS SELECT 1",
        "ALTER TABLE t RENAME TO u",
        "ATTACH 'new.db' AS n",
        "VACUUM",
        "VACUUM INTO 'copy.db'",
        "REINDEX",
        "ANALYZE",
        "BEGIN IMMEDIATE",
        "PRAGMA journal_mode = wal",
        "PRAGMA query_only = OFF",
        "PRAGMA writable_schema = ON",
        "PRAGMA user_version = 7",
        "PRAGMA read_uncommitted = 1",
        "SELECT load_extension('x')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT * FROM pragma_database_list",
        "WITH d AS (SELECT 1) DELETE FROM t",
        "SELECT 'a' REGEXP 'b'",
        "SELECT 1; DELETE FROM t",
    ],
)
def test_the_session_itself_only_reads(
    make_db: Make,
    untouched: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    sql: str,
) -> None:
    path = make_db(script="CREATE TABLE t (a); INSERT INTO t VALUES (1); CREATE INDEX i ON t (a)")
    monkeypatch.chdir(tmp_path)
    untouched()
    source = opened(path)
    with pytest.raises(DbragError):
        rows_of(source, sql)
    assert rows_of(source, "SELECT a FROM t") == [(1,)]
    source.close()


def test_a_view_may_not_run_what_a_statement_may_not(make_db: Make) -> None:
    source = opened(
        make_db(
            script="CREATE TABLE t (a); CREATE VIEW v AS SELECT load_extension('x') AS a FROM t"
        )
    )
    with pytest.raises(ExecutionError):
        rows_of(source, "SELECT a FROM v")


def test_views_and_generated_columns_may_use_json(make_db: Make) -> None:
    source = opened(
        make_db(
            script="CREATE TABLE t (a TEXT, x AS (json_extract(a, '$.x')));"
            "INSERT INTO t VALUES ('{\"x\": 7}');"
            "CREATE VIEW v AS SELECT value FROM t, json_each(t.a)"
        )
    )
    assert rows_of(source, "SELECT x FROM t") == [(7,)]
    assert rows_of(source, "SELECT value FROM v") == [(7,)]


def test_engine_errors_are_one_line_and_typed(make_db: Make) -> None:
    source = opened(make_db())
    with source.session() as session:
        with pytest.raises(UnknownName) as unknown:
            session.execute("SELECT b FROM t")
        assert unknown.value.names == ("b",)
        with pytest.raises(ExecutionError, match="syntax error"):
            session.execute("SELECT FROM")
        with pytest.raises(LimitReached, match="256 MB"):
            session.execute("SELECT zeroblob(300000000)")
        with pytest.raises(ExecutionError):
            session.execute("SELECT '\0'")
