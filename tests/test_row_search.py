"""The setting ``row_search`` from the façade to the screen, and the stages of a search."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import dbrag
from dbrag.errors import IndexUnusable, UsageError
from dbrag.index.progress import Progress
from dbrag.interfaces.cli.notices import index_text
from dbrag.interfaces.cli.render import search_lines, status_lines
from dbrag.models.testing import HashEmbedder

if TYPE_CHECKING:
    from pathlib import Path

    from dbrag import Database
    from dbrag.settings import Settings


def connect(path: Path, row_search: str, **more: Any) -> Database:
    return dbrag.connect(path, row_search=row_search, embedder=HashEmbedder(), **more)


def test_vectors_are_made_with_a_new_index_and_asked_for_with_an_old_one(small_shop: Path) -> None:
    with connect(small_shop, "dense") as db:
        first = db.search("product Green Tea, quantity 2").candidates[0]
        assert first.table.name == "order lines"
        assert first.rows[0]["product"] == "Green Tea"
    with connect(small_shop, "text") as db:
        db.index(force=True)
    for mode in ("dense", "both"):
        with connect(small_shop, mode) as db, pytest.raises(IndexUnusable) as error:
            db.search("Green Tea")
        assert error.value.message == (
            f'the index holds no row vectors, which row_search = "{mode}" needs'
        )
        assert "dbrag index" in error.value.hint
    with connect(small_shop, "both") as db:
        assert {source.status for source in db.index().sources} == {"unchanged"}
        assert db.search("Green Tea").candidates[0].table.name == "order lines"


def test_an_unknown_way_is_refused(small_shop: Path) -> None:
    with pytest.raises(UsageError, match='row_search must be one of "text", "dense", "both"'):
        connect(small_shop, "vectors")
    with pytest.raises(UsageError, match="dense_rows must be at least 1"):
        connect(small_shop, "dense", dense_rows=0)


def test_what_was_cut_is_told(small_shop: Path) -> None:
    with connect(small_shop, "dense", dense_rows=2) as db:
        report = db.index()
        (cut,) = [warning.message for warning in report.warnings if warning.code == "rows_cut"]
        assert cut.startswith("only 2 rows of a table got vectors (dense_rows)")
        names = ["customers", "order lines", "order_sizes", "orders"]
        assert cut.endswith(": " + ", ".join(f"small shop.{name}" for name in names))
        status = db.status()
    assert status["row_vectors"]["dense_rows"] == 2
    assert "small shop.customers" in status["row_vectors"]["cut"]
    (line,) = [line for line in status_lines(status) if line.startswith("row vectors")]
    assert line.startswith("row vectors: of up to 2 rows of a table; more rows have: small shop.")


def test_a_search_tells_its_stages(small_shop: Path) -> None:
    with connect(small_shop, "text") as db:
        result = db.search("Which city does Anna Costa live in?")
    stages = result.to_dict()["stages"]
    assert {"open", "encode", "rows", "values", "tables", "joins"} <= stages.keys()
    assert all(0 <= seconds <= result.seconds + 1e-4 for seconds in stages.values())
    json.dumps(stages)
    assert any("by stage, ms: open" in line for line in search_lines(result, explain=True))
    assert not any("by stage" in line for line in search_lines(result))


def test_rows_in_other_words_with_the_real_encoder(
    model_settings: Settings, tmp_path: Path
) -> None:
    """What full text cannot find: no word of the question is in the row."""
    import sqlite3
    from contextlib import closing

    path = tmp_path / "pets.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE note (id INTEGER, text TEXT);"
            "INSERT INTO note VALUES (1, 'the invoice was paid late'), "
            "(2, 'a puppy was adopted'), (3, 'rain in the mountains');"
        )
        connection.commit()
    settings = dbrag.Settings(cache=model_settings.cache, offline=True, row_search="dense")
    with dbrag.connect(path, index=tmp_path / "index", settings=settings) as db:
        (candidate,) = db.search("young dogs that found a home").candidates
    assert candidate.rows[0]["id"] == 2


def test_encoding_rows_is_told_while_it_goes_on() -> None:
    state = Progress("rows", 512, 20_000, eta_s=190.0)
    assert index_text(state) == "indexing: encoding 512 of 20,000 row texts, 3 min left"
