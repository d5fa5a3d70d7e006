"""The source rows behind a cell: exactly those that it was made from."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from decimal import Decimal
from pathlib import Path

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

import dbrag
from dbrag.errors import ExecutionError, UsageError
from dbrag.models.testing import HashEmbedder
from dbrag.reasoning.behind import _literal

SCRIPT = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT, weight REAL);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY, customer_id INT REFERENCES customers, status TEXT, total INT);
"""
CUSTOMERS = [
    (1, "Ann", "Rome", 0.1),
    (2, "Bob", None, 2.5),
    (3, "O'Neil -- </s>", "Rome", None),
    (4, "Ann", "Oslo", 7.0),
]
ORDERS = [
    (1, 1, "paid", 10),
    (2, 1, "paid", None),
    (3, 2, "open", 30),
    (4, 3, "paid", 30),
    (5, 4, "paid", 5),
]


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dbrag.Database]:
    path = tmp_path_factory.mktemp("behind") / "shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(SCRIPT)
        connection.executemany("INSERT INTO customers VALUES (?, ?, ?, ?)", CUSTOMERS)
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", ORDERS)
    with dbrag.connect(path, embedder=HashEmbedder()) as database:
        yield database


def ids(db: dbrag.Database, sql: str, row: int = 0, column: int | str | None = None) -> list[int]:
    found = db.source_rows(db.sql(sql), row, column).execution
    assert found is not None
    return [one[0] for one in found.rows]


@pytest.mark.parametrize(
    ("sql", "row", "column", "expected"),
    [
        ("SELECT city, COUNT(*) FROM customers GROUP BY city ORDER BY city", 0, None, [2]),
        ("SELECT city, COUNT(*) FROM customers GROUP BY city ORDER BY city", 2, None, [1, 3]),
        ("SELECT city AS c, COUNT(*) FROM customers GROUP BY c ORDER BY c", 1, None, [4]),
        ("SELECT COUNT(*), city FROM customers GROUP BY 2 ORDER BY 2", 2, 0, [1, 3]),
        ("SELECT name FROM customers WHERE city = 'Rome'", 1, None, [3]),
        ("SELECT * FROM customers ORDER BY id", 2, None, [3]),
        ("SELECT DISTINCT name FROM customers ORDER BY name", 0, None, [1, 4]),
        ("SELECT UPPER(name) FROM customers WHERE id > 1", 0, None, [2]),
        ("SELECT COUNT(*) FROM orders WHERE status = 'paid'", 0, None, [1, 2, 4, 5]),
        ("SELECT SUM(total) FROM orders WHERE status = 'paid'", 0, 0, [1, 4, 5]),
        ("SELECT MAX(total) AS most, MIN(total) FROM orders", 0, "most", [3, 4]),
        ("SELECT MAX(total), MIN(total) FROM orders", 0, 1, [5]),
        ("SELECT MAX(total) + 1 FROM orders", 0, 0, [1, 3, 4, 5]),
        ("SELECT COUNT(*) FILTER (WHERE total > 9) FROM orders", 0, 0, [1, 3, 4]),
        ("SELECT COUNT(DISTINCT total) FROM orders", 0, 0, [1, 3, 4, 5]),
        ("SELECT COUNT(*) FROM orders WHERE total > 99", 0, 0, []),
        (
            "SELECT COUNT(*) FROM orders WHERE customer_id IN "
            "(SELECT id FROM customers WHERE city = 'Rome')",
            0,
            None,
            [1, 2, 4],
        ),
        (
            "SELECT c.name, COUNT(*) FROM customers c JOIN orders o ON o.customer_id = c.id "
            "GROUP BY c.id HAVING COUNT(*) > 1",
            0,
            None,
            [1, 1],
        ),
        (
            "SELECT name FROM customers c LEFT JOIN orders o ON o.customer_id = c.id "
            "AND o.status = 'open' WHERE o.id IS NULL ORDER BY c.id",
            1,
            None,
            [3],
        ),
    ],
)
def test_the_rows_behind(
    db: dbrag.Database, sql: str, row: int, column: int | str | None, expected: list[int]
) -> None:
    assert ids(db, sql, row, column) == expected


