"""A changed source: only its changed tables are read again, with the same result."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from dbrag.errors import IndexUnusable, SourceError
from dbrag.index.build import build_index
from dbrag.index.layout import Layout
from dbrag.index.manifest import read_manifest
from dbrag.index.store import open_index
from dbrag.models.testing import HashEmbedder
from dbrag.settings import Settings
from tests.index.conftest import dump, write_db
from tests.index.marked import MarkedSource

if TYPE_CHECKING:
    from pathlib import Path

    from dbrag.types import SourceReport, Table

MANY = "".join(
    f"CREATE TABLE t{i:02} (id INTEGER PRIMARY KEY, word TEXT);"
    f"INSERT INTO t{i:02} VALUES (1, 'Kabul {i}'), (2, 'panda {i}'), (3, 'Bob');"
    for i in range(12)
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_db(tmp_path / "many.db", MANY)


def change(path: Path, script: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(script)
        connection.commit()


class Builder:
    """Indexes the database and remembers which tables were read."""

    def __init__(self, path: Path, directory: Path, **settings: Any) -> None:
        self.path = path
        self.directory = directory
        self.settings = Settings(**settings)
        self.read: list[str] = []
        self.estimate: dict[str, int] = {}
        self.fail_at: str | None = None

    def source(self) -> MarkedSource:
        return MarkedSource(self.path, estimate=self.estimate, before_read=self._told)

    def _told(self, sql: str) -> None:
        name = sql.split('FROM "')[1].split('"')[0]
        if name == self.fail_at:
            raise SourceError("the server was killed")
        if "COUNT" not in sql:
            self.read.append(name)

    def __call__(self, directory: Path | None = None, *, force: bool = False) -> SourceReport:
        self.read.clear()
        source = self.source()
        try:
            report = build_index(
                directory or self.directory,
                [source],
                embedder=HashEmbedder(),
                settings=self.settings,
                force=force,
            )
        finally:
            source.close()
        return report.sources[0]

    def tables(self, directory: Path | None = None) -> dict[str, Table]:
        with open_index(directory or self.directory) as index:
            return {table.ref.name: table for table in index.catalog.tables}


@pytest.fixture
def build(path: Path, tmp_path: Path) -> Builder:
    return Builder(path, tmp_path / "index")


def same_as_fresh(build: Builder, tmp_path: Path) -> bool:
    fresh = tmp_path / "fresh"
    build(fresh)
    with open_index(build.directory) as grown, open_index(fresh) as new:
        assert grown.catalog == new.catalog
        assert dump(grown) == dump(new)
        a, b = (replace(i.manifest.sources[0], indexed_at="", seconds=0) for i in (grown, new))
        assert a == b
    return True


def test_only_changed_tables_are_read(build: Builder, path: Path, tmp_path: Path) -> None:
    first = build()
    assert (first.tables, first.tables_read, first.reason) == (12, 12, "")
    change(
        path,
        "UPDATE t03 SET word = 'red panda' WHERE id = 1; DROP TABLE t05;"
        "CREATE TABLE fresh (city TEXT); INSERT INTO fresh VALUES ('Kabul');"
        "ALTER TABLE t07 ADD COLUMN note TEXT DEFAULT 'Bob'",
    )
    report = build()
    assert sorted(build.read) == ["fresh", "t03", "t07"]
    assert (report.tables, report.tables_read) == (12, 3)
    assert report.reason == "3 of 12 tables read"
    assert same_as_fresh(build, tmp_path)


def test_one_change_among_many_and_many_among_few(
    build: Builder, path: Path, tmp_path: Path
) -> None:
    build()
    change(path, "DELETE FROM t00")
    assert build().tables_read == 1
    change(path, "".join(f"DELETE FROM t{i:02} WHERE id = 2;" for i in range(1, 12)))
    assert build().tables_read == 11
    assert same_as_fresh(build, tmp_path)


def test_keys_come_from_the_live_schema(build: Builder, path: Path, tmp_path: Path) -> None:
    build()
    change(
        path,
        "CREATE TABLE child (id INTEGER REFERENCES t01 (id)); INSERT INTO child VALUES (1);"
        "CREATE VIEW seen AS SELECT * FROM t02",
    )
    build()
    assert sorted(build.read) == ["child", "seen"]
    change(path, "DROP TABLE child; CREATE TABLE child (id INTEGER); INSERT INTO child VALUES (1)")
    build()
    assert build.tables()["child"].foreign_keys == ()
    assert "seen" in build.read  # a view has no mark: it is always read
    assert same_as_fresh(build, tmp_path)


def test_force_reads_everything(build: Builder, path: Path) -> None:
    build()
    assert build(force=True).tables_read == 12


@pytest.mark.parametrize("version", [1, 2])
def test_an_index_of_an_older_format_is_made_anew(build: Builder, version: int) -> None:
    import json

    build()
    manifest = Layout(build.directory).manifest
    data = json.loads(manifest.read_bytes())
    manifest.write_text(json.dumps(data | {"version": version}))
    for attempt in (lambda: open_index(build.directory), build):
        with pytest.raises(IndexUnusable, match=f"format {version}, this dbrag reads 3") as error:
            attempt()
        assert "dbrag index --force" in (error.value.hint or "")
    assert build(force=True).tables_read == 12
    with open_index(build.directory) as index:
        assert len(index.rows.search("panda", 50)) == 12


def test_a_server_killed_midway_leaves_what_was_there(
    build: Builder, path: Path, tmp_path: Path
) -> None:
    build()
    with open_index(build.directory) as index:
        before = dump(index)
    change(path, "UPDATE t02 SET word = 'new'; UPDATE t08 SET word = 'new'")
    build.fail_at = "t08"
    report = build()
    assert (report.status, report.tables) == ("skipped", 12)
    assert report.reason == "the server was killed; what was indexed before stays"
    with open_index(build.directory) as index:
        assert dump(index) == before
        assert index.manifest.failed[0].name == "many"
    build.fail_at = None
    assert build().tables_read == 2
    assert read_manifest(build.directory).failed == ()  # type: ignore[union-attr]
    assert same_as_fresh(build, tmp_path)


def test_killed_midway_while_another_source_is_new(
    build: Builder, path: Path, tmp_path: Path
) -> None:
    build()
    change(path, "UPDATE t02 SET word = 'new'; UPDATE t08 SET word = 'new'")
    other = MarkedSource(write_db(tmp_path / "zoo.db", "CREATE TABLE animal (panda TEXT)"))
    build.fail_at = "t08"
    build_index(
        build.directory, [build.source(), other], embedder=HashEmbedder(), settings=Settings()
    )
    with open_index(build.directory) as index:
        assert len(index.rows.search("Kabul", 50)) == 12  # every row once
        assert len(index.rows.search("new", 50)) == 0
        assert len(index.catalog.tables) == 13


def test_a_changed_table_in_the_middle_of_reading_is_read_next_time(
    build: Builder, path: Path
) -> None:
    changed: list[str] = []

    def told(sql: str) -> None:
        if "t11" in sql and not changed:
            changed.append(sql)
            change(path, "INSERT INTO t00 VALUES (4, 'late')")

    source = MarkedSource(path, before_read=told)
    build_index(build.directory, [source], embedder=HashEmbedder(), settings=Settings())
    assert changed
    assert build().tables_read == 1
    assert build.read == ["t00"]
    assert build.tables()["t00"].row_count == 4


class TestBudget:
    def test_rows_are_spread_small_tables_first(self, path: Path, tmp_path: Path) -> None:
        change(
            path,
            "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 500)"
            "INSERT INTO t00 SELECT n + 10, 'big' FROM c;"
            "INSERT INTO t01 SELECT id, word FROM t00 WHERE id > 10",
        )
        build = Builder(path, tmp_path / "index", source_rows=130)
        build.estimate = {f"t{i:02}": 3 for i in range(2, 12)} | {"t00": 503, "t01": 503}
        report = build()
        assert report.rows_indexed == 130
        assert report.reason == "2 of 12 tables sampled: 130 of 1,036 rows are searchable"
        tables = build.tables()
        assert [tables[f"t{i:02}"].rows_read for i in range(12)] == [50, 50, *[3] * 10]
        assert tables["t00"].row_count == 503
        change(path, "INSERT INTO t05 VALUES (4, 'Kabul')")
        assert build().tables_read == 1

    def test_a_used_up_budget_leaves_the_columns(self, path: Path, tmp_path: Path) -> None:
        build = Builder(path, tmp_path / "index", source_rows=6)
        report = build()
        assert (report.tables, report.sampled) == (12, True)
        entry = read_manifest(build.directory).source("many")  # type: ignore[union-attr]
        assert entry is not None
        assert len(entry.unread) == 12 - report.tables_read > 0
        assert "known by their columns only: source_s or source_rows is used up" in report.reason
        tables = build.tables()
        assert all(len(table.columns) == 2 for table in tables.values())
        assert tables[entry.unread[0]].sampled
        # With more to spend the missing ones are read, at the next change.
        build.settings = Settings()
        change(path, "DELETE FROM t00")
        build()
        assert set(entry.unread) <= set(build.read)
        assert read_manifest(build.directory).source("many").unread == ()  # type: ignore[union-attr]

    def test_time(self, path: Path, tmp_path: Path) -> None:
        build = Builder(path, tmp_path / "index", source_s=1e-9)
        report = build()
        assert report.status == "built"
        assert report.tables == 12
        assert report.tables_read < 12
