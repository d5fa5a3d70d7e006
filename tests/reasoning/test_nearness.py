"""How near a written name is to a real one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.reasoning.nearness import column_in, nearest, shortened, table_of_words
from dbrag.types import Column, Table, TableRef


def table(name: str, *columns: str) -> Table:
    return Table(TableRef("db", None, name), tuple(Column(column) for column in columns))


@pytest.mark.parametrize(
    ("name", "real", "expected"),
    [
        ("first_name", "stu_fname", True),
        ("LastName", "LName", True),
        ("department_number", "dept_no", True),
        ("course_code", "CRS_CODE", True),
        ("first_name", "lname", False),
        ("name", "fname", False),
        ("id", "identity", False),  # the other way round
        ("budget", "b", False),
        ("year", "yr", False),  # two letters that are not its beginning
    ],
)
def test_shortened(name: str, real: str, expected: bool) -> None:
    assert shortened(name, real) is expected


@given(st.text(max_size=12), st.text(max_size=12))
def test_any_two_names_can_be_compared(name: str, real: str) -> None:
    assert not (shortened(name, real) and name == real)
    assert column_in(table("t", real), real) == real


def test_the_nearest_column_is_taken_only_where_it_is_one() -> None:
    team, park = table("team", "team_id", "name"), table("park", "park_id", "name")
    assert nearest("team_name", [("t", team), ("p", park)]) == ("t", "name")
    assert nearest("name_", [("t", team), ("p", park)]) is None
    assert nearest("salary", [("t", team)]) is None


def test_a_table_by_its_words() -> None:
    tables = [table("Member_of_club"), table("Club"), table("Student")]
    assert table_of_words("ClubMembers", tables) is tables[0]
    assert table_of_words("Member", tables) is tables[0]
    assert table_of_words("clubs", tables) is None  # two have the word
    assert table_of_words("teacher", tables) is None
    assert table_of_words("of", tables) is None


def test_looking_through_many_columns_compares_no_letters(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repair asks it of every column of a source: comparing letters took minutes."""
    monkeypatch.setattr("dbrag.reasoning.nearness.spelling", None)
    wide = table("crew", *(f"column_{i}" for i in range(50)), "crew_rank", "dept_no", "crewName")
    assert column_in(wide, "rank") == "crew_rank"
    assert column_in(wide, "name") == "crewName"
    assert column_in(wide, "department_number") == "dept_no"
    assert column_in(wide, "colour") is None
