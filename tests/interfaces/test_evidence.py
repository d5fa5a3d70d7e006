"""``ask --explain``: the program in words."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dbrag.interfaces.cli.evidence import evidence_lines
from dbrag.reasoning.explanation import account
from dbrag.types import Column, Execution, Program, Reading, ResultColumn, Table, TableRef
from tests.interfaces.conftest import an_answer

ORDERS = Table(
    TableRef("shop", None, "orders"),
    tuple(Column(name) for name in ("order_id", "status", "total")),
    row_count=1203,
)
SQL = (
    "SELECT status, COUNT(*) AS n FROM orders WHERE total > 3 GROUP BY status "
    "ORDER BY n DESC LIMIT 3"
)


def evidence(sql: str = SQL) -> dict:
    return account(Program((), sql, "sqlite", (ORDERS.ref,)), [ORDERS]).to_dict()


def test_the_lines() -> None:
    assert evidence_lines(evidence()) == [
        "read:",
        "  shop.orders (status, total, 1,203 rows when indexed)",
        "only where:",
        "  orders.total is over 3",
        "for each:",
        "  orders.status",
        "shown:",
        "  orders.status",
        "  n: the number of rows",
        "ordered by:",
        "  the number of rows, descending",
        "at most: the first 3 rows",
    ]


def test_many_filters_are_counted_and_no_column_is_said() -> None:
    sql = "SELECT COUNT(*) FROM orders WHERE " + " AND ".join(f"total <> {n}" for n in range(50))
    lines = evidence_lines(evidence(sql))
    assert "  and 30 more (--json shows all)" in lines
    assert evidence_lines(evidence("SELECT COUNT(*) FROM orders"))[1] == (
        "  shop.orders (no column, 1,203 rows when indexed)"
    )


def test_explain_shows_them_and_the_json_holds_them(cli, fake) -> None:
    fake.result = an_answer(evidence=evidence())
    assert "  orders.total is over 3" in cli("ask", "-s", "a.db", "q", "--explain").out
    assert "only where" not in cli("ask", "-s", "a.db", "q").out
    data = cli("ask", "-s", "a.db", "q", "--json").json
    assert data["evidence"]["filters"] == ["orders.total is over 3"]
    assert data["evidence"]["tables"][0]["rows"] == 1203


def test_another_reading_is_printed_with_its_answer(cli, fake) -> None:
    rows = tuple((n,) for n in range(30))
    execution = Execution((ResultColumn("n\x1b[31m", "int64"),), rows, 0.1)
    program = Program((), "SELECT n FROM orders", "sqlite", (ORDERS.ref,))
    reading = Reading("30 rows.", "shows orders.n", program, execution, 2)
    fake.result = an_answer(readings=(reading,))
    out = cli("ask", "-s", "a.db", "q").out
    assert "another reading (2 programs): shows orders.n\n" in out
    assert "20 of 30 rows shown (--json shows more)\nits sql: SELECT n FROM orders" in out
    assert "\x1b" not in out
    assert "another reading" not in cli("ask", "-s", "a.db", "q", "-q").out
    (told,) = cli("ask", "-s", "a.db", "q", "--json").json["readings"]
    assert (told["row_count"], told["votes"], told["sql"]) == (30, 2, "SELECT n FROM orders")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, status TEXT, total INT)")
        rows = [(1, "paid", 3), (2, "open", 4), (3, "paid", None)]
        connection.executemany("INSERT INTO orders VALUES (?, ?, ?)", rows)
    return path


GROUPED = "SELECT status, SUM(total) AS sum FROM orders GROUP BY status ORDER BY status"


def test_rows_behind_a_cell(cli, shop: Path) -> None:
    done = cli("sql", GROUPED, "-s", shop, "--rows-behind", "2")
    assert done.code == 0
    assert "source rows:\nid  status  total\n" in done.out
    assert " 3  paid     NULL\n2 rows" in done.out
    assert "sql: SELECT" in done.out
    value = cli("sql", GROUPED, "-s", shop, "--rows-behind", "2:sum", "--json").json
    assert value["row_count"] == 2
    assert value["behind"]["rows"] == [[1, "paid", 3]]
    assert "behind" not in cli("sql", GROUPED, "-s", shop, "--json").json


def test_rows_that_cannot_be_shown_leave_the_answer(cli, shop: Path) -> None:
    done = cli("sql", GROUPED, "-s", shop, "--rows-behind", "9")
    assert done.code == 2
    assert "open" in done.out
    assert "there is no row 9: the answer has 2" in done.err
    value = cli("sql", GROUPED, "-s", shop, "--rows-behind", "9", "--json").json
    assert value["behind"]["error"]["code"] == "usage"
    for wrong in ("0", "x", "1:", "1:0", "-1"):
        done = cli("sql", GROUPED, "-s", shop, f"--rows-behind={wrong}")
        assert done.code == 2
        assert "is no row or row:column" in done.err
