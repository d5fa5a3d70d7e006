"""The reranking prompt: a snapshot, its budget, and data that stays data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dbrag.errors import PromptTooLong
from dbrag.retrieval.prompts import (
    DETAILS,
    Shown,
    column_order,
    estimated_tokens,
    rerank_prompt,
    table_text,
)
from dbrag.types import Column, Table, TableRef, ValueMatch
from tests.reasoning.injections import TEMPLATES

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

STORES = Shown(
    Table(
        TableRef("shop", None, "stores"),
        (Column("store_id", "INTEGER"), Column("city", "TEXT", comment="where it stands")),
        primary_key=("store_id",),
        comment="all stores",
    ),
    rows=({"store_id": 1, "city": "Lisbon"}, {"store_id": 2, "city": None}),
    matches=(ValueMatch("city", "Lisbon"),),
    joins=(1,),
)
LINES = Shown(
    Table(
        TableRef("shop", None, "order lines"),
        (Column("order", "INTEGER"), Column("line no"), Column("store_id", "INTEGER")),
    ),
    rows=({"order": 7, "store_id": 1},),
    joins=(0,),
)
WIDE = Shown(
    Table(
        TableRef("lab", None, "readings"),
        (
            Column("reading_id"),
            *(Column(f"x{i}") for i in range(1_998)),
            Column("max_gust_speed"),
        ),
        primary_key=("reading_id",),
    ),
    rows=({"reading_id": 1, "max_gust_speed": 77.5},),
)


def test_the_prompt(snapshot: SnapshotAssertion) -> None:
    question = "How many lines did the store in Lisbon sell in a gust?"
    fitted = rerank_prompt(question, [STORES, LINES, WIDE], m=5, budget_tokens=4_000)
    assert fitted.prompt.text() == snapshot
    assert fitted.shown == 3
    assert fitted.left_out == {"tables": 0, "columns": 1_960, "rows": 0}


def test_a_wide_table_shows_the_columns_most_like_the_question() -> None:
    order = column_order(WIDE, "What was the highest speed of a gust?")
    text = table_text(0, WIDE, order, DETAILS[0], 1)
    assert "max_gust_speed" in text
    assert "… and 1,960 more columns" in text
    assert "reading_id" in text
    assert "77.5" in text


def test_other_names_and_descriptions_count() -> None:
    columns = [Column(f"x{i}") for i in range(100)]
    columns[77] = Column("x77", synonyms=("gust",), comment="in knots")
    table = Table(TableRef("lab", None, "t1"), tuple(columns), synonyms=("readings",))
    order = column_order(Shown(table), "How strong was the gust?")
    assert order[0] == 77
    text = table_text(0, Shown(table), order, DETAILS[0], 1)
    assert "x77 (also called gust; in knots)" in text
    assert "about: also called readings" in text


def test_a_mentioned_value_brings_its_column() -> None:
    wide = Shown(WIDE.table, matches=(ValueMatch("x1777", "Lisbon"),))
    assert column_order(wide, "who lives in Lisbon?")[0] == 1_778


def test_with_less_room_columns_rows_and_then_tables_are_left_out() -> None:
    tables = [WIDE, *(Shown(STORES.table, STORES.rows) for _ in range(20))]
    seen = []
    for budget in (4_000, 1_200, 700, 500):
        fitted = rerank_prompt("gusts in Lisbon?", tables, m=5, budget_tokens=budget)
        assert fitted.tokens <= budget
        assert fitted.left_out["tables"] == 21 - fitted.shown
        seen.append((fitted.shown, fitted.left_out["columns"]))
    assert seen == sorted(seen, key=lambda pair: (-pair[0], pair[1]))
    assert seen[0][0] == 21
    assert seen[-1][0] < 21


def test_no_room_at_all_is_told() -> None:
    with pytest.raises(PromptTooLong, match="no room for two tables") as error:
        rerank_prompt("word " * 3_000, [STORES, LINES], m=5, budget_tokens=1_000)
    assert "--no-rerank" in error.value.hint


names = st.text(min_size=1, max_size=60)


@settings(max_examples=60)
@given(
    tables=st.lists(
        st.tuples(names, st.lists(names, min_size=1, max_size=80), st.text(max_size=300)),
        min_size=2,
        max_size=30,
    ),
    question=st.text(max_size=300),
    budget=st.integers(200, 3_000),
    m=st.integers(1, 9),
)
def test_the_prompt_never_exceeds_the_budget(
    tables: list[tuple[str, list[str], str]], question: str, budget: int, m: int
) -> None:
    shown = [
        Shown(
            Table(
                TableRef("s", None, name),
                tuple(Column(c, comment=text) for c in columns),
                comment=text,
            ),
            rows=({columns[0]: text},) * 3,
            joins=(0, 1),
        )
        for name, columns, text in tables
    ]
    try:
        fitted = rerank_prompt(question, shown, m=m, budget_tokens=budget)
    except PromptTooLong:
        return
    assert estimated_tokens(fitted.prompt.text()) <= fitted.tokens <= budget
    assert fitted.prompt.context.count("\n[") == fitted.shown - 1


@given(st.text(max_size=300) | st.sampled_from(TEMPLATES))
def test_data_stays_data(text: str) -> None:
    table = Table(
        TableRef("s", None, text or "t"), (Column(text or "c", comment=text),), comment=text
    )
    shown = Shown(table, ({text or "c": text},) * 2, (ValueMatch(text or "c", text),))
    lines = table_text(0, shown, [0], DETAILS[0], 1).splitlines()
    assert lines[0].startswith("[1] ")
    assert all(line.startswith(("about: ", "value: ", "row: ")) for line in lines[1:])
    whole = "\n".join(lines)
    assert "<|" not in whole
    assert "```" not in whole
    assert "\x1b" not in whole


def test_secrets_in_cells_are_masked() -> None:
    table = Table(TableRef("s", None, "settings"), (Column("value"),))
    shown = Shown(table, ({"value": "postgres://bob:hunter22@db.example.org/x"},))
    text = table_text(0, shown, [0], DETAILS[0], 1)
    assert "hunter22" not in text
    assert "bob" in text


def test_the_estimate_is_above_the_words_and_below_the_letters() -> None:
    text = "Which customer_ids of 2024 have orders?"
    assert 12 <= estimated_tokens(text) <= len(text)
    assert estimated_tokens("数据库") == 9
