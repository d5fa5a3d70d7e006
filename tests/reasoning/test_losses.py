"""Dropped NULLs and joins that repeat rows are told, with numbers, and only where so."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import dbrag
from dbrag.models.testing import HashEmbedder, ScriptedModel
from dbrag.reasoning import losses as module

Told = Callable[[str], list[tuple[str, str]]]

SCRIPT = """
CREATE TABLE staff (
  id INTEGER PRIMARY KEY, name TEXT, salary INT, age INT, store_id INT REFERENCES stores,
  boss INT REFERENCES staff);
CREATE TABLE stores (id INTEGER PRIMARY KEY, city TEXT);
CREATE TABLE orders (id INTEGER PRIMARY KEY, store_id INT REFERENCES stores, total INT);
CREATE TABLE lines (order_id INT REFERENCES orders, n INT, PRIMARY KEY (order_id, n));
CREATE TABLE payments (id INTEGER PRIMARY KEY, order_id INT REFERENCES orders, amount INT);
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("losses") / "shop.db"
    with closing(sqlite3.connect(found)) as db, db:
        db.executescript(SCRIPT)
        db.executemany("INSERT INTO stores VALUES (?, ?)", [(1, "Rome"), (2, "Oslo"), (3, "Bern")])
        db.executemany(
            "INSERT INTO staff VALUES (?, ?, ?, ?, ?, ?)",
            [
                (n, f"p{n}", None if n % 5 == 0 else 1000 + n, None if n == 7 else 20 + n,
                 None if n == 1 else 1 + n % 2, None if n < 3 else 1)
                for n in range(1, 21)
            ],
        )  # fmt: skip
        db.executemany("INSERT INTO orders VALUES (?, ?, ?)", [(n, 1 + n % 2, n) for n in range(9)])
        db.executemany("INSERT INTO lines VALUES (?, ?)", [(n // 3, n % 3) for n in range(27)])
        db.executemany("INSERT INTO payments VALUES (?, ?, ?)", [(n, n // 2, 5) for n in range(18)])
    return found


@pytest.fixture(scope="module")
def index(path: Path) -> Path:
    folder = path.parent / "index"
    with dbrag.connect(path, index=folder, embedder=HashEmbedder()) as db:
        db.index()
    return folder


@pytest.fixture
def told(path: Path, index: Path) -> Told:
    def ask(sql: str) -> list[tuple[str, str]]:
        model = ScriptedModel([sql, sql])
        database = dbrag.connect(
            path, index=index, chat_model=model, embedder=HashEmbedder(), votes=1
        )
        with database as db:
            answer = db.ask("How many orders and staff are there in the stores?")
        assert answer.sql, answer.error
        codes = ("nulls_dropped", "join_multiplies", "join_drops")
        return [(w.code, w.message) for w in answer.warnings if w.code in codes]

    return ask


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT AVG(salary) FROM staff",
            [("nulls_dropped", "4 of 20 rows have no staff.salary; AVG leaves them out")],
        ),
        (
            "SELECT store_id, AVG(s.salary) FROM staff s WHERE id > 10 GROUP BY 1 LIMIT 1",
            [("nulls_dropped", "2 of 10 rows have no staff.salary; AVG leaves them out")],
        ),
        ("SELECT AVG(salary) FROM staff WHERE id < 5", []),
        (
            "SELECT SUM(age * 12 + salary) FROM staff",
            [
                (
                    "nulls_dropped",
                    "5 of 20 rows have no staff.age * 12 + staff.salary; SUM leaves them out",
                )
            ],
        ),
        ("SELECT SUM(COALESCE(salary, 0)), SUM(CASE WHEN age > 1 THEN 1 END) FROM staff", []),
        ("SELECT AVG(salary) OVER (ORDER BY id) FROM staff", []),
        ("SELECT AVG(salary) FROM staff WHERE salary IS NOT NULL", []),
        ("SELECT MAX(salary), COUNT(*), COUNT(DISTINCT salary) FROM staff", []),
        (
            "SELECT COUNT(*) FROM staff WHERE age <> 30 AND id < 10",
            [
                (
                    "nulls_dropped",
                    "1 of 9 rows has no staff.age; the condition “staff.age is not 30” leaves "
                    "them out",
                )
            ],
        ),
        ("SELECT COUNT(*) FROM staff WHERE age = 30", []),
        ("SELECT COUNT(*) FROM staff WHERE age > 30 AND id > 10", []),
        (
            "SELECT SUM(o.total) FROM orders o JOIN lines l ON l.order_id = o.id",
            [
                (
                    "join_multiplies",
                    "the 27 rows joined with lines hold only 9 different rows of orders: SUM of "
                    "orders.total counts some of them more than once",
                )
            ],
        ),
        ("SELECT COUNT(o.id) FROM orders o JOIN stores s ON s.id = o.store_id", []),
        ("SELECT COUNT(l.n) FROM orders o JOIN lines l ON l.order_id = o.id", []),
        (
            "SELECT o.id, SUM(p.amount) FROM payments p, orders o WHERE o.id = p.order_id "
            "GROUP BY o.id",
            [],
        ),
        (
            "SELECT l.n, SUM(o.total) FROM orders o JOIN lines l ON l.order_id = o.id GROUP BY l.n",
            [],
        ),
        (
            "SELECT SUM(p.amount) FROM payments p JOIN orders o ON o.id = p.order_id "
            "JOIN lines l ON l.order_id = o.id WHERE p.id < 4",
            [
                (
                    "join_multiplies",
                    "the 12 rows joined with lines hold only 4 different rows of payments: SUM "
                    "of payments.amount counts some of them more than once",
                )
            ],
        ),
        (
            "SELECT COUNT(p.id) FROM payments p JOIN lines l ON l.order_id = p.order_id",
            [
                (
                    "join_multiplies",
                    "the 54 rows joined with lines hold only 18 different rows of payments: "
                    "COUNT of payments.id counts some of them more than once",
                )
            ],
        ),
        (
            "SELECT s.city, COUNT(*) FROM stores s JOIN staff p ON p.store_id = s.id GROUP BY 1",
            [
                (
                    "join_drops",
                    "1 of 20 rows of staff had no staff.store_id when indexed; the join with "
                    "stores leaves them out",
                )
            ],
        ),
        (
            "SELECT COUNT(*) FROM stores s JOIN staff p ON p.store_id = s.id WHERE s.city = 'Oslo'",
            [],
        ),
        (
            "SELECT COUNT(*) FROM stores s JOIN staff p ON p.store_id = s.id "
            "WHERE p.store_id IS NOT NULL",
            [],
        ),
        ("WITH x AS (SELECT AVG(age) a FROM staff WHERE age IS NOT NULL) SELECT a FROM x", []),
        ("SELECT s.city FROM staff p LEFT JOIN stores s ON p.store_id = s.id", []),
        (
            "WITH x AS (SELECT AVG(salary) AS a FROM staff) SELECT a FROM x",
            [
                (
                    "nulls_dropped",
                    "4 of 20 rows of staff had no staff.salary when indexed; AVG leaves them out",
                )
            ],
        ),
    ],
)
def test_what_is_told(told: Told, sql: str, expected: list[tuple[str, str]]) -> None:
    assert told(sql) == expected


def test_at_most_three_the_most_telling_first(told: Told) -> None:
    sql = (
        "SELECT COUNT(p.salary), AVG(p.salary), SUM(o.total) FROM staff p "
        "JOIN stores s ON s.id = p.store_id JOIN orders o ON o.store_id = s.id "
        "WHERE p.age > 0 AND p.boss <> 9"
    )
    assert [code for code, _ in told(sql)] == [
        "join_multiplies",
        "join_multiplies",
        "nulls_dropped",
    ]


def test_a_slow_program_is_not_counted_again(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FAST_S", -1.0)
    sql = "SELECT SUM(o.total) FROM orders o JOIN lines l ON l.order_id = o.id"
    assert told(sql) == [
        (
            "join_multiplies",
            "a row of orders may meet several of lines: SUM of orders.total may count it more "
            "than once",
        )
    ]
    assert told("SELECT AVG(salary) FROM staff WHERE id > 10")[0][1].endswith(
        "had no staff.salary when indexed; AVG leaves them out"
    )


def test_nothing_is_told_of_what_did_not_run() -> None:
    assert module.losses_of(None, {}, None, None) == ()  # type: ignore[arg-type]


def test_a_cut_text_is_told(path: Path, index: Path) -> None:
    sql = "SELECT city || printf('%.500c', 'x') AS long FROM stores LIMIT 1"
    model = ScriptedModel([sql])
    with dbrag.connect(path, index=index, chat_model=model, embedder=HashEmbedder(), votes=1) as db:
        answer = db.ask("Which city has stores?")
    assert len(answer.text) == 300
    assert [w.code for w in answer.warnings] == ["text_cut"]
