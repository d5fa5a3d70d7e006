"""Steps as one statement: the same rows as the steps run one after another."""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from contextlib import closing
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from dbrag.errors import ExecutionError
from dbrag.execution.guard import admit
from dbrag.reasoning.chain import Chain, compose
from dbrag.reasoning.program import LAST_STEP
from dbrag.types import Column, Step, Table, TableRef


def table(name: str, *columns: str) -> Table:
    return Table(TableRef("db", None, name), tuple(Column(c, "INTEGER") for c in columns))


TABLES = (
    table("orders", "id", "customer", "total"),
    table("customers", "id", "name", "city"),
)
ROWS = {
    "orders": [(1, 1, 10), (2, 1, 30), (3, 2, 20), (4, 3, None), (5, 2, 50)],
    "customers": [(1, "Ada", "Rome"), (2, "Bo", "Oslo"), (3, "Cy", "Rome")],
}
SCRIPT = [
    "CREATE TABLE orders (id INTEGER, customer INTEGER, total INTEGER)",
    "CREATE TABLE customers (id INTEGER, name TEXT, city TEXT)",
]


def fill(connection: Any) -> None:
    for statement in SCRIPT:
        connection.execute(statement)
    for name, rows in ROWS.items():
        for row in rows:
            connection.execute(f"INSERT INTO {name} VALUES (?, ?, ?)", row)


def chained(*steps: tuple[str, str], last: str, dialect: str = "sqlite") -> str:
    every = [*(Step(name, sql) for name, sql in steps), Step(LAST_STEP, last)]
    sql = compose(every, dialect, TABLES)
    admit(sql, dialect, TABLES)  # whatever a chain becomes, the guard knows its names
    return sql


def rows_of(sql: str) -> list[tuple[Any, ...]]:
    """What both local engines give, the same."""
    with closing(sqlite3.connect(":memory:")) as lite, duckdb.connect() as duck:
        fill(lite)
        fill(duck)
        found = [tuple(row) for row in lite.execute(sql)]
        assert found == duck.execute(sql).fetchall()
        return found


def test_a_step_may_be_called_like_a_table() -> None:
    sql = chained(
        ("orders", "SELECT * FROM orders WHERE total > 15"),
        last="SELECT COUNT(*), SUM(orders.total) FROM orders JOIN customers AS c "
        "ON c.id = orders.customer",
    )
    assert sql.startswith("WITH step_orders AS (SELECT * FROM orders WHERE")
    assert "FROM step_orders AS orders JOIN" in sql
    assert rows_of(sql) == [(3, 100)]


def test_a_real_table_is_still_there_by_its_schema() -> None:
    sql = chained(
        ("orders", "SELECT * FROM orders WHERE total > 15"),
        last="SELECT (SELECT COUNT(*) FROM orders), (SELECT COUNT(*) FROM main.orders)",
    )
    assert rows_of(sql) == [(3, 5)]


def test_the_name_of_a_step_that_collides_with_nothing_stays() -> None:
    sql = chained(("big", "SELECT id FROM orders WHERE total > 15"), last="SELECT id FROM Big")
    assert sql == "WITH big AS (SELECT id FROM orders WHERE total > 15) SELECT id FROM Big"


def test_new_names_collide_with_nothing_either() -> None:
    tables = (*TABLES, table("step_orders", "id"))
    steps = [
        Step("orders", "SELECT id FROM orders"),
        Step("orders_2", "SELECT id + 100 AS id FROM orders"),
        Step(LAST_STEP, "SELECT o.id FROM orders AS o UNION ALL SELECT id FROM orders_2"),
    ]
    tree = sqlglot.parse_one(compose(steps, "sqlite", tables), dialect="sqlite")
    names = [cte.alias for cte in tree.find_all(exp.CTE)]
    assert len({name.casefold() for name in names}) == len(names) == 2
    assert not {"orders", "step_orders", "customers"} & {name.casefold() for name in names}
    first, second = (len(rows_of(s)) for s in (
        compose(steps, "sqlite", tables), "SELECT id FROM orders UNION ALL SELECT id FROM orders"
    ))  # fmt: skip
    assert first == second


