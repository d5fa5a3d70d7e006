"""Rows by vectors: what is encoded, what is kept, what is found."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.errors import EncoderMismatch, IndexUnusable
from dbrag.index.best import top
from dbrag.index.build import build_index, drop_source
from dbrag.index.layout import Layout
from dbrag.index.manifest import read_manifest
from dbrag.index.row_hashes import Known, Partial, hash_rows
from dbrag.index.store import open_index
from dbrag.models.testing import HashEmbedder
from dbrag.settings import Settings
from dbrag.sources import open_sources
from dbrag.types import TableRef
from tests.index.conftest import CountingEmbedder

if TYPE_CHECKING:
    from pathlib import Path

    from dbrag.types import IndexReport

CUSTOMER = TableRef("shop", None, "customer")
PURCHASE = TableRef("shop", None, "purchase")
ANIMAL = TableRef("zoo", None, "animal")


class Bed:
    """A folder of two databases, indexed with vectors."""

    def __init__(self, folder: Path, directory: Path) -> None:
        self.folder = folder
        self.directory = directory
        self.embedder = CountingEmbedder()
        self.told: list[Any] = []

    def build(self, row_search: str = "dense", dense_rows: int = 100, **more: Any) -> IndexReport:
        """Index; ``rows`` then holds the rows that were encoded."""
        self.embedder.encoded.clear()
        sources, skipped = open_sources([str(self.folder)])
        try:
            return build_index(
                self.directory,
                sources,
                embedder=more.pop("embedder", self.embedder),
                settings=Settings(row_search=row_search, dense_rows=dense_rows),
                skipped=skipped,
                progress=self.told.append,
                **more,
            )
        finally:
            for source in sources:
                source.close()

    @property
    def rows(self) -> list[str]:
        return sorted(text for text in self.embedder.encoded if text.startswith("{"))

    def found(self, question: str, mode: Any = "dense", **more: Any) -> list[tuple[TableRef, Any]]:
        vector = HashEmbedder().encode([question])[0]
        with open_index(self.directory) as index:
            hits = index.rows.search(question, 50, mode=mode, vector=vector, **more)
            assert [h.score for h in hits] == sorted((h.score for h in hits), reverse=True)
            return [(hit.table, next(iter(hit.row.values()))) for hit in hits]

    def change(self, statement: str) -> None:
        with closing(sqlite3.connect(self.folder / "zoo.db")) as connection:
            connection.executescript(statement)
            connection.commit()


@pytest.fixture
def bed(folder: Path, tmp_path: Path) -> Bed:
    return Bed(folder, tmp_path / "index")


def test_each_row_is_encoded_as_json_and_found_by_its_vector(bed: Bed) -> None:
    bed.build()
    assert bed.rows == [
        '{"customer_id": 1, "name": "Ann Lee", "city": "Kabul"}',
        '{"customer_id": 2, "name": "Bob", "city": "New York City", "photo": null}',
        '{"id": 1, "species": "red panda"}',
        '{"id": 2, "species": "Kabul markhor"}',
        '{"purchase_id": 10, "customer_id": 1, "day": "2024-01-05"}',
        '{"purchase_id": 11, "customer_id": 2, "day": "2024-02-06"}',
    ]
    question = bed.rows[3]
    assert bed.found(question)[0] == (ANIMAL, 2)
    assert len(bed.found(question)) == 6
    with open_index(bed.directory) as index:
        vector = HashEmbedder().encode([question])[0]
        (first, *_) = index.rows.search(question, 1, mode="dense", vector=vector)
        assert first.score == pytest.approx(1.0)
        assert first.row == {"id": 2, "species": "Kabul markhor"}
        best = index.rows.look(question, 1, mode="dense", vector=vector).best()
        assert set(best) == {CUSTOMER, PURCHASE, ANIMAL}
        assert min(best.values()) == 0.0
        assert max(best, key=lambda ref: best[ref]) == ANIMAL


def test_only_rows_of_these_tables(bed: Bed) -> None:
    bed.build()
    assert {table for table, _ in bed.found("red panda", tables=[PURCHASE])} == {PURCHASE}
    assert bed.found("red panda", tables=[]) == []
    assert bed.found("red panda", tables=[TableRef("shop", None, "unknown")]) == []
    with open_index(bed.directory) as index:
        vector = HashEmbedder().encode(["Kabul"])[0]
        for mode in ("text", "dense", "both"):
            look = index.rows.look("Kabul", 500, mode=mode, vector=vector)
            rows = look.rows_of([CUSTOMER, ANIMAL], 1)
            assert {ref: len(of_table) for ref, of_table in rows.items()} == {
                CUSTOMER: 1,
                ANIMAL: 1,
            }
            assert rows[CUSTOMER][0]["city"] == "Kabul"
            assert look.rows_of([], 1) == {}


def test_both_finds_what_either_finds_and_prefers_what_both_find(bed: Bed) -> None:
    bed.build()
    assert bed.found("species of panda", mode="text") == [(ANIMAL, 1)]
    both = bed.found("species of panda", mode="both")
    assert both[0] == (ANIMAL, 1)
    assert len(both) == len(set(both)) == 6
    with open_index(bed.directory) as index:
        vector = HashEmbedder().encode(["species of panda"])[0]
        best = index.rows.look("species of panda", 500, mode="both", vector=vector).best()
        assert max(best, key=lambda ref: best[ref]) == ANIMAL


def test_vectors_of_unchanged_rows_are_kept(bed: Bed) -> None:
    bed.build()
    bed.change("INSERT INTO animal VALUES (3, 'snow leopard'); DELETE FROM animal WHERE id = 1")
    bed.build()
    assert bed.rows == ['{"id": 3, "species": "snow leopard"}']
    assert {key for table, key in bed.found("snow leopard") if table == ANIMAL} == {2, 3}
    bed.build()
    assert bed.embedder.encoded == []


def test_changed_column_names_are_encoded_anew(bed: Bed) -> None:
    bed.build()
    bed.change("ALTER TABLE animal RENAME COLUMN species TO kind")
    bed.build()
    assert bed.rows == ['{"id": 1, "kind": "red panda"}', '{"id": 2, "kind": "Kabul markhor"}']


def test_from_words_to_vectors_without_reading_a_source(bed: Bed) -> None:
    bed.build("text")
    assert bed.rows == []
    with open_index(bed.directory) as index:
        vector = HashEmbedder().encode(["panda"])[0]
        for mode in ("dense", "both"):
            with pytest.raises(IndexUnusable, match="no row vectors") as error:
                index.rows.search("panda", 5, mode=mode, vector=vector)
            assert "dbrag index" in error.value.hint
    before = {e.name: e.indexed_at for e in read_manifest(bed.directory).sources}  # type: ignore[union-attr]
    report = bed.build("dense")
    assert {source.status for source in report.sources} == {"unchanged"}
    assert len(bed.rows) == 6
    after = read_manifest(bed.directory)
    assert after is not None
    assert after.row_vectors == 100
    assert {e.name: e.indexed_at for e in after.sources} == before
    assert bed.found("red panda", "text") == [(ANIMAL, 1)]


def test_back_to_words_keeps_the_vectors_for_another_time(bed: Bed) -> None:
    bed.build("dense")
    generation = read_manifest(bed.directory).generation  # type: ignore[union-attr]
    bed.build("text")
    assert read_manifest(bed.directory).generation == generation  # type: ignore[union-attr]
    bed.change("INSERT INTO animal VALUES (3, 'snow leopard')")
    bed.build("text")
    assert bed.rows == []
    with open_index(bed.directory) as index, pytest.raises(IndexUnusable):
        index.rows.search("panda", 5, mode="dense", vector=HashEmbedder().encode(["panda"])[0])
    bed.build("both")
    assert bed.rows == ['{"id": 3, "species": "snow leopard"}']


def test_a_cap_is_told_and_always_chooses_the_same_rows(bed: Bed) -> None:
    values = ", ".join(f"({i}, 'animal {i}')" for i in range(10, 60))
    bed.change(f"INSERT INTO animal VALUES {values}")
    report = bed.build(dense_rows=20)
    (warning,) = report.warnings
    assert warning.code == "rows_cut"
    assert warning.message.startswith("only 20 rows of a table got vectors")
    assert warning.message.endswith(": zoo.animal")
    manifest = read_manifest(bed.directory)
    assert manifest is not None
    assert (manifest.row_vectors, manifest.rows_cut) == (20, ("zoo.animal",))
    animals = {key for table, key in bed.found("animal") if table == ANIMAL}
    assert len(animals) == 20
    assert not animals <= set(range(10, 30))  # not just the first
    bed.build(dense_rows=30)
    assert len(bed.rows) == 10  # the 20 stay among them
    bed.build(dense_rows=20)
    assert bed.rows == []
    assert {key for table, key in bed.found("animal") if table == ANIMAL} == animals


def test_equal_rows_are_encoded_once(bed: Bed) -> None:
    bed.change("CREATE TABLE note (text TEXT); INSERT INTO note VALUES ('same'), ('same'), ('x')")
    bed.build()
    assert [row for row in bed.rows if "text" in row] == ['{"text": "same"}', '{"text": "x"}']


def test_a_dropped_source_takes_its_rows_along_without_an_encoder(bed: Bed) -> None:
    bed.build()
    drop_source(bed.directory, "zoo")
    assert {table for table, _ in bed.found("red panda")} == {CUSTOMER, PURCHASE}


def test_an_empty_index_has_no_rows(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    with closing(sqlite3.connect(tmp_path / "data" / "empty.db")) as connection:
        connection.execute("CREATE TABLE bare (id INTEGER)")
    bed = Bed(tmp_path / "data", tmp_path / "index")
    bed.build()
    assert bed.found("anything") == []
    bed.build(force=True)
    assert bed.found("anything", "both") == []


def test_another_encoder_is_refused_or_encodes_all(bed: Bed) -> None:
    bed.build("text")
    with pytest.raises(EncoderMismatch):
        bed.build("dense", embedder=HashEmbedder(32))
    other = CountingEmbedder(32)
    bed.build("dense", embedder=other, force=True)
    assert sum(text.startswith("{") for text in other.encoded) == 6


def test_progress_counts_rows(bed: Bed) -> None:
    bed.build()
    states = [p for p in bed.told if p.stage == "rows"]
    assert [(p.done, p.total) for p in states] == [(0, 6), (6, 6)]


def test_damaged_vectors_are_told(bed: Bed) -> None:
    bed.build()
    generation = Layout(bed.directory).generation(1)
    np.save(generation.row_ids, np.zeros(3, np.uint64))
    with pytest.raises(IndexUnusable, match="row vectors hold"):
        open_index(bed.directory)
    bed.build(force=True)
    assert len(bed.found("red panda")) == 6


CHILD = """
import sys, os, signal
from pathlib import Path
from dbrag.index.build import build_index
from dbrag.index import row_vectors
from dbrag.models.testing import HashEmbedder
from dbrag.settings import Settings
from dbrag.sources import open_sources
row_vectors._CHUNK = 2
class Dying(HashEmbedder):
    rows = 0
    def encode(self, texts):
        if texts and texts[0].startswith("{"):
            if Dying.rows == 4:
                os.kill(os.getpid(), signal.SIGKILL)
            Dying.rows += len(texts)
        return super().encode(texts)
