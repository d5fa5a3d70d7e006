"""Profiles of large Parquet tables: rows from all over the files, the rest from their footers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dbrag.catalog.profile import KEPT_CHARACTERS, profile_table
from dbrag.options import OpenOptions
from dbrag.sources import open_sources

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dbrag.types import ColumnProfile, Table

pa = pytest.importorskip("pyarrow")


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Any]:
    """``read(files, rows=…)``: write the files, profile their one table."""
    import pyarrow.parquet as pq

    def run(files: dict[str, Any], rows: int, redact: tuple[str, ...] = ()) -> Any:
        for name, columns in files.items():
            path = tmp_path / "data" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table(columns), path, row_group_size=1000)
        options = OpenOptions(cache=tmp_path / "cache", redact=redact)
        (source,), _ = open_sources([str(tmp_path / "data")], options)
        try:
            (bare,) = source.reflect()
            return profile_table(source, bare, profile_rows=rows, profile_s=20)
        finally:
            source.close()

    return run


def trips(start: int, n: int = 5000) -> dict[str, Any]:
    ids = list(range(start, start + n))
    return {
        "id": ids,
        "place": [f"p{i % 7}" for i in ids],
        "rare": [i if i % 2 else None for i in ids],
    }


def column(table: Table, name: str) -> ColumnProfile:
    return next(p for p in table.profile if p.column == name)


def test_rows_come_from_all_files_and_the_count_is_exact(read: Any) -> None:
    files = {f"trips/part-{i}.parquet": trips(i * 5000) for i in range(4)}
    table, rows = read(files, 400)
    assert (table.row_count, table.rows_read, table.sampled) == (20_000, 400, True)
    assert [row[0] for row in rows[:21]] == [*range(20), 1000]
    assert max(row[0] for row in rows) == 19_019
    assert read(files, 400)[1] == rows
    ids = column(table, "id")
    assert (ids.minimum, ids.maximum) == ("0", "19999")
    assert ids.whole == ("maximum", "minimum", "nulls")
    assert column(table, "rare").nulls == 10_000
    assert {row[0] // 5000 for row in rows} == {0, 1, 2, 3}


def test_a_small_table_is_read_whole(read: Any) -> None:
    table, rows = read({"trips.parquet": trips(0, 1500)}, 1000)
    assert (table.row_count, table.rows_read, table.sampled) == (1500, 1000, True)
    assert [row[0] for row in rows] == list(range(1000))  # not much larger: its first rows
    table, rows = read({"trips.parquet": trips(0, 1500)}, 1500)
    assert (table.row_count, table.rows_read, table.sampled) == (1500, 1500, False)
    assert column(table, "id").whole == ()


def test_folders_that_hold_column_values(read: Any) -> None:
    files = {f"trips/year={2020 + i}/a.parquet": trips(i * 3000, 3000) for i in range(3)}
    table, rows = read(files, 300)
    year = [c.name for c in table.columns].index("year")
    assert {row[year] for row in rows} == {2020, 2021, 2022}
    assert table.row_count == 9_000


def test_huge_cells_are_cut_and_few(read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    import random

    monkeypatch.setattr("dbrag.sources.duck.part._PART_MB", 1)
    letters = random.Random(1)
    texts = ["".join(letters.choices("abcdefgh", k=20_000)) for _ in range(300)]
    table, rows = read({"notes.parquet": {"text": texts}}, 100)
    assert all(len(row[0]) == KEPT_CHARACTERS + 1 for row in rows)
    assert 10 < len(rows) < 100
    assert table.sampled
    assert table.row_count == 300


def test_a_redacted_column_is_in_no_sample(read: Any) -> None:
    table, rows = read({"trips.parquet": trips(0)}, 100, redact=("place",))
    assert [c.name for c in table.columns] == ["id", "rare"]
    assert "p1" not in repr((table, rows))
    assert len(rows) == 100
