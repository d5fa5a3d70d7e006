"""What the model reads: a snapshot, and nothing in the data can change its shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from dbrag.reasoning.prompts import identifier, literal, program_prompt, table_lines
from dbrag.types import Column, ForeignKey, Table, TableRef, ValueMatch

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

STORES = Table(
    TableRef("shop", None, "stores"),
    (Column("store_id", "INTEGER"), Column("city", "TEXT", comment="where it stands")),
    primary_key=("store_id",),
    row_count=2,
    sample_rows=(("1", "Lisbon"), ("2", None), ("3", "not shown")),
)
LINES = Table(
    TableRef("shop", None, "order lines"),
    (Column("order", "INTEGER"), Column("line no"), Column("store_id", "INTEGER")),
    primary_key=("order", "line no"),
    foreign_keys=(
        ForeignKey(("store_id",), STORES.ref, ("store_id",)),
        ForeignKey(("order",), TableRef("shop", None, "orders"), ("order_id",)),
    ),
    row_count=0,
)


def test_the_prompt(snapshot: SnapshotAssertion) -> None:
    prompt = program_prompt(
        "How many lines did the store in Lisbon sell?",
        [STORES, LINES],
        dialect="sqlite",
        matches={STORES.ref: (ValueMatch("city", "Lisbon"),)},
    )
    assert prompt.text() == snapshot


def test_the_stable_part_does_not_depend_on_order_or_question() -> None:
    one = program_prompt("a?", [STORES, LINES], dialect="sqlite", matches={})
    two = program_prompt("b?", [LINES, STORES], dialect="sqlite", matches={})
    assert (one.system, one.context) == (two.system, two.context)


@given(st.text(max_size=200))
def test_cells_and_names_stay_on_one_line(text: str) -> None:
    table = Table(
        TableRef("s", None, "t"),
        (Column("c", "TEXT", comment=text),),
        comment=text,
        sample_rows=((text,),),
    )
    lines = table_lines(table, {table.ref}, "sqlite").split("\n")
    assert len(lines) == (6 if text else 5)
    assert not any(ord(character) < 32 for line in lines for character in line)


@given(st.text(max_size=100))
def test_a_literal_is_one_token(text: str) -> None:
    quoted = literal(text)
    assert quoted.startswith("'")
    assert quoted.endswith("'")
    assert "'" not in quoted[1:-1].replace("''", "")
    assert "\n" not in quoted


def test_names_are_quoted_where_they_must_be() -> None:
    must = ("from", "Select", "order", "GROUP", "index", "a b", 'q"q')
    quoted = {name: identifier(name, "sqlite") for name in ("name", *must)}
    assert quoted["name"] == "name"
    for name in must:
        assert quoted[name] != name
    for name, text in quoted.items():
        column = sqlglot.parse_one(f"SELECT {text} FROM t", dialect="sqlite").expressions[0]
        assert column.name == name


def test_a_wide_table_shows_keys_and_what_the_question_says() -> None:
    columns = tuple(Column(f"filler_{i}") for i in range(500))
    table = Table(
        TableRef("s", None, "wide"),
        (*columns, Column("blood_pressure"), Column("id")),
        primary_key=("id",),
    )
    text = table_lines(table, {table.ref}, "sqlite", "What is the mean blood pressure?")
    assert "blood_pressure" in text
    assert "id PRIMARY KEY" in text
    assert "442 more columns" in text
