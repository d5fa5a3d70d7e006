"""Opening, reading and marking SQLite files without touching them."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from dbrag.errors import (
    DbragError,
    ExecutionError,
    LimitReached,
    SourceBusy,
    SourceError,
    SourceNotFound,
    SourceUnreadable,
    UnknownName,
)
from dbrag.sources import open_sources
from tests.sources.conftest import contents

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dbrag.sources import Source

    Make = Callable[..., Path]


def opened(path: object) -> Source:
    return open_sources([str(path)])[0][0]


def rows_of(source: Source, sql: str) -> list[tuple[object, ...]]:
    with source.session() as session:
        session.execute(sql)
        return session.fetch(1000)


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


# -- marks ------------------------------------------------------------------------


def test_stamp_and_fingerprint_change_with_content_only(make_db: Make) -> None:
    path = make_db()
    source = opened(path)
    before = source.stamp(), source.fingerprint()
    source.reflect()
    rows_of(source, "SELECT a FROM t")
    assert (source.stamp(), source.fingerprint()) == before
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("UPDATE t SET a = 2")
        writer.commit()
    assert source.stamp() != before[0]
    assert source.fingerprint() != before[1]
    assert rows_of(source, "SELECT a FROM t") == [(2,)]


def test_a_touched_file_keeps_its_fingerprint(make_db: Make) -> None:
    path = make_db()
    source = opened(path)
    stamp, fingerprint = source.stamp(), source.fingerprint()
    os.utime(path, ns=(1, 1))
    assert source.stamp() != stamp
    assert source.fingerprint() == fingerprint


def test_changes_in_the_write_ahead_log_count(make_db: Make) -> None:
    path = make_db(script="PRAGMA journal_mode = wal; CREATE TABLE t (a)")
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("INSERT INTO t VALUES (1)")
        writer.commit()
        source = opened(path)
        before = source.stamp(), source.fingerprint()
        assert (source.stamp(), source.fingerprint()) == before
        writer.execute("INSERT INTO t VALUES (2)")
        writer.commit()
        assert source.stamp() != before[0]
        assert source.fingerprint() != before[1]
        assert rows_of(source, "SELECT a FROM t") == [(1,), (2,)]


def test_a_file_replaced_under_an_open_source_is_read_anew(make_db: Make) -> None:
    path, other = make_db("a.db"), make_db("b.db", "CREATE TABLE t (a); INSERT INTO t VALUES (9)")
    source = opened(path)
    assert rows_of(source, "SELECT a FROM t") == [(1,)]
    other.replace(path)
    assert rows_of(source, "SELECT a FROM t") == [(9,)]


def test_a_file_that_goes_away(make_db: Make) -> None:
    path = make_db()
    source = opened(path)
    path.unlink()
    for call in (source.stamp, source.fingerprint, source.reflect):
        with pytest.raises(SourceNotFound, match="no file"):
            call()


# -- journals ---------------------------------------------------------------------


def test_a_quiet_wal_database_gets_no_files_beside_it(
    make_db: Make, untouched: Callable[[], None]
) -> None:
    path = make_db(script="PRAGMA journal_mode = wal; CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    assert list(contents(path.parent)) == ["shop.db"]
    untouched()
    source = opened(path)
    assert [table.ref.name for table in source.reflect()] == ["t"]
    assert rows_of(source, "SELECT a FROM t") == [(1,)]
    source.close()


def test_a_wal_database_in_use_is_read_with_its_log(make_db: Make) -> None:
    path = make_db(script="PRAGMA journal_mode = wal; CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("INSERT INTO t VALUES (2)")
        writer.commit()
        before = contents(path.parent)
        source = opened(path)
        assert rows_of(source, "SELECT a FROM t") == [(1,), (2,)]
        after = contents(path.parent)
        # Readers note their position in the shared index of the log, nothing else.
        assert {k: v for k, v in after.items() if not k.endswith("-shm")} == {
            k: v for k, v in before.items() if not k.endswith("-shm")
        }
        source.close()
    # The owner could fold its log in and remove it: no idle reader of ours held it.
    assert list(contents(path.parent)) == ["shop.db"]


def crashed_copy(path: Path, folder: Path) -> Path:
    """A WAL database as a killed program leaves it: with its log not folded in."""
    folder.mkdir()
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("PRAGMA journal_mode = wal")
        writer.execute("INSERT INTO t VALUES (2)")
        writer.commit()
        for part in path.parent.glob(path.name + "*"):
            shutil.copy(part, folder / part.name)
    return folder / path.name


def test_a_wal_database_after_a_crash(make_db: Make, tmp_path: Path) -> None:
    copy = crashed_copy(make_db(), tmp_path / "crashed")
    before = contents(copy.parent)
    assert len(before) == 3
    source = opened(copy)
    assert rows_of(source, "SELECT a FROM t") == [(1,), (2,)]
    source.close()
    assert contents(copy.parent) == before


def test_a_log_without_its_index_is_an_error_not_old_data(make_db: Make, tmp_path: Path) -> None:
    copy = crashed_copy(make_db(), tmp_path / "crashed")
    (copy.parent / (copy.name + "-shm")).unlink()
    before = contents(copy.parent)
    with pytest.raises(SourceError, match="no '-shm' file") as error:
        opened(copy).reflect()
    assert "wal_checkpoint" in error.value.hint
    assert contents(copy.parent) == before


def test_a_file_read_without_locks_must_not_change_meanwhile(make_db: Make) -> None:
    path = make_db(script="PRAGMA journal_mode = wal; CREATE TABLE t (a); INSERT INTO t VALUES (1)")
    source = opened(path)
    with source.session() as session:
        session.execute("SELECT a FROM t")
        with closing(sqlite3.connect(path)) as writer:
            writer.execute("INSERT INTO t VALUES (2)")
            writer.commit()
        with pytest.raises(SourceBusy, match="changed while it was read"):
            session.fetch(10)
    assert rows_of(source, "SELECT a FROM t") == [(1,), (2,)]


def test_an_unfinished_change_of_a_killed_writer(make_db: Make, tmp_path: Path) -> None:
    path = make_db(
        script="CREATE TABLE t (a); INSERT INTO t SELECT hex(randomblob(500)) FROM "
        "(WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 500) "
        "SELECT i FROM n)"
    )
    kill = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "c.execute('PRAGMA cache_size = 5'); c.execute('BEGIN');"
        "c.execute(\"UPDATE t SET a = 'x' || a\"); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", kill, str(path)], check=True)
    before = contents(tmp_path)
    assert "shop.db-journal" in before
    with pytest.raises(SourceError, match="unfinished change") as error:
        opened(path).reflect()
    assert "sqlite3" in error.value.hint
    assert contents(tmp_path) == before


# -- bad input --------------------------------------------------------------------


def test_a_locked_database_is_waited_for_then_named(make_db: Make) -> None:
    path = make_db()
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        started = time.monotonic()
        with pytest.raises(SourceBusy, match="locked by another program") as error:
            opened(path).reflect()
        assert 1 < time.monotonic() - started < 5
        assert error.value.hint


def test_a_lock_that_ends_soon_does_not_matter(make_db: Make) -> None:
    path = make_db()
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        timer = threading.Timer(0.3, lambda: writer.execute("ROLLBACK"))
        timer.start()
        assert rows_of(opened(path), "SELECT a FROM t") == [(1,)]
        timer.join()


def test_a_malformed_database_fails_in_reflect_with_its_name(make_db: Make, tmp_path: Path) -> None:
    path = make_db("bad.db", "CREATE TABLE t (a); CREATE TABLE u (b)")
    data = bytearray(path.read_bytes())
    data[100:300] = b"\xff" * 200
    path.write_bytes(data)
    make_db("good.db")
    sources, skipped = open_sources([str(tmp_path)])
    assert [s.name for s in sources] == ["bad", "good"]
    assert skipped == []
    with pytest.raises(SourceUnreadable, match=r"bad\.db' is malformed"):
        sources[0].reflect()
    assert [table.ref.name for table in sources[1].reflect()] == ["t"]


def test_only_a_header(tmp_path: Path) -> None:
    path = tmp_path / "cut.db"
    path.write_bytes(b"SQLite format 3\x00" + b"\x10" * 10)
    with pytest.raises(SourceUnreadable):
        opened(path).reflect()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(make_db: Make) -> None:
    path = make_db()
    path.chmod(0)
    with pytest.raises(SourceUnreadable, match="ermission"):
        opened(path)


def test_permission_lost_after_opening(make_db: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    source = opened(make_db())

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("dbrag.sources.filelocks.open", refuse, raising=False)
    for call in (source.stamp, source.fingerprint, source.reflect):
        with pytest.raises(SourceUnreadable, match="Permission denied") as error:
            call()
        assert "permission" in error.value.hint
