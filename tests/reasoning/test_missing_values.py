"""Compared texts that do not occur are told, with what is near and where they do occur."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dbrag
from dbrag.errors import LimitReached
from dbrag.execution import guard
from dbrag.execution.run import run_admitted
from dbrag.models.testing import HashEmbedder
from dbrag.reasoning import missing_values as module
from dbrag.reasoning.missing_values import MOST_NEAR, is_empty, missing_values, nearest
from dbrag.reasoning.names import literal
from dbrag.settings import Settings
from dbrag.types import Execution, Program, ResultColumn
from tests.reasoning.conftest import written

Told = Callable[..., str | None]

COUNTRIES = ["France", "French Guiana", "Germany", "Norway", "Spain", "Sweden", "Italy", "Iran"]
COUNTRIES += ["Ghana", "Chile", "Peru", "Nepal", "Oman", "Togo", "O'Higgins"]
SCRIPT = f"""
CREATE TABLE country (name VARCHAR, code VARCHAR, founded DATE, people INT);
CREATE TABLE city (name VARCHAR, country VARCHAR, mayor VARCHAR, note VARCHAR);
CREATE TABLE person (name VARCHAR, sex VARCHAR, secret VARCHAR);
INSERT INTO country (name) VALUES ({"), (".join(map(literal, COUNTRIES))});
INSERT INTO city VALUES
  ('Frence', 'France', 'Ann', 'password=hunter2'), ('Paris', 'France', 'Bob', NULL);
