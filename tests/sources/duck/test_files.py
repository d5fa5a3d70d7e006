"""Parquet files through Arrow: what is read of them, and that it is right."""

from __future__ import annotations

import os
import shutil
import threading
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dbrag.errors import (
    ExecutionError,
    SourceBusy,
    SourceError,
    SourceNotFound,
    SourceUnreadable,
    UnknownName,
)
from dbrag.sources.duck.files import FilesSource
from dbrag.sources.files.table import FileTable
from dbrag.types import Column

from ..conftest import contents
from .conftest import OPTIONS, drain, rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIMPLE = pa.table({"a": [1, 2, None], "b": ["x", "", None]})


def test_tables_and_their_rows(files: Callable[..., FilesSource], tmp_path: Path) -> None:
    source = files({"Order Details": SIMPLE, "från": SIMPLE, 'q"x': SIMPLE})
    before = contents(tmp_path)
    tables = source.reflect()
    assert [table.ref.name for table in tables] == ["Order Details", "från", 'q"x']
    assert tables[0].ref.schema is None
    assert tables[0].columns == (Column("a", "BIGINT"), Column("b", "VARCHAR"))
    assert tables[0].estimate == 3
    for table in tables:
        with source.scan(table, 2) as found:
            assert list(found) == [(1, "x"), (2, "")]
    assert rows(source, 'SELECT count(*) FROM "order details" JOIN från USING (a)') == [(2,)]
    assert contents(tmp_path) == before


def test_notes_tell_how_a_file_was_read(tmp_path: Path, opened: Callable[..., Any]) -> None:
    pq.write_table(SIMPLE, tmp_path / "x.parquet")
    path = str(tmp_path / "x.parquet")
    table = FileTable("x", path, (path,), guessed=("delimiter ';'",), warnings=("3 rows",))
    source = opened(FilesSource("f", [table], path, path, OPTIONS))
    assert source.reflect()[0].notes == ("delimiter ';'", "3 rows")


def test_partitions_have_types(files: Callable[..., Any]) -> None:
    part = pa.table({"a": [1]})
    places = [
        "year=2024/day=2024-01-05/zip=01234/city=K%C3%B6ln/x.parquet",
        "year=2025/day=2025-02-28/zip=99999/city=a%2Fb/x.parquet",
        "year=__HIVE_DEFAULT_PARTITION__/day=2025-03-01/zip=00001/city=c/y.parquet",
    ]
    source = files({"t": dict.fromkeys(places, part)})
    (table,) = source.reflect()
    kinds = {column.name: column.type for column in table.columns}
    expected = {"a": "BIGINT", "year": "BIGINT", "day": "DATE", "zip": "VARCHAR"}
    assert kinds == {**expected, "city": "VARCHAR"}
    assert table.columns[1].comment == "from the names of the folders"
    assert rows(source, "SELECT year, day, zip, city FROM t ORDER BY year NULLS LAST") == [
        (2024, date(2024, 1, 5), "01234", "Köln"),
        (2025, date(2025, 2, 28), "99999", "a/b"),
        (None, date(2025, 3, 1), "00001", "c"),
    ]
    for condition, n in {
        "year = 2024": 1,
        "year IS NULL": 1,
        "day >= DATE '2025-01-01'": 2,
        "zip = '01234'": 1,
        "city = 'a/b'": 1,
    }.items():
        assert rows(source, f"SELECT count(*) FROM t WHERE {condition}") == [(n,)]


def test_a_partition_leaves_other_folders_alone(files: Callable[..., Any]) -> None:
    source = files(
        {"t": {f"k={k}/x.parquet": pa.table({"a": [k]}) for k in (1, 2)}},
    )
    assert rows(source, "SELECT a FROM t WHERE k = 1") == [(1,)]
    path = source._tables["t"].parquet[1]
    os.remove(path)
    shutil.copy(source._tables["t"].parquet[0], path)  # another file, of the same rows
    assert rows(source, "SELECT a, k FROM t ORDER BY k") == [(1, 1), (1, 2)]


def test_a_partition_column_that_the_file_holds_too(files: Callable[..., Any]) -> None:
    source = files({"t": {"k=1/x.parquet": pa.table({"k": ["one"]})}})
    assert rows(source, "SELECT k FROM t") == [("one",)]


def test_only_what_is_needed_is_read(files: Callable[..., Any]) -> None:
    n = 400_000
    wide = {f"c{i}": np.random.default_rng(i).random(n) for i in range(6)}
    source = files({"t": pa.table({"id": np.arange(n), **wide})})
    with source.session() as session:
        session.execute("SELECT count(*) FROM t")
        plan = session._cursor.execute("EXPLAIN SELECT sum(c0) FROM t WHERE id < 1000").fetchall()[
            0
        ][1]
        assert '"id" < 1000' in plan  # the filter is in the scan, not above it
        assert "Filter ─" not in plan
        assert "c1" not in plan
    reads = bytes_read(lambda: rows(source, "SELECT sum(c0) FROM t"))
    everything = bytes_read(lambda: rows(source, "SELECT sum(c0 + c1 + c2 + c3 + c4 + c5) FROM t"))
    assert reads * 3 < everything


def bytes_read(work: Callable[[], object]) -> int:
    def now() -> int:
        with open("/proc/self/io") as file:
            return int(next(line for line in file if line.startswith("rchar")).split()[1])

    before = now()
    work()
    return now() - before


