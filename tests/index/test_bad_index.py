from __future__ import annotations

import errno
import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from dbrag.errors import EncoderMismatch, IndexLocked, IndexUnusable
from dbrag.index.files import REBUILD
from dbrag.index.layout import Layout
from dbrag.index.locks import writer_lock
from dbrag.index.store import describe, open_index
from dbrag.models.testing import HashEmbedder
from dbrag.options import TableNote
from dbrag.settings import Settings
from dbrag.sources import open_sources
from tests.index.conftest import CountingEmbedder, change, contents, dump, statuses

if TYPE_CHECKING:
    from pathlib import Path


class TestBadIndex:
    def test_none_yet(self, tmp_path: Path) -> None:
        with pytest.raises(IndexUnusable, match="there is no index") as error:
            open_index(tmp_path / "index")
        assert error.value.hint.startswith("dbrag index")
        assert describe(tmp_path / "index", [])["exists"] is False

    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"{", "is damaged: it is not JSON"),
            (b"[]", "not the manifest"),
            (b'{"name": "a web page"}', "not the manifest"),
            (b'{"format": "dbrag-index", "version": 99}', "format 99"),
            (b'{"format": "dbrag-index", "version": 3}', "is damaged: KeyError"),
            (b'{"format": "dbrag-index", "version": 1}', "format 1, this"),
        ],
    )
    def test_damaged_manifest(
        self, build: Any, folder: Path, tmp_path: Path, content: bytes, message: str
    ) -> None:
        build(folder / "zoo.db")
        Layout(tmp_path / "index").manifest.write_bytes(content)
        for attempt in (lambda: open_index(tmp_path / "index"), lambda: build(folder)):
            with pytest.raises(IndexUnusable, match=message) as error:
                attempt()
            assert error.value.hint
        assert statuses(build(folder, force=True)) == {"shop": "built", "zoo": "built"}
        with open_index(tmp_path / "index") as index:
            assert len(index.catalog.tables) == 3

    @pytest.mark.parametrize(
        "missing", ["", "catalog", "names.npy", "columns.npy", "bm25", "lance/rows.lance"]
    )
    def test_missing_files(self, build: Any, folder: Path, tmp_path: Path, missing: str) -> None:
        build(folder / "zoo.db")
        generation = next(iter(Layout(tmp_path / "index").generations().values()))
        path = generation.root / missing
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        with (
            pytest.raises(IndexUnusable, match="index") as error,
            open_index(tmp_path / "index") as index,
        ):
            index.rows.search("panda", 5)
        assert "--force" in error.value.hint
        if not missing.endswith(".npy") and missing != "bm25":  # those are written anew anyway
            with pytest.raises(IndexUnusable):
                build(folder / "shop.db")
        assert statuses(build(folder / "zoo.db", force=True)) == {"zoo": "built"}
        with open_index(tmp_path / "index") as index:
            assert len(index.rows.search("panda", 5)) == 1

    @pytest.mark.parametrize("name", ["zoo.db", "zoo.db/index", "line\nbreak", "red\x1b[31m"])
    def test_where_no_index_can_be(self, build: Any, folder: Path, name: str) -> None:
        with pytest.raises(IndexUnusable, match="cannot write the index in") as error:
            build(folder / "shop.db", directory=folder / name)
        assert error.value.hint == "choose another folder with --index DIR"

    def test_a_file_that_is_no_array_is_said_to_be_damaged(
        self, build: Any, folder: Path, tmp_path: Path
    ) -> None:
        build(folder)
        generation = next(iter(Layout(tmp_path / "index").generations().values()))
        (generation.root / "table_ids.npy").write_bytes(b"no array" * 9)
        with pytest.raises(IndexUnusable, match="a file is damaged") as error:
            open_index(tmp_path / "index")
        assert "pickle" not in error.value.message  # NumPy's advice: load it all the same

    def test_force_keeps_other_sources_where_it_can(
        self, build: Any, folder: Path, tmp_path: Path, embedder: CountingEmbedder
    ) -> None:
        build(folder)
        embedder.encoded.clear()
        build(folder / "zoo.db", force=True)
        assert len(embedder.encoded) > 8  # everything, not only the zoo
        with open_index(tmp_path / "index") as index:
            assert {hit.table.source for hit in index.rows.search("Kabul", 9)} == {"shop", "zoo"}
            files_of = Layout(tmp_path / "index").generation(index.manifest.generation)
        files_of.catalog("shop").write_text("[")
        report = build(folder / "zoo.db", force=True)
        (warning,) = report.warnings
        assert warning.code == "sources_lost"
        assert f"shop ({folder / 'shop.db'})" in warning.message
        assert "zoo" not in warning.message.partition("no longer holds")[2].partition("shop")[0]
        with open_index(tmp_path / "index") as index:
            assert [entry.name for entry in index.manifest.sources] == ["zoo"]

    def test_a_folder_of_other_things_is_refused(
        self, build: Any, folder: Path, tmp_path: Path
    ) -> None:
        home = tmp_path / "home"
        home.mkdir()
        (home / "thesis.txt").write_text("years of work")
        for force in (False, True):
            with pytest.raises(IndexUnusable, match="not an index"):
                build(folder, directory=home, force=force)
        (home / "manifest.json").write_text("{}")
        with pytest.raises(IndexUnusable, match="not the manifest"):
            build(folder, directory=home, force=True)
        assert sorted(path.name for path in home.iterdir()) == ["manifest.json", "thesis.txt"]

    def test_another_encoder(self, build: Any, folder: Path, tmp_path: Path) -> None:
        build(folder)
        other = HashEmbedder(dim=32)
        with pytest.raises(EncoderMismatch, match="test:hash-64"):
            open_index(tmp_path / "index", lambda: other.sha256)
        change(folder / "zoo.db", "INSERT INTO animal VALUES (3, 'snow leopard')")
        with pytest.raises(EncoderMismatch) as error:
            build(folder, embedder=other)
        assert "--force" in error.value.hint
        build(folder / "zoo.db", embedder=other, force=True)
        with open_index(tmp_path / "index", lambda: other.sha256) as index:
            assert [entry.name for entry in index.manifest.sources] == ["shop", "zoo"]
            assert index.tables.scores(other.encode(["x"])[0], "x").names.shape == (3,)

    def test_locked(self, build: Any, folder: Path, tmp_path: Path) -> None:
        build(folder)
        with writer_lock(Layout(tmp_path / "index").writer_lock):
            assert statuses(build(folder))["zoo"] == "unchanged"  # nothing to write
            change(folder / "zoo.db", "INSERT INTO animal VALUES (3, 'snow leopard')")
            with pytest.raises(IndexLocked, match=str(os.getpid())):
                build(folder)

    @pytest.mark.parametrize("where", ["sync_tree", "write_atomic", "lance"])
    def test_full_disk(
        self,
        build: Any,
        folder: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        where: str,
    ) -> None:
        build(folder)
        with open_index(tmp_path / "index") as index:
            before = dump(index)
        change(folder / "zoo.db", "INSERT INTO animal VALUES (3, 'snow leopard')")

        def full(*_: Any, **__: Any) -> None:
            if where == "lance":
                raise RuntimeError(
                    "lance error: LanceError(IO): No space left on device (os error 28)"
                )
            raise OSError(errno.ENOSPC, "No space left on device")

        if where == "lance":
            from dbrag.index import fulltext

            monkeypatch.setattr(fulltext.TextWriter, "finish", full)
        elif where == "sync_tree":
            monkeypatch.setattr("dbrag.index.run.sync_tree", full)
        else:
            monkeypatch.setattr("dbrag.index.manifest.write_atomic", full)
        with pytest.raises(IndexUnusable, match="the disk is full") as error:
            build(folder)
        assert "free some space" in error.value.hint
        assert len(Layout(tmp_path / "index").generations()) == 1
        monkeypatch.undo()
        with open_index(tmp_path / "index") as index:
            assert dump(index) == before


