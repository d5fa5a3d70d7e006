"""Rows that are shown with a table."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import dbrag
from dbrag.models.testing import HashEmbedder
from dbrag.retrieval.context import row_context


@pytest.mark.parametrize(
    "cell",
    [
        "one\ntwo",
        "  panda  ",
        "a\u00a0b",
        "x" * 400,
        "many words " * 50,
        2**70,
        1.0,
        None,
        b"\x00\x01",
        "",
    ],
    ids=lambda cell: repr(cell)[:12],
)
def test_a_row_that_was_found_is_not_shown_again_as_a_sample(tmp_path: Path, cell: object) -> None:
    path = tmp_path / "zoo.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE animal (id INTEGER, name TEXT, cell)")
        values = [(1, "panda", str(cell) if cell == 2**70 else cell), (2, "lion", "other")]
        connection.executemany("INSERT INTO animal VALUES (?, ?, ?)", values)
        connection.commit()
    with dbrag.connect(path, embedder=HashEmbedder()) as db:
        index = db.opened_index()
        (table,) = index.catalog.tables
        for kind in ("relevant", "random"):
            found = row_context(index, "Where is the panda?", [table], kind=kind, limit=5)
            assert sorted(str(row["id"]) for row in found[table.ref]) == ["1", "2"], kind
