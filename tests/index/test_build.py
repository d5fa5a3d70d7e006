from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from dbrag.errors import SourceError, UsageError
from dbrag.index import files
from dbrag.index.build import drop_source
from dbrag.index.layout import Layout
from dbrag.index.manifest import read_manifest, stale_sources
from dbrag.index.store import open_index
from dbrag.models.testing import HashEmbedder
from dbrag.sources import open_sources
from tests.index.conftest import ZOO, CountingEmbedder, change, contents, dump, statuses, write_db

if TYPE_CHECKING:
    from pathlib import Path


class TestBuild:
    def test_first_run(self, build: Any, folder: Path, tmp_path: Path) -> None:
        report = build(folder)
        assert statuses(report) == {"shop": "built", "zoo": "built"}
        assert [(s.tables, s.rows, s.rows_indexed) for s in report.sources] == [
            (2, 4, 4),
            (1, 2, 2),
        ]
        assert report.bytes > 0
        assert report.peak_mb > 1
        with open_index(tmp_path / "index") as index:
            assert [str(t.ref) for t in index.catalog.tables] == [
                "shop.customer",
                "shop.purchase",
                "zoo.animal",
            ]
            assert index.edges.tolist() == [[0, 1], [1, 0]]
            assert [index.adjacency.neighbours(i).tolist() for i in range(3)] == [[1], [0], []]

    def test_unchanged_sources_cost_nothing(
        self, build: Any, folder: Path, tmp_path: Path, embedder: CountingEmbedder
    ) -> None:
        build(folder)
        before, embedder.encoded[:] = contents(tmp_path / "index"), []

        def unavailable() -> HashEmbedder:
            raise AssertionError("loaded for nothing")

        assert statuses(build(folder, embedder=unavailable)) == {
            "shop": "unchanged",
            "zoo": "unchanged",
        }
        assert contents(tmp_path / "index") == before

    def test_touched_source_only_gets_a_new_stamp(
        self, build: Any, folder: Path, tmp_path: Path
    ) -> None:
        build(folder)
        generation = read_manifest(tmp_path / "index").generation  # type: ignore[union-attr]
        os.utime(folder / "zoo.db", (1, 1))
        assert statuses(build(folder)) == {"shop": "unchanged", "zoo": "unchanged"}
        manifest = read_manifest(tmp_path / "index")
        assert manifest is not None
        assert manifest.generation == generation
        sources, _ = open_sources([str(folder)])
        assert stale_sources(manifest, sources) == []

    def test_only_the_changed_source_is_redone(
        self, build: Any, folder: Path, tmp_path: Path, embedder: CountingEmbedder
    ) -> None:
        build(folder)
        embedder.encoded.clear()
        change(folder / "zoo.db", "INSERT INTO animal VALUES (3, 'snow leopard')")
        sources, _ = open_sources([str(folder)])
        assert stale_sources(read_manifest(tmp_path / "index"), sources) == [("zoo", "changed")]
        assert statuses(build(folder)) == {"shop": "unchanged", "zoo": "built"}
        assert embedder.encoded == []  # no name has changed
        with open_index(tmp_path / "index") as index:
            assert [hit.row["id"] for hit in index.rows.search("snow leopard", 5)] == [3]
            assert len(index.rows.search("Kabul", 5)) == 2

    def test_increments_give_what_a_fresh_index_gives(
        self, build: Any, folder: Path, tmp_path: Path
    ) -> None:
        build(folder / "shop.db")
        build(folder)
        change(folder / "shop.db", "UPDATE customer SET city = 'Paris' WHERE customer_id = 1")
        change(folder / "shop.db", "CREATE TABLE kabul_office (floor INTEGER)")
        build(folder)
        build(folder, directory=tmp_path / "fresh")
        with open_index(tmp_path / "index") as grown, open_index(tmp_path / "fresh") as fresh:
            assert dump(grown) == dump(fresh)

    def test_gone_sources_are_dropped_others_stay(
        self, build: Any, folder: Path, tmp_path: Path
    ) -> None:
        other = write_db(tmp_path / "elsewhere" / "park.db", ZOO)
        build(folder)
        build(other)
        (folder / "shop.db").unlink()
        sources, _ = open_sources([str(folder)])
        assert stale_sources(read_manifest(tmp_path / "index"), sources) == [("shop", "gone")]
        build(folder)
        with open_index(tmp_path / "index") as index:
            assert [entry.name for entry in index.manifest.sources] == ["park", "zoo"]
            assert {hit.table.source for hit in index.rows.search("Kabul", 9)} == {"park", "zoo"}

    def test_drop(self, build: Any, folder: Path, tmp_path: Path) -> None:
        build(folder)
        drop_source(tmp_path / "index", "shop")
        with open_index(tmp_path / "index") as index:
            assert [str(table.ref) for table in index.catalog.tables] == ["zoo.animal"]
            assert {hit.table.source for hit in index.values.search("Kabul", 9)} == {"zoo"}
        with pytest.raises(UsageError, match="'shop'") as error:
            drop_source(tmp_path / "index", "shop")
        assert "zoo" in error.value.hint

    def test_everything_dropped_is_an_empty_index(
        self, build: Any, folder: Path, tmp_path: Path
    ) -> None:
        build(folder / "zoo.db")
        drop_source(tmp_path / "index", "zoo")
        with open_index(tmp_path / "index") as index:
            assert index.catalog.tables == ()
            assert index.rows.search("panda", 5) == []
            assert index.tables.scores(HashEmbedder().encode(["x"])[0], "x").bm25.shape == (0,)
        build(folder / "zoo.db")
        with open_index(tmp_path / "index") as index:
            assert len(index.rows.search("panda", 5)) == 1

    def test_progress(self, build: Any, folder: Path) -> None:
        seen: list[Any] = []
        build(folder, progress=seen.append)
        assert [p.stage for p in seen if p.done == p.total][-1] == "switch"
        assert {"read", "text", "encode", "switch"} == {p.stage for p in seen}
        assert max(p.rows for p in seen) == 6
        assert all(p.eta_s is None or p.eta_s >= 0 for p in seen)