def test_of_two_steps_of_one_name_later_ones_read_the_later() -> None:
    sql = chained(
        ("paid", "SELECT id, total FROM orders"),
        ("PAID", "SELECT id, total FROM paid WHERE total >= 30"),
        last="SELECT COUNT(*) FROM Paid",
    )
    assert rows_of(sql) == [(2,)]


def test_a_with_inside_a_step_is_seen_by_it_alone() -> None:
    sql = chained(
        (
            "a",
            "WITH customers AS (SELECT 7 AS id), a AS (SELECT id FROM customers) SELECT * FROM a",
        ),
        ("b", "WITH a AS (SELECT id + 1 AS id FROM a) SELECT a.id FROM a"),
        last="SELECT (SELECT id FROM a), (SELECT id FROM b), (SELECT COUNT(*) FROM customers)",
    )
    assert rows_of(sql) == [(7, 8, 3)]


def test_deeper_queries_have_their_own_names() -> None:
    sql = chained(
        ("paid", "SELECT id FROM orders WHERE total > 15"),
        last="SELECT COUNT(*) FROM (WITH paid AS (SELECT 1 AS id) SELECT id FROM paid) AS x",
    )
    assert rows_of(sql) == [(1,)]


def test_recursion_goes_on_within_a_step() -> None:
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) "
    sql = chained(("numbers", count + "SELECT i FROM n"), last="SELECT SUM(i) FROM numbers")
    assert sql.startswith("WITH RECURSIVE")
    assert rows_of(sql) == [(10,)]


def test_in_sqlite_a_list_may_be_a_step() -> None:
    sql = chained(
        ("orders", "SELECT id FROM orders WHERE total > 15"),
        last="SELECT COUNT(*) FROM customers WHERE id IN orders",
    )
    with closing(sqlite3.connect(":memory:")) as connection:
        fill(connection)
        assert connection.execute(sql).fetchall() == [(2,)]


@pytest.mark.parametrize("name", ["order", "Group", "big orders", "größe", "1st"])
def test_any_name_can_be_read(name: str) -> None:
    quoted = '"' + name + '"'
    sql = chained((name, "SELECT id FROM orders"), last=f"SELECT COUNT(*) FROM {quoted}")
    assert rows_of(sql) == [(5,)]


@pytest.mark.parametrize(
    ("step", "last", "rows"),
    [
        (
            "SELECT o.id, c.id, name FROM orders AS o JOIN customers AS c ON c.id = o.customer",
            "SELECT MAX(id), MAX(id_2) FROM j",
            [(5, 3)],
        ),
        (
            "SELECT * FROM orders AS o JOIN customers AS c ON c.id = o.customer",
            "SELECT MAX(id), MAX(id_2), MAX(city) FROM j",
            [(5, 3, "Rome")],
        ),
        (
            "SELECT o.*, c.* FROM orders AS o, customers AS c WHERE c.id = o.customer",
            "SELECT MAX(id), MAX(id_2) FROM j WHERE id_2 < 3",
            [(5, 2)],
        ),
        (
            "SELECT id, id AS ID, id AS id_2 FROM customers UNION SELECT 9, 8, 7",
            "SELECT id, ID_3, id_2 FROM j WHERE id = 9",
            [(9, 8, 7)],
        ),
    ],
)
def test_columns_of_earlier_steps_are_unique(
    step: str, last: str, rows: list[tuple[Any, ...]]
) -> None:
    assert rows_of(chained(("j", step), last=last)) == rows


def test_the_last_step_keeps_its_duplicates() -> None:
    sql = chained(("a", "SELECT id FROM orders"), last="SELECT id, id FROM a WHERE id = 1")
    with closing(sqlite3.connect(":memory:")) as connection:
        fill(connection)
        cursor = connection.execute(sql)
        assert [column[0] for column in cursor.description] == ["id", "id"]