INSERT INTO person VALUES ('Ann', 'F', 'Frence'), ('Bob', 'M', 'x');
"""


@pytest.fixture(scope="module", params=["sqlite", "duckdb"])
def told(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Told]:
    folder = tmp_path_factory.mktemp("missing")
    path = written(folder, request.param, SCRIPT)
    options: dict[str, Any] = {"redact": ("person.secret",), "embedder": HashEmbedder()}
    with dbrag.connect(path, index=folder / "index", **options) as db:
        db.index()
        (source,) = db.sources
        index = db.opened_index()
        tables = index.catalog.of_source(source.name)

        def ask(sql: str, settings: Settings | None = None, *, places: bool = True) -> str | None:
            settings = settings or Settings()
            admitted = guard.admit(sql, source.dialect, tables)
            program = Program((), admitted.sql, source.dialect, admitted.tables)
            done = run_admitted(source, admitted, Settings())
            values = index.values if places else None
            return missing_values(program, done, tables, source, settings, values)

        yield ask


def test_the_nearest_and_where_it_occurs(told: Told) -> None:
    assert told("SELECT * FROM country WHERE name = 'Frence'") == (
        "country.name = 'Frence': no such value; nearest: 'France', 'French Guiana'; "
        "'Frence' occurs in city.name"
    )


def test_without_an_index_the_nearest_alone(told: Told) -> None:
    text = told("SELECT COUNT(*) FROM country WHERE name = 'Frence'", places=False)
    assert text == "country.name = 'Frence': no such value; nearest: 'France', 'French Guiana'"


def test_a_few_values_are_told_whole(told: Told) -> None:
    text = told("SELECT name FROM person WHERE sex = 'female'")
    assert text == "person.sex = 'female': no such value; it holds 'F', 'M'"
    assert told("SELECT name FROM person WHERE sex = 'unknown'") == (
        "person.sex = 'unknown': no such value; it holds 'F', 'M'"
    )


def test_of_two_columns_that_were_mixed_up_each_is_told(told: Told) -> None:
    assert told("SELECT * FROM person WHERE name = 'F' AND sex = 'Ann'") == (
        "person.name = 'F': no such value; 'F' occurs in person.sex; "
        "person.sex = 'Ann': no such value; 'Ann' occurs in city.mayor; 'Ann' occurs in person.name"
    )


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT SUM(people) FROM country WHERE name IN ('Frence', 'Norwey')",
        "SELECT * FROM country WHERE LOWER(name) = 'frence'",
        "SELECT * FROM country WHERE name LIKE '%Frence%'",
        "SELECT c.name FROM country c JOIN city t ON t.country = c.name WHERE c.name = 'Frence'",
        "WITH x AS (SELECT * FROM country WHERE name = 'Frence') SELECT * FROM x",
        "SELECT * FROM city WHERE country IN (SELECT name FROM country WHERE 'Frence' = name)",
    ],
)
def test_every_form_of_comparison(told: Told, sql: str) -> None:
    text = told(sql)
    assert text is not None
    assert text.startswith(
        ("country.name = 'Fre", "country.name = 'fre", "country.name LIKE '%Fre")
    )
    assert "'France'" in text


@pytest.mark.parametrize(
    "sql",
    [
        # there is a result
        "SELECT * FROM country WHERE name = 'Frence' OR name = 'France'",
        "SELECT COUNT(*), MAX(name) FROM country WHERE name = 'Frence'",
        # every value occurs, what is empty is their combination
        "SELECT * FROM city WHERE name = 'Paris' AND mayor = 'Ann'",
        "SELECT * FROM city WHERE name IN ('Paris', 'Nowhere') AND mayor = 'Ann'",
        # rows need not satisfy it
        "SELECT * FROM country WHERE name <> 'Frence' AND people > 5",
        "SELECT * FROM country WHERE name NOT IN ('Frence') AND people > 5",
        "SELECT * FROM country WHERE NOT (name = 'Frence') AND people > 5",
        "SELECT SUM(CASE WHEN name = 'Frence' THEN 1 ELSE 0 END) FROM country",
        # no text
        "SELECT * FROM country WHERE people = 7",
        "SELECT * FROM country WHERE founded = '1999-01-01'",
        "SELECT * FROM country WHERE code = '123'",
        "SELECT c.name FROM country c JOIN city t ON c.code = t.name",
    ],
)
def test_nothing_to_tell(told: Told, sql: str) -> None:
    assert told(sql) is None


def test_secrets_are_masked_and_quotes_doubled(told: Told) -> None:
    text = told("SELECT * FROM city WHERE note = 'password=hunter3'")
    assert text is not None
    assert "hunter" not in text
    assert "***" in text
    quoted = told("SELECT * FROM country WHERE name = 'O''Higins'")
    assert quoted is not None
    assert "country.name = 'O''Higins': no such value; nearest: 'O''Higgins'" in quoted


def test_what_nobody_may_read_is_not_told(told: Told) -> None:
    text = told("SELECT * FROM country WHERE name = 'Frence'")
    assert text is not None
    assert "secret" not in text
    assert "person" not in text


def test_at_most_three_and_short(told: Told) -> None:
    wrong = " AND ".join(
        f"{column} = 'Frence'" for column in ("t.country", "t.mayor", "c.name", "c.code")
    )
    text = told(f"SELECT * FROM city t JOIN country c ON c.name = t.country WHERE {wrong}")
    assert text is not None
    assert text.count("no such value") == 3
    assert len(text) < 600


def test_no_time_nothing_told(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_slow(*_: object, **__: object) -> None:
        raise LimitReached("took too long")

    sql = "SELECT * FROM country WHERE name = 'Frence'"
    assert told(sql, Settings(timeout_s=1e-9)) is None
    monkeypatch.setattr(module, "run", too_slow)
    assert told(sql) is None


@pytest.mark.parametrize(
    ("rows", "empty"),
    [
        ((), True),
        (((None,),), True),
        (((0,),), True),
        (((0.0,),), True),
        (((1,),), False),
        ((("",),), False),
        (((0, 0),), False),
        (((0,), (0,)), False),
    ],
)
def test_what_counts_as_empty(rows: tuple[tuple[Any, ...], ...], empty: bool) -> None:
    columns = tuple(ResultColumn("c", "int64") for _ in (rows[0] if rows else ()))
    assert is_empty(Execution(columns, rows, 0.0)) is empty


def test_near_in_this_order() -> None:
    stored = ["New York", "york", "Yorkshire", "Cork", "Yorck", "Lisbon", "x" * 10_000]
    assert nearest(["York"], stored) == ["york", "Yorck", "Cork", "New York"]
    assert nearest(["Zürich"], ["Zurich", "Munich"]) == ["Zurich"]
    assert nearest(["qqq"], stored) == []
    assert nearest([""], stored) == []
    assert nearest(["York"], stored, until=0.0) == []


@given(st.lists(st.text(max_size=20), max_size=30), st.text(min_size=1, max_size=20))
def test_an_equal_value_is_always_near(stored: list[str], text: str) -> None:
    found = nearest([text], [*stored, text])
    assert len(found) <= MOST_NEAR
    assert set(found) <= {*stored, text}
    if text.strip() and len({*stored}) < MOST_NEAR:
        assert text in found or not module.same_value(text)
