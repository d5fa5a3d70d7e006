"""Tables that a failed statement means and that were not shown."""

from __future__ import annotations

import pytest

from dbrag.catalog.joins import JoinGraph
from dbrag.reasoning.widen import tables_meant
from dbrag.types import Column, ForeignKey, Table, TableRef

TEAM, PARK, SALARY = (TableRef("db", None, name) for name in ("team", "park", "salary"))
TABLES = (
    Table(TEAM, (Column("team_id"), Column("name"), Column("city"))),
    Table(PARK, (Column("park_id"), Column("park_name"), Column("city"))),
    Table(
        SALARY,
        (Column("team_id"), Column("amount")),
        foreign_keys=(ForeignKey(("team_id",), TEAM, ("team_id",)),),
    ),
)
JOINS = JoinGraph.from_tables(TABLES)


@pytest.mark.parametrize(
    ("sql", "meant"),
    [
        ("SELECT team_name, MAX(amount) FROM salary GROUP BY team_id", (TEAM,)),
        ("SELECT s.team_name FROM salary AS s", (TEAM,)),
        ("SELECT park_name FROM salary", (PARK,)),  # the only home, though nothing joins it
        ("SELECT city FROM salary", (TEAM,)),  # of two homes the one that joins
        ("SELECT amount FROM salary JOIN Park ON 1 = 1", (PARK,)),
        ("SELECT amount AS total FROM salary ORDER BY total", ()),
        ("SELECT colour FROM salary", ()),
        ("SELECT FROM WHERE", ()),
        ("", ()),
    ],
)
def test_tables_meant(sql: str, meant: tuple[TableRef, ...]) -> None:
    assert tables_meant(sql, (SALARY,), TABLES, JOINS, "sqlite") == meant


def test_no_table_is_meant_where_several_have_the_column() -> None:
    other = Table(TableRef("db", None, "shop"), (Column("city"),))
    assert tables_meant("SELECT city FROM nothing", (), (*TABLES, other), JOINS, "sqlite") == ()
