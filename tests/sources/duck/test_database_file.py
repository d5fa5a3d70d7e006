"""A user's DuckDB file beside other programs: logs, locks, replaced and damaged files."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from dbrag.errors import (
    SourceBusy,
    SourceNotFound,
    SourceUnreadable,
)
from dbrag.sources.duck.database import DuckDatabase
from dbrag.sources.duck.marks import is_duckdb
from dbrag.sources.open import open_sources

from ..conftest import contents
from .conftest import OPTIONS, drain, rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PENDING = """
import duckdb, os, sys
c = duckdb.connect(sys.argv[1])
c.execute("CREATE TABLE t AS SELECT 1 AS a"); c.execute("CHECKPOINT")
c.execute("INSERT INTO t VALUES (2)")
os._exit(0)
"""


def test_a_pending_log_is_read_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "crashed.duckdb"
    subprocess.run([sys.executable, "-c", PENDING, str(path)], check=True)
    assert sorted(contents(tmp_path)) == ["crashed.duckdb", "crashed.duckdb.wal"]
    before = contents(tmp_path)
    source = DuckDatabase("c", str(path), str(path), OPTIONS)
    with_log = source.stamp(), source.fingerprint()
    assert rows(source, "SELECT a FROM t") == [(1,), (2,)]
    source.close()
    assert contents(tmp_path) == before
    os.remove(f"{path}.wal")
    assert source.stamp() != with_log[0]
    assert source.fingerprint() != with_log[1]


def test_a_file_in_a_folder_that_may_not_be_written(database: Callable[..., Any]) -> None:
    source = database("CREATE TABLE t AS SELECT 1 AS a", "locked/x.duckdb")
    folder = os.path.dirname(source.location)
    os.chmod(source.location, 0o400)
    os.chmod(folder, 0o500)
    try:
        assert rows(source, "SELECT a FROM t") == [(1,)]
        assert os.listdir(folder) == ["x.duckdb"]
    finally:
        os.chmod(folder, 0o700)


HOLD = """
import duckdb, sys
c = duckdb.connect(sys.argv[1])
print("held", flush=True); sys.stdin.readline()
"""


def test_a_writer_elsewhere_is_named(database: Callable[..., Any]) -> None:
    source = database("CREATE TABLE t AS SELECT 1 AS a")
    command = [sys.executable, "-c", HOLD, source.location]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout
        writer.stdout.readline()
        with pytest.raises(SourceBusy, match=r"locked by another program.*PID") as caught:
            source.reflect()
        assert "try again" in caught.value.hint
        writer.communicate("\n")
    assert len(source.reflect()) == 1


def test_our_own_look_at_the_file_keeps_a_writer_out_while_we_read(
    database: Callable[..., Any],
) -> None:
    source = database("CREATE TABLE t AS SELECT i AS a FROM range(10) r(i)")
    code = f"import duckdb; duckdb.connect({source.location!r})"
    with source.session() as session:
        session.execute("SELECT a FROM t")
        source.stamp()
        source.fingerprint()
        open_sources([source.location])
        ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
        assert ended.returncode != 0
        assert len(session.fetch(20)) == 10
    source._engine.release()
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_connection_of_this_process_is_told_apart(database: Callable[..., Any]) -> None:
    source = database("CREATE TABLE t AS SELECT 1 AS a")
    with (
        duckdb.connect(source.location),
        pytest.raises(SourceBusy, match="open in this very process"),
    ):
        source.reflect()


def test_several_processes_read_at_once(database: Callable[..., Any]) -> None:
    source = database("CREATE TABLE t AS SELECT 1 AS a")
    code = (
        "import sys; from dbrag.options import OpenOptions\n"
        "from dbrag.sources.duck.database import DuckDatabase\n"
        "s = DuckDatabase('x', sys.argv[1], '', OpenOptions()); print(len(s.reflect()))"
    )
    with source.session() as session:
        session.execute("SELECT a FROM t")
        done = subprocess.run(
            [sys.executable, "-c", code, source.location],
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout == "1\n"


def test_a_replaced_file_is_noticed(database: Callable[..., Any]) -> None:
    source = database("CREATE TABLE t AS SELECT i AS a FROM range(5000) r(i)")
    other = database("CREATE TABLE t AS SELECT 7 AS a", "other.duckdb")
    with source.session() as session:
        session.execute("SELECT a FROM t")
        assert len(session.fetch(10)) == 10
        os.replace(other.location, source.location)
        with pytest.raises(SourceBusy, match="was changed while it was read"):
            drain(session)
    assert rows(source, "SELECT a FROM t") == [(7,)]


def damaged(path: Path, how: str) -> None:
    data = bytearray(path.read_bytes())
    match how:
        case "cut":
            del data[20_000:]
        case "overwritten":
            data[270_000:300_000] = b"\xff" * 30_000
        case "other":
            data[:] = b"hello" * 1000
        case "empty":
            data[:] = b""
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["cut", "overwritten", "other", "empty"])
def test_a_damaged_file_is_named(how: str, make_duckdb: Callable[..., Path]) -> None:
    path = make_duckdb("x.duckdb", "CREATE TABLE t AS SELECT i AS a FROM range(100000) r(i)")
    damaged(path, how)
    assert is_duckdb(str(path)) == (how in ("cut", "overwritten"))
    source = DuckDatabase("x", str(path), str(path), OPTIONS)
    with pytest.raises(SourceUnreadable, match=r"x\.duckdb"):
        rows(source, "SELECT sum(a) FROM t")


def test_a_missing_file_and_an_empty_database(tmp_path: Path, database: Callable[..., Any]) -> None:
    source = DuckDatabase("x", str(tmp_path / "no.duckdb"), "", OPTIONS)
    for look in (source.stamp, source.fingerprint, source.reflect):
        with pytest.raises(SourceNotFound, match=r"no\.duckdb"):
            look()
    assert not list(tmp_path.glob("no*"))
    with pytest.raises(SourceUnreadable, match="is empty"):
        database("SELECT 1").reflect()
