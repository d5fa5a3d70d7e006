"""Marks of MySQL and MariaDB: which tables changed, told without reading them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from dbrag.sources.servers import mysql_marks
from dbrag.sources.servers.source import ServerSource
from tests.servers import MYSQL, TestDatabase, fresh_database

from .mysql_bed import is_mariadb, source_of, user

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def database() -> Iterator[TestDatabase]:
    with fresh_database(MYSQL, "mysql") as database:
        yield database


@pytest.fixture
def other() -> Iterator[TestDatabase]:
    with fresh_database(MYSQL, "mysql") as database:
        yield database


def marks(source: ServerSource) -> dict[str, str]:
    return {ref.name: mark for ref, mark in source.marks().items()}


@pytest.mark.parametrize("small", [True, False], ids=["checksums", "times"])
@pytest.mark.parametrize("engine", ["InnoDB", "MyISAM", "Aria", "MEMORY"])
def test_marks_follow_rows(
    database: TestDatabase, engine: str, small: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if engine == "Aria" and not is_mariadb(database):
        pytest.skip("an engine of MariaDB")
    if not small:
        monkeypatch.setattr(mysql_marks, "_SMALL", ())
    database.run(
        f"CREATE TABLE t (i int PRIMARY KEY, s varchar(9)) ENGINE = {engine}",
        f"CREATE TABLE k (i int) ENGINE = {engine}",
        "INSERT INTO t VALUES (1, 'a')",
        "CREATE VIEW v AS SELECT s FROM t",
        "CREATE VIEW w AS SELECT v.s FROM v JOIN k ON k.i = 1",
        "CREATE VIEW u AS SELECT i FROM k",
    )
    source = source_of(database)
    before = marks(source)
    assert set(before) == {"t", "k", "v", "w", "u"}
    assert marks(source) == before
    changes = ["INSERT INTO t VALUES (2, 'b')", "UPDATE t SET s = 'c' WHERE i = 2"]
    if engine in ("MEMORY", "Aria") and not small:
        changes.pop()  # no time, or a late one: only the number of rows
    changes += ["DELETE FROM t WHERE i = 2", "TRUNCATE t"]
    for change in changes:
        database.run(change)
        after = marks(source)
        assert {name for name in after if after[name] != before[name]} == {"t", "v", "w"}, change
        before = after
    source.close()


def test_marks_of_a_small_table_depend_on_its_rows_alone(database: TestDatabase) -> None:
    database.run("CREATE TABLE t (i int)", "INSERT INTO t VALUES (1), (2)")
    source = source_of(database)
    before = source.marks()
    database.run("INSERT INTO t VALUES (3)", "DELETE FROM t WHERE i = 3", "ANALYZE TABLE t")
    database.run("FLUSH TABLES t")
    assert source.marks() == before


def test_marks_see_a_commit_not_what_was_written_before_it(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_marks, "_SMALL", ())
    database.run("CREATE TABLE t (i int)", "INSERT INTO t VALUES (1)")
    source = source_of(database)
    time.sleep(1.1)  # the transaction begins in another second than the one before
    with database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("START TRANSACTION")
        cursor.execute("INSERT INTO t VALUES (2)")
        before = marks(source)
        assert marks(source) == before
        connection.commit()
    assert marks(source) != before


@pytest.mark.parametrize(
    "change",
    [
        "ALTER TABLE t ADD COLUMN x int",
        "ALTER TABLE t MODIFY i bigint",
        "ALTER TABLE t RENAME COLUMN i TO j",
        "ALTER TABLE t COMMENT 'new'",
        "ALTER TABLE t ADD PRIMARY KEY (i)",
        "ALTER TABLE t MODIFY i int COMMENT 'new'",
        "ALTER TABLE t ADD FOREIGN KEY (i) REFERENCES k (i)",
    ],
)
def test_marks_follow_definitions(database: TestDatabase, change: str) -> None:
    database.run("CREATE TABLE k (i int PRIMARY KEY)", "CREATE TABLE t (i int)")
    source = source_of(database)
    before = marks(source)
    database.run(change)
    after = marks(source)
    assert {name for name in after if after[name] != before[name]} == {"t"}


def test_marks_of_views(database: TestDatabase, other: TestDatabase) -> None:
    database.run("CREATE TABLE k (i int)")
    other.run("CREATE TABLE t (i int)", "CREATE TABLE n (i int)")
    database.run(
        f"CREATE VIEW v AS SELECT i FROM {other.name}.t",
        "CREATE VIEW w AS SELECT i FROM k",
    )
    source = source_of(database)
    before = marks(source)
    assert set(before) == {"k", "v", "w"}
    other.run("INSERT INTO n VALUES (1)")
    assert marks(source) == before
    other.run("INSERT INTO t VALUES (1)")
    after = marks(source)
    assert {name for name in after if after[name] != before[name]} == {"v"}
    database.run(f"CREATE OR REPLACE VIEW v AS SELECT i + 1 AS i FROM {other.name}.t")
    last = marks(source)
    assert {name for name in last if last[name] != after[name]} == {"v"}
    with user(database, f"GRANT SELECT ON {database.name}.*") as url:
        # The definition may not be seen: any table may be read by the view.
        blind = source_of(database, url=url)
        before = marks(blind)
        database.run("INSERT INTO k VALUES (1)")
        assert all(mark != before[name] for name, mark in marks(blind).items())
        blind.close()


def test_a_table_that_is_written_all_the_time_is_always_new(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_marks, "_SMALL", ())
    monkeypatch.setattr(mysql_marks, "_WAIT_S", 0)
    database.run("CREATE TABLE t (i int)", "CREATE TABLE k (i int)")
    time.sleep(1.1)
    source = source_of(database)
    seen = set()
    for i in range(3):
        database.run(f"INSERT INTO t VALUES ({i})")
        found = marks(source)
        seen.add(found["t"])
        assert found["k"] == marks(source)["k"]
    assert len(seen) == 3
    time.sleep(1.1)
    assert marks(source) == marks(source)


def test_dropped_and_new_tables_show(database: TestDatabase) -> None:
    database.run("CREATE TABLE t (i int)", "CREATE TABLE k (i int)")
    source = source_of(database)
    stamp = source.stamp()
    database.run("DROP TABLE t")
    assert set(marks(source)) == {"k"}
    assert source.stamp() != stamp