def test_statistics_come_from_the_footers(files: Callable[..., Any]) -> None:
    parts = {
        f"{i}.parquet": pa.table(
            {
                "a": [i * 10 + 1, None, i * 10 + 3, 4],
                "s": ["x", "y" * 100, None, "a"],
                "d": [date(2020, 1, i + 1)] * 4,
                "n": pa.array([None] * 4, pa.int64()),
                "l": [[1]] * 4,
            }
        )
        for i in range(3)
    }
    source = files({"t": parts})
    (table,) = source.reflect()
    assert table.estimate == 12
    known = source.statistics(table)
    assert (known["a"].minimum, known["a"].maximum, known["a"].null_share) == ("1", "23", 0.25)
    assert (known["d"].minimum, known["d"].maximum) == ("2020-01-01", "2020-01-03")
    assert known["s"].maximum is None  # may be cut
    assert known["n"].null_share == 1.0
    assert "l" not in known


def test_an_unreadable_file_leaves_the_others(
    files: Callable[..., Any], tmp_path: Path, opened: Callable[..., Any]
) -> None:
    good = tmp_path / "good.parquet"
    pq.write_table(SIMPLE, good)
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1 no parquet")
    pq.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "twice.parquet")
    tables = [
        FileTable(name, str(tmp_path / f"{name}.parquet"), (str(tmp_path / f"{name}.parquet"),))
        for name in ("good", "bad", "twice", "missing")
    ]
    source = opened(FilesSource("f", tables, str(tmp_path), str(tmp_path), OPTIONS))
    found = {table.ref.name: table for table in source.reflect()}
    assert found["good"].columns
    for name in ("bad", "twice", "missing"):
        assert found[name].columns == ()
        assert f"{name}.parquet" in found[name].comment
        with source.session() as session, pytest.raises(SourceError, match=f"{name}.parquet"):
            session.execute(f"SELECT * FROM {name}")
    assert len(rows(source, "SELECT * FROM good")) == 3
    alone = opened(FilesSource("f", tables[1:2], str(tmp_path), str(tmp_path), OPTIONS))
    with pytest.raises(SourceUnreadable, match=r"bad\.parquet"):
        alone.reflect()


def test_a_changed_file_is_read_anew(files: Callable[..., Any]) -> None:
    source = files({"t": SIMPLE, "u": SIMPLE})
    marks, stamp = source.marks(), source.stamp()
    assert rows(source, "SELECT count(*) FROM t") == [(3,)]
    pq.write_table(pa.table({"other": [1]}), source._tables["t"].parquet[0])
    after = source.marks()
    assert source.stamp() == source.fingerprint() != stamp
    assert [ref.name for ref in marks if marks[ref] != after[ref]] == ["t"]
    assert rows(source, "SELECT other FROM t") == [(1,)]


def test_a_file_that_changes_under_a_statement_is_an_error(files: Callable[..., Any]) -> None:
    big = pa.table({"a": np.arange(2_000_000)})
    source = files({"t": {f"{i}.parquet": big for i in range(4)}})
    paths = source._tables["t"].parquet
    with source.session() as session:
        session.execute("SELECT a FROM t")
        assert len(session.fetch(10)) == 10
        pq.write_table(pa.table({"a": [0]}), paths[3])
        with pytest.raises(SourceBusy, match=r"3\.parquet.*changed"):
            drain(session)
    os.remove(paths[2])
    with source.session() as session, pytest.raises(SourceNotFound, match=r"2\.parquet"):
        session.execute("SELECT a FROM t")


@pytest.mark.parametrize(("at", "checksums"), [(4, False), (2000, True)])
def test_a_malformed_page_is_an_error(at: int, checksums: bool, files: Callable[..., Any]) -> None:
    source = files({"t": SIMPLE})
    (path,) = source._tables["t"].parquet
    numbers = pa.table({"a": np.random.default_rng(1).random(100_000)})
    pq.write_table(numbers, path, write_page_checksum=checksums, use_dictionary=False)
    with open(path, "r+b") as file:
        file.seek(at)
        file.write(b"\xff" * 50)
    with pytest.raises(SourceUnreadable, match=r"\d\.parquet"):
        rows(source, "SELECT sum(a), count(DISTINCT a) FROM t")


def test_sessions_in_threads(files: Callable[..., Any]) -> None:
    source = files({"t": pa.table({"a": np.arange(200_000)}), "u": SIMPLE})
    results: list[Any] = []

    def work(n: int) -> None:
        for _ in range(3):
            sql = f"SELECT count(*), (SELECT count(*) FROM u) FROM t WHERE a < {n}"
            results.append((n, rows(source, sql)))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 18
    assert all(found == [(n, 3)] for n, found in results)


def test_a_with_of_a_tables_name_goes_first(files: Callable[..., Any]) -> None:
    source = files({"t": SIMPLE})
    assert rows(source, "WITH t AS (SELECT 9 AS a) SELECT a FROM t") == [(9,)]


def test_names_that_differ_in_case(files: Callable[..., Any]) -> None:
    source = files({"t": pa.table([[1], [2]], names=["a", "A"])})
    (table,) = source.reflect()
    assert [column.name for column in table.columns] == ["a", "A_1"]
    with source.scan(table, 1) as found:
        assert list(found) == [(1, 2)]


def test_a_closed_source_says_so(files: Callable[..., Any]) -> None:
    source = files({"t": SIMPLE})
    source.close()
    with pytest.raises(SourceError, match="is closed"):
        source.reflect()


def test_a_source_without_a_table_and_unknown_tables(files: Callable[..., Any]) -> None:
    with pytest.raises(SourceUnreadable):
        files({}).reflect()
    source = files({"orders": SIMPLE})
    rows(source, "SELECT * FROM orders")
    with source.session() as session:
        with pytest.raises(UnknownName) as caught:
            session.execute("SELECT * FROM order_s")
        assert caught.value.names == ("order_s",)
        with pytest.raises(ExecutionError):
            session.execute("SELECT * FROM main.orders.x")
