from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbrag.index.build import build_index
from dbrag.models.testing import HashEmbedder
from dbrag.settings import Settings
from dbrag.sources import open_sources

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dbrag.index.store import Index
    from dbrag.types import IndexReport

SHOP = """
CREATE TABLE customer (customer_id INTEGER PRIMARY KEY, name TEXT, city TEXT, photo BLOB);
CREATE TABLE purchase (
    purchase_id INTEGER PRIMARY KEY,
    customer_id INTEGER REFERENCES customer (customer_id),
    day DATE
);
INSERT INTO customer VALUES (1, 'Ann Lee', 'Kabul', x'00ff'), (2, 'Bob', 'New York City', NULL);
INSERT INTO purchase VALUES (10, 1, '2024-01-05'), (11, 2, '2024-02-06');
"""
ZOO = """
CREATE TABLE animal (id INTEGER PRIMARY KEY, species TEXT);
INSERT INTO animal VALUES (1, 'red panda'), (2, 'Kabul markhor');
"""


def write_db(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
        connection.commit()
    return path


def statuses(report: Any) -> dict[str, str]:
    """Source → what indexing did with it."""
    return {source.name: source.status for source in report.sources}


def change(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)
        connection.commit()


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two databases: shop (two joined tables) and zoo."""
    write_db(tmp_path / "data" / "shop.db", SHOP)
    write_db(tmp_path / "data" / "zoo.db", ZOO)
    return tmp_path / "data"


class CountingEmbedder(HashEmbedder):
    """Counts the texts it encodes."""

    def __init__(self, dim: int = 64) -> None:
        super().__init__(dim)
        self.encoded: list[str] = []

    def encode(self, texts: Sequence[str]) -> Any:
        self.encoded.extend(texts)
        return super().encode(texts)


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def build(tmp_path: Path, embedder: CountingEmbedder) -> Callable[..., IndexReport]:
    """``build(*specs, directory=…, force=…)``: open the sources and index them."""

    def run(*specs: Path, directory: Path | None = None, **options: Any) -> IndexReport:
        sources, skipped = open_sources([str(spec) for spec in specs])
        try:
            return build_index(
                directory or tmp_path / "index",
                sources,
                embedder=options.pop("embedder", embedder),
                settings=options.pop("settings", Settings()),
                skipped=skipped,
                **options,
            )
        finally:
            for source in sources:
                source.close()

    return run


def dump(index: Index, questions: Sequence[str] = ("Kabul", "panda", "Bob")) -> list[Any]:
    """What a reader sees of an index: equal dumps mean equal indexes."""
    vector = HashEmbedder().encode(["customer city"])[0]
    scores = index.tables.scores(vector, "customer city")
    return [
        [str(table.ref) for table in index.catalog.tables],
        [scores.names.tolist(), scores.columns.tolist()],
        scores.bm25.tolist(),
        [[(str(h.table), dict(h.row)) for h in index.rows.search(q, 50)] for q in questions],
        [
            [(str(h.table), h.column, h.value) for h in index.values.search(q, 50)]
            for q in questions
        ],
    ]


@pytest.fixture(autouse=True)
def _no_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests kill processes, not machines: waiting for the disk proves nothing here."""
    monkeypatch.setattr("os.fsync", lambda _: None)
