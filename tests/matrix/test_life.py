"""What changes while dbrag looks, and what breaks."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from dbrag.errors import LimitReached, SourceBusy
from tests.matrix.beds import Bed, FilesBed, Made

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Connect = Callable[..., Any]

kind = pytest.mark.kind

PEOPLE = Made("people", {"id": "int", "name": "text"}, [(1, "Ann"), (2, "Bo")])
TOWNS = Made("towns", {"id": "int", "town": "text"}, [(1, "Lisbon")])


def settle(bed: Bed) -> None:
    """Servers tell of changes a moment later; a look at files is kept for a second."""
    if bed.name != "sqlite":
        time.sleep(1.2)


@kind("a new table is picked up")
def test_a_new_table_is_found_without_being_told(bed: Bed, connect: Connect) -> None:
    bed.make(PEOPLE)
    with connect() as db:
        db.index()
        bed.make(TOWNS)
        settle(bed)
        found = {c.table.name for c in db.search("which town?").candidates}
    assert found == {"people", "towns"}


@kind("a changed row is picked up")
def test_new_rows_are_found(bed: Bed, connect: Connect) -> None:
    bed.make(PEOPLE)
    with connect() as db:
        db.index()
        if isinstance(bed, FilesBed):
            bed.make(Made("people", PEOPLE.columns, [*PEOPLE.rows, (3, "Zebulon")]))
        else:
            bed.do("INSERT INTO people VALUES (3, 'Zebulon')")
        settle(bed)
        (candidate,) = db.search("where is Zebulon?").candidates
    assert [match.value for match in candidate.matches] == ["Zebulon"]


@kind("a dropped table goes")
def test_a_dropped_table_is_gone(bed: Bed, connect: Connect) -> None:
    bed.make(PEOPLE, TOWNS)
    with connect() as db:
        db.index()
        if isinstance(bed, FilesBed):
            (bed.folder / "towns.csv").unlink()
        else:
            bed.do("DROP TABLE towns")
        settle(bed)
        assert [c.table.name for c in db.search("which town?").candidates] == ["people"]


@kind("nothing changed, nothing read")
def test_an_unchanged_source_is_not_read_again(bed: Bed, connect: Connect) -> None:
    bed.make(PEOPLE)
    with connect() as db:
        db.index()
        settle(bed)
        assert db.index().sources[0].status == "unchanged"
    with connect() as again:
        assert again.index().sources[0].status == "unchanged"


@kind("only the changed table is read again")
def test_one_table_alone_is_read_again(bed: Bed, connect: Connect) -> None:
    if bed.name in ("sqlite", "duckdb"):
        pytest.skip(f"{bed.name}: one file, which does not tell its tables apart")
    bed.make(PEOPLE, TOWNS)
    with connect() as db:
        db.index()
        if isinstance(bed, FilesBed):
            bed.make(Made("towns", TOWNS.columns, [*TOWNS.rows, (2, "Porto")]))
        else:
            bed.do("INSERT INTO towns VALUES (2, 'Porto')")
        settle(bed)
        (line,) = db.index().sources
        assert (line.status, line.tables, line.tables_read) == ("built", 2, 1)
        found = {c.table.name for c in db.search("Porto").candidates if c.matches}
    assert found == {"towns"}


@kind("a slow statement is stopped")
def test_a_slow_statement_ends(bed: Bed, connect: Connect) -> None:
    bed.make(Made("n", {"i": "int"}, [(i,) for i in range(1000)]))
    slow = "SELECT COUNT(*) FROM n a, n b, n c, n d WHERE a.i + b.i + c.i + d.i = 77"
    started = time.monotonic()
    with connect(timeout_s=1) as db, pytest.raises(LimitReached, match="1 s"):
        db.sql(slow)
    assert time.monotonic() - started < 10


@kind("an engine's error is one line")
def test_an_error_of_the_engine_is_clear(bed: Bed, connect: Connect) -> None:
    from dbrag.errors import DbragError

    bed.make(PEOPLE)
    with connect() as db, pytest.raises(DbragError) as caught:
        db.sql("SELECT SUM(name, id, 3) FROM people")
    assert "\n" not in caught.value.message
    assert "Traceback" not in caught.value.message


@kind("an idle connection was closed")
def test_a_closed_idle_connection_is_opened_again(bed: Bed, connect: Connect) -> None:
    bed.make(PEOPLE)
    with connect() as db:
        db.sql("SELECT COUNT(*) FROM people")
        if not bed.disconnect():
            pytest.skip(f"{bed.name} has no connections that a server could close")
        assert db.sql("SELECT COUNT(*) FROM people").execution.rows == ((2,),)


@kind("a locked database is named")
def test_a_database_that_another_program_writes(bed: Bed, connect: Connect, tmp_path: Path) -> None:
    if bed.name not in ("sqlite", "duckdb"):
        pytest.skip(f"{bed.name} serves readers beside writers")
    bed.make(PEOPLE)
    script = {
        "sqlite": "import sqlite3; c = sqlite3.connect(p); c.execute('BEGIN EXCLUSIVE')",
        "duckdb": "import duckdb; c = duckdb.connect(p)",
    }
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"p = {bed.spec!r}; {script[bed.name]}; print(1, flush=True); input()",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    try:
        with connect() as db, pytest.raises(SourceBusy, match="bed"):
            db.sql("SELECT COUNT(*) FROM people")
    finally:
        holder.kill()
        holder.wait()
    with connect() as db:
        assert db.sql("SELECT COUNT(*) FROM people").execution.rows == ((2,),)


@kind("one unreadable source does not break the others")
def test_an_unreadable_file_beside_a_good_one(bed: Bed, connect: Connect, tmp_path: Path) -> None:
    bed.make(PEOPLE)
    bad = tmp_path / "bad.db"
    bad.write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)
    with connect(also=[str(bad)]) as db:
        report = db.index()
        assert {s.name: s.status for s in report.sources}["bad"] == "skipped"
        result = db.search("name of the people")
        assert [c.table.name for c in result.candidates] == ["people"]
        assert "source_skipped" in [w.code for w in result.warnings]
