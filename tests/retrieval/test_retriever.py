"""The settings of retrieval reach its stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dbrag
from dbrag.errors import IndexUnusable
from dbrag.models.testing import HashEmbedder, ScriptedModel

QUESTION = "Which customers from Lisbon bought Green Tea?"


def connect(path: Path, *replies: str, **arguments: Any) -> dbrag.Database:
    return dbrag.connect(
        path, chat_model=ScriptedModel(replies), embedder=HashEmbedder(), **arguments
    )


def parts(path: Path, **arguments: Any) -> set[str]:
    with connect(path, **arguments) as db:
        return {name for c in db.search(QUESTION).candidates for name in c.parts}


def test_membership_and_join_ranking(small_shop: Path) -> None:
    assert parts(small_shop, membership=True) - parts(small_shop) == {"group"}
    assert parts(small_shop) - parts(small_shop, join_ranking="off") == {"joins"}


@pytest.mark.parametrize("mode", ["text", "dense", "both"])
def test_rows_shown_to_the_model_are_found_as_set(small_shop: Path, mode: str) -> None:
    with connect(small_shop, "[1, 2]", row_search=mode, context_rows=1) as db:
        found = db.search(QUESTION, rerank=True)
        (prompt,) = db.chat_model().prompts  # type: ignore[attr-defined]
    assert found.rerank is not None
    assert found.rerank["valid"] == 1
    assert "Anna Costa | Lisbon" in prompt.context
    assert "| Green Tea |" in prompt.context


def test_membership_is_for_databases_not_for_loose_files(tmp_path: Path, small_shop: Path) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    for name in ("customers", "tea"):
        (lake / f"{name}.csv").write_text("id,name\n1,Lisbon\n2,Green Tea\n")
    embedder = HashEmbedder()
    db = dbrag.connect(small_shop, lake, index=tmp_path / "i", membership=True, embedder=embedder)
    with db:
        index = db.opened_index()
        groups = dict(zip((str(t.ref) for t in index.catalog.tables), index.groups, strict=True))
        found = {str(c.table): c.parts["group"] for c in db.search(QUESTION, top=50).candidates}
    shop = {name for name in groups if not name.startswith("lake")}
    assert len({groups[name] for name in shop}) == 1
    assert [groups["lake.customers"], groups["lake.tea"]] == [-1, -1]
    # In the shop all gain by its best table, a file by itself alone.
    assert len({found[name] for name in shop}) == 1
    assert found["lake.customers"] != found["lake.tea"]


def test_joins_and_tables_that_do_not_belong_together_are_damage(
    small_shop: Path, tmp_path: Path
) -> None:
    with connect(small_shop, index=tmp_path / "i") as db:
        db.search(QUESTION)
    (catalog,) = (tmp_path / "i").glob("gen-*/catalog/*.jsonl")
    catalog.write_bytes(catalog.read_bytes().replace(b'"customers"', b'"customerz"'))
    with (
        connect(small_shop, index=tmp_path / "i") as db,
        pytest.raises(IndexUnusable, match="index is damaged: it lacks the join of"),
    ):
        db.search(QUESTION)


def test_of_few_tables_none_is_said_to_resemble_little(tmp_path: Path) -> None:
    (tmp_path / "birds.csv").write_text("species,nests\npanda,1\n")
    with connect(tmp_path / "birds.csv", index=tmp_path / "i") as db:
        (candidate,) = db.search("birds").candidates
    assert candidate.reason == "too few tables to tell what stands out"