@pytest.mark.parametrize(
    ("step", "last", "expected"),
    [
        # ORDER BY goes where it has a meaning …
        (
            "SELECT id, total FROM orders ORDER BY total DESC",
            "SELECT id FROM s LIMIT 2",
            "SELECT id FROM s ORDER BY s.total DESC LIMIT 2",
        ),
        (
            "SELECT id, total AS worth FROM orders ORDER BY 2",
            "SELECT x.id FROM s AS x WHERE worth > 0",
            "SELECT x.id FROM s AS x WHERE worth > 0 ORDER BY x.worth",
        ),
        (
            "SELECT * FROM orders AS o ORDER BY o.total, id",
            "SELECT id FROM s LIMIT 1",
            "SELECT id FROM s ORDER BY s.total, s.id LIMIT 1",
        ),
        # … and vanishes where it has none.
        (
            "SELECT id, total FROM orders ORDER BY total",
            "SELECT SUM(total) FROM s",
            "SELECT SUM(total) FROM s",
        ),
        (
            "SELECT id, total FROM orders ORDER BY total",
            "SELECT id FROM s ORDER BY id LIMIT 1",
            "SELECT id FROM s ORDER BY id LIMIT 1",
        ),
    ],
)
def test_only_the_last_step_orders(step: str, last: str, expected: str) -> None:
    sql = chained(("s", step), last=last)
    inner = sqlglot.parse_one(sql, dialect="sqlite").find(exp.CTE)
    assert inner is not None
    assert inner.this.args.get("order") is None
    assert sql.endswith(f") {expected}")


def test_an_order_is_handed_on_through_steps() -> None:
    sql = chained(
        ("a", "SELECT id, total FROM orders WHERE total > 0 ORDER BY total DESC"),
        ("b", "SELECT id, total FROM a WHERE id > 1"),
        last="SELECT id FROM b LIMIT 2",
    )
    assert sql.count("ORDER BY") == 1
    assert rows_of(sql) == [(5,), (2,)]


@pytest.mark.parametrize(
    ("step", "last"),
    [
        ("SELECT id, total FROM orders ORDER BY total DESC LIMIT 2", "SELECT SUM(total) FROM s"),
        ("SELECT id FROM orders ORDER BY total DESC", "SELECT id FROM s LIMIT 2"),
        (
            "SELECT id, total FROM orders ORDER BY total DESC",
            "SELECT id FROM s WHERE id IN (SELECT id FROM s LIMIT 2)",
        ),
        (
            "SELECT name FROM customers ORDER BY name DESC",
            "SELECT group_concat(name) FROM s",
        ),
    ],
)
def test_an_order_that_says_which_rows_stays(step: str, last: str) -> None:
    sql = chained(("s", step), last=last)
    assert step.partition("ORDER BY ")[2] in sql


def test_sql_server_has_no_order_in_a_step() -> None:
    sql = chained(
        ("s", "SELECT name FROM customers ORDER BY LEN(name)"),
        last="SELECT TOP 1 name FROM s",
        dialect="tsql",
    )
    assert "ORDER BY" not in sql


def test_steps_that_nothing_reads_can_be_left_out() -> None:
    chain = Chain.over("sqlite", TABLES)
    for name, sql in (
        ("a", "SELECT id FROM orders"),
        ("b", "SELECT id FROM customers"),
        ("c", "SELECT COUNT(*) FROM b"),
    ):
        chain = chain.plus(Step(name, sql))
    assert "orders" in chain.statement()
    assert "orders" not in chain.statement(whole=False)
    assert chain.name() == "c"


def test_what_is_no_select_is_no_step() -> None:
    for sql in ("DELETE FROM orders", "SELECT FROM WHERE", "DROP TABLE orders"):
        with pytest.raises(ExecutionError, match="step 'a'"):
            compose([Step("a", sql), Step(LAST_STEP, "SELECT 1")], "sqlite", TABLES)
    with pytest.raises(ExecutionError, match="no step"):
        compose([], "sqlite", TABLES)


# -- the same rows as the steps one after another --------------------------------

NAMES = ("a", "B", "orders", "customers", "order", "a_2", "step_orders")


