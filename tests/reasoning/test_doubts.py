"""One sentence for a repair, and none where there is no doubt."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

import dbrag
from dbrag.execution import guard
from dbrag.execution.run import run_admitted
from dbrag.models.testing import HashEmbedder
from dbrag.reasoning.doubts import doubt_of
from dbrag.reasoning.prompts import MAX_PROBLEM_CHARS, repair_request
from dbrag.settings import Settings
from dbrag.types import Program


@pytest.fixture
def doubt(tmp_path: Path) -> Iterator[Callable[[str], str | None]]:
    long = "c" * 100
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db:
        db.executescript(
            "CREATE TABLE stores (id INTEGER PRIMARY KEY, city TEXT, budget INT);"
            "CREATE TABLE orders (store_id INT REFERENCES stores, kind TEXT, total INT);"
            f"CREATE TABLE {long} ({long}1 TEXT, {long}2 TEXT, {long}3 TEXT);"
            "INSERT INTO stores VALUES (1, 'Lisbon', 5), (2, 'Rome', 7);"
            "INSERT INTO orders VALUES (1, 'a', 1), (1, 'b', 2), (2, 'a', 3);"
        )
        values = ", ".join(["('wordy " + "y" * 80 + "', 'x', 'x')"] * 3)
        db.execute(f"INSERT INTO {long} VALUES {values}")
        db.commit()
    with dbrag.connect(tmp_path / "shop.db", index=tmp_path / "i", embedder=HashEmbedder()) as db:
        db.index()
        (source,) = db.sources
        index = db.opened_index()
        tables = index.catalog.of_source(source.name)

        def ask(sql: str) -> str | None:
            admitted = guard.admit(sql, "sqlite", tables)
            program = Program((), admitted.sql, "sqlite", admitted.tables)
            done = run_admitted(source, admitted, Settings())
            return doubt_of(program, done, tables, source, Settings(), index.values)

        yield ask


JOIN = "FROM stores s JOIN orders o ON o.store_id = s.id"


def test_a_value_that_does_not_occur(doubt: Callable[[str], str | None]) -> None:
    assert doubt("SELECT budget FROM stores WHERE city = 'Lisbom'") == (
        "That statement found nothing. stores.city = 'Lisbom': no such value; nearest: 'Lisbon'. "
        "Compare with a value that occurs; if it is right, repeat the statement."
    )


def test_an_aggregate_over_repeated_rows(doubt: Callable[[str], str | None]) -> None:
    assert doubt(f"SELECT SUM(s.budget) {JOIN}") == (
        "Joining stores with orders repeats rows of stores (one of them 2 times in one group), so "
        "SUM(stores.budget) takes them more than once. If that is not meant, aggregate in a "
        "subquery before joining orders; else repeat the statement."
    )


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT SUM(o.total) {JOIN}",
        "SELECT budget FROM stores WHERE city = 'Lisbon' AND budget > 100",
        "SELECT city FROM stores",
    ],
)
def test_no_doubt(doubt: Callable[[str], str | None], sql: str) -> None:
    assert doubt(sql) is None


def test_it_fits_a_repair_prompt(doubt: Callable[[str], str | None]) -> None:
    long = "c" * 100
    wrong = " AND ".join(f"{long}{i} = 'wordless {'z' * 300}'" for i in (1, 2, 3))
    text = doubt(f"SELECT * FROM {long} WHERE {wrong}")
    assert text is not None
    assert len(text) <= MAX_PROBLEM_CHARS
    assert text in repair_request(text)
