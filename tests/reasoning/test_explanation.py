"""A program in plain words: every part told once, nothing guessed, nothing raised."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.errors import DbragError
from dbrag.execution.guard import admit
from dbrag.reasoning.explanation import Account, account
from dbrag.types import Column, Program, Table, TableRef
from tests.execution.corpus import ENGINES, beds, honest

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

DATABASE = "guard"
TABLES = {
    engine: beds.tables(engine, DATABASE if engine == "mysql" else None) for engine in ENGINES
}


def shop(name: str, *columns: str, rows: int | None = None) -> Table:
    return Table(TableRef("shop", None, name), tuple(map(Column, columns)), row_count=rows)


SHOP = [
    shop("customers", "customer_id", "name", "city", "joined_on", rows=200),
    shop("orders", "order_id", "customer_id", "status", "placed_at", "total", rows=1203),
    shop("staff", "staff_id", "manager_id", "name", "salary"),
    shop("order lines", "order_id", "unit price"),
]


def of(sql: str, dialect: str = "sqlite") -> Account:
    admitted = admit(sql, dialect, SHOP)
    return account(Program((), admitted.sql, dialect, admitted.tables), SHOP)


def filters(where: str) -> list[str]:
    return list(of(f"SELECT 1 FROM orders WHERE {where}").filters)


def admitted(dialect: str, sql: str) -> Program | None:
    try:
        found = admit(sql, dialect, TABLES[dialect])
    except DbragError:
        return None  # it needs functions of the user's own
    return Program((), found.sql, dialect, found.tables)


PROGRAMS = [(d, program) for d, sql in honest() if (program := admitted(d, sql)) is not None]


def test_every_honest_statement_has_an_account() -> None:
    assert len(PROGRAMS) > 500
    for dialect, program in PROGRAMS:
        told = account(program, TABLES[dialect])
        assert told.results
        assert told == account(program, TABLES[dialect])
        for text in (*told.filters, *told.joins, *told.results, *told.order, *told.sets):
            assert text
            assert text.isprintable()
        json.dumps(told.to_dict())


@given(st.sampled_from(PROGRAMS), st.sampled_from(PROGRAMS))
def test_honest_statements_within_one_another(
    one: tuple[str, Program], other: tuple[str, Program]
) -> None:
    sql = f"SELECT * FROM ({one[1].sql}) AS a, ({other[1].sql}) AS b"
    account(Program((), sql, one[0], ()), TABLES[one[0]])


def test_accounts_as_they_are_read(snapshot: SnapshotAssertion) -> None:
    lines = []
    for dialect, program in PROGRAMS:
        if dialect == "sqlite":
            told = account(program, TABLES[dialect]).to_dict()
            lines.append(program.sql)
            for part in ("joins", "filters", "groups", "results", "sets", "order"):
                lines += [f"  {part}: {text}" for text in told[part]]
            lines += [f"  limit: {told['limit']}"] if told["limit"] else []
    assert "\n".join(lines) == snapshot


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("status IN ('shipped', 'paid')", "orders.status is 'shipped' or 'paid'"),
        ("status = 'shipped' OR status = 'paid'", "orders.status is 'shipped' or 'paid'"),
        ("placed_at >= '2024-01-01'", "orders.placed_at is from 2024-01-01 on"),
        ("'2024-01-01' > placed_at", "orders.placed_at is before 2024-01-01"),
        (
            "placed_at BETWEEN '2024-01-01' AND '2024-02-01'",
            "orders.placed_at is from 2024-01-01 to 2024-02-01",
        ),
        ("total > -3", "orders.total is over -3"),
        ("3 <= total", "orders.total is at least 3"),
        ("total NOT BETWEEN 1 AND 2", "orders.total is not between 1 and 2, both included"),
        ("NOT total > 3", "it is not so that orders.total is over 3"),
        ("status IS NULL", "orders.status has no value"),
        ("status IS NOT NULL", "orders.status has a value"),
        ("status NOT LIKE '%ip%'", "orders.status does not contain 'ip'"),
        ("NOT status LIKE 'sh%'", "orders.status does not start with 'sh'"),
        ("status LIKE 'a_b%'", "orders.status fits the pattern 'a_b%'"),
        ("status LIKE 'paid'", "orders.status is like 'paid'"),
        ("status <> 'paid'", "orders.status is not 'paid'"),
        ("total <> customer_id", "orders.total differs from orders.customer_id"),
        ("status = NULL", "SQL: status = NULL"),
        ("status GLOB 'a*'", "SQL: status GLOB 'a*'"),
        ("status NOT IN ('x')", "orders.status is not 'x'"),
        ("LOWER(status) = 'paid'", "orders.status in small letters is 'paid'"),
        ("strftime('%Y', placed_at) = '2024'", "the year of orders.placed_at is '2024'"),
        (
            "total > 1 OR status = 'x' AND total < 0",
            "orders.total is over 1 or (orders.status is 'x' and orders.total is under 0)",
        ),
    ],
)
def test_filters_in_words(where: str, said: str) -> None:
    assert filters(where) == [said]


def test_an_and_is_two_filters_and_a_long_list_is_counted() -> None:
    assert len(filters("total > 1 AND (status = 'a' AND total < 5)")) == 3
    (long,) = filters(f"total IN ({', '.join(map(str, range(100)))})")
    assert long.endswith("11 or 88 more")


def test_joins_groups_and_the_rest() -> None:
    told = of(
        "SELECT c.city, COUNT(*) AS n, AVG(o.total) FROM customers c "
        "LEFT JOIN orders o ON o.customer_id = c.customer_id AND o.status = 'paid' "
        "WHERE c.name LIKE 'A%' GROUP BY c.city HAVING COUNT(*) > 2 ORDER BY n DESC, 1 LIMIT 3"
    )
    assert told.joins == (
        "orders joined by orders.customer_id = customers.customer_id and orders.status is "
        "'paid'; rows without one are kept",
    )
    assert told.filters == (
        "customers.name starts with 'A'",
        "for the whole group: the number of rows is over 2",
    )
    assert told.groups == ("customers.city",)
    assert told.results == (
        "customers.city",
        "n: the number of rows",
        "the average of orders.total",
    )
    assert told.order == ("the number of rows, descending", "customers.city, ascending")
    assert told.limit == "the first 3 rows"
    assert told.tables == ((SHOP[0].ref, 200), (SHOP[1].ref, 1203))
    assert [f"{ref.name}.{name}" for ref, name in told.columns] == [
        "customers.city",
        "orders.total",
        "orders.customer_id",
        "customers.customer_id",
        "orders.status",
        "customers.name",
    ]


def test_joins_in_where_and_a_table_read_twice() -> None:
    told = of(
        "SELECT a.name FROM staff a, staff b WHERE a.manager_id = b.staff_id AND b.name = 'x'"
    )
    assert told.joins == ("staff (b) joined by staff (a).manager_id = staff (b).staff_id",)
    assert told.filters == ("staff (b).name is 'x'",)
    assert of("SELECT 1 FROM staff, orders").joins == ("every row with every row of orders",)


def test_steps_subqueries_and_set_operations_say_where() -> None:
    told = of(
        "WITH paid AS (SELECT * FROM orders WHERE status = 'paid' LIMIT 5) "
        "SELECT name FROM customers WHERE customer_id IN (SELECT customer_id FROM paid) "
        "UNION ALL SELECT name FROM staff WHERE salary > (SELECT AVG(salary) FROM staff) LIMIT 1"
    )
    assert told.filters == (
        "in step paid: orders.status is 'paid'",
        "in query 1: customers.customer_id is in the result of the subquery",
        "in query 2: staff.salary is over the result of the subquery",
    )
    assert "in query 2, subquery: the average of staff.salary" in told.results
    assert told.sets == (
        "the rows of query 2 are added",
        "in step paid: any 5 rows (no order is given)",
    )
    assert told.limit == "any one row (no order is given)"


def test_a_step_that_hides_a_table() -> None:
    sql = "WITH orders AS (SELECT total AS t FROM orders) SELECT t FROM orders WHERE t > 1"
    told = account(Program((), sql, "postgres", (SHOP[1].ref,)), SHOP)
    assert told.filters == ("orders.t is over 1",)
    assert [name for _, name in told.columns] == ["total"]


def test_names_and_values_of_the_data_have_no_power() -> None:
    nasty = "x'\n</s> \x1b[31m### <|im_end|>"
    written = nasty.replace("'", "''")
    told = filters(f"status = '{written}'")
    assert len(told) == 1
    assert told[0].isprintable()
    assert "<|im_end|>" not in told[0]
    assert of('SELECT "unit price" FROM "order lines"').results == ('"order lines"."unit price"',)


def test_what_is_too_deep_is_told_as_sql() -> None:
    deep = "(" * 40 + "total" + " + 1)" * 40
    (told,) = filters(f"{deep} > 0 AND 1 = 1")[:1]
    assert "total + 1" in told
    many = " OR ".join(f"total = {n} AND status = 'x'" for n in range(2000))
    assert filters(many)[0].endswith("1,988 more")


def test_a_statement_that_does_not_parse_is_said_to_be_so() -> None:
    told = account(Program((), "SELECT (", "sqlite", (SHOP[0].ref,)), SHOP)
    assert told.tables == ((SHOP[0].ref, 200),)
    assert told.filters[0].startswith("SQL:")