sources, _ = open_sources([sys.argv[1]])
build_index(Path(sys.argv[2]), sources, embedder=Dying(), settings=Settings(row_search="dense"))
"""


def test_a_killed_run_leaves_the_old_index_and_what_it_encoded(bed: Bed) -> None:
    bed.build("text")
    command = [sys.executable, "-c", CHILD, str(bed.folder), str(bed.directory)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert bed.found("red panda", "text") == [(ANIMAL, 1)]
    bed.change("INSERT INTO animal VALUES (3, 'wolf')")
    bed.build("text")  # in between rows are searched by their words
    assert Layout(bed.directory).row_vectors_part.exists()
    bed.change("DELETE FROM animal WHERE id = 3")
    bed.build("dense", dense_rows=10_000)
    assert len(bed.rows) == 2
    assert len(bed.found("red panda")) == 6
    assert not Layout(bed.directory).row_vectors_part.exists()


@given(st.lists(st.integers(0, 5), max_size=30), st.integers(-1, 40))
def test_top_is_a_stable_sort(scores: list[int], limit: int) -> None:
    array = np.array(scores, np.float32)
    expected = sorted(range(len(scores)), key=lambda i: -scores[i])[: max(limit, 0)]
    assert top(array, limit).tolist() == expected


def test_hashes_depend_on_cells_and_columns() -> None:
    one, same, cells, columns = hash_rows(
        ['["a"]', '["a"]', '["b"]', '["a"]'], [["x"], ["x"], ["x"], ["y"]]
    )
    assert one == same
    assert len({one, cells, columns}) == 3
    assert one >= 0


def test_known_vectors_by_hash() -> None:
    known = Known()
    assert (known.dim, known.holds(np.array([1])).tolist()) == (0, [False])
    known.add(np.array([5, 1]), np.array([[5, 5], [1, 1]], np.float32))
    known.add(np.array([1, 9]), np.array([[7, 7], [9, 9]], np.float32))
    wanted = np.array([9, 2, 1, 5])
    assert known.holds(wanted).tolist() == [True, False, True, True]
    matrix = np.zeros((4, 2), np.float32)
    known.copy(wanted, matrix, known.holds(wanted))
    assert matrix[:, 0].tolist() == [9, 0, 1, 5]
    with pytest.raises(ValueError, match="hashes"):
        known.add(np.array([1]), np.zeros((2, 2), np.float32))


def test_a_torn_record_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "part"
    hashes, vectors = np.array([3, 4]), np.array([[0.6, 0.8], [1, 0]], np.float32)
    for i in range(2):
        partial = Partial(path, "a" * 64)
        assert len(partial.read()[0]) == i
        partial.append(hashes[i : i + 1], vectors[i : i + 1])
        partial.close()
        with path.open("ab") as file:
            file.write(b"torn")
    found, kept = Partial(path, "a" * 64).read()
    assert (found.tolist(), kept.tolist()) == (hashes.tolist(), vectors.tolist())
    assert len(Partial(path, "b" * 64).read()[0]) == 0
    data = path.read_bytes()
    path.write_bytes(data[:-4] + bytes(4))  # pages that never came to the disk
    found, kept = Partial(path, "a" * 64).read()
    assert found.tolist() == hashes.tolist()  # 0 where it was 0
    path.write_bytes(data[:-8] + bytes(8))
    found, kept = Partial(path, "a" * 64).read()
    assert found.tolist() == [3, -1]
    os.truncate(path, 10)
    assert len(Partial(path, "a" * 64).read()[0]) == 0