class TestReaders:
    def test_an_open_index_outlives_the_next_ones(
        self, build: Any, folder: Path, tmp_path: Path
    ) -> None:
        build(folder)
        layout = Layout(tmp_path / "index")
        old = open_index(tmp_path / "index")  # nothing of it is loaded yet but the catalog
        first = contents(layout.generation(old.manifest.generation).root)
        for i in (3, 4):
            change(folder / "zoo.db", f"INSERT INTO animal VALUES ({i}, 'snow leopard')")
            build(folder)
        # Files shared by hard links must not be written to.
        assert contents(layout.generation(old.manifest.generation).root) == first
        assert old.rows.search("snow leopard", 5) == []
        assert len(old.rows.search("panda", 5)) == 1
        assert len(layout.generations()) == 2
        old.close()
        with open_index(tmp_path / "index") as new:
            assert len(new.rows.search("snow leopard", 5)) == 2
            change(folder / "zoo.db", "DELETE FROM animal WHERE id = 4")
            build(folder)
            assert len(layout.generations()) == 2
        change(folder / "zoo.db", "DELETE FROM animal WHERE id = 3")
        build(folder)
        assert len(layout.generations()) == 1

    def test_describe(self, build: Any, folder: Path, tmp_path: Path) -> None:
        build(folder / "zoo.db")
        sources, skipped = open_sources([str(folder / "shop.db"), str(folder / "zoo.db")])
        state = describe(tmp_path / "index", sources, skipped)
        json.dumps(state)
        assert state["exists"]
        assert state["encoder"]["name"] == "test:hash-64"
        lines = {line["name"]: line for line in state["sources"]}
        assert lines["shop"]["status"] == "not indexed"
        assert lines["zoo"]["status"] == "indexed"
        assert (lines["zoo"]["rows"], lines["zoo"]["sampled"]) == (2, ())
        assert 0 <= lines["zoo"]["age_s"] < 60

    @pytest.mark.parametrize("kind", ["sketches", "joins"])
    @pytest.mark.parametrize("content", [b"", b"garbage", b"PK\x03\x04", b"{}"])
    def test_damaged_sketches_are_healed_by_force(
        self, build: Any, folder: Path, tmp_path: Path, kind: str, content: bytes
    ) -> None:
        build(folder)
        generation = next(iter(Layout(tmp_path / "index").generations().values()))
        for path in (generation.root / kind).iterdir():
            path.write_bytes(content)
        change(folder / "zoo.db", "INSERT INTO animal VALUES (3, 'wolf')")
        with pytest.raises(IndexUnusable) as error:
            build(folder / "zoo.db")
        assert "--force" in error.value.hint
        report = build(folder / "zoo.db", force=True)
        assert statuses(report) == {"zoo": "built"}
        with open_index(tmp_path / "index") as index:
            assert {table.ref.source for table in index.catalog.tables} == {"shop", "zoo"}
            codes = [problem.code for problem in index.join_problems]
            assert not report.warnings
            assert codes == ["joins_not_inferred"]  # of the shop, which was not read again
        build(folder, force=True)
        with open_index(tmp_path / "index") as index:
            assert not index.join_problems

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("column_ids", 10_000),
            ("column_ids", -1),
            ("column_starts", 10_000),
            ("column_starts", -1),
            ("entry_starts", 0),
            ("entry_starts", 10_000),
            ("edges", 10_000),
            ("edges", -1),
            ("row_tables", 10_000),
            ("row_tables", 0),
        ],
    )
    def test_numbers_that_point_nowhere(
        self, build: Any, folder: Path, tmp_path: Path, name: str, value: int
    ) -> None:
        """A flipped bit must not become a traceback in the middle of a question."""
        build(folder, settings=Settings(row_search="dense"))
        path = Layout(tmp_path / "index").generation(1).root / f"{name}.npy"
        whole = np.load(path)
        for place in range(1, whole.size - 1):
            damaged = whole.copy()
            if name == "row_tables" and place % 3 == 0:
                continue  # an identity, which may be any number
            damaged.flat[place] = value
            if (damaged == whole).all():
                continue
            np.save(path, damaged)
            with pytest.raises(IndexUnusable, match="cannot read the index"):
                open_index(tmp_path / "index")
        np.save(path, whole)
        open_index(tmp_path / "index").close()

    @pytest.mark.parametrize("wrong", [None, {}, [], [{}], 5, "x", "2026-01-01", True])
    def test_a_manifest_of_wrong_kinds(
        self, build: Any, folder: Path, tmp_path: Path, wrong: Any
    ) -> None:
        build(folder)
        path = Layout(tmp_path / "index").manifest
        whole = json.loads(path.read_bytes())
        sources, _ = open_sources([str(folder)])
        for key in whole["sources"][0]:
            damaged = json.loads(path.read_bytes())
            damaged["sources"][0][key] = wrong
            path.write_text(json.dumps(damaged))
            hint = ""
            try:
                describe(tmp_path / "index", sources)
                open_index(tmp_path / "index").close()
            except IndexUnusable as error:
                hint = error.hint
            assert hint in ("", REBUILD)
            path.write_text(json.dumps(whole))
        for source in sources:
            source.close()

    @pytest.mark.parametrize("content", ["", "{", "[]", "true", '{"spans": true}', '{"notes": []}'])
    def test_status_of_damaged_files(
        self, build: Any, folder: Path, tmp_path: Path, content: str
    ) -> None:
        build(folder, settings=Settings(notes={"nothing": TableNote("x")}))
        files = Layout(tmp_path / "index").generation(1)
        for path in (files.notes, files.root / "joins.jsonl", files.catalog("shop")):
            whole = path.read_bytes()
            path.write_text(content)
            found = describe(tmp_path / "index", [], settings=Settings())
            assert [source["name"] for source in found["sources"]] == ["shop", "zoo"]
            with pytest.raises(IndexUnusable, match="read the index") as error:
                open_index(tmp_path / "index")
            assert error.value.hint == REBUILD
            path.write_bytes(whole)
