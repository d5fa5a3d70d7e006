"""Aggregates over rows that a join repeats are told to their writer, and nothing else is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

import dbrag
from dbrag.errors import LimitReached
from dbrag.execution import guard
from dbrag.models.testing import HashEmbedder
from dbrag.reasoning import fan_trap as module
from dbrag.reasoning.fan_trap import doubled_aggregate
from dbrag.settings import Settings
from dbrag.types import Program
from tests.reasoning.conftest import written

Told = Callable[[str], str | None]

SCRIPT = """
CREATE TABLE stores (id INTEGER PRIMARY KEY, city VARCHAR, budget INT);
CREATE TABLE staff (id INTEGER PRIMARY KEY, store_id INT REFERENCES stores (id), salary INT);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY, store_id INT REFERENCES stores (id), kind VARCHAR, total INT);
CREATE TABLE lines (
  order_id INT REFERENCES orders (id), n INT, price INT, PRIMARY KEY (order_id, n));
INSERT INTO stores VALUES (1, 'Rome', 100), (2, 'Oslo', 200), (3, 'Rome', 300);
INSERT INTO staff VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30), (4, 3, NULL);
INSERT INTO orders VALUES
  (1, 1, 'a', 5), (2, 1, 'b', 6), (3, 1, 'c', 7), (4, 2, 'a', 8), (5, 2, 'b', 9), (6, 3, 'a', 1);
