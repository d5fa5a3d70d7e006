"""From a model's text to steps and back to one statement."""

from __future__ import annotations

import sqlite3
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.errors import ExecutionError, Refused
from dbrag.execution.guard import admit
from dbrag.reasoning.chain import compose
from dbrag.reasoning.program import has_ended, parse_reply, parse_step, split
from dbrag.types import Column, Step, Table, TableRef

PLAIN = "SELECT name FROM singer WHERE note = 'a;b -- c'"


@pytest.mark.parametrize(
    "reply",
    [
        PLAIN,
        PLAIN + ";",
        f"```sql\n{PLAIN};\n```",
        f"```\n{PLAIN}\n```\nThis selects the names.",
        f"```SQL {PLAIN}```",
        f"sql\n{PLAIN}",
        f"Here is the statement with the names:\n\n{PLAIN};\n\nIt selects with care.",
        f"{PLAIN}\n\nExplanation: SELECT reads rows.",
        f"{PLAIN};\nSELECT 2;",
    ],
)
def test_one_statement_is_found_whole(reply: str) -> None:
    (step,) = parse_reply(reply, "sqlite")
    assert step.sql == PLAIN


def test_every_cte_survives_and_becomes_a_step() -> None:
    reply = (
        "```sql\nWITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a)\n"
        "SELECT y FROM b ORDER BY y\n```"
    )
    steps = parse_reply(reply, "sqlite")
    assert [step.name for step in steps] == ["a", "b", "answer"]
    rows = sqlite3.connect(":memory:").execute(compose(steps, "sqlite")).fetchall()
    assert rows == [(2,)]


def test_json_steps() -> None:
    reply = (
        'Sure: {"steps": [{"name": "s1", "sql": "SELECT 1 AS a;"}, {"sql": "SELECT a FROM s1"}]}'
    )
    steps = parse_reply(reply, "sqlite")
    assert steps == (Step("s1", "SELECT 1 AS a"), Step("step2", "SELECT a FROM s1"))
    assert sqlite3.connect(":memory:").execute(compose(steps, "sqlite")).fetchall() == [(1,)]


def test_json_nested_too_deeply_is_no_program() -> None:
    with pytest.raises(ExecutionError, match="wrote no SQL"):
        parse_reply('{"sql": ' + "[" * 100_000 + "}", "sqlite")


def test_a_statement_nested_too_deeply_is_left_to_the_guard() -> None:
    statement = "SELECT " + "(" * 5_000 + "1" + ")" * 5_000
    assert parse_reply(statement, "sqlite") == (Step("answer", statement),)
    with pytest.raises(ExecutionError, match=r"is not valid SQL: .*recursion"):
        compose((Step("a", statement), Step("answer", "SELECT 1")), "sqlite")


def test_a_long_reply_is_read_in_a_moment() -> None:
    began = time.perf_counter()
    (step,) = parse_reply("SELECT 1\n\nFROM a" + "\n\nso that, it is, (said" * 5_000, "sqlite")
    assert step.sql.split() == ["SELECT", "1", "FROM", "a"]
    assert time.perf_counter() - began < 10  # all ends tried: minutes


def test_a_last_step_keeps_its_own_ctes() -> None:
    steps = (
        Step("s1", "SELECT 1 AS a"),
        Step("answer", "WITH t AS (SELECT a FROM s1) SELECT * FROM t"),
    )
    assert sqlite3.connect(":memory:").execute(compose(steps, "sqlite")).fetchall() == [(1,)]


def test_recursive_and_renaming_ctes_stay_whole() -> None:
    for sql in (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 3) SELECT i FROM n",
        "WITH n(i) AS (SELECT 7) SELECT i FROM n",
    ):
        steps = split(sql, "sqlite")
        assert len(steps) == 1
        assert sqlite3.connect(":memory:").execute(compose(steps, "sqlite")).fetchall()


@pytest.mark.parametrize(
    "reply", ["", "I cannot answer that.", "```\nno\n```", "{}", '{"steps": []}']
)
def test_a_reply_without_sql_is_an_error_that_shows_it(reply: str) -> None:
    with pytest.raises(ExecutionError, match="no SQL"):
        parse_reply(reply, "sqlite")


@given(st.text(max_size=300))
def test_any_text_gives_steps_or_one_clear_error(text: str) -> None:
    try:
        steps = parse_reply(text, "sqlite")
    except ExecutionError:
        return
    assert steps
    assert all(step.sql for step in steps)


