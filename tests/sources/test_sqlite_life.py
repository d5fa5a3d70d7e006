"""SQLite files that change, are locked, damaged or gone: marked and read without touching them."""

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
    SourceBusy,
    SourceError,
    SourceNotFound,
    SourceUnreadable,
)
from dbrag.sources import open_sources
from tests.sources.conftest import contents, opened, rows_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Make = Callable[..., Path]


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
