from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from dbrag.sources import open_sources

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbrag.sources import Source
    from dbrag.types import Table

SCRIPT = """
CREATE TABLE singer (singer_id INTEGER PRIMARY KEY, Name TEXT, country TEXT, age INT, born DATE);
INSERT INTO singer VALUES (1, 'Ann', 'France', 30, '1990-05-01'), (2, 'Bob', 'Peru', 41, NULL),
  (3, 'it''s me', 'France', NULL, '1971-12-31'), (4, 'Zoë', 'Chad', 41, '2001-01-01');
CREATE TABLE concert (concert_id INTEGER PRIMARY KEY, title TEXT, year INT, extra TEXT);
INSERT INTO concert VALUES (1, 'Gala', 2014, '{"a": [1, 2]}'), (2, 'Fête', 2015, NULL);
CREATE TABLE singer_in_concert (
  concert_id INT REFERENCES concert, singer_id INT REFERENCES singer,
  PRIMARY KEY (concert_id, singer_id));
INSERT INTO singer_in_concert VALUES (1, 1), (1, 2), (2, 1);
CREATE TABLE "Order Details" ("Order" INT, "Unit Price" REAL, "select" TEXT, "quo""te" TEXT);
INSERT INTO "Order Details" VALUES (1, 2.5, 'x', 'y'), (2, 1e10, NULL, '');
CREATE TABLE staff (id INTEGER PRIMARY KEY, boss INT REFERENCES staff, name TEXT);
INSERT INTO staff VALUES (1, NULL, 'Top'), (2, 1, 'Mid'), (3, 2, 'Low');
CREATE TABLE 客户 (名称 TEXT, 城市 TEXT);
INSERT INTO 客户 VALUES ('王', '北京');
CREATE VIEW adults AS SELECT Name, age FROM singer WHERE age > 18;
CREATE VIRTUAL TABLE docs USING fts5 (title, body);
INSERT INTO docs VALUES ('red fox', 'runs'), ('blue whale', 'swims');
"""


@pytest.fixture(scope="session")
def band(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Source]:
    """A small database with something of everything."""
    path = tmp_path_factory.mktemp("band") / "band.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCRIPT)
        connection.commit()
    (source,), _ = open_sources([str(path)])
    yield source
    source.close()


@pytest.fixture(scope="session")
def tables(band: Source) -> list[Table]:
    return band.reflect()
