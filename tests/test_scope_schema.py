"""The live schema: read again when it changed, asked of a server once a second."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import dbrag
from dbrag import scope
from dbrag.errors import IndexUnusable
from dbrag.index import store
from dbrag.index.manifest import read_manifest
from dbrag.models.testing import HashEmbedder
from dbrag.options import TableNote
from dbrag.settings import Settings
from dbrag.types import Table, TableRef

if TYPE_CHECKING:
    from pathlib import Path


class Live:
    """A source that counts what it is asked."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.state = 0
        self.asked: list[str] = []

    def stamp(self) -> str:
        self.asked.append("stamp")
        return str(self.state)

    def reflect(self) -> list[Table]:
        self.asked.append("reflect")
        return [Table(TableRef("s", None, f"t{self.state}"), ())]


def names(source: Any) -> list[str]:
    return [table.ref.name for table in scope.reflected(source)]


def test_a_file_is_looked_at_every_time() -> None:
    source = Live("/data/shop.db")
    assert names(source) == names(source) == ["t0"]
    source.state = 1
    assert names(source) == ["t1"]
    assert source.asked == ["stamp", "reflect", "stamp", "stamp", "reflect"]


def test_a_server_is_asked_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    source = Live("postgresql://reader@db/shop")
    assert names(source) == names(source) == ["t0"]
    source.state = 1
    clock[0] += 0.5
    assert names(source) == ["t0"]
    clock[0] += 1.0
    assert names(source) == ["t1"]
    assert source.asked == ["stamp", "reflect", "stamp", "reflect"]


def test_two_views_of_one_place_do_not_mix() -> None:
    whole, redacted = Live("postgresql://db/shop"), Live("postgresql://db/shop")
    redacted.state = 7
    assert (names(whole), names(redacted), names(whole)) == (["t0"], ["t7"], ["t0"])


def test_an_index_of_another_format_still_tells_its_sources(
    small_shop: Path, tmp_path: Path
) -> None:
    """So that ``dbrag index --force --index DIR`` does what every message about it advises."""
    place = tmp_path / "index"
    with dbrag.connect(small_shop, index=place, embedder=HashEmbedder()) as db:
        db.index()
    manifest = place / "manifest.json"
    data = json.loads(manifest.read_bytes())
    manifest.write_text(json.dumps({**data, "version": 2, "sources": _old(data["sources"])}))
    with dbrag.connect(index=place, embedder=HashEmbedder()) as db:
        for attempt in (db.status, db.index, lambda: db.search("customers")):
            with pytest.raises(IndexUnusable, match="has format 2, this dbrag reads 3") as error:
                attempt()
            assert "dbrag index --force" in error.value.hint
        assert [source.status for source in db.index(force=True).sources] == ["built"]
        assert db.search("customers").candidates
    for content in ("[]", "{", '{"format": "dbrag-index", "version": 2, "sources": [7]}'):
        manifest.write_text(content)
        with pytest.raises(IndexUnusable):
            dbrag.connect(index=place)


def _old(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries of an index that knew less of a source."""
    return [{name: entry[name] for name in ("name", "location", "origin")} for entry in entries]


def test_warnings_of_an_index_that_another_process_replaces_meanwhile(
    small_shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "index"
    notes = {"nothing": TableNote("no such table")}
    inner = read_manifest
    looks: list[int] = []

    with dbrag.connect(
        small_shop, index=place, settings=Settings(notes=notes), embedder=HashEmbedder()
    ) as db:
        first = db.index()
        assert [one.code for one in first.warnings] == ["notes_unused"]

        def replaced(directory: Path) -> Any:
            found = inner(directory)
            looks.append(1)
            if len(looks) == 1:
                db.index(force=True)
            return found

        monkeypatch.setattr(store, "read_manifest", replaced)
        assert [one.code for one in store.problems_of(place)] == ["notes_unused"]
        assert len(looks) > 2