@st.composite
def programs(draw: st.DrawFn) -> list[tuple[str, str]]:
    """(name, SELECT) of some steps; each reads a table or an earlier step, or joins two.

    Every step has the columns k and v and, for a join, two of each.
    """
    steps: list[tuple[str, str]] = []
    known = {
        "orders": "SELECT customer AS k, total AS v FROM main.orders",
        "customers": "SELECT id AS k, length(name) AS v FROM main.customers",
    }
    for number in range(draw(st.integers(1, 5))):
        earlier = [name for name, _ in steps]
        places = [f'"{name}"' for name in dict.fromkeys(earlier)]
        places += [f"({sql})" for sql in known.values()]
        one = f"{draw(st.sampled_from(places))} AS x"
        two = f"{draw(st.sampled_from(places))} AS y"
        where = draw(st.sampled_from(["", " WHERE x.v > 12", " WHERE x.k <> 2"]))
        order = draw(st.sampled_from(["", " ORDER BY v DESC, k", " ORDER BY 1, 2"]))
        limit = draw(st.sampled_from(["", " LIMIT 2"])) if order else ""
        sql = draw(
            st.sampled_from(
                [
                    f"SELECT k, v FROM {one}{where}{order}{limit}",
                    f"SELECT DISTINCT k, v FROM {one}{where}{order}{limit}",
                    f"SELECT k, SUM(v) AS v FROM {one}{where} GROUP BY k{order}{limit}",
                    f"SELECT x.k, x.v, y.k, y.v FROM {one} JOIN {two} ON x.k = y.k{where}",
                    f"SELECT x.*, y.v FROM {one} JOIN {two} ON x.k = y.k{where}",
                    f"SELECT k, v FROM {one}{where} UNION SELECT k, v FROM {two}{order}{limit}",
                    f"WITH a AS (SELECT k, v FROM {one}{where}) SELECT * FROM a{order}{limit}",
                    f"SELECT k, v FROM {one} WHERE k IN (SELECT k FROM {two}){order}{limit}",
                ]
            )
        )
        latest = {name.casefold(): (name, text) for name, text in steps}
        ends = (" ORDER BY v DESC, k", " ORDER BY 1, 2")
        ordered = [name for name, text in latest.values() if text.endswith(ends)]
        if ordered and draw(st.booleans()):
            # Sorted rows are taken as they come.
            sql = f'SELECT k, v FROM "{draw(st.sampled_from(ordered))}" AS x{where} LIMIT 2'
        steps.append((draw(st.sampled_from(NAMES)) if number < 4 else LAST_STEP, sql))
    return [*steps[:-1], (LAST_STEP, steps[-1][1])]


def one_after_another(connection: Any, steps: list[tuple[str, str]]) -> list[tuple[Any, ...]]:
    """Each step as a table of its own, under a name that nothing else has."""
    called: dict[str, str] = {}
    for number, (name, sql) in enumerate(steps[:-1]):
        tree = sqlglot.parse_one(sql, dialect="sqlite")
        rename(tree, called)
        fresh = f"temp_{number}"
        cursor = connection.execute(tree.sql(dialect="sqlite"))
        columns: list[str] = []
        for column, *_ in cursor.description:
            again = (f"{column}_{n}" for n in itertools.count(2))
            columns.append(next(c for c in itertools.chain([column], again) if c not in columns))
        connection.execute(f"CREATE TEMP TABLE {fresh} ({', '.join(columns)})")
        places = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {fresh} VALUES ({places})", cursor.fetchall())
        called[name.casefold()] = fresh
    tree = sqlglot.parse_one(steps[-1][1], dialect="sqlite")
    rename(tree, called)
    return [tuple(row) for row in connection.execute(tree.sql(dialect="sqlite"))]


def rename(tree: exp.Expr, called: dict[str, str]) -> None:
    """Let FROM read the tables that stand for the steps."""
    own = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    for node in tree.find_all(exp.Table):
        inside = node.find_ancestor(exp.CTE) is not None
        fresh = None if node.db else called.get(node.name.casefold())
        if fresh is not None and (inside or node.name.casefold() not in own):
            if not node.alias:
                node.set("alias", exp.TableAlias(this=node.this.copy()))
            node.set("this", exp.to_identifier(fresh))


@settings(max_examples=100)
@given(programs())
def test_a_chain_gives_what_its_steps_give(steps: list[tuple[str, str]]) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        fill(connection)
        composed = compose([Step(name, sql) for name, sql in steps], "sqlite", TABLES)
        expected = one_after_another(connection, steps)
        found = [tuple(row) for row in connection.execute(composed)]
    assert Counter(found) == Counter(expected)
    if "ORDER BY" in steps[-1][1]:
        assert found == expected
