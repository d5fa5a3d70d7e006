"""Texts are compared with all spellings that a column holds of them, and the answer says so."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from dbrag.database import Database, connect
from dbrag.execution.guard import MAX_CHARACTERS
from dbrag.index.values import MAX_VALUE
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.reasoning.all_spellings import MOST, with_all_spellings
from dbrag.reasoning.noise import MAX_ASKED, Spelled
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
        ("CASE city WHEN 'Paris' THEN 1 ELSE 0 END = 1", None),
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


WIDER = "city IN ('Paris', 'PARIS')"


@pytest.mark.parametrize(
    ("sql", "wider"),
    [
        # Equal comparisons in several places are all widened.
        (
            "SELECT n FROM stores WHERE city = 'Paris' UNION ALL "
            "SELECT n FROM stores WHERE city = 'Paris'",
            f"SELECT n FROM stores WHERE {WIDER} UNION ALL SELECT n FROM stores WHERE {WIDER}",
        ),
        # NOT binds more loosely than =.
        (
            "SELECT n FROM stores WHERE city <> 'Paris' = 2",
            f"SELECT n FROM stores WHERE (NOT {WIDER}) = 2",
        ),
        # A step with the column that this one does not read.
        (
            "WITH t AS (SELECT city FROM stores) SELECT n FROM stores WHERE city = 'Paris'",
            f"WITH t AS (SELECT city FROM stores) SELECT n FROM stores WHERE {WIDER}",
        ),
        (
            "WITH t AS (SELECT * FROM stores) SELECT n FROM t WHERE city = 'Paris'",
            f"WITH t AS (SELECT * FROM stores) SELECT n FROM t WHERE {WIDER}",
        ),
        (
            "WITH t AS (SELECT * FROM other) SELECT 1 FROM t, stores WHERE city = 'Paris'",
            f"WITH t AS (SELECT * FROM other) SELECT 1 FROM t, stores WHERE {WIDER}",
        ),
        (
            "SELECT s.n FROM stores AS s SEMI JOIN stores AS t ON s.n = t.n AND t.city = 'Paris'",
            "SELECT s.n FROM stores AS s SEMI JOIN stores AS t ON s.n = t.n AND t." + WIDER,
        ),
        # Here another column has the name.
        (
            "WITH t(city, n) AS (SELECT n, city FROM stores) SELECT n FROM t WHERE city = 'Paris'",
            None,
        ),
        ("SELECT s.n FROM stores AS s(n, city) WHERE s.city = 'Paris'", None),
        (
            "WITH t AS (SELECT n AS city FROM stores UNION SELECT city FROM stores) "
            "SELECT 1 FROM t, stores WHERE city = 'Paris'",
            None,
        ),
        # A share whose CASE stays as it is.
        (
            "SELECT SUM(CASE WHEN city = 'Paris' THEN 1 END), COUNT(*) FROM stores "
            "WHERE city IN ('Paris', 'Rome')",
            None,
        ),
    ],
)
def test_comparisons_within_a_program(sql: str, wider: str | None) -> None:
    found, _ = with_all_spellings(sql, [table("Paris")], "duckdb", holding({"PARIS": 2}))
    assert found == (wider or sql)


def test_every_spelling_is_told_of_its_own_text() -> None:
    sql = "SELECT n FROM stores WHERE city IN ('Paris', 'Rome')"
    look = holding({"PARIS": 2, "rome": 1})
    _, (one,) = with_all_spellings(sql, [table("Paris")], "sqlite", look)
    assert one.message == (
        "stores.city also holds 'PARIS' (2 rows), taken for 'Paris'; "
        "'rome' (1 row), taken for 'Rome'"
    )


def test_all_texts_of_a_list_are_widened_or_none() -> None:
    def look(_: object, __: object, texts: Sequence[str]) -> Spelled:
        return Spelled({text.upper(): 1 for text in texts}, {})

    for n, is_wider in ((MAX_ASKED, True), (MAX_ASKED + 1, False)):
        texts = ", ".join(f"'{chr(97 + i) * 3}'" for i in range(n))
        sql = f"SELECT n FROM stores WHERE city IN ({texts})"
        found, _ = with_all_spellings(sql, [table("Paris")], "sqlite", look)
        assert found.count("'") == 2 * n * (1 + is_wider)


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
    assert answer.confidence is not None
    assert answer.confidence <= 0.4  # matched or not, the data is noisy


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


def test_a_share_counts_all_in_both_its_parts(tmp_path: Path) -> None:
    share = f"SELECT ({PLAIN}) * 1.0 / ({PLAIN})"
    with shop(tmp_path, share, votes=1) as db:
        answer = db.ask(QUESTION)
    assert answer.execution is not None
    assert answer.execution.rows == ((1.0,),)


def test_a_long_list_is_looked_up_whole(tmp_path: Path) -> None:
    texts = "'Aa', 'Bb', 'Cc', 'Dd', 'Ee', 'Rome'"
    with shop(tmp_path, f"SELECT COUNT(*) FROM stores WHERE city IN ({texts})", votes=1) as db:
        answer = db.ask("How many stores?")
    assert answer.execution is not None
    assert answer.execution.rows == ((13,),)


def test_what_is_too_long_when_widened_runs_as_it_was_written(tmp_path: Path) -> None:
    blanks = MAX_CHARACTERS - len(PLAIN) - len(" AND n <> ''")
    with shop(tmp_path, f"{PLAIN} AND n <> '{' ' * blanks}'", votes=1) as db:
        answer = db.ask(QUESTION)
    assert answer.execution is not None
    assert answer.execution.rows == ((30,),)
    assert "matched_spellings" not in notes(answer)


@pytest.mark.parametrize("n", [MAX_VALUE, MAX_VALUE + 1, 20_000])
def test_words_of_any_length_are_compared(tmp_path: Path, n: int) -> None:
    with shop(tmp_path, f"{PLAIN} OR city = '{'y' * n}'", votes=1) as db:
        answer = db.ask(QUESTION)
    assert answer.execution is not None
    assert answer.execution.rows == ((33,),)
