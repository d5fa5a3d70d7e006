"""``ask --explain``: the program in words."""

from __future__ import annotations

from dbrag.interfaces.cli.evidence import evidence_lines
from dbrag.reasoning.explanation import account
from dbrag.types import Column, Program, Table, TableRef
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
