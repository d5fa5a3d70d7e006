"""One index, several processes: each sees what another one has indexed."""

from __future__ import annotations

import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

import dbrag
from dbrag.models.testing import HashEmbedder, ScriptedModel

if TYPE_CHECKING:
    from pathlib import Path


def test_a_new_table_that_another_process_indexed_is_found(tmp_path: Path) -> None:
    path, index = tmp_path / "shop.db", tmp_path / "index"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("CREATE TABLE a (x); INSERT INTO a VALUES ('panda')")

    def opened() -> dbrag.Database:
        return dbrag.connect(path, index=index, embedder=HashEmbedder())

    with opened() as first, opened() as second:
        assert len(first.search("panda").candidates) == 1
        with closing(sqlite3.connect(path)) as connection:
            connection.executescript("CREATE TABLE b (x); INSERT INTO b VALUES ('panda')")
        second.index()
        assert len(first.search("panda").candidates) == 2


def generations(index: Path) -> list[str]:
    return sorted(path.name for path in index.glob("gen-*"))


@pytest.mark.parametrize("by_another", [True, False])
def test_a_question_goes_on_with_the_index_that_it_began_with(
    small_shop: Path, tmp_path: Path, by_another: bool
) -> None:
    """Threads share a database: one brings the index up to date while another still reads."""
    place = tmp_path / "index"
    model = ScriptedModel(["SELECT COUNT(*) FROM customers"] * 3)
    with dbrag.connect(
        small_shop, index=place, embedder=HashEmbedder(), chat_model=model, votes=1
    ) as db:
        db.ask("How many customers are there?")
        old = db.opened_index()
        rows = old.rows.search("customers", 5)
        with closing(sqlite3.connect(small_shop)) as connection:
            connection.execute("CREATE TABLE later (x)")
            connection.commit()
        if by_another:
            with dbrag.connect(small_shop, index=place, embedder=HashEmbedder()) as other:
                other.index()
        new = db.opened_index()
        assert new is not old
        with dbrag.connect(small_shop, index=place, embedder=HashEmbedder()) as other:
            other.index()  # cleans up what nobody reads
        assert len(generations(place)) == 2
        assert [table.ref.name for table in old.catalog.tables] != ["later"]
        assert list(old.joins.edges) == list(new.joins.edges)
        assert old.rows.search("customers", 5) == rows
        del old
        with dbrag.connect(small_shop, index=place, embedder=HashEmbedder()) as other:
            other.index()
        assert generations(place) == ["gen-000002"]


def test_an_index_that_was_removed_and_made_anew_is_opened_anew(
    small_shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "index"

    def opened() -> dbrag.Database:
        return dbrag.connect(small_shop, index=place, embedder=HashEmbedder())

    with opened() as db:
        db.index()
        db.search("customers")
        shutil.rmtree(place)
        with closing(sqlite3.connect(small_shop)) as connection:
            connection.execute("CREATE TABLE later (x)")
            connection.commit()
        monkeypatch.setattr("dbrag.index.run.now", lambda: "2030-01-01T00:00:00+00:00")
        with opened() as other:
            other.index()
        assert "later" in {one.table.name for one in db.search("later").candidates}


def test_threads_share_one_index(small_shop: Path, tmp_path: Path) -> None:
    with dbrag.connect(small_shop, index=tmp_path / "index", embedder=HashEmbedder()) as db:
        db.index()
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda _: db.opened_index(), range(16)))
        assert len(set(map(id, found))) == 1
