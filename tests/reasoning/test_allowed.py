"""``--tables`` and ``--exclude`` hold for every stage of an answer."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import dbrag
from dbrag.catalog.joins import JoinEdge, JoinGraph
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.reasoning.allowed import EVERYTHING, Allowed
from dbrag.types import TableRef

A, B, C, D = (TableRef("s", None, name) for name in "abcd")
GRAPH = JoinGraph([JoinEdge(x, ("k",), y, ("k",)) for x, y in ((A, B), (B, C), (C, D), (A, D))])


def test_without_a_limit_nothing_is_copied() -> None:
    tables = ()
    assert EVERYTHING.tables(tables) is tables
    assert EVERYTHING.joins(GRAPH) is GRAPH
    assert A in EVERYTHING


@pytest.mark.parametrize(
    ("allowed", "through"),
    [
        (EVERYTHING, [A, B, C]),
        (Allowed(excluded=frozenset([B])), [A, C, D]),
        (Allowed(excluded=frozenset([B, D])), []),
        (Allowed((A, C)), []),
        (Allowed((A, C, D), frozenset([D])), []),
    ],
)
def test_joins_lead_through_what_may_be_used(allowed: Allowed, through: list[TableRef]) -> None:
    graph = allowed.joins(GRAPH)
    path = graph.path([A, C])
    assert sorted({ref for edge in path for ref in (edge.left, edge.right)}, key=str) == through
    for edge in GRAPH.edges:
        both = edge.left in allowed and edge.right in allowed
        assert (edge in graph.edges) == both
        assert (edge in graph.between(edge.right, edge.left)) == both
        assert (edge.right in graph.neighbours(edge.left)) == both


@pytest.fixture
def staff(tmp_path: Path) -> Path:
    path = tmp_path / "staff.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "CREATE TABLE pay (id INTEGER PRIMARY KEY, amount INTEGER, person_id REFERENCES "
            "person, month_id REFERENCES month);"
            "CREATE TABLE person (id INTEGER PRIMARY KEY, name TEXT);"
            "CREATE TABLE month (id INTEGER PRIMARY KEY, month TEXT);"
            "INSERT INTO person VALUES (1, 'Ann'); INSERT INTO month VALUES (1, 'May');"
            "INSERT INTO pay VALUES (1, 700, 1, 1);"
        )
    return path


@pytest.mark.parametrize("limit", [{"exclude": ["pay"]}, {"tables": ["person", "month"]}])
def test_a_program_over_another_table_does_not_run(staff: Path, limit: dict[str, Any]) -> None:
    model = FunctionModel(lambda _: "SELECT amount FROM pay")
    with dbrag.connect(staff, chat_model=model, embedder=HashEmbedder()) as db:
        answer = db.ask("Which person in which month?", votes=1, **limit)
        assert db.ask("Which person in which month?", votes=1).status == "answered"
    assert answer.status == "failed"
    assert answer.execution is None
    assert answer.error is not None
    assert "pay" in answer.error["message"]
    assert "amount" not in model.prompts[0].text()  # nor does a join lead through it


def test_a_learned_program_needs_no_table_among_the_candidates(staff: Path, tmp_path: Path) -> None:
    learned = tmp_path / "learned.sql"
    learned.write_text("-- question: Which pay is it?\nSELECT name FROM person;\n")
    model = FunctionModel(lambda _: "SELECT amount FROM pay")
    given: dict[str, Any] = {"chat_model": model, "embedder": HashEmbedder()}
    with dbrag.connect(staff, learned=str(learned), k=1, **given) as db:
        assert [c.table.name for c in db.search("Which pay is it?").candidates] == ["pay"]
        assert db.ask("Which pay is it?").sql == "SELECT name FROM person"
        other = db.ask("Which pay is it?", exclude=["person"], votes=1)
    assert other.sql == "SELECT amount FROM pay"
    assert "learned_broken" in [warning.code for warning in other.warnings]
