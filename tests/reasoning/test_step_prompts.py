"""What a model reads between the steps: snapshots, and data that stays data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbrag.errors import ExecutionError
from dbrag.models.base import Prompt
from dbrag.reasoning.looks import Look
from dbrag.reasoning.program import parse_step, says_done
from dbrag.reasoning.prompts import program_prompt
from dbrag.reasoning.step_prompts import first_step, next_step, step_again
from dbrag.types import Column, Step, Table, TableRef, ValueMatch

from .injections import INJECTIONS

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

STORES = Table(
    TableRef("shop", None, "stores"),
    (Column("store_id", "INTEGER"), Column("city", "TEXT")),
    primary_key=("store_id",),
    row_count=2,
    sample_rows=(("1", "Lisbon"), ("2", None)),
)


def prompt() -> Prompt:
    return program_prompt(
        "How many stores are in Lisbon?",
        [STORES],
        dialect="sqlite",
        matches={STORES.ref: (ValueMatch("city", "Lisbon"),)},
    )


def test_the_first_prompt(snapshot: SnapshotAssertion) -> None:
    assert first_step(prompt()).request == snapshot


def test_only_the_task_is_another() -> None:
    whole, steps, only = prompt(), first_step(prompt()), first_step(prompt(), only=True)
    assert whole.request.split("\n")[-2].startswith("Write one SQLite query")
    for other in (steps, only):
        assert (other.system, other.context) == (whole.system, whole.context)
        one, two = whole.request.split("\n"), other.request.split("\n")
        assert [i for i, pair in enumerate(zip(one, two, strict=True)) if pair[0] != pair[1]] == [
            len(one) - 2
        ]


LOOK = Look(
    columns=(("city", "string"), ("total sum", "double")),
    row_count=1_000,
    more=True,
    rows=(("Lisbon", "3.5"), ("NULL", "0.0")),
)


def test_what_follows_a_step(snapshot: SnapshotAssertion) -> None:
    told = [
        next_step("paid", LOOK, "sqlite", last=False),
        next_step("paid", LOOK, "sqlite", last=True),
        next_step("order", Look((("a", "int64"),), row_count=0), "sqlite", last=False),
        next_step("paid", Look((("a", ""),), missing="stopped after 5 s"), "sqlite", last=False),
        step_again("That statement failed: no such column: 'x'.", "paid", "sqlite"),
        step_again("That statement gave no rows.", "answer", "sqlite", ran=True),
        step_again("That statement failed: the model wrote no SQL.", "", "sqlite"),
    ]
    assert "\n\n".join(told) == snapshot


def test_a_wide_step_is_shown_in_part() -> None:
    wide = Look(tuple((f"c{n}", "int64") for n in range(40)), row_count=1, rows=(("7",) * 40,))
    told = next_step("w", wide, "sqlite", last=False).splitlines()
    assert told[1].endswith("c29 int64, and 10 more")
    assert told[3].count("7") == 30


@pytest.mark.parametrize("text", INJECTIONS, ids=lambda text: ascii(text)[:40])
def test_names_and_messages_stay_on_their_line(text: str) -> None:
    look = Look(((text, "string"),), row_count=1, rows=(("x",),))
    told = next_step(text, look, "sqlite", last=False)
    harmless = next_step("s", Look((("s", "string"),), row_count=1, rows=(("x",),)), "sqlite",
                         last=False)  # fmt: skip
    assert len(told.splitlines()) == len(harmless.splitlines())
    again = step_again(text, text, "sqlite")
    assert len(again.splitlines()) == 2
    for mark in ("<|", "|>", "[INST]", "<<SYS", "```", "###"):
        assert mark not in told + again


SELECT = "SELECT a FROM t WHERE b = 'x: SELECT'"


@pytest.mark.parametrize(
    ("reply", "name"),
    [
        (f"paid: {SELECT}", "paid"),
        (f"paid: {SELECT};", "paid"),
        (f"paid:\n{SELECT}", "paid"),
        (f"```sql\npaid: {SELECT}\n```", "paid"),
        (f"paid:\n```sql\n{SELECT}\n```", "paid"),
        (f"**paid**: {SELECT}", "paid"),
        (f"Step 2: paid: {SELECT}", "paid"),
        (f"Here is the next step:\n\npaid: {SELECT}\n\nIt reads a table.", "paid"),
        (f"-- paid\n{SELECT}", "paid"),
        (f"```sql\n-- Step 1: paid\n{SELECT};\n```", "paid"),
        (f"paid AS ({SELECT})", "paid"),
        (f"WITH paid AS ({SELECT})", "paid"),
        (f"```sql\npaid AS (\n{SELECT}\n)\n```", "paid"),
        (f"paid = {SELECT}", "paid"),
        (f'{{"name": "paid", "sql": "{SELECT}"}}', "paid"),
        (f"Answer: {SELECT}", "Answer"),
        (SELECT, "step3"),
        (f"sql: {SELECT}", "step3"),
        (f"```sql\n{SELECT}\n```", "step3"),
        (f"Here it is: {SELECT}", "step3"),
    ],
)
def test_a_step_in_a_reply(reply: str, name: str) -> None:
    assert parse_step(reply, "sqlite", "step3") == (Step(name, SELECT),)


def test_a_with_of_its_own_stays_within_a_step() -> None:
    sql = "WITH x AS (SELECT 1 AS a) SELECT a FROM x"
    assert parse_step(f"paid: {sql}", "sqlite", "s") == (Step("paid", sql),)
    assert parse_step(sql, "sqlite", "s") == (Step("s", sql),)


def test_a_subquery_on_a_line_of_its_own_is_no_step() -> None:
    sql = "SELECT a FROM (\n  SELECT a FROM t\n) AS x"
    assert parse_step(f"paid: {sql}", "sqlite", "s") == (Step("paid", sql),)


def test_several_steps_at_once() -> None:
    reply = '{"steps": [{"name": "a", "sql": "SELECT 1"}, {"name": "answer", "sql": "SELECT 2"}]}'
    assert [s.name for s in parse_step(reply, "sqlite", "s")] == ["a", "answer"]


@pytest.mark.parametrize("name", ["a\\nb", "x" * 70, "<|im_end|>", "a;b", ""])
def test_a_name_that_is_none_is_replaced(name: str) -> None:
    reply = f'{{"steps": [{{"name": "{name}", "sql": "SELECT 1"}}]}}'
    (step,) = parse_step(reply, "sqlite", "s4")
    assert step.name in ("s4_1", "step1")


@pytest.mark.parametrize(
    ("reply", "done"),
    [
        ("DONE", True),
        ("done.", True),
        ("`DONE`", True),
        ("DONE: the step paid gives the answer", True),
        ("done: SELECT 1", False),
        ("Not done yet", False),
        ("", False),
    ],
)
def test_what_says_done(reply: str, done: bool) -> None:
    assert says_done(reply) is done


@pytest.mark.parametrize("reply", ["", "nothing", "paid:", "paid AS (", "```\n```"])
def test_no_step_is_an_error(reply: str) -> None:
    with pytest.raises(ExecutionError, match="no SQL"):
        parse_step(reply, "sqlite", "s")
