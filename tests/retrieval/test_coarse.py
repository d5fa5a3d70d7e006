from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbrag.errors import EncoderMismatch
from dbrag.index.build import build_index
from dbrag.index.store import open_index
from dbrag.models.testing import HashEmbedder
from dbrag.retrieval.coarse import CoarseWeights, combine, rank, score_parts
from dbrag.settings import Settings
from dbrag.sources import open_sources
from dbrag.types import TableRef
from tests.index.conftest import SHOP, ZOO, write_db

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dbrag.index.store import Index

EMBEDDER = HashEmbedder()
WIDE = ", ".join([*(f"filler_{i} INTEGER" for i in range(499)), "submarine_depth REAL"])
WORLD = f"""
CREATE TABLE country (code TEXT PRIMARY KEY, name TEXT);
CREATE TABLE speaks (
    country_code TEXT REFERENCES country (code), language_id INTEGER REFERENCES language (id)
);
CREATE TABLE language (id INTEGER PRIMARY KEY, title TEXT);
CREATE TABLE wide ({WIDE});
INSERT INTO country VALUES ('AFG', 'Afghanistan'), ('PRT', 'Portugal');
INSERT INTO language VALUES (1, 'Pashto'), (2, 'Portuguese');
INSERT INTO speaks VALUES ('AFG', 1), ('PRT', 2);
"""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("coarse")
    for name, script in (("shop", SHOP), ("zoo", ZOO), ("world", WORLD)):
        write_db(folder / "data" / f"{name}.db", script)
    sources, _ = open_sources([str(folder / "data")])
    build_index(folder / "index", sources, embedder=EMBEDDER, settings=Settings())
    with open_index(folder / "index") as opened:
        yield opened


def names(index: Index, question: str, **options: object) -> list[str]:
    return [c.table.name for c in rank(index, EMBEDDER, question, **options)]  # type: ignore[arg-type]


def test_the_table_meant_comes_first_with_its_evidence(index: Index) -> None:
    (first, *_) = rank(index, EMBEDDER, "Which customer lives in New York City?", k=3)
    assert first.table == TableRef("shop", None, "customer")
    assert [(m.column, m.value) for m in first.matches] == [("city", "New York City")]
    assert first.rows[0]["name"] == "Bob"
    assert "customer.city = 'New York City'" in first.reason
    assert "joined with purchase by customer_id" in first.reason
    assert first.score == pytest.approx(sum(first.parts.values()), abs=1e-4)
    assert set(first.parts) == {*CoarseWeights.__dataclass_fields__, "joins"} - {"group"}


def test_a_table_in_between_is_found_by_its_neighbours(index: Index) -> None:
    question = "title of each language of the country Portugal"
    assert set(names(index, question, k=3)) == {"country", "language", "speaks"}
    base = rank(index, EMBEDDER, question, join_ranking="off")
    gap = {c.table.name: c.score - base[0].score for c in base}["speaks"]
    joined = rank(index, EMBEDDER, question)
    assert {c.table.name: c.score - joined[0].score for c in joined}["speaks"] > gap


def test_the_last_of_many_columns_is_found(index: Index) -> None:
    assert names(index, "submarine depth", k=1) == ["wide"]


def test_every_table_is_ranked(index: Index) -> None:
    assert len(rank(index, EMBEDDER, "anything at all")) == len(index.catalog.tables)
    assert rank(index, EMBEDDER, "anything at all", k=0) == []


def test_only_some(index: Index) -> None:
    question = "customer in Kabul"
    assert set(names(index, question, sources={"zoo"})) == {"animal"}
    only = TableRef("world", None, "language")
    assert [c.table for c in rank(index, EMBEDDER, question, tables=[only])] == [only]
    whole = {c.table: c.score for c in rank(index, EMBEDDER, question)}
    assert rank(index, EMBEDDER, question, tables=[only])[0].score == whole[only]
    assert rank(index, EMBEDDER, question, sources=[]) == []


def test_source_names_take_no_part(index: Index, tmp_path: Path) -> None:
    sources, _ = open_sources(
        [
            f"{other}={entry.location}"
            for other, entry in zip(("panda", "customer", "x"), index.manifest.sources, strict=True)
        ]
    )
    build_index(tmp_path / "index", sources, embedder=EMBEDDER, settings=Settings())
    with open_index(tmp_path / "index") as renamed:
        for question in ("panda", "customer in Kabul", "shop world zoo"):
            before = {c.table.name: c.score for c in rank(index, EMBEDDER, question)}
            after = {c.table.name: c.score for c in rank(renamed, EMBEDDER, question)}
            assert after == pytest.approx(before, abs=1e-5)


def test_another_encoder_is_refused(index: Index) -> None:
    with pytest.raises(EncoderMismatch):
        rank(index, HashEmbedder(dim=32), "panda")


def test_empty_index(tmp_path: Path) -> None:
    build_index(tmp_path / "index", [], embedder=EMBEDDER, settings=Settings())
    with open_index(tmp_path / "index") as empty:
        assert rank(empty, EMBEDDER, "anything") == []


def test_combine_is_a_sum(index: Index) -> None:
    parts = score_parts(index, EMBEDDER, "customers in Kabul")
    groups = np.array([len(t.ref.source) for t in index.catalog.tables], np.int32)
    scores, weighted = combine(parts, index.adjacency, groups=groups)
    assert np.allclose(sum(weighted.values()), scores, atol=1e-4)


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.text(max_size=200))
def test_any_question(index: Index, question: str) -> None:
    first = rank(index, EMBEDDER, question)
    assert first == rank(index, EMBEDDER, question)
    scores = [c.score for c in first]
    assert scores == sorted(scores, reverse=True)
    assert all(np.isfinite(c.score) and c.reason for c in first)


def test_a_long_question(index: Index) -> None:
    assert rank(index, EMBEDDER, "customer in Kabul " * 6_000)[0].table.name == "customer"
