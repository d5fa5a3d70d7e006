"""Comments of a real PostgreSQL and MariaDB reach the index, and the user's notes beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import dbrag
from dbrag.index.summaries import column_texts, names_text
from dbrag.models.testing import HashEmbedder
from dbrag.settings import Settings
from tests.servers import MYSQL, POSTGRES, fresh_database

if TYPE_CHECKING:
    from pathlib import Path

HUGE = "very long " * 5_000
TABLES = {
    POSTGRES: (
        "CREATE TABLE kd (nm text, st text);"
        "CREATE VIEW v AS SELECT nm FROM kd;"
        "COMMENT ON TABLE kd IS 'people who bought';"
        "COMMENT ON COLUMN kd.nm IS 'surname';"
        f"COMMENT ON COLUMN kd.st IS '{HUGE}'"
    ),
    MYSQL: (
        "CREATE TABLE kd (nm text COMMENT 'surname', "
        f"st text COMMENT '{HUGE[:1000]}') COMMENT 'people who bought';"
        "CREATE VIEW v AS SELECT nm FROM kd"
    ),
}


@pytest.mark.parametrize("server", [POSTGRES, MYSQL], ids=["PostgreSQL", "MariaDB"])
def test_comments_reach_texts_and_search(server: str, tmp_path: Path) -> None:
    with fresh_database(server, "comments") as database:
        for statement in TABLES[server].split(";"):
            database.run(statement)
        settings = Settings(
            sources=(f"shop={database.url}",),
            index=str(tmp_path / "index"),
            notes={"kd": {"synonyms": ["clients"]}},  # type: ignore[dict-item]
        )
        with dbrag.connect(settings=settings, embedder=HashEmbedder()) as db:
            tables = {t.ref.name: t for t in db.opened_index().catalog.tables}
            assert tables["kd"].comment == "people who bought"
            assert tables["v"].comment == ""
            text = names_text(tables["kd"], [])
            assert text.startswith("kd (clients); people who bought: nm, st; surname; very long")
            assert len(text) < 300
            nm, st = column_texts(tables["kd"])
            assert nm == "kd surname; nm"
            assert len(st) < 150
            best = db.search("which people bought").candidates[0]
            assert best.table.name == "kd"
            assert not db.search("clients").warnings
