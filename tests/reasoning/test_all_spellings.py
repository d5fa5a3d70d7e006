"""Texts are compared with all spellings that a column holds of them, and the answer says so."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dbrag.database import Database, connect
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.reasoning.all_spellings import MOST, with_all_spellings
from dbrag.reasoning.noise import Spelled
from dbrag.settings import Settings
from dbrag.types import Answer, Column, ColumnProfile, Table, TableRef

CITIES = {"Paris": 30, "PARIS": 2, " Paris": 1, "Pariss": 3, "Rome": 9, "rome": 4, "Oslo": 7}
REF = TableRef("shop", None, "stores")


def table(*values: str) -> Table:
    profile = ColumnProfile(
        "city", 0, len(values), None, None, tuple((v, 9) for v in values), values
    )
    return Table(REF, (Column("city", "TEXT"), Column("n", "INTEGER")), profile=(profile,))


def holding(same: Mapping[str, int | None]) -> Callable[..., Spelled]:
    return lambda *_: Spelled(same, {})


@pytest.mark.parametrize(
    ("where", "wider"),
    [
        ("city = 'Paris'", "city IN ('Paris', 'PARIS', ' Paris')"),
        ("'Paris' = city", "city IN ('Paris', 'PARIS', ' Paris')"),
        ("city <> 'Paris'", "NOT city IN ('Paris', 'PARIS', ' Paris')"),
        ("city IN ('Rome', 'Paris')", "city IN ('Rome', 'Paris', 'PARIS', ' Paris')"),
        ("NOT city IN ('Paris')", "NOT city IN ('Paris', 'PARIS', ' Paris')"),
        ("n = 1 OR (city = 'Paris')", "n = 1 OR (city IN ('Paris', 'PARIS', ' Paris'))"),
        ("city = 'Oslo'", None),
        ("city LIKE 'Paris%'", None),
        ("LOWER(city) = 'Paris'", None),
        ("CASE WHEN city = 'Paris' THEN 1 ELSE 0 END = 1", None),
    ],
)
def test_comparisons(where: str, wider: str | None) -> None:
    sql = f"SELECT COUNT(*) FROM stores WHERE {where}"
    look = holding({"PARIS": 2, " Paris": 1})
    found, matched = with_all_spellings(sql, [table("Paris", "Rome")], "sqlite", look)
    if wider is None:
        assert (found, matched) == (sql, ())
        return
    assert found == f"SELECT COUNT(*) FROM stores WHERE {wider}"
    (one,) = matched
    assert one.message == (
        "stores.city also holds 'PARIS' and ' Paris' (3 rows), taken for 'Paris'"
    )


@pytest.mark.parametrize(
    "same",
    [
        {},
        {"PARIS": None},  # not counted: perhaps the engine takes it for the same
        {"PARIS": 0},
        {f"PARIS{' ' * n}": 1 for n in range(MOST + 1)},
    ],
)
def test_what_stays_as_it_was_written(same: Mapping[str, int | None]) -> None:
    sql = "SELECT n FROM stores WHERE city = 'Paris'"
    assert with_all_spellings(sql, [table("Paris")], "sqlite", holding(same)) == (sql, ())


def test_engines_that_overlook_letter_case() -> None:
    sql = "SELECT n FROM stores WHERE city = 'Paris'"
    look = holding({"PARIS": 2, "Páris": 1})
    found, _ = with_all_spellings(sql, [table("Paris")], "mysql", look)
    assert found == "SELECT n FROM stores WHERE city IN ('Paris', 'Páris')"


def test_dates_and_numbers_are_left_to_their_own_warnings() -> None:
    sql = "SELECT n FROM stores WHERE city = '3 May 2024'"
    dated = table("3 May 2024", "2024-05-03", "4 May 2024", "2024-05-04")
    assert with_all_spellings(sql, [dated], "sqlite", holding({"3 MAY 2024": 1}))[1] == ()


@contextmanager
def shop(folder: Path, *replies: str, **settings: object) -> Iterator[Database]:
    with closing(sqlite3.connect(folder / "shop.sqlite")) as connection:
        connection.execute("CREATE TABLE stores (city TEXT, n INTEGER)")
        rows = [(city, i) for city, n in CITIES.items() for i in range(n)]
        connection.executemany("INSERT INTO stores VALUES (?, ?)", rows)
        connection.commit()
    said = iter(replies)
    given = {"index": str(folder / "index"), "cache": str(folder / "cache"), **settings}
    with connect(
        folder / "shop.sqlite",
        settings=Settings(**given),  # type: ignore[arg-type]
        chat_model=FunctionModel(lambda _: next(said)),
        embedder=HashEmbedder(),
    ) as database:
        yield database


def notes(answer: Answer) -> dict[str, str]:
    return {one.code: one.message for one in answer.warnings if "spellings" in one.code}


QUESTION = "How many stores are in Paris?"
PLAIN = "SELECT COUNT(*) FROM stores WHERE city = 'Paris'"


def test_the_answer_counts_all_and_says_so(tmp_path: Path) -> None:
    with shop(tmp_path, PLAIN, votes=1) as db:
        answer = db.ask(QUESTION)
    assert answer.execution is not None
    assert answer.execution.rows == ((33,),)
    told = notes(answer)
    assert told["matched_spellings"] == (
        "stores.city also holds ' Paris' and 'PARIS' (3 rows), taken for 'Paris'"
    )
    # A misspelling is a guess: it is told and not taken.
    assert told["mixed_spellings"] == (
        "stores.city also holds 'Pariss' (3 rows), likely misspelt for 'Paris'"
    )
    assert "mended" not in {one.code for one in answer.warnings}


def test_programs_that_fold_by_themselves_agree(tmp_path: Path) -> None:
    folded = "SELECT COUNT(*) FROM stores WHERE LOWER(TRIM(city)) = 'paris'"
    with shop(tmp_path, PLAIN, folded, votes=2) as db:
        answer = db.ask(QUESTION)
    assert answer.execution is not None
    assert answer.execution.rows == ((33,),)
    assert answer.agreement == 1.0


def test_a_column_is_told_of_once(tmp_path: Path) -> None:
    longer = "SELECT COUNT(*) FROM stores WHERE city IN ('Paris', 'PARIS')"
    with shop(tmp_path, longer, PLAIN, votes=2) as db:
        answer = db.ask(QUESTION)
    (told,) = (one.message for one in answer.warnings if one.code == "matched_spellings")
    assert "' Paris' and 'PARIS' (3 rows)" in told


def test_only_the_winner_is_told_of(tmp_path: Path) -> None:
    other = "SELECT COUNT(*) FROM stores WHERE city = 'Oslo'"
    with shop(tmp_path, other, "SELECT COUNT(*) FROM stores WHERE city = 'Rome'", other) as db:
        answer = db.ask("How many stores are in Oslo?", votes=3)
    assert answer.execution is not None
    assert answer.execution.rows == ((7,),)
    assert notes(answer) == {}


def test_a_chain_of_steps_says_so_too(tmp_path: Path) -> None:
    steps = "WITH here AS (SELECT n FROM stores WHERE city = 'Rome') SELECT COUNT(*) FROM here"
    with shop(tmp_path, steps, votes=1) as db:
        answer = db.ask("How many stores are in Rome?")
    assert answer.execution is not None
    assert answer.execution.rows == ((13,),)
    assert "'rome' (4 rows), taken for 'Rome'" in notes(answer)["matched_spellings"]
    assert answer.program is not None
    assert "IN ('Rome', 'rome')" in answer.program.steps[0].sql


def test_it_can_be_switched_off(tmp_path: Path) -> None:
    with shop(tmp_path, PLAIN, votes=1, mend="off") as db:
        answer = db.ask(QUESTION)
    assert answer.execution is not None
    assert answer.execution.rows == ((30,),)
    assert "not equal to 'Paris'" in notes(answer)["mixed_spellings"]


def test_a_learned_program_is_the_users_word(tmp_path: Path) -> None:
    learned = tmp_path / "learned.sql"
    learned.write_text(f"-- question: {QUESTION}\n{PLAIN};\n")
    with shop(tmp_path, learned=str(learned)) as db:
        answer = db.ask(QUESTION)
    assert answer.execution is not None
    assert answer.execution.rows == ((30,),)
    assert "not equal to 'Paris'" in notes(answer)["mixed_spellings"]