def test_what_is_shown(db: dbrag.Database) -> None:
    answer = db.sql("SELECT city, COUNT(*) AS n FROM customers GROUP BY city ORDER BY city")
    behind = db.source_rows(answer, 2, limit=1)
    assert behind.sql is not None
    assert "city = 'Rome'" in behind.sql.replace('"', "").replace("customers.", "")
    assert behind.execution is not None
    assert [c.name for c in behind.execution.columns] == ["id", "name", "city", "weight"]
    assert behind.execution.rows == (CUSTOMERS[0],)
    assert [w.code for w in behind.warnings] == ["more_rows"]
    joined = db.sql(
        "SELECT c.name, SUM(o.total) FROM customers c JOIN orders o ON o.customer_id = c.id "
        "GROUP BY c.name ORDER BY c.name"
    )
    shown = db.source_rows(joined, 0).execution
    assert shown is not None
    assert [c.name for c in shown.columns] == ["c.id", "c.name", "o.id", "o.customer_id", "o.total"]
    assert len(shown.rows) == 3


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("SELECT name FROM customers UNION SELECT status FROM orders", "not one SELECT"),
        ("WITH x AS (SELECT * FROM orders) SELECT * FROM x", "not one SELECT"),
        ("SELECT n FROM (SELECT id AS n FROM orders) t", "not one SELECT"),
        ("SELECT TOTAL(id) FROM orders", "the engine rejects their statement"),
        ("SELECT name, RANK() OVER (ORDER BY id) FROM customers", "OVER"),
        ("SELECT * FROM orders JOIN customers USING (id)", r"its \* does not stand"),
        (
            "SELECT MIN(c.name) FROM customers c JOIN orders o ON o.customer_id = c.id "
            "WHERE c.id IN (1, 4) GROUP BY c.id, o.id",
            "several groups give this row",
        ),
    ],
)
def test_what_cannot_be_traced_says_why(db: dbrag.Database, sql: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        db.source_rows(db.sql(sql))


def test_wrong_cells(db: dbrag.Database) -> None:
    answer = db.sql("SELECT name, city FROM customers")
    for row, column, message in [
        (4, None, "no row 5: the answer has 4"),
        (-1, None, "no row 0"),
        (0, 2, "no column 3: the answer has 2"),
        (0, "town", "no column is called 'town'"),
    ]:
        with pytest.raises(UsageError, match=message):
            db.source_rows(answer, row, column)
    with pytest.raises(UsageError, match="limit must be at least 1, not 0"):
        db.source_rows(answer, limit=0)
    with pytest.raises(UsageError):
        db.source_rows(db.sql("SELECT 1"))


def test_values_that_are_not_found_again_are_an_error(db: dbrag.Database) -> None:
    assert ids(db, "SELECT weight FROM customers WHERE id = 1") == [1]
    with pytest.raises(ExecutionError, match="not found again"):
        db.source_rows(db.sql("SELECT RANDOM() + id FROM customers"))
    with pytest.raises(UsageError, match="kind bytes"):
        db.source_rows(db.sql("SELECT CAST(name AS BLOB) FROM customers"))


@given(
    st.one_of(
        st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=20),
        st.integers(-(2**63), 2**63 - 1),
        st.decimals(allow_nan=False, allow_infinity=False),
    )
)
def test_any_value_is_found_again(value: str | int | Decimal) -> None:
    for dialect in ("sqlite", "postgres", "mysql", "duckdb"):
        read = sqlglot.parse_one(f"SELECT {_literal(value, dialect).sql(dialect)}", dialect=dialect)
        (item,) = read.expressions
        again = item.name if isinstance(value, str) else Decimal(item.sql())
        assert again == value


def test_dates_and_decimals_of_files(tmp_path: Path) -> None:
    file = tmp_path / "sales.csv"
    file.write_text("day,at,price,ok\n2024-01-02,2024-01-02 10:30:00,1.25,true\n")
    with file.open("a") as lines:
        lines.write("2024-01-03,2024-01-03 00:00:00,2.50,false\n2024-01-02,,1.25,true\n")
    with dbrag.connect(file, embedder=HashEmbedder()) as db:
        by_day = db.sql("SELECT day, COUNT(*) AS n FROM sales GROUP BY day ORDER BY n DESC")
        found = db.source_rows(by_day).execution
        assert found is not None
        assert len(found.rows) == 2
        every = db.sql("SELECT * FROM sales ORDER BY day, at NULLS LAST")
        for row in range(3):
            behind = db.source_rows(every, row).execution
            assert behind is not None
            assert every.execution is not None
            assert behind.rows == (every.execution.rows[row],)


def test_times_of_mysql_keep_their_fraction() -> None:
    at = datetime(2024, 1, 2, 3, 4, 5, 500_000)
    assert _literal(at, "mysql").sql("mysql") == "'2024-01-02 03:04:05.500000'"
    assert _literal(at, "duckdb").sql("duckdb").startswith("CAST('2024-01-02 03:04:05.500000' AS")