@given(
    st.text(
        alphabet=st.characters(exclude_characters="\x00", exclude_categories=["Cs"]), max_size=60
    )
)
def test_a_text_literal_comes_through_unchanged(value: str) -> None:
    sql = "SELECT '" + value.replace("'", "''") + "' AS v"
    steps = parse_reply(f"WITH a AS ({sql}) SELECT v FROM a", "sqlite")
    row = sqlite3.connect(":memory:").execute(compose(steps, "sqlite")).fetchone()
    assert row == (value,)


@pytest.mark.parametrize(
    "reply",
    [
        "SELECT 1; DROP TABLE t",
        "SELECT 1;\nDELETE FROM t;",
        "SELECT 1; COMMIT; DROP TABLE t",
        "SELECT 1; SELECT 2; DROP TABLE t",
        "```sql\nSELECT 1;\nUPDATE t SET a = 1\n```",
        "CREATE TABLE x AS SELECT 1",
        "CREATE TEMP TABLE x AS\nSELECT 1",
        "INSERT INTO t\nSELECT * FROM t",
        "COPY (SELECT 1) TO 'x'",
        "EXPLAIN ANALYZE\nSELECT 1",
        "SET x = 1;\nSELECT 1",
    ],
)
def test_a_query_is_not_cut_out_of_something_that_writes(reply: str) -> None:
    (step,) = parse_reply(reply, "sqlite")
    first = reply.removeprefix("```sql\n").split()[0]
    assert step.sql.startswith(first)
    with pytest.raises((ExecutionError, Refused)):
        admit(step.sql, "sqlite", [])


@pytest.mark.parametrize(
    "reply",
    [
        "SELECT a FROM t; This updates nothing.",
        "SELECT a FROM t;\n\nUpdate the filter if the city differs.",
        "Create a list of names:\nSELECT a FROM t",
        "To drop duplicates:\nSELECT a FROM t;\nSELECT a FROM t;",
        "Set the filter first.\nSELECT a FROM t",
        "Create a new table of names:\nSELECT a FROM t",
        "Grant applications:\nSELECT a FROM t; Vacuum cleaners are left out.",
    ],
)
def test_words_around_a_query_do_no_harm(reply: str) -> None:
    (step,) = parse_reply(reply, "sqlite")
    assert step.sql == "SELECT a FROM t"


@pytest.mark.parametrize(
    ("reply", "ended"),
    [
        ("```sql\nSELECT a FROM t\n```\nThis selects a from", True),
        ("SELECT a FROM t; This sel", True),
        ('{"sql": "SELECT a FROM t"} and so', True),
        ("SELECT a FROM t WHERE b = 'x;", False),
        ("SELECT a FROM t WHERE b IN (1, 2,", False),
        ("```sql\nSELECT a FROM t WHERE", False),
        ("Let me think", False),
        ("", False),
    ],
)
def test_a_cut_reply_may_hold_a_whole_statement(reply: str, ended: bool) -> None:
    assert has_ended(reply, "sqlite") is ended


@given(st.text(max_size=300))
def test_any_text_gives_a_step_or_one_clear_error(text: str) -> None:
    try:
        steps = parse_step(text, "sqlite", "step1")
    except ExecutionError:
        return
    assert all(step.name and step.sql for step in steps)


@pytest.mark.parametrize("mark", ["*", "`", "-", "#", "step ", "step 1: ", "a: ", "(", "with "])
def test_odd_replies_are_read_in_a_moment(mark: str) -> None:
    began = time.perf_counter()
    for text in (mark * 3_000, mark * 3_000 + "SELECT 1", f"a: {mark * 3_000}"):
        try:
            parse_step(text, "sqlite", "s")
            has_ended(text, "sqlite")
        except ExecutionError:
            continue
    assert time.perf_counter() - began < 10


def test_a_with_that_is_called_like_a_table_reads_the_table() -> None:
    """SQLite calls it a circular reference; what is meant is clear."""
    reply = "WITH t AS (SELECT a FROM t WHERE a > 1 ORDER BY a) SELECT COUNT(*), SUM(t.a) FROM t"
    table = Table(TableRef("db", None, "t"), (Column("a", "INTEGER"),))
    sql = compose(parse_reply(reply, "sqlite"), "sqlite", [table])
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (a INTEGER)")
    connection.executemany("INSERT INTO t VALUES (?)", [(1,), (2,), (3,)])
    with pytest.raises(sqlite3.OperationalError, match="circular"):
        connection.execute(reply)
    assert connection.execute(sql).fetchall() == [(2, 5)]
    assert [step.name for step in split(sql, "sqlite")] == ["step_t", "answer"]
