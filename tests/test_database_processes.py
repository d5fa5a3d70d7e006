"""One index, several processes: each sees what another one has indexed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import dbrag
from dbrag.models.testing import HashEmbedder

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
