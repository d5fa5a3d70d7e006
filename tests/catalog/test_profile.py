# ruff: noqa: E501 - statements and rows are easier to compare on one line
"""Profiles from bounded reads."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from dbrag.catalog.profile import DISPLAY_CHARACTERS, KEPT_CHARACTERS, display, profile_table
from dbrag.errors import SourceUnreadable
from dbrag.sources import open_sources

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Any

    from dbrag.sources import Source
    from dbrag.types import ColumnProfile, Table

    Open = Callable[..., Source]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    def run(script: str, *rows: tuple[str, list[tuple[Any, ...]]]) -> Source:
        path = tmp_path / "shop.db"
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript(script)
            for statement, values in rows:
                connection.executemany(statement, values)
            connection.commit()
        return open_sources([str(path)])[0][0]

    return run


def read(source: Source, rows: int = 1000, seconds: float = 20) -> dict[str, Table]:
    tables = (
        profile_table(source, table, profile_rows=rows, profile_s=seconds)[0]
        for table in source.reflect()
    )
    return {table.ref.name: table for table in tables}


def column(table: Table, name: str) -> ColumnProfile:
    return next(p for p in table.profile if p.column == name)


def test_a_profile(opened: Open) -> None:
    source = opened(
        "CREATE TABLE t (n INT, s TEXT)",
        ("INSERT INTO t VALUES (?, ?)", [(5, "b"), (None, "a"), (5, "b"), (-2, None), (10, "c")]),
    )
    table = read(source)["t"]
    assert (table.row_count, table.rows_read, table.sampled) == (5, 5, False)
    n, s = table.profile
    assert (n.column, n.nulls, n.distinct, n.minimum, n.maximum) == ("n", 1, 3, "-2", "10")
    assert n.frequent == (("5", 2), ("-2", 1), ("10", 1))
    assert n.samples == ("5", "-2", "10")
    assert (s.nulls, s.distinct, s.minimum, s.maximum) == (1, 3, "a", "c")
    assert s.frequent[0] == ("b", 2)
    assert table.sample_rows[0] == ("5", "b")


def test_numbers_are_compared_as_numbers_and_kinds_as_sqlite_sorts_them(opened: Open) -> None:
    source = opened(
        "CREATE TABLE t (n, m, o)",
        (
            "INSERT INTO t VALUES (?, ?, ?)",
            [(9, 1, b"\x00" * 4), (10, "abc", "z"), (2.5, 0.5, "a")],
        ),
    )
    n, m, o = read(source)["t"].profile
    assert (n.minimum, n.maximum) == ("2.5", "10")
    assert (m.minimum, m.maximum) == ("0.5", "abc")
    assert (o.minimum, o.maximum) == ("a", "<blob 4 bytes>")


def test_ten_frequent_values_and_five_samples(opened: Open) -> None:
    values = [(i % 40,) for i in range(400)] + [(3,)]
    source = opened("CREATE TABLE t (a)", ("INSERT INTO t VALUES (?)", values))
    (profile,) = read(source)["t"].profile
    assert len(profile.frequent) == 10
    assert profile.frequent[:2] == (("3", 11), ("0", 10))
    assert profile.samples == ("0", "1", "2", "3", "4")


def test_reading_stops_at_the_row_budget_and_says_so(opened: Open) -> None:
    source = opened("CREATE TABLE t (a)", ("INSERT INTO t VALUES (?)", [(i,) for i in range(3000)]))
    (bare,) = source.reflect()
    table, rows = profile_table(source, bare, profile_rows=1500, profile_s=20)
    assert (table.row_count, table.rows_read, table.sampled) == (3000, 1500, True)
    assert rows == [(i,) for i in range(1500)]
    assert column(table, "a").distinct == 1500
    table, rows = profile_table(source, bare, profile_rows=3000, profile_s=20)
    assert (table.row_count, table.rows_read, table.sampled) == (3000, 3000, False)


def test_sample_rows_are_the_first_with_the_fewest_nulls(opened: Open) -> None:
    values = [
        (None, None),
        (1, None),
        (2, "x"),
        (3, "x"),
        (None, "y"),
        (4, "x"),
        (5, "x"),
        (6, "x"),
    ]
    source = opened("CREATE TABLE t (a, b)", ("INSERT INTO t VALUES (?, ?)", values))
    rows = read(source)["t"].sample_rows
    assert rows == (("2", "x"), ("3", "x"), ("4", "x"), ("5", "x"), ("6", "x"))


def test_no_rows(opened: Open) -> None:
    table = read(opened("CREATE TABLE t (a, b)"))["t"]
    assert (table.row_count, table.rows_read, table.sampled, table.sample_rows) == (0, 0, False, ())
    assert [(p.distinct, p.nulls, p.minimum, p.frequent) for p in table.profile] == [
        (0, 0, None, ())
    ] * 2


def test_long_cells_are_cut_for_reading_and_blobs_never_shown(opened: Open) -> None:
    long = "x" * 10_000_000
    source = opened(
        "CREATE TABLE t (a TEXT, b BLOB, c INT)",
        (
            "INSERT INTO t VALUES (?, ?, ?)",
            [(long, b"\xff" * 10_000_000, b"\x01" * 100), ("s", b"\x02", 1)],
        ),
    )
    (bare,) = source.reflect()
    table, rows = profile_table(source, bare, profile_rows=10, profile_s=20)
    assert rows[0] == ("x" * KEPT_CHARACTERS + "…", "<blob 10000000 bytes>", "<blob 100 bytes>")
    assert rows[1] == ("s", b"\x02", 1)
    shown = table.sample_rows[0]
    assert shown == (
        "x" * (DISPLAY_CHARACTERS - 1) + "…",
        "<blob 10000000 bytes>",
        "<blob 100 bytes>",
    )
    assert table.sample_rows[1] == ("s", "<blob 1 bytes>", "1")
    assert column(table, "b").samples == ("<blob 10000000 bytes>", "<blob 1 bytes>")
    assert column(table, "a").maximum == shown[0]


def test_short_binary_keys_are_told_apart(opened: Open) -> None:
    keys = [(bytes([i]) * 16,) for i in range(50)]
    source = opened("CREATE TABLE t (id BLOB)", ("INSERT INTO t VALUES (?)", keys))
    (profile,) = read(source)["t"].profile
    assert profile.distinct == 50
    assert profile.frequent[0] == ("<blob 16 bytes>", 1)


def test_display() -> None:
    assert display(None) is None
    assert display(2**63 - 1) == "9223372036854775807"
    assert display(0.1) == "0.1"
    assert display("a" * 200) == "a" * 200
    assert display("a" * 201) == "a" * 199 + "…"
    assert display(b"") == "<blob 0 bytes>"


def test_reading_stops_when_the_rows_take_too_much_memory(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dbrag.catalog.profile.KEPT_MB", 1)
    source = opened(
        "CREATE TABLE t (a)", ("INSERT INTO t VALUES (?)", [("x" * 9000,) for _ in range(1000)])
    )
    table = read(source)["t"]
    assert table.sampled
    assert 100 < table.rows_read < 300
    assert table.row_count == 1000


def test_an_expensive_view_is_stopped_and_kept(opened: Open) -> None:
    source = opened(
        "CREATE TABLE t (a); INSERT INTO t VALUES (1);"
        "CREATE VIEW slow AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
        " SELECT max(n) AS m FROM c;"
        "CREATE VIEW endless AS WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c)"
        " SELECT n FROM c"
    )
    started = time.monotonic()
    tables = read(source, rows=100, seconds=0.5)
    assert time.monotonic() - started < 10
    assert [c.name for c in tables["slow"].columns] == ["m"]
    assert (tables["slow"].row_count, tables["slow"].rows_read, tables["slow"].sampled) == (
        None,
        0,
        True,
    )
    assert (tables["endless"].row_count, tables["endless"].rows_read) == (None, 100)
    assert tables["t"].row_count == 1


def test_a_broken_view_is_kept_and_says_why(opened: Open) -> None:
    source = opened(
        "CREATE TABLE t (a TEXT); INSERT INTO t VALUES ('{');"
        "CREATE VIEW late AS SELECT json_extract(a, '$.x') AS x FROM t;"
        "CREATE VIEW gone AS SELECT b FROM missing"
    )
    tables = read(source)
    assert "cannot be read: malformed JSON" in tables["late"].comment
    assert [c.name for c in tables["late"].columns] == ["x"]
    assert "cannot be read: no such table" in tables["gone"].comment
    assert tables["t"].row_count == 1


def test_damaged_pages_are_an_error_of_the_source(opened: Open) -> None:
    source = opened(
        "CREATE TABLE t (a); CREATE TABLE u (a)",
        ("INSERT INTO t VALUES (?)", [("x" * 2000,) for _ in range(100)]),
    )
    with open(source.location, "r+b") as file:
        file.seek(4096 * 4)
        file.write(b"\xff" * 4096 * 8)
    with pytest.raises(SourceUnreadable, match="malformed"):
        read(source)


def test_difficult_names_and_many_columns(opened: Open) -> None:
    columns = ", ".join(f'"c {i}"' for i in range(500))
    source = opened(
        f'CREATE TABLE "wide ""one""" ({columns});'
        f'INSERT INTO "wide ""one""" VALUES ({", ".join(map(str, range(500)))});'
        'CREATE TABLE "客 户" ("select", "from;--"); INSERT INTO "客 户" VALUES (1, 2)'
    )
    tables = read(source)
    assert len(tables['wide "one"'].profile) == 500
    assert tables['wide "one"'].sample_rows[0][499] == "499"
    assert tables["客 户"].sample_rows == (("1", "2"),)


def test_tables_come_in_order_and_no_file_is_touched(opened: Open, tmp_path: Path) -> None:
    source = opened(
        "PRAGMA journal_mode = wal; CREATE TABLE b (a); CREATE TABLE a (b); CREATE VIEW c AS SELECT 1 AS x"
    )

    def state() -> dict[str, str]:
        files = [p for p in tmp_path.rglob("*") if p.is_file()]
        return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in files}

    before = state()
    assert list(read(source)) == ["a", "b", "c"]
    source.close()
    assert state() == before
