from __future__ import annotations

from collections.abc import Callable

import pytest

from dbrag.errors import ExecutionError
from dbrag.evaluation.baselines.naive import (
    choose_source,
    create_table,
    first_statement,
    naive_prompt,
)
from dbrag.evaluation.methods import Tools, naive
from dbrag.types import Candidate

from .conftest import ANIMAL, CUSTOMER, ORDER, Parrot, make_catalog

PROMPT = """\
[user]
CREATE TABLE customer (
  id INTEGER,
  name TEXT,
  PRIMARY KEY (id)
);
/*
2 example rows:
id\tname
1\tAda
2\tBob
*/

CREATE TABLE animal (
  id INTEGER,
  name TEXT
);

Using the tables above, answer this question with one SQLite query.
Question: Who?
SQLite SQL:"""


def test_the_prompt_is_this_one() -> None:
    tables = make_catalog().by_ref
    assert naive_prompt("Who?", [tables[CUSTOMER], tables[ANIMAL]]).text() == PROMPT


def test_odd_names_are_quoted_and_comments_cannot_be_closed() -> None:
    text = create_table(make_catalog().by_ref[ORDER])
    assert text.startswith('CREATE TABLE "order" (\n  id INTEGER,\n')
    assert '  "order total",\n' in text
    assert "  FOREIGN KEY (customer_id) REFERENCES customer (id)\n" in text
    assert "1 example row:\n" in text
    assert "1\tNULL\t9.5 * / xy" in text
    assert text.count("*/") == 1
    assert "y…" in text


@pytest.mark.parametrize(
    ("reply", "sql"),
    [
        ("SELECT 1", "SELECT 1"),
        (" select a\nfrom t;\nSELECT 2;", "select a\nfrom t"),
        ("Here:\n```sql\nSELECT ';' FROM t;\n```\nDone; SELECT 3", "SELECT ';' FROM t"),
        ("```\nSELECT 1", "SELECT 1"),
        ("SELECT a -- one; two\nFROM t; x", "SELECT a -- one; two\nFROM t"),
        ("WITH x AS (SELECT 1) SELECT * FROM x", "WITH x AS (SELECT 1) SELECT * FROM x"),
        ("SELECT 'open FROM t", "SELECT 'open FROM t"),
    ],
)
def test_first_statement(reply: str, sql: str) -> None:
    assert first_statement(reply) == sql


def test_no_statement_is_an_error() -> None:
    with pytest.raises(ExecutionError, match="no SQL but 'I cannot"):
        first_statement("I  cannot.")


def test_the_source_that_holds_all_tables_is_chosen() -> None:
    catalog = make_catalog()
    ranked = [Candidate(ANIMAL, 2.0), Candidate(CUSTOMER, 1.0)]
    assert choose_source("SELECT * FROM Customer", ranked, catalog) == ("shop", (CUSTOMER,))
    assert choose_source("SELECT * FROM animal", ranked, catalog) == ("zoo", (ANIMAL,))
    both = 'SELECT * FROM customer JOIN "order" USING (id)'  # a table that was not retrieved
    assert choose_source(both, ranked, catalog) == ("shop", (CUSTOMER, ORDER))
    cte = "WITH x AS (SELECT * FROM customer) SELECT * FROM x"
    assert choose_source(cte, ranked, catalog) == ("shop", (CUSTOMER,))
    assert choose_source("SELECT * FROM nope", ranked, catalog) == ("zoo", ())
    assert choose_source("SELECT (", ranked, catalog) == ("zoo", ())


def test_an_answer(make_tools: Callable[[str], tuple[Tools, Parrot]]) -> None:
    tools, model = make_tools("```sql\nSELECT COUNT(*) FROM customer;\n```")
    prediction = naive(tools)("How many customers?")
    assert prediction.status == "answered"
    assert prediction.rows == ((2,),)
    assert prediction.tables == (CUSTOMER,)
    assert prediction.sql == "SELECT COUNT(*) FROM customer"
    assert prediction.tokens == {"prompt": 100, "cached": 40, "completion": 9, "cache_hits": 0}
    assert prediction.error is None
    assert "How many customers?" in model.prompts[0].request


@pytest.mark.parametrize("reply", ["SELECT nope FROM customer", "SELECT * FROM nope", "Sorry."])
def test_a_failure_is_told_and_not_repaired(
    reply: str, make_tools: Callable[[str], tuple[Tools, Parrot]]
) -> None:
    tools, model = make_tools(reply)
    prediction = naive(tools)("How many?")
    assert prediction.status == "failed"
    assert prediction.error is not None
    assert prediction.error["code"] == "execution"
    assert prediction.tokens["prompt"] == 100
    assert len(model.prompts) == 1
