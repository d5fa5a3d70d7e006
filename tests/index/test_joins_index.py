"""Joins in the index: inferred when a source is read, corrected without reading it again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from dbrag.catalog import inference
from dbrag.index.build import build_index
from dbrag.index.joins import JoinInputs, read_joins
from dbrag.index.layout import Layout
from dbrag.index.manifest import read_manifest, stale_sources
from dbrag.index.sketches import read_sketches, sketch_file
from dbrag.index.store import Index, describe, open_index
from dbrag.models.testing import HashEmbedder
from dbrag.options import JoinOptions
from dbrag.settings import Settings
from dbrag.sources import open_sources
from tests.index.conftest import write_db
from tests.index.marked import MarkedSource

if TYPE_CHECKING:
    from pathlib import Path

    from dbrag.types import IndexReport

ROWS = "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {}) "
OLD = f"""
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, product_id INTEGER);
CREATE TABLE products (id INTEGER PRIMARY KEY, title TEXT);
INSERT INTO customers {ROWS.format(30)} SELECT i, 'name ' || i FROM n;
INSERT INTO products {ROWS.format(50)} SELECT i, 'title ' || i FROM n;
INSERT INTO orders {ROWS.format(90)} SELECT i, 1 + i % 30, 1 + i % 50 FROM n;
"""
KEYED = OLD.replace("customer_id INTEGER,", "customer_id INTEGER REFERENCES customers (id),")
TO_CUSTOMERS = "old.orders.customer_id = old.customers.id"
TO_PRODUCTS = "old.orders.product_id = old.products.id"


class Place:
    """A database, its index, and the settings they are used with."""

    def __init__(self, folder: Path) -> None:
        self.path = write_db(folder / "old.db", OLD)
        self.index = folder / "index"
        self.settings = Settings()
        self.reads = 0

    def build(self, **options: Any) -> IndexReport:
        source = MarkedSource(self.path, before_read=self._count)
        try:
            return build_index(
                self.index, [source], embedder=HashEmbedder(), settings=self.settings, **options
            )
        finally:
            source.close()

    def _count(self, sql: str) -> None:
        self.reads += 1

    def opened(self) -> Index:
        return open_index(self.index)

    def joins(self) -> list[str]:
        with self.opened() as index:
            return sorted(str(edge) for edge in index.joins.edges)

    def change(self, script: str) -> None:
        with closing(sqlite3.connect(self.path)) as connection:
            connection.executescript(script)
            connection.commit()


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_joins_are_inferred(place: Place) -> None:
    place.build()
    assert place.joins() == [TO_CUSTOMERS, TO_PRODUCTS]
    with place.opened() as index:
        assert not any(edge.declared for edge in index.joins.edges)
        assert index.edges.tolist() == [[0, 1], [1, 0], [1, 2], [2, 1]]
        assert not index.join_problems


def test_what_is_declared_is_not_inferred_again(place: Place) -> None:
    place.path.unlink()
    write_db(place.path, KEYED)
    place.build()
    with place.opened() as index:
        told = [(str(edge), edge.declared) for edge in index.joins.edges]
    assert told == [(TO_CUSTOMERS, True), (TO_PRODUCTS, False)]
    place.settings = Settings(infer_joins="undeclared")
    place.build()
    assert place.joins() == [TO_CUSTOMERS]


def test_settings_take_effect_without_reading(place: Place) -> None:
    place.build()
    reads = place.reads
    place.settings = Settings(infer_joins="off")
    place.build()
    assert place.joins() == []
    place.settings = Settings(joins=JoinOptions(remove=(TO_CUSTOMERS,)))
    place.build()
    assert place.joins() == [TO_PRODUCTS]
    place.settings = Settings(joins=JoinOptions(add=("orders.id = customers.id", "x.y = z.a")))
    place.build()
    with place.opened() as index:
        assert len(index.joins.edges) == 3
        assert [problem.code for problem in index.join_problems] == ["joins_setting"]
    told = describe(place.index, [], settings=place.settings)
    assert [warning["code"] for warning in told["warnings"]] == ["joins_setting"]
    place.settings = Settings()
    place.build()
    assert place.joins() == [TO_CUSTOMERS, TO_PRODUCTS]
    assert place.reads == reads


def test_joined_tables_are_named_in_the_texts(place: Place) -> None:
    def found() -> list[bool]:
        place.build()
        with place.opened() as index:
            scores = index.tables.scores(HashEmbedder().encode(["x"])[0], "orders")
            return [score > 0 for score in scores.bm25.tolist()]

    assert found() == [True, True, True]
    place.settings = Settings(infer_joins="off")
    assert found() == [False, True, False]


def test_a_changed_table_is_sketched_anew_others_are_taken_over(place: Place) -> None:
    place.build()
    reads = place.reads
    place.change("UPDATE orders SET customer_id = customer_id + 1000")
    report = place.build()
    assert report.sources[0].tables_read == 1
    assert place.reads - reads <= 3
    assert place.joins() == [TO_PRODUCTS]
    place.change("DROP TABLE products")
    place.build()
    assert place.joins() == []


def test_the_same_as_read_at_once(place: Place, tmp_path: Path) -> None:
    place.build()
    place.change("UPDATE orders SET product_id = 1 + product_id % 40")
    place.build()
    with place.opened() as index:
        after = index.joins.edges
    place.build(force=True)
    with place.opened() as index:
        assert index.joins.edges == after


def test_an_unchanged_source_is_linked(place: Place, tmp_path: Path) -> None:
    other = write_db(tmp_path / "zoo.db", "CREATE TABLE animal (id INTEGER PRIMARY KEY);")

    def build() -> None:
        sources, _ = open_sources([str(place.path), str(other)])
        build_index(place.index, sources, embedder=HashEmbedder(), settings=Settings())
        for source in sources:
            source.close()

    def inode() -> int:
        manifest = read_manifest(place.index)
        assert manifest is not None
        return sketch_file(Layout(place.index).generation(manifest.generation), "old").stat().st_ino

    build()
    before, joins = inode(), place.joins()
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("INSERT INTO animal VALUES (1)")
        connection.commit()
    build()
    assert inode() == before
    assert place.joins() == joins


def test_sketches_come_back_as_they_were_written(place: Place) -> None:
    place.build()
    with place.opened() as index:
        files = Layout(place.index).generation(index.manifest.generation)
        orders = next(t.ref for t in index.catalog.tables if t.ref.name == "orders")
    sketch = {one.name: one for one in read_sketches(files, "old")[orders]}["customer_id"]
    assert (sketch.kind, sketch.rows, sketch.distinct, sketch.complete) == ("integer", 90, 30, True)
    assert (sketch.minimum, sketch.maximum, len(sketch.hashes)) == (1, 30, 30)
    assert not sketch.unique


def test_another_way_of_inferring_needs_no_reading(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.build()
    reads = place.reads
    monkeypatch.setattr(inference, "VERSION", inference.VERSION + 1)
    monkeypatch.setattr(inference, "THRESHOLD", 1.1)
    place.build()
    assert place.joins() == []
    assert place.reads == reads


def test_an_index_without_sketches_says_so(place: Place) -> None:
    place.build()
    manifest = read_manifest(place.index)
    assert manifest is not None
    files = Layout(place.index).generation(manifest.generation)
    for path in (*files.root.glob("joins/*"), *files.root.glob("sketches/*")):
        path.unlink()
    place.settings = Settings(joins=JoinOptions(add=(TO_CUSTOMERS,)))
    place.build()
    assert place.joins() == [TO_CUSTOMERS]
    with place.opened() as index:
        assert [problem.code for problem in index.join_problems] == ["joins_not_inferred"]


def test_the_digest_tells_settings_apart() -> None:
    one = JoinInputs()
    others = [
        replace(one, infer="off"),
        replace(one, add=("a",)),
        replace(one, remove=("a",)),
        replace(one, add=("a", "b")),
    ]
    assert len({given.digest for given in (one, *others)}) == 5


def test_nothing_is_stale_afterwards(place: Place) -> None:
    place.settings = Settings(joins=JoinOptions(add=(TO_CUSTOMERS,)))
    place.build()
    manifest = read_manifest(place.index)
    source = MarkedSource(place.path)
    assert stale_sources(manifest, [source]) == []
    source.close()
    assert manifest is not None
    stored = read_joins(Layout(place.index).generation(manifest.generation))
    assert stored is not None
    assert stored.given == JoinInputs(add=(TO_CUSTOMERS,))
