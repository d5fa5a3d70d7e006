"""Full-text search over rows and values: any question, any script."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbrag.index.build import build_index
from dbrag.index.store import open_index
from dbrag.models.testing import HashEmbedder
from dbrag.settings import Settings
from dbrag.sources import open_sources
from dbrag.types import TableRef
from tests.index.conftest import SHOP, write_db

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from dbrag.index.store import Index

MORE = """
CREATE TABLE "表 ""x"" select" ("名字" TEXT, "from" BLOB);
INSERT INTO "表 ""x"" select" VALUES ('北京市', x'00'), ('Zürich', NULL), ('O''Brien; DROP', NULL);
"""


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder: Path = tmp_path_factory.mktemp("search")
    sources, _ = open_sources([str(write_db(folder / "shop.db", SHOP + MORE))])
    build_index(folder / "index", sources, embedder=HashEmbedder(), settings=Settings())
    with open_index(folder / "index") as opened:
        yield opened


def test_rows(index: Index) -> None:
    (hit,) = index.rows.search("who lives in kabul?", 5)
    assert hit.table == TableRef("shop", None, "customer")
    assert hit.row == {"customer_id": 1, "name": "Ann Lee", "city": "Kabul"}  # no photo
    assert hit.score > 0
    assert index.rows.look("who lives in kabul?", 5).best() == {hit.table: pytest.approx(hit.score)}


def test_values(index: Index) -> None:
    hits = index.values.search("customers of New York City", 5)
    assert (hits[0].column, hits[0].value) == ("city", "New York City")


def test_only_some_tables(index: Index) -> None:
    customer, purchase = TableRef("shop", None, "customer"), TableRef("shop", None, "purchase")
    assert index.rows.search("Kabul 2024", 5, {purchase}) != []
    assert {hit.table for hit in index.rows.search("Kabul 2024", 5, {purchase})} == {purchase}
    assert index.rows.search("Kabul", 5, set()) == []
    assert len(index.values.search("Kabul", 5, [customer])) == 1


def test_other_scripts_and_accents(index: Index) -> None:
    assert [hit.value for hit in index.values.search("北京市有多少人", 5)] == ["北京市"]
    assert [hit.value for hit in index.values.search("hotels in zurich", 5)] == ["Zürich"]
    assert index.rows.search("北京市", 5)[0].row == {"名字": "北京市"}


@pytest.mark.parametrize("question", ["", "   ", "?!", "\0", "how many", "the " * 50_000])
def test_questions_that_say_nothing(index: Index, question: str) -> None:
    assert index.rows.search(question, 5) == []


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.one_of(
        st.text(max_size=200),
        st.text(alphabet="\"'()[]{}^~*?:\\/+-&|!<>=\0\ud800 ABorANDNOT", max_size=60),
    )
)
def test_any_question(index: Index, question: str) -> None:
    for search in (index.rows.search, index.values.search):
        found: Any = search(question, 3)
        assert found == search(question, 3)
        assert [hit.score for hit in found] == sorted((h.score for h in found), reverse=True)


def test_a_question_of_a_hundred_thousand_characters(index: Index) -> None:
    words = " ".join(f"w{i}" for i in range(20_000)) + " Kabul"
    assert index.rows.search(words, 5) == []  # only the first 64 telling words count
    assert len(index.rows.search("Kabul " + words, 5)) == 1
