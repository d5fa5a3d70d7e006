"""The demo shop: the same rows for a seed, and six questions that it can answer."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dbrag import demo
from dbrag.demo import QUESTIONS, write_demo
from dbrag.errors import SourceUnreadable, UsageError

# Every value of every row for seed 0. Change it only when the shop is meant to change:
# the README and the documentation show its numbers.
CONTENT_OF_SEED_0 = "8650e8df48288883aeb32dada7d648db24ca29e8493740b99e895f277b93a8eb"


def read(path: Path, sql: str) -> list[tuple]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def content(path: Path, tables: list[str]) -> str:
    digest = hashlib.sha256()
    for table in tables:
        for row in read(path, f'SELECT * FROM "{table}" ORDER BY rowid'):
            digest.update(repr(row).encode())
    return digest.hexdigest()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> demo.DemoInfo:
    return write_demo(tmp_path_factory.mktemp("demo") / "shop.db")


def test_a_seed_gives_the_same_rows_everywhere(shop: demo.DemoInfo, tmp_path: Path) -> None:
    assert content(shop.path, list(shop.rows)) == CONTENT_OF_SEED_0
    other = write_demo(tmp_path / "other.db", seed=1)
    assert content(other.path, list(other.rows)) != CONTENT_OF_SEED_0


def test_shape(shop: demo.DemoInfo) -> None:
    found = dict(read(shop.path, "SELECT name, type FROM sqlite_master WHERE sql IS NOT NULL"))
    assert [name for name, kind in found.items() if kind == "view"] == ["order_totals"]
    assert {name for name, kind in found.items() if kind == "table"} == set(shop.rows)
    assert 10 <= len(shop.rows) <= 15
    assert 20_000 <= shop.total_rows <= 99_999
    for table, rows in shop.rows.items():
        assert read(shop.path, f'SELECT COUNT(*) FROM "{table}"') == [(rows,)]
    assert "gift cards" in shop.rows
    assert read(shop.path, 'SELECT COUNT("postal code") FROM customers') == [(2000,)]


def test_rows_are_sound(shop: demo.DemoInfo) -> None:
    assert read(shop.path, "PRAGMA foreign_key_check") == []
    assert read(shop.path, "PRAGMA integrity_check") == [("ok",)]
    for table, column in (
        ("customers", "email"),
        ("customers", "birth_date"),
        ("products", "discontinued_on"),
        ("products", "weight_kg"),
        ("returns", "reason"),
        ("shipments", "delivered_on"),
    ):
        nulls, rows = read(shop.path, f"SELECT SUM({column} IS NULL), COUNT(*) FROM {table}")[0]
        assert 0 < nulls < rows
    assert read(shop.path, "SELECT COUNT(*) FROM orders WHERE ordered_on != date(ordered_on)") == [
        (0,)
    ]
    assert read(
        shop.path,
        "SELECT COUNT(*) FROM payments JOIN order_totals USING (order_id)"
        " WHERE ABS(amount - total) > 0.001",
    ) == [(0,)]
    assert read(shop.path, "SELECT COUNT(*) - COUNT(DISTINCT name) FROM customers") == [(0,)]


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda q: q.question)
def test_gold_sql(shop: demo.DemoInfo, question: demo.DemoQuestion) -> None:
    rows = read(shop.path, question.sql)
    assert rows
    assert all(value not in (None, 0) for row in rows for value in row)
    for table in question.tables:
        assert table in shop.rows
        assert table in question.sql


def test_questions_need_one_to_four_tables() -> None:
    assert len(QUESTIONS) == 6
    assert {len(question.tables) for question in QUESTIONS} == {1, 2, 3, 4}


def test_the_best_seller_is_no_tie(shop: demo.DemoInfo) -> None:
    first, second = read(
        shop.path, "SELECT COUNT(*) FROM orders GROUP BY staff_id ORDER BY 1 DESC LIMIT 2"
    )
    assert first > second


def test_it_rewrites_only_the_demo(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    path.write_bytes(b"somebody's notes")
    with pytest.raises(UsageError, match="is not the demo"):
        write_demo(path)
    assert path.read_bytes() == b"somebody's notes"
    write_demo(path, force=True)
    assert demo.is_demo(path)
    write_demo(path)
    with pytest.raises(UsageError, match="is a folder"):
        write_demo(tmp_path)
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["shop.db"]


def test_another_database_is_not_the_demo(small_shop: Path) -> None:
    before = small_shop.read_bytes()
    with pytest.raises(UsageError, match="is not the demo"):
        write_demo(small_shop)
    assert small_shop.read_bytes() == before


def test_an_open_demo_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    write_demo(path)
    (tmp_path / "shop.db-wal").write_bytes(b"pages")
    with pytest.raises(UsageError, match="open in another program"):
        write_demo(path)


def test_an_unwritable_place(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SourceUnreadable, match="cannot write the demo"):
        write_demo(tmp_path / "file" / "shop.db")
    assert [p.name for p in tmp_path.iterdir() if p.is_file()] == ["file"]


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "shop.db"
    write_demo(path)
    before = path.read_bytes()

    def full_disk(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(demo, "_write", full_disk)
    with pytest.raises(SourceUnreadable, match="disk is full"):
        write_demo(path, seed=1)
    assert path.read_bytes() == before
