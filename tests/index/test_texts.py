from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dbrag.index.catalogs import read_catalog, write_catalog
from dbrag.index.layout import table_id
from dbrag.index.rows import MAX_CELL, MAX_ROW, row_texts
from dbrag.index.summaries import column_texts, names_text
from dbrag.index.values import MAX_PER_COLUMN, column_values
from dbrag.types import Column, ColumnProfile, ForeignKey, Table, TableRef

REF = TableRef("shop", None, "CustomerOrders")
TABLE = Table(
    ref=REF,
    columns=(Column("OrderID", "INTEGER"), Column("ship_city", "TEXT", comment="where to")),
    primary_key=("OrderID",),
    foreign_keys=(ForeignKey(("ship_city",), TableRef("shop", None, "city"), ("name",)),),
    row_count=3,
    rows_read=2,
    sampled=True,
    profile=(ColumnProfile("OrderID", 0, 2, "1", "2", (("1", 1), ("2", 1)), ("1", "2")),),
    sample_rows=(("1", "Kabul"), ("2", None)),
)

CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.binary(),
    st.dates(),
    st.decimals(allow_nan=False),
)


def test_summaries() -> None:
    text = names_text(TABLE, ["city", "OrderLines"])
    assert text == "customer orders with city, order lines: order id, ship city; where to"
    assert column_texts(TABLE) == [
        "customer orders order id",
        "customer orders where to; ship city",
    ]
    assert "shop" not in names_text(TABLE, ["city"])


def test_other_names_and_comments_are_part_of_the_texts() -> None:
    table = Table(
        TableRef("shop", None, "customers"),
        (Column("cust_nm", comment="full name"), Column("st", synonyms=("state", "activity"))),
        comment="who bought",
        synonyms=("clients", "buyers"),
    )
    assert names_text(table, ["orders"]) == (
        "customers (clients, buyers) with orders; who bought: cust nm, st (state, activity); "
        "full name"
    )
    assert column_texts(table) == [
        "customers full name; cust nm",
        "customers state; activity; st",
    ]


def test_a_huge_comment_is_cut_to_one_line() -> None:
    huge = "\x1b[31m<|im_start|>\u202e\n" + "word " * 1_000_000
    table = Table(REF, (Column("a", comment=huge),) * 3, comment=huge)
    text = names_text(table, [])
    assert len(text) < 700
    assert len(max(column_texts(table), key=len)) < 200
    assert text.isprintable()
    assert "<|" not in text


def test_an_unreadable_table_does_not_say_its_error() -> None:
    broken = Table(REF, TABLE.columns[:1], comment="cannot be read: no such table: x")
    assert names_text(broken, []) == "customer orders: order id"


def test_row_text_is_json_of_capped_cells() -> None:
    row = (
        1,
        None,
        "a\nb",
        b"\0",
        "<blob 5000 bytes>",
        Decimal("1.50"),
        date(2024, 1, 5),
        "x" * 999,
    )
    (text,) = row_texts([row])
    assert json.loads(text) == [
        1, None, "a b", {}, {}, "1.50", "2024-01-05", "x" * MAX_CELL,
    ]  # fmt: skip
    (wide,) = row_texts([["word " * 50] * 500])
    assert len(json.loads(wide)) < 500
    assert len(wide) <= 2 * MAX_ROW


@given(st.lists(CELLS, max_size=8))
def test_any_row(row: list[Any]) -> None:
    (text,) = row_texts([row])
    assert len(json.loads(text)) <= len(row)


def test_values() -> None:
    rows = [("Kabul", 1, "x" * 101), ("Kabul", 2, " "), (None, 3, "Paris"), (b"Rome", 4, "")]
    assert column_values(rows, 3) == (["Kabul", "Paris"], [0, 2])
    many = [(str(i),) for i in range(MAX_PER_COLUMN + 5)]
    assert len(column_values(many, 1)[0]) == MAX_PER_COLUMN


def test_catalog_round_trip(tmp_path: Any) -> None:
    odd = Table(TableRef('a "b"\ud800', "s", "表"), (Column("", "", False),), kind="view")
    write_catalog(tmp_path / "c.json", [TABLE, odd], {TABLE.ref: "7"})
    assert list(read_catalog(tmp_path / "c.json")) == [TABLE, odd]


def test_table_ids_tell_tables_apart() -> None:
    refs = [
        TableRef("a", "b", "c"),
        TableRef("a", None, "b.c"),
        TableRef("a.b", None, "c"),
        TableRef("a", "", "b.c"),
    ]
    assert len({table_id(ref) for ref in refs}) == len(refs)
    assert all(0 <= table_id(ref) < 2**63 for ref in refs)
