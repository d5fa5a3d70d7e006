"""Mending by rule: names and literals."""

from __future__ import annotations

import sqlite3

import pytest

from dbrag.catalog.joins import JoinGraph
from dbrag.reasoning.missing_join import add_missing_joins
from dbrag.reasoning.repair import mend_literals, mend_names
from dbrag.types import Column, ForeignKey, Table, TableRef


def table(name: str, *columns: str) -> Table:
    return Table(TableRef("db", None, name), tuple(Column(c, "TEXT") for c in columns))


TABLES = (
    table("singer", "Singer_ID", "Name", "Country"),
    table("concert", "Concert_ID", "Concert_Name", "Year"),
    table("singer_in_concert", "Concert_ID", "Singer_ID"),
)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT T2.Country FROM singer AS T1 JOIN singer_in_concert AS T2 "
            "ON T1.Singer_ID = T2.Singer_ID",
            "T1.Country",
        ),
        ("SELECT T1.Concert_Names FROM concert AS T1", "T1.Concert_Name"),
        ("SELECT concertname FROM concert", "Concert_Name"),
        ("SELECT Concert_ID, Nam FROM singer", None),
        ("SELECT c.Name FROM concert AS c", "c.Concert_Name"),
    ],
)
def test_unknown_columns(sql: str, expected: str | None) -> None:
    mended = mend_names(sql, TABLES, "sqlite")
    if expected is None:
        assert mended is None or "Concert_ID" in mended.sql
        return
    assert mended is not None
    assert expected in mended.sql
    assert all("read as" in change for change in mended.changes)


NOTED = (
    Table(
        TableRef("crm", None, "cst"),
        (Column("nm", comment="full name"), Column("st", synonyms=("state", "activity"))),
        synonyms=("clients",),
    ),
    table("orders", "id", "state"),
)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT full_name FROM cst", "SELECT nm FROM cst"),
        ("SELECT c.Activity FROM cst AS c", "SELECT c.st FROM cst AS c"),
        ("SELECT state FROM clients", 'SELECT st FROM "cst" AS clients'),
        ("SELECT state FROM orders", None),
        ("SELECT c.state FROM cst AS c JOIN orders AS o ON o.id = c.nm", "SELECT c.st"),
        ("SELECT other FROM cst", None),
    ],
)
def test_other_names_are_read_as_the_columns_and_tables_they_are_of(
    sql: str, expected: str | None
) -> None:
    mended = mend_names(sql, NOTED, "sqlite")
    if expected is None:
        assert mended is None
    else:
        assert mended is not None
        assert mended.sql.startswith(expected)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT Name, Country FROM singer ORDER BY Name",
        "SELECT n FROM (SELECT Name AS n FROM singer)",
        "WITH a AS (SELECT Name AS n FROM singer) SELECT a.n FROM a",
        "SELECT Name AS n FROM singer ORDER BY n",
        "SELECT s.Name FROM singer AS s WHERE EXISTS "
        "(SELECT 1 FROM singer_in_concert AS x WHERE x.Singer_ID = s.Singer_ID)",
        "SELECT count(*) AS c FROM singer GROUP BY Country HAVING c > 1",
        "this is not sql at all (",
    ],
)
def test_right_statements_are_left_alone(sql: str) -> None:
    assert mend_names(sql, TABLES, "sqlite") is None


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT COUNT(*) FROM gift_cards", '"gift cards"'),
        ("SELECT gift_cards.code FROM gift_cards", '"gift cards" AS gift_cards'),
        ("SELECT g.code FROM GiftCards AS g", '"gift cards" AS g'),
        ("WITH gift_cards AS (SELECT 1 AS code) SELECT code FROM gift_cards", None),
        ("SELECT code FROM gift_card", '"gift cards" AS gift_card'),
        ("SELECT code FROM bank_cards", None),
    ],
)
def test_a_table_whose_blanks_were_spelled_otherwise(sql: str, expected: str | None) -> None:
    mended = mend_names(sql, (*TABLES, table("gift cards", "code")), "sqlite")
    if expected is None:
        assert mended is None
    else:
        assert mended is not None
        assert expected in mended.sql
        assert "gift cards" in mended.changes[0]


def test_two_homes_are_not_guessed() -> None:
    sql = "SELECT T3.Singer_ID FROM singer AS T1, singer_in_concert AS T2, concert AS T3"
    assert mend_names(sql, TABLES, "sqlite") is None


def test_literals_take_the_spelling_of_the_data() -> None:
    def lookup(table: Table, column: str, value: str) -> str | None:
        return (
            "France" if (table.ref.name, column, value) == ("singer", "Country", "france") else None
        )

    sql = "SELECT Name FROM singer AS s WHERE s.Country = 'france' AND s.Name <> 'Bob'"
    mended = mend_literals(sql, TABLES, "sqlite", lookup)
    assert mended is not None
    assert "'France'" in mended.sql
    assert "'Bob'" in mended.sql
    assert mended.changes == ("'france' read as 'France'",)
    within = mend_literals(
        "SELECT 1 FROM singer WHERE Country IN ('x', 'france')", TABLES, "sqlite", lookup
    )
    assert within is not None
    assert within.changes == ("'france' read as 'France'",)
    assert (
        mend_literals("SELECT 1 FROM concert WHERE Year = 'france'", TABLES, "sqlite", lookup)
        is None
    )


