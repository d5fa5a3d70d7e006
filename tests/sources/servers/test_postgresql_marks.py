"""Marks: a change is seen in the marks of the tables that it concerns, and in no others."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from dbrag.options import OpenOptions
from dbrag.sources.servers.open import open_server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbrag.sources.base import Source
    from tests.servers import TestDatabase

SCHEMA = """
CREATE SCHEMA shop;
CREATE SCHEMA other;
CREATE TYPE shop.mood AS ENUM ('sad', 'happy');
CREATE TABLE shop.goods (id int PRIMARY KEY, name text, feeling shop.mood);
INSERT INTO shop.goods SELECT i, 'n' || i FROM generate_series(1, 100) i;
CREATE TABLE shop.still (id int PRIMARY KEY);
INSERT INTO shop.still SELECT generate_series(1, 100);
CREATE TABLE shop.log (id int, at date) PARTITION BY RANGE (at);
CREATE TABLE shop.log_1 PARTITION OF shop.log FOR VALUES FROM ('2020-01-01') TO ('2021-01-01');
CREATE TABLE shop.animals (name text);
CREATE TABLE other.dogs () INHERITS (shop.animals);
CREATE TABLE shop.grows (id int);
CREATE VIEW shop.names AS SELECT name FROM shop.goods;
CREATE VIEW shop.longer AS SELECT * FROM shop.names WHERE length(name) > 2;
CREATE VIEW shop.logged AS SELECT count(*) FROM shop.log;
CREATE MATERIALIZED VIEW shop.kept AS SELECT count(*) AS n FROM shop.goods;
CREATE UNIQUE INDEX ON shop.kept (n);
"""

GOODS = {"goods", "names", "longer"}
LOG = {"log", "logged"}

# (statement, tables whose marks change)
CHANGES: list[tuple[str, set[str]]] = [
    ("INSERT INTO shop.goods VALUES (1000)", GOODS),
    ("UPDATE shop.goods SET name = 'x' WHERE id = 1", GOODS),
    ("DELETE FROM shop.goods WHERE id = 2", GOODS),
    ("COPY shop.goods (id) FROM PROGRAM 'echo 2000'", GOODS),
    ("INSERT INTO shop.log VALUES (1, '2020-02-02')", LOG),
    ("TRUNCATE shop.log", LOG),
    (
        "CREATE TABLE shop.log_2 PARTITION OF shop.log "
        "FOR VALUES FROM ('2021-01-01') TO ('2022-01-01')",
        LOG,
    ),
    ("INSERT INTO other.dogs VALUES ('Rex')", {"animals", "dogs"}),
    ("REFRESH MATERIALIZED VIEW shop.kept", {"kept"}),
    ("ALTER TABLE shop.goods ADD extra int", {"goods"}),
    ("ALTER TABLE shop.goods RENAME extra TO more", {"goods"}),
    ("ALTER TABLE shop.goods DROP more", {"goods"}),
    ("COMMENT ON TABLE shop.still IS 'said'", {"still"}),
    ("COMMENT ON COLUMN shop.still.id IS 'said'", {"still"}),
    ("ALTER TABLE shop.still ADD FOREIGN KEY (id) REFERENCES shop.goods NOT VALID", {"still"}),
    ("ALTER TYPE shop.mood ADD VALUE 'angry'", {"goods"}),
    ("CREATE OR REPLACE VIEW shop.longer AS SELECT * FROM shop.names", {"longer"}),
    ("CREATE TABLE shop.made (id int)", {"made"}),
    ("ALTER TABLE shop.made ALTER id SET NOT NULL", {"made"}),
    ("ALTER TABLE shop.made RENAME TO named", {"made", "named"}),
    ("DROP TABLE shop.named", {"named"}),
]

QUIET = [
    "VACUUM",
    "ANALYZE",
    "VACUUM (ANALYZE, FREEZE) shop.goods",
    "SELECT * FROM shop.goods",
    "CREATE INDEX ON shop.goods (name)",
    "CHECKPOINT",
    "CREATE TABLE public.elsewhere AS SELECT 1 AS n",
    "REINDEX TABLE shop.goods",
]


@pytest.fixture(scope="module")
def database(postgres: TestDatabase) -> TestDatabase:
    with postgres.connect() as connection:
        connection.execute(SCHEMA)
    return postgres


@pytest.fixture
def source(database: TestDatabase) -> Iterator[Source]:
    options = OpenOptions(schemas=("shop", "other"))
    opened = open_server("db", database.url, database.url, options)
    yield opened
    opened.close()


def marks(source: Source) -> dict[str, str]:
    return {ref.name: mark for ref, mark in source.marks().items()}


def settled(source: Source) -> dict[str, str]:
    """The marks once the server has counted what happened before."""
    before = marks(source)
    while True:
        time.sleep(0.1)
        after = marks(source)
        if after == before:
            return after
        before = after


@pytest.mark.parametrize(("statement", "names"), CHANGES, ids=[c[:50] for c, _ in CHANGES])
def test_a_change_is_seen_where_it_is(
    source: Source, database: TestDatabase, statement: str, names: set[str]
) -> None:
    before, stamp = settled(source), source.stamp()
    database.run(statement)
    give_up = time.monotonic() + 10
    changed: set[str] = set()
    while changed != names and time.monotonic() < give_up:
        after = marks(source)
        changed = {n for n in before.keys() | after.keys() if before.get(n) != after.get(n)}
        time.sleep(0.05)
    assert changed == names
    assert source.stamp() != stamp
    assert source.fingerprint() == source.stamp()


@pytest.mark.parametrize("statement", QUIET)
def test_upkeep_of_the_server_is_no_change(
    source: Source, database: TestDatabase, statement: str
) -> None:
    before = settled(source)
    database.run(statement)
    assert settled(source) == before


def test_marks_outlive_the_connection_and_the_name(source: Source, database: TestDatabase) -> None:
    before = settled(source)
    options = OpenOptions(schemas=("shop", "other"))
    again = open_server("db", database.url, database.url, options)
    assert marks(again) == before
    again.close()


def test_a_server_that_does_not_count(database: TestDatabase) -> None:
    # A new session takes the setting; growth is still seen.
    database.run(f"ALTER DATABASE {database.name} SET track_counts = off")
    try:
        options = OpenOptions(schemas=("shop",))
        source = open_server("db", database.url, database.url, options)
        before = marks(source)
        database.run("INSERT INTO shop.grows SELECT generate_series(1, 9000)")
        after = marks(source)
        assert {name for name in before if before[name] != after[name]} == {"grows"}
        source.close()
    finally:
        database.run(f"ALTER DATABASE {database.name} RESET track_counts")
