"""Wide tables by groups of columns; many columns by their projections; always the same files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dbrag.index import columns
from dbrag.index.layout import Layout
from dbrag.index.store import open_index
from dbrag.index.summaries import entry_texts, names_text
from dbrag.index.tables import TableTexts, write_tables
from dbrag.models.testing import HashEmbedder
from dbrag.retrieval.coarse import rank
from dbrag.types import Column, Table, TableRef
from tests.index.conftest import SHOP, ZOO, write_db

if TYPE_CHECKING:
    from pathlib import Path

    from dbrag.index.layout import Generation

PLACES = ("depth", "colour", "owner", "price", "speed")


def table(width: int, comment: str = "") -> Table:
    made = tuple(Column(f"item_{i}_{PLACES[i % 5]}", comment=f"note {i}") for i in range(width))
    return Table(TableRef("s", None, "Parts"), made, comment=comment)


def test_narrow_tables_are_one_entry_as_before() -> None:
    for width in (0, 1, 40):
        assert entry_texts(table(width, "spare"), ["shop"]) == [
            names_text(table(width, "spare"), ["shop"])
        ]


def test_wide_tables_are_groups_of_twenty_columns() -> None:
    first, second, last = entry_texts(table(41, "spare"), ["shop"])
    assert first.startswith("parts with shop; spare: item 0 depth, ")
    assert "item 19 speed; note 0; " in first
    assert second.startswith("parts: item 20 depth, ")
    assert last == "parts: item 40 depth; note 40"
    assert len(entry_texts(table(2_000), [])) == 100


def test_a_table_of_2000_columns_is_found_by_one(build: Any, tmp_path: Path) -> None:
    named = {0: "barcode", 777: "submarine_hull", 1_999: "volcano_height"}
    declared = ", ".join(named.get(i, f"filler_{i}") + " TEXT" for i in range(2_000))
    other = ", ".join(f"filling_{i} TEXT" for i in range(100))
    script = f"CREATE TABLE everything ({declared}); CREATE TABLE other ({other});"
    write_db(tmp_path / "data" / "wide.db", script)
    write_db(tmp_path / "data" / "shop.db", SHOP)
    build(tmp_path / "data")
    with open_index(tmp_path / "index") as index:
        for name in named.values():
            question = name.replace("_", " ")
            (best, *_) = rank(index, HashEmbedder(), question)
            assert best.table.name == "everything"
            scores = index.tables.scores(HashEmbedder().encode([question])[0], question)
            place = index.catalog.position[best.table]
            for part in (scores.names, scores.columns, scores.bm25):
                assert part.shape == (4,)
                assert part.argmax() == place
        word = "submarin"
        assert index.tables.holders(word).tolist() == [index.catalog.position[best.table]]


@pytest.fixture
def generation(tmp_path: Path) -> Generation:
    files = Layout(tmp_path).generation(1)
    files.root.mkdir()
    return files


def written(generation: Generation, n: int) -> list[str]:
    """Columns of ``n`` tables of five columns each."""
    texts = TableTexts()
    for i in range(n):
        texts.add([f"table {i}"], [f"table {i} {place} {i % 7}" for place in PLACES])
    write_tables(
        generation, None, texts, embedder=lambda: HashEmbedder(dim=128), on_encoded=lambda *_: None
    )
    return texts.columns


def test_many_columns_are_compared_by_projections(
    generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "_RESCORED", 20)
    texts = written(generation, 400)
    exact = columns.ColumnVectors(generation)
    monkeypatch.setattr(columns, "EXACT", 1_000)
    columns.write_projections(generation)
    many = columns.ColumnVectors(generation)
    assert len(many) == len(exact) == len(texts) == 2_000
    assert np.load(generation.column_axes).shape == (columns.AXES, 128)
    for text in (texts[3], texts[999], "colour of table 12"):
        vector = HashEmbedder(dim=128).encode([text])[0]
        right, near = exact.scores(vector), many.scores(vector)
        best = int(right.argmax())
        assert int(near.argmax()) == best
        assert near[best] == pytest.approx(right[best], abs=1e-6)
        assert np.corrcoef(right, near)[0, 1] > 0.6
        assert (many.scores(vector) == near).all()


def test_projections_of_other_columns_are_refused(
    generation: Generation, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(generation, 30)
    monkeypatch.setattr(columns, "EXACT", 100)
    with pytest.raises(FileNotFoundError):
        columns.ColumnVectors(generation)
    columns.write_projections(generation)
    low = np.load(generation.column_low)
    np.save(generation.column_low, low[:-1])
    with pytest.raises(ValueError, match="differ in number"):
        columns.ColumnVectors(generation)


def test_two_builds_give_the_same_files(build: Any, tmp_path: Path) -> None:
    wide = f"CREATE TABLE w ({', '.join(f'c{i} TEXT' for i in range(90))});"
    for name, script in (("shop", SHOP), ("zoo", ZOO), ("wide", wide)):
        write_db(tmp_path / "data" / f"{name}.db", script)
    contents = []
    for name in ("one", "two"):
        build(tmp_path / "data", directory=tmp_path / name)
        root = Layout(tmp_path / name).generation(1).root
        contents.append(
            {
                str(path.relative_to(root)): path.read_bytes()
                for path in sorted(root.rglob("*"))
                if path.is_file() and path.suffix in (".npy", ".jsonl", ".json")
            }
        )
    assert contents[0] == contents[1]
    assert {"names.npy", "columns.npy", "edges.npy", "joins.jsonl"} <= set(contents[0])