DEPARTMENTS = (
    Table(
        TableRef("db", None, "management"),
        (Column("department_ID", "INT"), Column("head_ID", "INT")),
        foreign_keys=(
            ForeignKey(("department_ID",), TableRef("db", None, "department"), ("Department_ID",)),
        ),
    ),
    table("department", "Department_ID", "Name", "Budget"),
    table("head", "head_ID", "name"),
)


@pytest.mark.parametrize(
    ("sql", "joined"),
    [
        ("SELECT department.Name, COUNT(*) FROM management GROUP BY department_ID", True),
        ("SELECT Budget FROM management WHERE head_ID = 3", True),
        ("SELECT m.Budget FROM management AS m", True),  # the other table's column
        ("SELECT department_name, COUNT(*) FROM management GROUP BY 1", True),
        ("SELECT m.department_name, COUNT(*) FROM management m GROUP BY m.department_ID", True),
        ("SELECT m.Wages FROM management AS m", False),
        ("SELECT department_ID FROM management", False),
        ("SELECT head.name FROM management", False),  # no known join leads there
        ("SELECT x.Name FROM management", False),
        ("SELECT Name FROM (SELECT * FROM management)", False),
    ],
)
def test_a_forgotten_join(sql: str, joined: bool) -> None:
    mended = add_missing_joins(sql, DEPARTMENTS, JoinGraph.from_tables(DEPARTMENTS), "sqlite")
    assert (mended is not None) == joined
    if mended is None:
        return
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE management (department_ID INT, head_ID INT);"
        "CREATE TABLE department (Department_ID INT, Name TEXT, Budget TEXT);"
        "INSERT INTO management VALUES (1, 3); INSERT INTO department VALUES (1, 'Ink', '9');"
    )
    assert connection.execute(mended.sql).fetchall() in ([("Ink", 1)], [("9",)])


CLUBS = (
    table("club", "club_id", "club_name"),
    Table(
        TableRef("db", None, "member_of_club"),
        (Column("club_id", "INT"), Column("student_id", "INT")),
        foreign_keys=(
            ForeignKey(("club_id",), TableRef("db", None, "club"), ("club_id",)),
            ForeignKey(("student_id",), TableRef("db", None, "student"), ("student_id",)),
        ),
    ),
    table("student", "student_id", "lname", "age", "city", "mark"),
    table("exam", "exam_id", "mark", "hall"),
)


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        # through a table between them
        ("SELECT COUNT(*) FROM club WHERE club_name = 'Chess' AND age > 18", [(1,)]),
        ("SELECT last_name, club_name FROM club WHERE age > 18", [("Ito", "Chess")]),
        # the unknown columns of a subquery are its own
        (
            "SELECT COUNT(*) FROM member_of_club WHERE age > 18 AND club_id = "
            "(SELECT club_id FROM club WHERE club_name = 'Chess')",
            [(1,)],
        ),
        # each column has two homes or one, and only one table has them all
        ("SELECT mark, city FROM member_of_club ORDER BY age", [(5, "Oslo"), (4, "Bonn")]),
        # two tables are missing
        ("SELECT club_name, city FROM member_of_club WHERE age < 18", [("Chess", "Oslo")]),
        # a join on a column that does not exist, with nothing and with a table between them
        (
            "SELECT c.club_name FROM member_of_club m JOIN club c ON m.club = c.id LIMIT 1",
            [("Chess",)],
        ),
        (
            "SELECT s.lname FROM club c JOIN student s ON c.student_id = s.student_id "
            "WHERE c.club_name = 'Chess' ORDER BY s.age",
            [("Noe",), ("Ito",)],
        ),
        ("SELECT hall FROM club", None),  # nothing joins it
        ("SELECT colour FROM club", None),
    ],
)
def test_chains_of_forgotten_joins(sql: str, rows: list[tuple[object, ...]] | None) -> None:
    mended = add_missing_joins(sql, CLUBS, JoinGraph.from_tables(CLUBS), "sqlite")
    assert (mended is None) == (rows is None)
    if mended is None:
        return
    connection = sqlite3.connect(":memory:")
    connection.executescript(
        "CREATE TABLE club (club_id, club_name); CREATE TABLE exam (exam_id, mark, hall);"
        "CREATE TABLE member_of_club (club_id, student_id);"
        "CREATE TABLE student (student_id, lname, age, city, mark);"
        "INSERT INTO club VALUES (1, 'Chess'), (2, 'Go'); INSERT INTO student VALUES"
        " (7, 'Ito', 19, 'Bonn', 4), (8, 'Noe', 17, 'Oslo', 5);"
        "INSERT INTO member_of_club VALUES (1, 7), (1, 8);"
    )
    assert connection.execute(mended.sql).fetchall() == rows
