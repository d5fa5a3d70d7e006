"""The corpora: honest statements run as they were written, hostile ones are refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from dbrag.errors import Refused, UnknownName
from dbrag.execution.guard import admit
from tests.execution.corpus import ENGINES, beds, honest, hostile
from tests.servers import MYSQL, POSTGRES, fresh_database

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Engine:
    """An engine with the tables of the corpus in it."""

    def __init__(self, name: str, run: Callable[[str], Any], database: str | None = None) -> None:
        self.name = name
        self.run = run
        self.tables = beds.tables(name, database)


@pytest.fixture(scope="module")
def sqlite() -> Engine:
    return Engine("sqlite", beds.sqlite_run())


@pytest.fixture(scope="module")
def duckdb() -> Engine:
    return Engine("duckdb", beds.duckdb_run())


@pytest.fixture(scope="module")
def postgres() -> Iterator[Engine]:
    with fresh_database(POSTGRES, "guard") as database:
        database.run(*beds.script("postgres"))
        with database.connect() as connection:
            yield Engine("postgres", beds.server_run(connection, "BEGIN READ ONLY"))


@pytest.fixture(scope="module")
def mysql() -> Iterator[Engine]:
    with fresh_database(MYSQL, "guard") as database:
        database.run(*beds.script("mysql"))
        with database.connect() as connection:
            run = beds.server_run(connection, "START TRANSACTION READ ONLY")
            yield Engine("mysql", run, database.name)


@pytest.fixture
def engine(request: pytest.FixtureRequest, dialect: str) -> Engine:
    found: Engine = request.getfixturevalue(dialect)
    return found


HONEST = honest()
TABLES = {engine: beds.tables(engine, "shop") for engine in ENGINES}


@pytest.mark.parametrize(("dialect", "sql"), HONEST, ids=[f"{d}-{s[:60]}" for d, s in HONEST])
def test_honest_statements_run_as_they_were_written(engine: Engine, dialect: str, sql: str) -> None:
    admitted = admit(sql, dialect, engine.tables)
    _, rows = engine.run(admitted.sql)
    try:
        expected = engine.run(sql)[1]
    except Exception:
        expected = rows  # put right by the guard: the engine would not take it as it is
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))
    again = admit(admitted.sql, dialect, engine.tables)
    assert (again.sql, again.tables) == (admitted.sql, admitted.tables)


def test_the_honest_corpus_is_large() -> None:
    assert len(set(HONEST)) >= 320
    assert {dialect for dialect, _ in HONEST} == set(ENGINES)


HOSTILE = hostile()


def refusal(sql: str, dialect: str) -> Refused | UnknownName | None:
    try:
        admit(sql, dialect, TABLES[dialect])
    except (Refused, UnknownName) as error:
        return error
    return None


@pytest.mark.parametrize("dialect", ENGINES)
def test_hostile_statements_are_refused(dialect: str) -> None:
    admitted = []
    for own, sql in HOSTILE:
        if own != dialect:
            continue
        error = refusal(sql, dialect)
        if error is None:
            admitted.append(sql)
        else:
            assert error.hint, sql
            assert "\n" not in error.message, sql
    assert admitted == []


def test_the_hostile_corpus_is_large() -> None:
    assert len(set(HOSTILE)) >= 1000
    assert {dialect for dialect, _ in HOSTILE} == set(ENGINES)
