"""Joins inferred from values and names."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.catalog import inference
from dbrag.catalog.candidates import MOST_BY_NAME, MOST_BY_VALUE, Candidates
from dbrag.catalog.inference import infer_joins
from dbrag.catalog.names import singular, telling, words
from dbrag.catalog.pairs import beside_rivals
from dbrag.catalog.sketches import TableSketch, sketch_columns
from dbrag.types import ForeignKey, TableRef


def table(
    name: str,
    columns: dict[str, Sequence[Any]],
    key: str = "",
    *,
    schema: str | None = None,
    rows: int | None = None,
    **more: Any,
) -> TableSketch:
    read = list(zip(*columns.values(), strict=True))
    return TableSketch(
        ref=TableRef("db", schema, name),
        columns=tuple(sketch_columns(list(columns), read)),
        primary_key=(key,) if key else (),
        foreign_keys=more.pop("foreign_keys", ()),
        rows=len(read) if rows is None else rows,
        rows_read=len(read),
        **more,
    )


def told(tables: Sequence[TableSketch]) -> list[str]:
    return sorted(
        f"{e.left.name}.{e.left_columns[0]} = {e.right.name}.{e.right_columns[0]}"
        for e in infer_joins(tables)
    )


CUSTOMERS = table(
    "customers",
    {
        "id": range(1, 31),
        "name": [f"name {i}" for i in range(30)],
        "age": [20 + i % 9 for i in range(30)],
    },
    "id",
)
PRODUCTS = table("products", {"id": range(1, 51), "price": [i * 1.5 for i in range(50)]}, "id")
ORDERS = table(
    "orders",
    {
        "id": range(1, 101),
        "customer_id": [1 + i % 30 for i in range(100)],
        "product_id": [1 + i % 50 for i in range(100)],
        "quantity": [1 + i % 7 for i in range(100)],
    },
    "id",
)
SHOP = [CUSTOMERS, PRODUCTS, ORDERS]
EXPECTED = ["orders.customer_id = customers.id", "orders.product_id = products.id"]


def test_counters_are_told_apart_by_names() -> None:
    assert told(SHOP) == EXPECTED


def test_also_without_primary_keys_as_in_files() -> None:
    bare = [TableSketch(t.ref, t.columns, (), (), t.rows, t.rows_read) for t in SHOP]
    assert told(bare) == EXPECTED


@given(st.permutations(SHOP))
def test_the_order_of_tables_is_of_no_account(tables: list[TableSketch]) -> None:
    assert infer_joins(tables) == infer_joins(SHOP)


def test_confidence_and_evidence() -> None:
    edge = next(e for e in infer_joins(SHOP) if e.left_columns == ("customer_id",))
    assert not edge.declared
    assert 0.5 < edge.confidence < 1
    assert edge.evidence == "all 30 values found in a primary key; the name fits"


@pytest.mark.parametrize("name", ["cust_id", "CustomerID", "customer", "custid", "CUSTOMER_NO"])
def test_ways_to_write_a_reference(name: str) -> None:
    orders = table("orders", {"id": range(1, 101), name: [1 + i % 30 for i in range(100)]}, "id")
    assert told([CUSTOMERS, orders]) == [f"orders.{name} = customers.id"]


def test_texts_are_found_by_their_values() -> None:
    codes = [f"{a}{b}{c}" for a in "ABC" for b in "XYZ" for c in "LMN"]
    airports = table("airports", {"code": codes, "city": [f"city {c}" for c in codes]}, "code")
    flights = table(
        "flights",
        {"flight_no": range(1, 55), "origin": codes * 2, "destination": codes[::-1] * 2},
        "flight_no",
    )
    assert told([airports, flights]) == [
        "flights.destination = airports.code",
        "flights.origin = airports.code",
    ]


@pytest.mark.parametrize("name", ["manager_id", "reports_to", "parent_employee_id"])
def test_a_reference_to_its_own_table(name: str) -> None:
    ids = [1017, 2231, 3358, 4444, 5092, 6120, 7003, 8811, 9177, 9923]
    employee = table(
        "employee",
        {
            "employee_id": ids,
            "name": [f"n{i}" for i in ids],
            name: [None, *ids[:3] * 3],
        },
        "employee_id",
    )
    assert told([employee]) == [f"employee.{name} = employee.employee_id"]


def test_what_is_not_contained_is_no_join() -> None:
    orders = table("orders", {"id": range(1, 101), "customer_id": range(5_000, 5_100)}, "id")
    assert told([CUSTOMERS, orders]) == []


def test_a_few_values_without_a_partner_do_no_harm() -> None:
    found = [1 + i % 30 for i in range(98)] + [31, 32]
    orders = table("orders", {"id": range(1, 101), "customer_id": found}, "id")
    edge = infer_joins([CUSTOMERS, orders])[0]
    assert edge.left_columns == ("customer_id",)
    assert edge.evidence == "93.8% of 32 values found in a primary key; the name fits"


def test_unrelated_tables_stay_apart() -> None:
    planets = table("planets", {"id": range(1, 9), "mass": [i / 3 for i in range(8)]}, "id")
    moons = table("songs", {"id": range(1, 9), "seconds": [90 + i for i in range(8)]}, "id")
    assert told([planets, moons]) == []


def test_a_measure_refers_to_nothing() -> None:
    lines = table(
        "lines", {"id": range(1, 61), "product_quantity": [1 + i % 30 for i in range(60)]}, "id"
    )
    assert told([PRODUCTS, lines]) == []


def test_a_table_s_own_key_does_not_refer_to_what_refers_to_it() -> None:
    orders = table(
        "customer_orders",
        {"order_id": range(1, 41), "customer_id": [1 + i % 15 for i in range(40)]},
        "order_id",
    )
    customers = table("customers", {"customer_id": range(1, 16)}, "customer_id")
    assert told([customers, orders]) == ["customer_orders.customer_id = customers.customer_id"]


def test_parts_of_a_key_are_not_referred_to() -> None:
    lines = table(
        "lines",
        {"order_id": [1, 1, 2, 2], "line_no": [1, 2, 1, 2], "text": ["a", "b", "c", "d"]},
    )
    notes = table(
        "notes", {"id": range(1, 5), "order_id": [1, 2, 1, 2], "line_no": [1, 2, 2, 1]}, "id"
    )
    assert all(edge.right != lines.ref for edge in infer_joins([lines, notes]))


def test_a_view_is_no_target() -> None:
    view = table("customer_view", {"id": range(1, 31)}, is_view=True)
    assert told([view, ORDERS]) == []
    assert "orders.customer_id = customers.id" in told([view, *SHOP])


def test_a_sampled_target() -> None:
    seen = random.Random(1).sample(range(1, 100_001), 2_000)
    customers = table(
        "customers", {"id": seen, "name": [f"n{i}" for i in seen]}, "id", rows=100_000
    )
    orders = table(
        "orders",
        {"id": range(1, 2_001), "customer_id": [1 + 41 * i % 100_000 for i in range(2_000)]},
        "id",
    )
    edge = infer_joins([customers, orders])[0]
    assert (edge.left_columns, edge.right.name) == (("customer_id",), "customers")
    assert "estimated from 2.0% of its rows" in edge.evidence


def test_an_empty_table_joins_by_its_names() -> None:
    empty = table("invoices", {"id": [], "customer_id": []}, "id")
    edges = {e.left_columns[0]: e for e in infer_joins([*SHOP, empty]) if e.left == empty.ref}
    assert edges["customer_id"].right == CUSTOMERS.ref
    assert edges["customer_id"].evidence.startswith("no values to compare")


def test_databases_of_one_server_stay_apart_unless_it_is_plain() -> None:
    def shop(schema: str) -> list[TableSketch]:
        customers = table("customers", {"id": range(1, 31)}, "id", schema=schema)
        target = ForeignKey(("x",), customers.ref, ("id",))
        orders = table(
            "orders",
            {"id": range(1, 101), "customer_id": [1 + i % 30 for i in range(100)]},
            "id",
            schema=schema,
            foreign_keys=(target,),
        )
        return [customers, orders]

    edges = infer_joins([*shop("a"), *shop("b")])
    assert len(edges) == 2
    assert all(edge.left.schema == edge.right.schema for edge in edges)


def test_many_tables_with_the_same_columns_are_bounded() -> None:
    tables = [
        table(
            f"crm_t{i:04}",
            {"id": range(1, 6), "customer_id": range(1, 6), "code": [f"v{j}" for j in range(5)]},
            "id",
        )
        for i in range(600)
    ]
    started = time.perf_counter()
    pairs = list(Candidates(tables).pairs())
    assert len(pairs) <= 1_800 * (MOST_BY_NAME + MOST_BY_VALUE + 5)
    infer_joins(tables)
    assert time.perf_counter() - started < 20


def test_weights_belong_to_the_features() -> None:
    pairs = inference.compared(SHOP)
    assert pairs
    names = set(beside_rivals(pairs[0])[0])
    assert names == {*inference.WEIGHTS, *inference.GIVEN_WEIGHTS}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("CustomerIDs", ("customer", "id")),
        ("customer_id2", ("customer", "id", "2")),
        ("stuid", ("stu", "id")),
        ("Addresses", ("address",)),
        ("countries", ("country",)),
        ("status", ("status",)),
        ("", ()),
        ("größe", ("grösse",)),
    ],
)
def test_words(name: str, found: tuple[str, ...]) -> None:
    assert words(name) == found


@given(st.text(max_size=40))
def test_words_of_anything(name: str) -> None:
    assert all(word and word == word.casefold() for word in words(name))
    assert set(telling(words(name))) <= set(words(name))
    assert singular(name) == singular(name)