class TestBadSources:
    def test_a_failing_source_is_skipped_and_kept(
        self, build: Any, folder: Path, tmp_path: Path
    ) -> None:
        build(folder)
        (folder / "zoo.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 500)
        report = build(folder)
        line = next(source for source in report.sources if source.name == "zoo")
        assert line.status == "skipped"
        assert "stays" in line.reason
        assert line.tables == 1
        with open_index(tmp_path / "index") as index:
            assert len(index.rows.search("panda", 5)) == 1

    def test_a_failing_new_source_leaves_nothing(
        self, build: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from dbrag.catalog import profile

        real = profile.profile_table

        def fails_late(source: Any, table: Any, **budgets: Any) -> Any:
            if table.ref.name == "purchase":
                raise SourceError("the cable was cut")
            return real(source, table, **budgets)

        monkeypatch.setattr(profile, "profile_table", fails_late)
        assert statuses(build(folder)) == {"shop": "skipped", "zoo": "built"}
        manifest = read_manifest(tmp_path / "index")
        assert manifest is not None
        assert [(f.name, f.reason) for f in manifest.failed] == [("shop", "the cable was cut")]
        sources, _ = open_sources([str(folder)])
        assert stale_sources(manifest, sources) == []  # not tried again by itself
        with open_index(tmp_path / "index") as index:
            assert {hit.table.source for hit in index.rows.search("Kabul Bob Ann", 9)} == {"zoo"}
        monkeypatch.setattr(profile, "profile_table", real)
        assert statuses(build(folder)) == {"shop": "built", "zoo": "unchanged"}
        assert read_manifest(tmp_path / "index").failed == ()  # type: ignore[union-attr]

    def test_nothing_usable_raises(
        self, build: Any, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from dbrag.catalog import profile

        def fails(*_: Any, **__: Any) -> Any:
            raise SourceError("the cable was cut")

        monkeypatch.setattr(profile, "profile_table", fails)
        with pytest.raises(SourceError, match="the cable was cut"):
            build(folder)
        assert Layout(tmp_path / "index").generations() == {}

    def test_two_databases_of_one_name(self, build: Any, folder: Path, tmp_path: Path) -> None:
        build(folder / "zoo.db")
        other = write_db(tmp_path / "elsewhere" / "zoo.db", "CREATE TABLE bird (wing TEXT)")
        with pytest.raises(UsageError, match="already has a source named 'zoo'") as error:
            build(other)
        assert "--drop zoo" in error.value.hint
        build(folder / "zoo.db")
        shutil.copy(other, folder / "moved.db")
        (folder / "zoo.db").unlink()
        assert statuses(build(other)) == {"zoo": "built"}  # the old one is gone: replaced

    def test_a_moved_database_is_not_read_again(
        self, build: Any, folder: Path, tmp_path: Path, embedder: CountingEmbedder
    ) -> None:
        build(folder / "zoo.db")
        (tmp_path / "new").mkdir()
        (folder / "zoo.db").rename(tmp_path / "new" / "zoo.db")
        assert statuses(build(tmp_path / "new" / "zoo.db")) == {"zoo": "unchanged"}
        entry = read_manifest(tmp_path / "index").source("zoo")  # type: ignore[union-attr]
        assert entry is not None
        assert entry.location == str(tmp_path / "new" / "zoo.db")


def test_tree_helpers(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").write_bytes(b"12345")
    files.link(tmp_path / "a" / "file", tmp_path / "b")
    assert (tmp_path / "b").read_bytes() == b"12345"
    assert files.tree_bytes(tmp_path) == 5  # a hard link counts once


def test_writes_nothing_beside_the_sources(build: Any, folder: Path) -> None:
    before = contents(folder)
    build(folder)
    assert contents(folder) == before
