"""Prompts that would be too long: they keep their budget and say what they leave out."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dbrag
from dbrag.errors import PromptTooLong
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.reasoning.prompts import Fitted, fitted_prompt
from dbrag.reasoning.table_text import DETAILS, MAX_COLUMNS
from dbrag.reasoning.token_budget import LOCAL_TOKENS, tokens_of
from dbrag.types import Column, ForeignKey, Table, TableRef, ValueMatch

QUESTION = "What is the mean blood pressure of patients in Lisbon?"


def wide(name: str, n: int, *extra: Column, comment: str = "", cell: str = "1") -> Table:
    """A table of ``n`` filler columns, those of ``extra`` in their middle."""
    filler = [Column(f"measured_{i}", "INTEGER", comment=comment) for i in range(n - len(extra))]
    columns = (*filler[: n // 2], *extra, *filler[n // 2 :])
    rows = tuple((cell,) * len(columns) for _ in range(3))
    return Table(TableRef("s", None, name), columns, sample_rows=rows, comment=comment)


def fit(*tables: Table, question: str = QUESTION, budget: int = LOCAL_TOKENS) -> Fitted:
    fitted = fitted_prompt(question, tables, dialect="sqlite", matches={}, budget_tokens=budget)
    prompt = fitted.prompt
    assert sum(map(tokens_of, (prompt.system, prompt.context, prompt.request))) <= budget
    return fitted


def test_of_2000_columns_the_mentioned_one_is_seen() -> None:
    table = wide("visits", 2000, Column("blood_pressure", "REAL"))
    fitted = fit(table)
    assert "blood_pressure REAL" in fitted.prompt.context
    shown, of = fitted.columns[table.ref]
    assert f"-- and {of - shown} more columns" in fitted.prompt.context
    assert (shown, of) == (MAX_COLUMNS, 2000)
    (warning,) = fitted.warnings()
    assert warning.code == "prompt_shortened"
    assert "60 of 2,000 columns of s.visits" in warning.message


def test_five_tables_of_300_columns() -> None:
    tables = [wide(f"t{i}", 300, Column(f"blood_pressure_{i}")) for i in range(5)]
    question = " ".join(f"blood pressure {i}" for i in range(5))
    fitted = fit(*tables, question=question)
    for i, table in enumerate(tables):
        assert f"blood_pressure_{i}" in fitted.prompt.context
        assert fitted.columns[table.ref][1] == 300
    assert not fitted.tables
    assert fitted.prompt.context.count("-- and ") == 5


@pytest.mark.parametrize(
    "table",
    [
        wide("visits", 8, Column("blood_pressure"), comment="word " * 12_000),
        wide("visits", 8, Column("blood_pressure"), cell="x" * 100_000),
        wide("visits", 2000, Column("blood_pressure"), comment="a8Fq" * 15_000, cell="9" * 100_000),
    ],
    ids=["comments", "cells", "all"],
)
def test_comments_and_cells_of_any_length(table: Table) -> None:
    assert "blood_pressure" in fit(table).prompt.context


def test_keys_values_and_joins_stay() -> None:
    other = Table(TableRef("s", None, "wards"), (Column("ward_no"),), primary_key=("ward_no",))
    table = replace(
        wide("visits", 400, *map(Column, ("visit_no", "ward", "town_name", "seen_by"))),
        primary_key=("visit_no",),
        foreign_keys=(ForeignKey(("ward",), other.ref, ("ward_no",)),),
    )
    fitted = fitted_prompt(
        QUESTION,
        [table, other],
        dialect="sqlite",
        matches={table.ref: (ValueMatch("town_name", "Lisbon"),)},
        budget_tokens=330,
    )
    assert fitted.tokens <= 330
    assert fitted.columns[table.ref][0] < 12
    for name in ("visit_no PRIMARY KEY", "  ward,", "  town_name", "visits.town_name = 'Lisbon'"):
        assert name in fitted.prompt.text()


def test_the_order_of_what_is_left_out() -> None:
    tables = [wide(f"t{i}", 80, Column("blood_pressure"), comment="told") for i in range(4)]
    solved = [("How much?", "SELECT SUM(x) FROM y WHERE z > 1")] * 2
    seen: list[tuple[int, bool, bool, int, int]] = []
    budget = 12_000
    while budget > 250:
        fitted = fitted_prompt(
            QUESTION, tables, dialect="sqlite", matches={}, solved=solved, budget_tokens=budget
        )
        columns = fitted.columns[tables[0].ref][0]
        seen.append((-columns, fitted.rows, fitted.comments, fitted.solved, len(fitted.tables)))
        if fitted.rows:
            assert "are not shown" in fitted.prompt.context
        if fitted.tables:
            assert fitted.tables == tuple(t.ref for t in tables[4 - len(fitted.tables) :])
            assert f"-- and {len(fitted.tables)} more tables: t" in fitted.prompt.context
            assert f"nothing of {fitted.tables[0]}" in fitted.warnings()[0].message
        budget = budget * 9 // 10
    assert seen == sorted(seen)
    states = {one[1:] for one in seen}
    assert (False, False, 0, 0) in states
    assert (True, True, 2, 3) in states
    comments = [one for one in seen if one[1] and not one[2]]
    assert comments, "rows go before comments"


def test_a_question_without_room_is_told() -> None:
    with pytest.raises(PromptTooLong, match="no room for the question") as caught:
        fit(wide("t", 3), question="why " * 4000)
    assert "prompt_tokens" in str(caught.value.hint)


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)


@settings(max_examples=25)
@given(
    st.lists(st.tuples(NAMES, st.integers(1, 70)), min_size=1, max_size=4),
    NAMES,
    st.integers(700, 4000),
)
def test_no_prompt_exceeds_its_budget(
    shapes: list[tuple[str, int]], question: str, budget: int
) -> None:
    tables = [
        Table(
            TableRef("s", None, f"{i}{name}"),
            tuple(Column(f"{name}{j}", name, comment=name) for j in range(n)),
            sample_rows=((name,) * n,),
            comment=name,
        )
        for i, (name, n) in enumerate(shapes)
    ]
    try:
        fitted = fit(*tables, question=question, budget=budget)
    except PromptTooLong:
        least = len(names := tables[0].columns[:6]) and tokens_of(" ".join(c.name for c in names))
        assert least + tokens_of(question) > budget // 16
        return
    assert fitted.tokens <= budget
    assert len(tables) == fitted.prompt.context.count("CREATE TABLE ") + len(fitted.tables)


def test_details_go_from_long_to_short() -> None:
    assert [d.columns for d in DETAILS] == sorted((d.columns for d in DETAILS), reverse=True)


def test_the_answer_warns_of_what_the_model_did_not_see(tmp_path: Path) -> None:
    path = tmp_path / "clinic.db"
    names = [f"measured_{i}" for i in range(300)]
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(f"CREATE TABLE visits (blood_pressure REAL, {' INT, '.join(names)} INT)")
        db.execute(f"INSERT INTO visits VALUES ({', '.join(['1'] * 301)})")
    model = FunctionModel(lambda _: "SELECT AVG(blood_pressure) FROM visits")
    with dbrag.connect(
        path, index=tmp_path / "index", embedder=HashEmbedder(), chat_model=model
    ) as db:
        db.index()
        answer = db.ask("What is the mean blood pressure of the visits?")
    (warning,) = [w for w in answer.warnings if w.code == "prompt_shortened"]
    assert "60 of 301 columns of clinic.visits" in warning.message
    (event,) = [e for e in answer.trace if e["stage"] == "prompt"]
    assert event["columns"] == {"clinic.visits": [60, 301]}
    assert event["tokens"] < LOCAL_TOKENS
