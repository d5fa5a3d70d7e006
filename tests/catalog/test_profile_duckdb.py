"""Profiles of DuckDB files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dbrag.catalog.profile import profile_table
from dbrag.sources import open_sources

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

duckdb = pytest.importorskip("duckdb")

SCRIPT = """
CREATE SCHEMA "S x";
CREATE TABLE "S x"."odd ""name"" x" (id INT, long VARCHAR, pic BLOB, l INT[], s STRUCT(a INT),
    i INTERVAL, h HUGEINT, day DATE);
INSERT INTO "S x"."odd ""name"" x" VALUES
    (1, repeat('ä', 200000), encode(repeat('z', 5000)), [1, 2],
    {'a': 1}, INTERVAL 1 MONTH, 170141183460469231731687303715884105727, '2024-01-05'),
    (2, 'short', '\\x00'::BLOB, NULL, NULL, NULL, NULL, NULL);
CREATE TABLE big AS SELECT n AS id, 'w' || n % 7 AS word FROM range(600000) r(n);
CREATE VIEW seen AS SELECT * FROM big;
CREATE VIEW broken AS SELECT CAST(word AS INT) AS x FROM big;
"""


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Any]:
    path = tmp_path / "shop.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute(SCRIPT)

    def run(name: str, rows: int = 1000) -> Any:
        (source,), _ = open_sources([str(path)])
        try:
            bare = next(table for table in source.reflect() if table.ref.name == name)
            return profile_table(source, bare, profile_rows=rows, profile_s=20)
        finally:
            source.close()

    return run


def test_every_kind_of_cell_and_none_is_huge(read: Any) -> None:
    table, rows = read('odd "name" x')
    assert (table.row_count, table.sampled, table.comment) == (2, False, "")
    assert rows[0][1] == "ä" * 10_000 + "…"
    assert rows[0][2:6] == ("<blob 5000 bytes>", "[1, 2]", "{'a': 1}", "1 month")
    assert rows[0][6] == 2**127 - 1
    assert rows[1][2] == b"\x00"


def test_a_sample_is_from_all_over_and_always_the_same(read: Any) -> None:
    table, rows = read("big", rows=20_000)
    assert (table.row_count, table.sampled) == (600_000, True)
    assert 5_000 < len(rows) <= 20_000
    assert max(row[0] for row in rows) - min(row[0] for row in rows) > 200_000
    assert read("big", rows=20_000)[1] == rows


def test_views(read: Any) -> None:
    table, rows = read("seen", rows=500)
    assert (table.row_count, len(rows), table.sampled) == (600_000, 500, True)
    table, rows = read("broken")
    assert rows == []
    assert table.comment.startswith("cannot be read: ")
