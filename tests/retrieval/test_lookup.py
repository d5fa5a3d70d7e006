from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from dbrag.errors import IndexUnusable, ModelError
from dbrag.index.build import build_index
from dbrag.index.store import open_index
from dbrag.models.testing import HashEmbedder
from dbrag.retrieval.coarse import rank
from dbrag.retrieval.lookup import look_up
from dbrag.retrieval.timing import StageTimer
from dbrag.settings import Settings
from dbrag.sources import open_sources
from dbrag.types import TableRef
from tests.index.conftest import SHOP, ZOO, write_db

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbrag.index.store import Index

EMBEDDER = HashEmbedder()
ANIMAL = TableRef("zoo", None, "animal")


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Index]:
    folder = tmp_path_factory.mktemp("lookup")
    many = "".join(f"INSERT INTO animal VALUES ({i}, 'panda {i}');" for i in range(3, 700))
    for name, script in (("shop", SHOP), ("zoo", ZOO + many)):
        write_db(folder / "data" / f"{name}.db", script)
    sources, _ = open_sources([str(folder / "data")])
    settings = Settings(row_search="both")
    build_index(folder / "index", sources, embedder=EMBEDDER, settings=settings)
    with open_index(folder / "index") as opened:
        yield opened


@pytest.mark.parametrize("question", ["Where does Ann Lee live?", "a panda of Kabul", "?"])
def test_the_same_as_one_after_another(index: Index, question: str) -> None:
    looked = look_up(index, EMBEDDER, question)
    assert looked.rows.best() == index.rows.look(question, 500).best()
    tables = [table.ref for table in index.catalog.tables]
    assert looked.vector.tolist() == EMBEDDER.encode([question])[0].tolist()
    expected: dict[TableRef, list[Any]] = {}
    for hit in index.rows.search(question, 200, tables):
        rows = expected.setdefault(hit.table, [])
        if len(rows) < 3 and hit.row not in rows:
            rows.append(hit.row)
    found = looked.rows.rows_of(tables, 3)
    assert {ref: list(rows) for ref, rows in found.items()} == expected


def test_many_rows_of_one_table_do_not_hide_the_few_of_another(index: Index) -> None:
    question = "which panda is it, panda or Lee"  # 698 rows have "panda"
    looked = look_up(index, EMBEDDER, question)
    customer = TableRef("shop", None, "customer")
    rows = looked.rows.rows_of([ANIMAL, customer], 3)
    assert [len(rows[ref]) for ref in (ANIMAL, customer)] == [3, 1]
    common = look_up(index, EMBEDDER, "panda 2024 01 05")
    purchase = TableRef("shop", None, "purchase")
    assert set(common.rows.rows_of([ANIMAL, customer, purchase], 3)) == {ANIMAL, purchase}


@pytest.mark.parametrize("mode", ["text", "dense", "both"])
def test_the_way_of_searching_rows_reaches_the_candidates(index: Index, mode: Any) -> None:
    timer = StageTimer()
    question = "species red panda, id 1"
    first, *others = rank(index, EMBEDDER, question, row_search=mode, timer=timer)
    assert first.table == ANIMAL
    assert first.rows[0]["species"] == "red panda"
    assert bool(others[0].rows) == (mode != "text")
    stages = ["encode", "rows", "values", "tables", "joins", "candidates' rows", "reasons"]
    assert sorted(timer.seconds) == sorted(stages)
    again = rank(index, EMBEDDER, question, row_search=mode)
    assert again == [first, *others]


class Failing(HashEmbedder):
    """An encoder that does not answer."""

    def encode(self, texts: Any) -> Any:
        raise ModelError("no answer")


def test_nothing_reads_the_index_after_an_error(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def slow(*_: object) -> list[Any]:
        time.sleep(0.05)
        done.append("values")
        return []

    monkeypatch.setattr(index.values, "search", slow)
    with pytest.raises(ModelError, match="no answer"):
        look_up(index, Failing(), "red panda")
    assert done == ["values"]


def test_many_threads_at_once(index: Index) -> None:
    question = "Where does Ann Lee live?"
    expected = look_up(index, EMBEDDER, question)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: look_up(index, EMBEDDER, question), range(24)))
    for one in found:
        assert one.rows.best() == expected.rows.best()
        assert one.mentions == expected.mentions


def test_a_failing_look_up_is_an_error(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index.rows, "vectors", None)
    with pytest.raises(IndexUnusable, match="no row vectors"):
        look_up(index, EMBEDDER, "red panda", "dense")
    damaged = IndexUnusable("damaged")

    def fail(*_: object) -> None:
        raise damaged

    monkeypatch.setattr(index.values, "search", fail)
    with pytest.raises(IndexUnusable) as error:
        look_up(index, EMBEDDER, "red panda")
    assert error.value is damaged
