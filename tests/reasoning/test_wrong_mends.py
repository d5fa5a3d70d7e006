"""What mending must not do: guess one of several, or change what a statement says."""

from __future__ import annotations

import pytest

from dbrag.catalog.joins import JoinGraph
from dbrag.reasoning.missing_join import add_missing_joins
from dbrag.reasoning.repair import mend_names
from dbrag.types import Column, ForeignKey, Table, TableRef


def table(name: str, columns: str, **keys: str) -> Table:
    """``keys``: column → ``table.column``."""
    targets = {column: target.split(".") for column, target in keys.items()}
    return Table(
        TableRef("db", None, name),
        tuple(Column(column, "TEXT") for column in columns.split()),
        foreign_keys=tuple(
            ForeignKey((column,), TableRef("db", None, to), (other,))
            for column, (to, other) in targets.items()
        ),
    )


SCHOOL = (
    table("student", "sid sname"),
    table("advises", "sid tid", sid="student.sid", tid="teacher.tid"),
    table("marks", "sid tid", sid="student.sid", tid="teacher.tid"),
    table("teacher", "tid tname"),
)
TRADE = (
    table("orders", "oid cust_id ship_city", cust_id="customers.cust_id", ship_city="city.id"),
    table("customers", "cust_id home_city", home_city="city.id"),
    table("city", "id city_name population"),
    table("order_items", "oid sku", oid="orders.oid"),
    table("Member_of_club", "id"),
)
STAFF = (
    table("dept", "dept_id dname total"),
    table("emp", "eid did ename", did="dept.dept_id"),
    table("bonus", "eid amount dname year", eid="emp.eid"),
    table("order", "id emp_id", emp_id="emp.eid"),
)


def both(sql: str, tables: tuple[Table, ...], dialect: str = "sqlite") -> str | None:
    """The statement mended as an attempt mends it."""
    names = mend_names(sql, tables, dialect)
    joined = add_missing_joins(
        names.sql if names else sql, tables, JoinGraph.from_tables(tables), dialect
    )
    return joined.sql if joined else names.sql if names else None


@pytest.mark.parametrize(
    ("name", "real"),
    [
        ("capacity", "city"),
        ("nickname", "name"),
        ("average", "age"),
        ("agent", "age"),
        ("max_temperature", "min_temperature"),
        ("population_2011", "population_2010"),
        ("address1", "address2"),
    ],
)
def test_a_name_is_not_read_as_one_that_says_something_else(name: str, real: str) -> None:
    assert mend_names(f"SELECT {name} FROM t", (table("t", real),), "sqlite") is None


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        # two chains as short as each other
        ("SELECT sname, tname FROM student", SCHOOL),
        # the city of the order, or that of the customer
        (
            "SELECT o.oid, city_name FROM orders o JOIN customers c ON o.cust_id = c.cust_id",
            TRADE,
        ),
        # the chain leads through the table that the subquery means as one around it
        (
            "SELECT dname FROM emp WHERE NOT EXISTS "
            "(SELECT 1 FROM bonus WHERE bonus.eid = emp.eid AND total = 3)",
            STAFF,
        ),
        # a table's name that another one has as its alias
        ("SELECT dept.x, dname FROM emp AS dept", STAFF),
        # tables whose rows are of another kind
        ("SELECT COUNT(*) FROM clubs", TRADE),
        ("SELECT COUNT(*) FROM orders", TRADE[1:]),
        # a wrong condition that is more than equal columns, or beside one that joins already
        ("SELECT ename FROM emp e JOIN bonus b ON e.x > b.y", STAFF),
        ("SELECT ename FROM emp e JOIN bonus b ON e.eid = b.eid AND e.x = b.y", STAFF),
        # the only way would be over a table that is joined later
        (
            "SELECT ename FROM bonus b JOIN dept d ON b.x = d.y JOIN emp e ON b.eid = e.eid",
            STAFF,
        ),
    ],
)
def test_what_is_not_certain_is_left_to_the_model(sql: str, tables: tuple[Table, ...]) -> None:
    joined = add_missing_joins(sql, tables, JoinGraph.from_tables(tables), "sqlite")
    assert joined is None
    assert mend_names(sql, tables, "sqlite") is None


@pytest.mark.parametrize(
    ("written", "mended"),
    [
        ("members", '"Member_of_club" AS members'),
        ("items", '"order_items" AS items'),
    ],
)
def test_a_table_by_what_its_rows_are(written: str, mended: str) -> None:
    found = mend_names(f"SELECT COUNT(*) FROM {written}", TRADE, "sqlite")
    assert found is not None
    assert mended in found.sql


@pytest.mark.parametrize(
    "subquery",
    [
        "(SELECT COUNT(*) FROM emp WHERE did = dept_id)",  # a bare name of the query around it
        "(SELECT 1 FROM emp AS e WHERE e.did = d.dept_id AND EXISTS(SELECT 1 FROM bonus AS b "
        "WHERE b.eid = e.eid AND d.dname = 'x'))",  # of one two levels up
        "(SELECT 1 FROM bonus AS b WHERE b.year IN (SELECT 1 FROM emp UNION "
        "SELECT 2 FROM emp AS e WHERE d.dname = 'x'))",  # from within a set operation
    ],
)
def test_subqueries_keep_the_columns_of_the_queries_around_them(subquery: str) -> None:
    assert both(f"SELECT d.dnam FROM dept AS d WHERE 1 < {subquery}", STAFF) == (
        f"SELECT d.dname FROM dept AS d WHERE 1 < {subquery}"
    )


def test_a_derived_table_sees_nothing_of_the_query_around_it() -> None:
    sql = "SELECT q.total FROM (SELECT b.total FROM emp AS b) AS q"
    mended = both(sql, STAFF)
    assert mended is not None
    assert 'FROM emp AS b JOIN "dept" ON "b"."did" = "dept"."dept_id"' in mended


def test_a_result_ordered_by_is_no_column_of_another_table() -> None:
    sql = "SELECT COUNT(*) AS Total, enam FROM emp GROUP BY ename ORDER BY total"
    mended = both(sql.replace("enam ", "enames "), STAFF)
    assert mended == sql.replace("enam ", "ename ")


def test_a_mended_join_keeps_its_other_conditions() -> None:
    sql = "SELECT ename FROM emp AS e JOIN bonus AS b ON e.x = b.y AND b.year = 2014"
    assert both(sql, STAFF) == (
        'SELECT ename FROM emp AS e JOIN bonus AS b ON "e"."eid" = "b"."eid" AND b.year = 2014'
    )


def test_a_join_after_an_outer_one_drops_nothing() -> None:
    sql = "SELECT amount, dname FROM bonus LEFT JOIN emp ON bonus.eid = emp.eid"
    sql = sql.replace("dname", "total")
    mended = both(sql, STAFF)
    assert mended is not None
    assert 'LEFT JOIN "dept" ON "emp"."did" = "dept"."dept_id"' in mended


def test_a_join_after_a_comma_can_speak_of_all_tables() -> None:
    sql = "SELECT total FROM emp, bonus WHERE bonus.eid = emp.eid"
    mended = both(sql, STAFF, "postgres")
    assert mended is not None
    assert 'FROM emp CROSS JOIN bonus JOIN "dept" ON "emp"."did"' in mended


def test_names_that_are_keywords_stay_quoted() -> None:
    mended = both('SELECT id, ename FROM "order"', STAFF)
    assert mended is not None
    assert 'SELECT "order".id, "emp".ename FROM "order"' in mended
