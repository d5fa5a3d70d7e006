"""``[joins]`` of dbrag.toml: what the user says wins, and what says nothing is told."""

from __future__ import annotations

import pytest

from dbrag.catalog.catalog import Catalog
from dbrag.catalog.corrections import BY_USER, corrected
from dbrag.catalog.joins import JoinEdge
from dbrag.types import Column, Table, TableRef


def table(name: str, *columns: str, source: str = "shop", schema: str | None = None) -> Table:
    return Table(ref=TableRef(source, schema, name), columns=tuple(map(Column, columns)))


CUSTOMERS = table("customers", "id", "Name")
ORDERS = table("orders", "id", "customer_id", "a", "b")
LINES = table("lines", "a", "b")
DOTTED = table("2024.csv", "file.id")
OTHER = table("orders", "id", source="zoo")
TABLES = Catalog([CUSTOMERS, ORDERS, LINES, DOTTED])
INFERRED = JoinEdge(
    ORDERS.ref, ("customer_id",), CUSTOMERS.ref, ("id",), declared=False, confidence=0.4
)
DECLARED = JoinEdge(LINES.ref, ("a",), ORDERS.ref, ("a",))


def test_nothing_to_correct() -> None:
    assert corrected([INFERRED, DECLARED], TABLES, (), ()) == ([INFERRED, DECLARED], [])


@pytest.mark.parametrize(
    "text",
    [
        "shop.orders.customer_id = shop.customers.id",
        "orders.customer_id = customers.id",
        "Orders.CUSTOMER_ID=customers.ID",
        "customers.id = orders.customer_id",
    ],
)
def test_an_inferred_join_is_confirmed_or_removed(text: str) -> None:
    edges, problems = corrected([INFERRED], TABLES, (text,), ())
    assert not problems
    assert [(e.declared, e.confidence, e.evidence) for e in edges] == [(True, 1.0, BY_USER)]
    assert corrected([INFERRED], TABLES, (), (text,)) == ([], [])


def test_a_declared_join_is_removed() -> None:
    assert corrected([DECLARED], TABLES, (), ("orders.a = lines.a",)) == ([], [])


def test_several_columns() -> None:
    edges, problems = corrected([], TABLES, ("lines.a = orders.a AND lines.b = orders.b",), ())
    assert not problems
    assert (edges[0].left_columns, edges[0].right_columns) == (("a", "b"), ("a", "b"))
    swapped = ("orders.b = lines.b and orders.a = lines.a",)
    assert corrected(edges, TABLES, (), swapped) == ([], [])


def test_names_with_dots() -> None:
    edges, problems = corrected([], TABLES, ("2024.csv.file.id = customers.id",), ())
    assert not problems
    assert edges[0].left_columns == ("file.id",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("orders.customer_id", "write"),
        ("orders.customer_id = customers.id = x.y", "write"),
        ("orders.client = customers.id", "shop.orders has no such column"),
        ("client.id = customers.id", "names no indexed table"),
        ("id = customers.id", "names no indexed table"),
        ("None.orders.id = customers.id", "names no indexed table"),  # it has no schema
        ("", "write"),
        ("customers.id = customers.id", "joined with itself"),
        ("zoo.orders.id = customers.id", "two sources"),
        ("orders.id = customers.id", "shop.orders, zoo.orders"),
        ("lines.a = shop.orders.a and lines.b = customers.id", "same two tables"),
    ],
)
def test_what_names_no_join_is_told(text: str, words: str) -> None:
    for add, remove in (((text,), ()), ((), (text,))):
        edges, problems = corrected([INFERRED], Catalog([*TABLES.tables, OTHER]), add, remove)
        assert edges == [INFERRED]
        assert [problem.code for problem in problems] == ["joins_setting"]
        assert words in problems[0].message
        assert repr(text) in problems[0].message


def test_removing_what_is_no_join() -> None:
    edges, problems = corrected([INFERRED], TABLES, (), ("orders.id = customers.id",))
    assert edges == [INFERRED]
    assert "there is no such join" in problems[0].message


def test_only_the_named_tables_are_looked_at() -> None:
    """Of 100,000 tables most never come into memory."""
    read: list[TableRef] = []

    class Looked(dict[TableRef, Table]):
        def __getitem__(self, ref: TableRef) -> Table:
            read.append(ref)
            return super().__getitem__(ref)

    catalog = Catalog(TABLES.tables)
    vars(catalog)["by_ref"] = Looked(TABLES.by_ref)
    vars(catalog)["refs"] = TABLES.refs
    vars(catalog)["tables"] = None
    edges, problems = corrected([], catalog, ("orders.customer_id = shop.customers.id",), ())
    assert (len(edges), problems) == (1, [])
    assert set(read) == {ORDERS.ref, CUSTOMERS.ref}
