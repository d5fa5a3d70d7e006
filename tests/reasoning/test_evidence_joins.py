"""Answers over inferred joins say so."""

from __future__ import annotations

import pytest

from dbrag.catalog.joins import JoinEdge, JoinGraph
from dbrag.reasoning.evidence import inferred_joins
from dbrag.types import Program, TableRef


def ref(name: str) -> TableRef:
    return TableRef("shop", None, name)


EDGE = JoinEdge(
    ref("orders"),
    ("customer_id",),
    ref("customers"),
    ("id",),
    declared=False,
    confidence=0.64,
    evidence="all 30 values found in a primary key",
)
COMPOSITE = JoinEdge(ref("lines"), ("a", "b"), ref("orders"), ("a", "b"), declared=False)
SELF = JoinEdge(ref("staff"), ("boss",), ref("staff"), ("id",), declared=False, confidence=0.5)


def told(
    sql: str, *tables: str, edges: tuple[JoinEdge, ...] = (EDGE, COMPOSITE, SELF)
) -> list[str]:
    program = Program((), sql, "sqlite", tuple(map(ref, tables)))
    return [warning.message for warning in inferred_joins(program, JoinGraph(edges))]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM orders AS o JOIN customers AS c ON o.customer_id = c.id",
        "SELECT 1 FROM orders, customers WHERE customers.ID = Orders.Customer_ID",
        "WITH x AS (SELECT * FROM orders) SELECT 1 FROM x JOIN customers c ON c.id = customer_id",
        "SELECT 1 FROM customers WHERE id IN (SELECT customer_id FROM orders)",
        "SELECT 1 FROM customers WHERE (id) NOT IN (SELECT o.customer_id AS c FROM orders AS o)",
        "SELECT 1 FROM customers WHERE id = (SELECT customer_id FROM orders LIMIT 1)",
        "SELECT 1 FROM orders AS o JOIN customers AS c ON o.customer_id IS c.id",
    ],
)
def test_an_inferred_join_is_told(sql: str) -> None:
    assert told(sql, "orders", "customers") == [
        "joined by shop.orders.customer_id = shop.customers.id: not declared, inferred with 64% "
        "confidence (all 30 values found in a primary key)"
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1 FROM orders CROSS JOIN customers",
        "SELECT 1 FROM orders AS o JOIN customers AS c ON o.id = c.id",
        "SELECT 1 FROM orders, customers WHERE orders.customer_id = 3",
        "SELECT 1 FROM orders, customers WHERE orders.customer_id IN (1, 2)",
        "SELECT 1 FROM customers WHERE id IN (SELECT MAX(total) FROM orders)",
        "SELECT 1 FROM orders NATURAL JOIN customers",
    ],
)
def test_joined_otherwise(sql: str) -> None:
    assert told(sql, "orders", "customers") == []


def test_a_declared_edge_says_nothing_of_another() -> None:
    declared = JoinEdge(ref("customers"), ("first_order",), ref("orders"), ("id",))
    sql = "SELECT 1 FROM orders AS o JOIN customers AS c ON o.customer_id = c.id"
    assert told(sql, "orders", "customers", edges=(EDGE, declared)) != []
    other = "SELECT 1 FROM orders AS o JOIN customers AS c ON c.first_order = o.id"
    assert told(other, "orders", "customers", edges=(EDGE, declared)) == []


def test_every_column_of_a_key_and_using() -> None:
    assert told("SELECT 1 FROM lines JOIN orders USING (a)", "lines", "orders") == []
    assert len(told("SELECT 1 FROM lines JOIN orders USING (a, b)", "lines", "orders")) == 1
    assert len(told("SELECT 1 FROM lines NATURAL JOIN orders", "lines", "orders")) == 1


def test_a_table_with_itself() -> None:
    sql = "SELECT 1 FROM staff AS s JOIN staff AS b ON s.boss = b.id"
    assert len(told(sql, "staff")) == 1


def test_likely_edges() -> None:
    graph = JoinGraph([EDGE])
    assert graph.sure(ref("orders"), ref("customers")) == (EDGE,)
    weak = JoinEdge(ref("a"), ("x",), ref("b"), ("y",), declared=False, confidence=0.3)
    sure = JoinEdge(ref("b"), ("z",), ref("a"), ("z",))
    assert JoinGraph([weak]).sure(ref("a"), ref("b")) == ()
    assert JoinGraph([weak, EDGE, sure]).sure(ref("a"), ref("b")) == (sure,)
