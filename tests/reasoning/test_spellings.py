"""Spellings that the index knows and the engine counts, beside a compared text."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest

from dbrag.database import Database, connect
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.reasoning.noise import noise_warnings
from dbrag.reasoning.spellings import StoredSpellings
from dbrag.settings import Settings
from dbrag.types import Column, Program, Table

CITIES = {
    "Paris": 30, "paris ": 2, "PARIS": 1, "Pariss": 3, "Prais": 1, "Pári": 1, "Parish": 20,
    "Zürich": 10, "Zurich": 4, "Rome": 9, "Romes": 1, "New York": 5, "new york": 1,
    **{f"Town {i}": 40 for i in range(30)},
}  # fmt: skip


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    folder = tmp_path_factory.mktemp("spellings")
    with closing(sqlite3.connect(folder / "shop.sqlite")) as connection:
        connection.execute("CREATE TABLE stores (city TEXT, n INTEGER)")
        rows = [(city, i) for city, n in CITIES.items() for i in range(n)]
        connection.executemany("INSERT INTO stores VALUES (?, ?)", rows)
        connection.execute("CREATE TABLE towns (name TEXT COLLATE NOCASE)")
        names = [("PARIS",), ("Paris",), (" Paris",)]
        connection.executemany("INSERT INTO towns VALUES (?)", names)
        connection.commit()
    with connect(
        folder / "shop.sqlite",
        settings=Settings(index=str(folder / "index"), cache=str(folder / "cache"), votes=1),
        chat_model=FunctionModel(lambda _: "SELECT COUNT(*) FROM stores WHERE city = 'Paris'"),
        embedder=HashEmbedder(),
    ) as database:
        database.index()
        yield database


def looker(db: Database, name: str = "stores") -> tuple[StoredSpellings, Table, Column]:
    index = db.opened_index()
    table = next(t for t in index.catalog.tables if t.ref.name == name)
    return StoredSpellings(index.values, db.sources[0], Settings()), table, table.columns[0]


def test_spellings_and_misspellings_with_their_rows(db: Database) -> None:
    look, table, column = looker(db)
    found = look(table, column, ["Paris"])
    assert found.same == {"PARIS": 1, "paris ": 2}
    assert found.near == {"Pariss": ("Paris", 3), "Prais": ("Paris", 1), "Pári": ("Paris", 1)}
    assert look(table, column, ["Zurich"]).same == {"Zürich": 10}
    assert look(table, column, ["New York"]).same == {"new york": 1}
    assert look(table, column, ["Rome"]).near == {}  # too short a word to say
    for text in ("Town 3", "Oslo", "", "12", "x" * 300, "a'b%_"):
        found = look(table, column, [text])
        assert (found.same, found.near) == ({}, {}), text
    assert look(table, column, ["Paris", "PARIS", "paris "]).same == {}


def test_the_engine_says_what_is_equal(db: Database) -> None:
    look, table, column = looker(db, "towns")
    assert look(table, column, ["Paris"]).same == {" Paris": 1}
    assert look(table, column, ["paris"]).same == {" Paris": 1}


def test_what_cannot_be_counted_is_told_without_numbers(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, table, column = looker(db)
    monkeypatch.setattr(look, "_counts", lambda *_: None)
    found = look(table, column, ["Paris"])
    assert found.same == {"PARIS": None, "paris ": None}
    assert found.near == {}
    program = Program((), "SELECT 1 FROM stores WHERE city = 'Paris'", "sqlite", (table.ref,))
    (warning,) = noise_warnings(program, db.opened_index().catalog, look)
    assert warning.message == "stores.city also holds 'PARIS' and 'paris ', not equal to 'Paris'"


def test_an_answer_says_what_it_leaves_out(db: Database) -> None:
    answer = db.ask("How many stores are in Paris?")
    (warning,) = (one for one in answer.warnings if one.code == "mixed_spellings")
    assert warning.message == (
        "stores.city also holds 'Pariss', 'Prais' and 'Pári' (5 rows), likely misspelt for 'Paris'"
    )
    assert answer.execution is not None
    assert answer.execution.rows == ((33,),)  # other letter case and blanks are in
    dry = db.ask("How many stores are in Paris?", dry_run=True)
    assert dry.execution is None