INSERT INTO lines VALUES (1, 1, 2), (1, 2, 3), (2, 1, 6), (4, 1, 8), (5, 1, 4), (5, 2, 5);
"""


@pytest.fixture(scope="module", params=["sqlite", "duckdb"])
def told(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("fan")
    path = written(folder, request.param, SCRIPT)
    with dbrag.connect(path, index=folder / "index", embedder=HashEmbedder()) as db:
        db.index()
        (source,) = db.sources
        tables = db.opened_index().catalog.of_source(source.name)

        def ask(sql: str) -> str | None:
            admitted = guard.admit(sql, source.dialect, tables)
            program = Program((), admitted.sql, source.dialect, admitted.tables)
            return doubled_aggregate(program, tables, source, Settings())

        yield ask


TRAPS = [
    ("SELECT SUM(s.budget) FROM stores s JOIN orders o ON o.store_id = s.id", "3 times", "orders"),
    ("SELECT AVG(s.budget) FROM orders o, stores s WHERE o.store_id = s.id", "3 times", "orders"),
    (
        "SELECT s.city, SUM(s.budget) FROM stores s JOIN orders o ON o.store_id = s.id "
        "GROUP BY s.city",
        "3 times",
        "orders",
    ),
    (
        "SELECT s.city, SUM(s.budget * 2) AS x FROM stores s "
        "LEFT JOIN staff f ON f.store_id = s.id GROUP BY 1 ORDER BY x DESC",
        "2 times",
        "staff",
    ),
    (
        "SELECT s.id, SUM(o.total) FROM stores s JOIN orders o ON o.store_id = s.id "
        "JOIN lines l ON l.order_id = o.id GROUP BY s.id",
        "2 times",
        "lines",
    ),
    (
        "SELECT s.city, COUNT(f.id), COUNT(o.id) FROM stores s JOIN staff f ON f.store_id = s.id "
        "JOIN orders o ON o.store_id = s.id GROUP BY s.city",
        "3 times",
        "orders",
    ),
    (
        "SELECT city FROM stores WHERE budget > (SELECT AVG(s.budget) FROM stores s "
        "JOIN orders o ON o.store_id = s.id)",
        "3 times",
        "orders",
    ),
    (
        "SELECT o.kind, SUM(o.total) FROM orders o JOIN lines l ON l.order_id = o.id "
        "GROUP BY o.kind HAVING SUM(o.total) > 1",
        "2 times",
        "lines",
    ),
]


@pytest.mark.parametrize(("sql", "times", "far"), TRAPS)
def test_a_trap_is_told(told: Told, sql: str, times: str, far: str) -> None:
    text = told(sql)
    assert text is not None
    assert f"one of them {times} in one group" in text
    assert f"with {far}" in text
    assert "before joining" in text
    assert len(text) < 500


FINE = [
    # the many side, which nothing repeats
    "SELECT s.city, SUM(o.total) FROM stores s JOIN orders o ON o.store_id = s.id GROUP BY s.city",
    "SELECT AVG(o.total), COUNT(o.id) FROM stores s JOIN orders o ON o.store_id = s.id",
    # counting what a join makes
    "SELECT s.city, COUNT(*) FROM stores s JOIN orders o ON o.store_id = s.id GROUP BY s.city",
    "SELECT s.id, COUNT(s.id) FROM stores s JOIN orders o ON o.store_id = s.id GROUP BY s.id",
    "SELECT COUNT(s.city) FROM stores s JOIN orders o ON o.store_id = s.id",
    # DISTINCT, and what no repetition changes
    "SELECT COUNT(DISTINCT f.id) FROM staff f JOIN stores s ON f.store_id = s.id "
    "JOIN orders o ON o.store_id = s.id",
    "SELECT SUM(DISTINCT s.budget) FROM stores s JOIN orders o ON o.store_id = s.id",
    "SELECT MAX(s.budget), MIN(s.budget) FROM stores s JOIN orders o ON o.store_id = s.id",
    # the filter leaves one row of the other side, or none of several
    "SELECT SUM(s.budget) FROM stores s JOIN orders o ON o.store_id = s.id WHERE o.kind = 'a'",
    "SELECT SUM(s.budget) FROM stores s JOIN orders o ON o.store_id = s.id WHERE o.id = 6",
    # grouped by the side that repeats
    "SELECT o.kind, SUM(s.budget) FROM stores s JOIN orders o ON o.store_id = s.id GROUP BY o.kind",
    "SELECT o.id, AVG(s.budget) FROM stores s JOIN orders o ON o.store_id = s.id GROUP BY o.id",
    # only rows without a value are repeated
    "SELECT SUM(f.salary) FROM staff f JOIN stores s ON f.store_id = s.id "
    "JOIN orders o ON o.store_id = s.id WHERE f.id > 3",
    # aggregated before joining; semi-joins
    "SELECT SUM(s.budget), SUM(t.n) FROM stores s JOIN (SELECT store_id, COUNT(*) AS n FROM orders "
    "GROUP BY store_id) t ON t.store_id = s.id",
    "WITH t AS (SELECT DISTINCT store_id FROM orders) SELECT SUM(s.budget) FROM stores s "
    "JOIN t ON t.store_id = s.id",
    "SELECT SUM(budget) FROM stores WHERE id IN (SELECT store_id FROM orders)",
    "SELECT SUM(s.budget) FROM stores s WHERE EXISTS "
    "(SELECT 1 FROM orders o WHERE o.store_id = s.id)",
    # a window sums over rows on purpose
    "SELECT SUM(s.budget) OVER (PARTITION BY o.kind) FROM stores s "
    "JOIN orders o ON o.store_id = s.id",
    # both sides together
    "SELECT SUM(s.budget * o.total) FROM stores s JOIN orders o ON o.store_id = s.id",
    "SELECT SUM(budget) FROM stores",
]


@pytest.mark.parametrize("sql", FINE)
def test_no_false_alarm(told: Told, sql: str) -> None:
    assert told(sql) is None


def test_nothing_is_told_that_is_not_certain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_slow(*_: object, **__: object) -> None:
        raise LimitReached("took more than 1 s")

    with closing(sqlite3.connect(tmp_path / "shop.db")) as db:
        db.executescript(SCRIPT)
    with dbrag.connect(tmp_path / "shop.db", index=tmp_path / "i", embedder=HashEmbedder()) as db:
        db.index()
        (source,) = db.sources
        tables = db.opened_index().catalog.of_source(source.name)
        admitted = guard.admit(TRAPS[0][0], "sqlite", tables)
        program = Program((), admitted.sql, "sqlite", admitted.tables)
        assert doubled_aggregate(program, tables, source, Settings()) is not None
        server = replace(program, dialect="postgres")
        assert doubled_aggregate(server, tables, source, Settings()) is None
        monkeypatch.setattr(module, "run", too_slow)
        assert doubled_aggregate(program, tables, source, Settings()) is None
        broken = replace(program, sql="SELECT SUM(")
        assert doubled_aggregate(broken, tables, source, Settings()) is None
