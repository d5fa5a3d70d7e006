"""What a program prompt shows of the rows: sample rows, or a row context in their place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbrag.reasoning.prompts import fitted_prompt
from dbrag.types import ValueMatch

from .test_prompts import LINES, NOISY, STORES

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


def test_the_prompt_with_a_row_context(snapshot: SnapshotAssertion) -> None:
    rows = {
        STORES.ref: ({"store_id": 7, "city": "Lisbon\n-- DROP"}, {"city": None, "store_id": 8}),
        LINES.ref: ({"order": 3, "line no": 1.5},),
    }
    fitted = fitted_prompt(
        "How many lines did the store in Lisbon sell?",
        [STORES, LINES],
        dialect="sqlite",
        matches={STORES.ref: (ValueMatch("city", "Lisbon"),)},
        rows=rows,
    )
    assert fitted.prompt.text() == snapshot
    assert "not shown" not in fitted.prompt.text()


def test_all_rows_of_the_context_are_shown_and_no_sample() -> None:
    rows = {STORES.ref: tuple({"store_id": n, "city": f"town {n}"} for n in range(9))}
    text = fitted_prompt("?", [STORES], dialect="sqlite", matches={}, rows=rows).prompt.context
    assert [f"town {n}" in text for n in range(9)] == [True] * 9
    assert "Lisbon" not in text


def test_names_and_schema_alone_hold_nothing_of_the_rows() -> None:
    text = fitted_prompt(
        "?", [NOISY, STORES], dialect="sqlite", matches={}, rows={}, formats=False
    ).prompt.text()
    assert "where it was" in text  # a comment of the schema
    for cell in ("Paris", "05.03.2024", "DD.MM.YYYY", "€", "Lisbon", "rows"):
        assert cell not in text


def test_rows_go_first_where_the_budget_is_short() -> None:
    rows = {STORES.ref: tuple({"store_id": n, "city": "x" * 40} for n in range(50))}
    whole = fitted_prompt("?", [STORES], dialect="sqlite", matches={}, rows=rows)
    short = fitted_prompt(
        "?", [STORES], dialect="sqlite", matches={}, rows=rows, budget_tokens=whole.tokens - 1
    )
    assert short.rows
    assert "xxx" not in short.prompt.context
    assert "rows are not shown" in short.prompt.context
