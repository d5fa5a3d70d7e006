"""The catalog and the joins of an index, read piece by piece, equal the whole."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbrag.catalog.catalog import Catalog
from dbrag.catalog.joins import JoinEdge, JoinGraph
from dbrag.errors import IndexUnusable
from dbrag.index import lazy
from dbrag.index.catalogs import CatalogFile, read_catalog, write_catalog
from dbrag.index.layout import Layout, table_id
from dbrag.index.lazy import StoredCatalog, TablesById
from dbrag.index.lazy_joins import LazyJoins
from dbrag.types import Column, ColumnProfile, ForeignKey, Table, TableRef

if TYPE_CHECKING:
    from collections.abc import Callable

    from dbrag.index.layout import Generation

NAMES = st.text(max_size=8)


@st.composite
def tables(draw: st.DrawFn, source: str) -> list[Table]:
    """Up to six tables of one source, with odd names, keys and cells."""
    names = draw(st.lists(st.tuples(st.none() | NAMES, NAMES), max_size=6, unique=True))
    refs = [TableRef(source, schema, name) for schema, name in names]
    made = []
    for ref in refs:
        columns = draw(st.lists(NAMES, max_size=5, unique=True))
        cells = st.tuples(*[st.none() | st.text(max_size=5)] * len(columns))
        keys = st.builds(
            ForeignKey, st.just(tuple(columns[:1])), st.sampled_from(refs), st.just(("id",))
        )
        made.append(
            Table(
                ref,
                tuple(
                    Column(name, draw(NAMES), draw(st.booleans()), draw(NAMES)) for name in columns
                ),
                kind=draw(st.sampled_from(["table", "view"])),
                foreign_keys=tuple(draw(st.lists(keys, max_size=2))) if columns else (),
                row_count=draw(st.none() | st.integers(0, 2**70)),
                profile=tuple(
                    ColumnProfile(n, 1, 2, None, draw(NAMES), ((draw(NAMES), 3),), ("x",))
                    for n in columns
                ),
                sample_rows=tuple(draw(st.lists(cells, max_size=2))),
                redacted=tuple(draw(st.lists(NAMES, max_size=1))),
                notes=tuple(draw(st.lists(NAMES, max_size=2))),
                odd=tuple(draw(st.lists(NAMES, max_size=1))),
            )
        )
    return made


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.tuples(tables("a"), tables('b"\ud800'), tables("c")), st.randoms())
def test_a_stored_catalog_equals_the_tables_in_memory(
    tmp_path: Path, of_sources: tuple[list[Table], ...], random: Any
) -> None:
    files = Layout(tmp_path).generation(1)
    files.catalogs.mkdir(parents=True, exist_ok=True)
    names = ("a", 'b"\ud800', "c")
    for name, own in zip(names, of_sources, strict=True):
        write_catalog(files.catalog(name), own, {table.ref: "mark" for table in own})
        assert list(read_catalog(files.catalog(name))) == own
    whole = Catalog([table for own in of_sources for table in own])
    stored = StoredCatalog.open(files, names)
    assert stored == StoredCatalog.open(files, names)
    assert stored.tables == whole.tables
    assert list(stored.refs) == list(whole.refs)
    assert stored.position == whole.position
    assert dict(stored.by_ref) == dict(whole.by_ref)
    assert list(stored.redacted) == list(whole.redacted)
    order = list(range(len(whole.tables)))
    random.shuffle(order)
    for i in order:
        table = whole.tables[i]
        assert stored.tables[i] == table == stored.by_ref[table.ref]
        assert list(stored.columns(i)) == [column.name for column in table.columns]
    for name, own in zip(names, of_sources, strict=True):
        assert list(stored.of_source(name)) == own
        assert stored.mask([name]).sum() == len(own)
    bare = [
        Table(t.ref, tuple(Column(c.name) for c in t.columns), foreign_keys=t.foreign_keys)
        for t in whole.tables
    ]
    assert list(stored.bare(names)) == bare


@pytest.fixture
def files(tmp_path: Path) -> Generation:
    generation = Layout(tmp_path).generation(1)
    generation.catalogs.mkdir(parents=True)
    return generation


@pytest.fixture
def stored(files: Generation) -> StoredCatalog:
    """Two sources of 50 tables of three columns."""
    for source in ("a", "b"):
        columns = tuple(Column(f"c{i}", "TEXT") for i in range(3))
        own = [Table(TableRef(source, None, f"t{i:02}"), columns) for i in range(50)]
        write_catalog(files.catalog(source), own, {})
    return StoredCatalog.open(files, ["a", "b"])


def test_as_a_sequence(stored: StoredCatalog) -> None:
    assert len(stored.tables) == 100
    assert stored.tables[-1].ref == TableRef("b", None, "t49")
    assert [t.ref.name for t in stored.tables[48:52]] == ["t48", "t49", "t00", "t01"]
    with pytest.raises(IndexError):
        stored.tables[100]
    with pytest.raises(KeyError):
        stored.by_ref[TableRef("a", None, "none")]
    assert stored.of_source("none") == ()
    assert stored.mask(["b", "none"]).tolist() == [False] * 50 + [True] * 50


def test_only_the_latest_tables_are_kept(
    stored: StoredCatalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    inner = CatalogFile.table

    def table(self: Any, i: int) -> Table:
        read.append(i)
        return inner(self, i)

    monkeypatch.setattr(CatalogFile, "table", table)
    assert stored.tables[3] is stored.tables[3]
    assert read == [3]
    few = lazy._Latest[int, int](3)
    assert [few.get(i, 1, lambda key: key) for i in (1, 2, 3, 4)] == [1, 2, 3, 4]
    assert list(few._kept) == [2, 3, 4]
    assert few.get(5, 100, lambda key: key) == 5  # larger than all: kept alone
    assert list(few._kept) == [5]


def test_ids(stored: StoredCatalog) -> None:
    import numpy as np

    ids = np.array([table_id(ref) for ref in stored.refs], np.int64)
    by_id = TablesById(stored, ids)
    assert len(by_id) == 100
    assert sorted(by_id) == sorted(ids.tolist())
    for i in (0, 51, 99):
        ref, columns = by_id[int(ids[i])]
        assert ref == stored.refs[i]
        assert (list(columns), len(columns), columns[2]) == (["c0", "c1", "c2"], 3, "c2")
    assert 5 not in by_id
    assert by_id.get(5) is None


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def garble_a_table(path: Path) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[10] = b"x" * len(lines[10])
    path.write_bytes(b"\n".join(lines))


@pytest.mark.parametrize("damage", [cut, Path.unlink, lambda path: path.write_text("[")])
def test_damage_is_seen_when_opened(
    files: Generation, stored: StoredCatalog, damage: Callable[[Path], object]
) -> None:
    damage(files.catalog("a"))
    with pytest.raises((OSError, ValueError)):
        StoredCatalog.open(files, ["a", "b"])
    with pytest.raises(IndexUnusable) as error:
        stored.tables[49]
    assert "--force" in (error.value.hint or "")


def test_damage_inside_is_seen_when_read(files: Generation, stored: StoredCatalog) -> None:
    garble_a_table(files.catalog("a"))
    reopened = StoredCatalog.open(files, ["a", "b"])
    with pytest.raises(IndexUnusable, match="cannot read"):
        list(reopened.tables)


def test_joins_are_read_source_by_source() -> None:
    def edge(source: str, i: int) -> JoinEdge:
        return JoinEdge(
            TableRef(source, None, f"t{i}"), ("x",), TableRef(source, None, "t0"), ("id",)
        )

    everything = JoinGraph(edge(source, i) for source in ("a", "b") for i in (1, 2))
    read: list[str] = []

    def of(source: str) -> JoinGraph:
        read.append(source)
        return JoinGraph(e for e in everything.edges if e.left.source == source)

    joins = LazyJoins(("a", "b"), of)
    one, other = TableRef("a", None, "t1"), TableRef("a", None, "t2")
    assert joins.neighbours(one) == everything.neighbours(one)
    assert joins.between(one, other) == ()
    assert joins.path([one, other]) == everything.path([one, other])
    assert read == ["a"]
    assert joins.edges == everything.edges
    assert sorted(read) == ["a", "b"]


def test_threads_read_one_catalog(stored: StoredCatalog) -> None:
    """Each gets what is in the files, and no more is kept than one alone would keep."""
    expected = [table.ref for table in stored.tables]
    size = max(file.size(i) for file in stored._files for i in range(50))
    kept = lazy._Latest[int, Table](3 * size)
    vars(stored)["_tables"] = kept
    wrong: list[int] = []

    def read(seed: int) -> None:
        random = Random(seed)
        for _ in range(300):
            i = random.randrange(100)
            table = stored.by_ref[expected[i]]
            names = [column.name for column in table.columns]
            if table.ref != expected[i] or list(stored.columns(i)) != names:
                wrong.append(i)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(read, range(8)))
    assert not wrong
    assert kept._size == sum(freed for _, freed in kept._kept.values()) <= 3 * size
