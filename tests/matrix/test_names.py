"""Names and schemas: the kinds of faults other systems have with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.matrix.beds import Bed, Made, has, quoted

if TYPE_CHECKING:
    from collections.abc import Callable

    Connect = Callable[..., Any]

kind = pytest.mark.kind

NAMES = {
    "hyphen": "Dashboard-data",
    "spaces": "order lines of 2024",
    "mixed case": "CustomerOrders",
    "reserved word": "select",
    "digits": "2024",
    "Chinese": "销售数据",
    "accents and umlauts": "Größe_été",
    "dot": "v1.2",
    "quotes": "it's",
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=kind(f"table name: {k}"), id=k) for k, n in NAMES.items()]
)
def test_a_table_of_any_name(bed: Bed, connect: Connect, name: str) -> None:
    bed.make(Made(name, {"a": "int", "b": "text"}, [(1, "x"), (2, "y")]))
    with connect(f"SELECT COUNT(*) FROM {quoted(bed, name)}", votes=1) as db:
        db.index()
        (candidate,) = db.search("how many rows are there?").candidates
        assert candidate.table.name == name
        assert db.sql(f"SELECT SUM(a) FROM {quoted(bed, name)}").execution.rows[0][0] == 3
        answer = db.ask("How many rows are there in the table?")
        assert answer.execution.rows == ((2,),), answer.to_dict()


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=kind(f"column name: {k}"), id=k) for k, n in NAMES.items()]
)
def test_a_column_of_any_name(bed: Bed, connect: Connect, name: str) -> None:
    # Of a file alone, a lone number above numbers could be a row as well.
    other = "2025" if name.isdigit() else "b"
    bed.make(Made("things", {name: "int", other: "text"}, [(1, "x"), (2, "y")]))
    with connect() as db:
        db.index()
        (table,) = db.opened_index().catalog.tables
        assert [column.name for column in table.columns] == [name, other]
        result = db.sql(f"SELECT {quoted(bed, name)} FROM things ORDER BY 1")
        assert result.execution.rows == ((1,), (2,))
        assert result.execution.columns[0].name == name


@kind("mixed case written carelessly")
def test_letter_case_of_names_does_not_matter(bed: Bed, connect: Connect) -> None:
    bed.make(Made("CustomerOrders", {"CustomerId": "int", "Total": "int"}, [(1, 10), (2, 20)]))
    with connect() as db:
        rows = db.sql("SELECT customerid FROM customerorders WHERE total = 20").execution.rows
    assert rows == ((2,),)


@kind("schema other than the default")
def test_tables_of_other_schemas(bed: Bed, connect: Connect) -> None:
    if bed.name == "sqlite":
        pytest.skip("sqlite has one schema")
    other = "inv_" + bed.spec[-6:].replace(".", "_") if bed.name == "mariadb" else "inventory"
    bed.make(Made("orders", {"a": "int"}, [(1,)], schema=other))
    settings = {"schemas": other} if bed.name == "mariadb" else {}
    with connect(**settings) as db:
        db.index()
        (candidate,) = db.search("orders").candidates
        assert candidate.table.schema == other
        assert db.sql(f"SELECT a FROM {other}.orders").execution.rows == ((1,),)
        # Quoted as if it were one name, as models write it.
        together = quoted(bed, f"{other}.orders")
        assert db.sql(f"SELECT a FROM {together}").execution.rows == ((1,),)


@kind("views")
def test_views_are_seen_and_read(bed: Bed, connect: Connect) -> None:
    bed.make(Made("people", {"id": "int", "name": "text"}, [(1, "Ann"), (2, "Bo")]))
    bed.do("CREATE VIEW short_names AS SELECT name FROM people WHERE id = 2")
    with connect() as db:
        db.index()
        tables = {t.ref.name: t for t in db.opened_index().catalog.tables}
        assert tables["short_names"].kind == "view"
        assert db.sql("SELECT * FROM short_names").execution.rows == (("Bo",),)


@kind("materialised views")
def test_materialised_views(bed: Bed, connect: Connect) -> None:
    if bed.name != "postgres":
        pytest.skip("only PostgreSQL has materialised views")
    bed.make(Made("people", {"id": "int", "name": "text"}, [(1, "Ann"), (2, "Bo")]))
    bed.do("CREATE MATERIALIZED VIEW kept AS SELECT name FROM people WHERE id = 2")
    with connect() as db:
        db.index()
        tables = {t.ref.name: t for t in db.opened_index().catalog.tables}
        assert tables["kept"].kind == "materialized view"
        assert db.sql("SELECT * FROM kept").execution.rows == (("Bo",),)


@kind("partitioned tables")
def test_partitioned_tables(bed: Bed, connect: Connect) -> None:
    if bed.name == "postgres":
        bed.do("CREATE TABLE log (y int, v int) PARTITION BY LIST (y)")
        bed.do("CREATE TABLE log_1 PARTITION OF log FOR VALUES IN (2023)")
        bed.do("CREATE TABLE log_2 PARTITION OF log FOR VALUES IN (2024)")
    elif bed.name == "mariadb":
        bed.do(
            "CREATE TABLE log (y int, v int) PARTITION BY LIST (y) "
            "(PARTITION a VALUES IN (2023), PARTITION b VALUES IN (2024))"
        )
    else:
        pytest.skip("no partitioned tables; partitioned folders of Parquet have tests of their own")
    bed.do("INSERT INTO log VALUES (2023, 1), (2024, 2), (2024, 3)")
    with connect() as db:
        db.index()
        assert [t.ref.name for t in db.opened_index().catalog.tables] == ["log"]
        assert db.sql("SELECT SUM(v) FROM log").execution.rows[0][0] == 6


@kind("composite keys")
def test_composite_keys(bed: Bed, connect: Connect) -> None:
    if bed.name == "files":
        pytest.skip("files have no keys")
    bed.make(
        Made("parents", {"a": "int", "b": "int"}, [(1, 2)], key=("a", "b")),
        Made(
            "children",
            {"id": "int", "x": "int", "y": "int"},
            [(1, 1, 2)],
            key=("id",),
            foreign=((("x", "y"), "parents", ("a", "b")),),
        ),
    )
    with connect() as db:
        db.index()
        tables = {t.ref.name: t for t in db.opened_index().catalog.tables}
    assert tables["parents"].primary_key == ("a", "b")
    (key,) = tables["children"].foreign_keys
    assert (key.columns, key.target.name, key.target_columns) == (("x", "y"), "parents", ("a", "b"))


@kind("untyped columns")
def test_untyped_columns(bed: Bed, connect: Connect) -> None:
    has(bed, "untyped")
    bed.make(Made("things", {"a": "untyped", "b": "int"}, [("x", 1), (2, 2)]))
    with connect() as db:
        db.index()
        (table,) = db.opened_index().catalog.tables
    assert [c.name for c in table.columns] == ["a", "b"]


@kind("generated columns")
def test_generated_columns(bed: Bed, connect: Connect) -> None:
    if bed.name == "files":
        pytest.skip("files have no generated columns")
    stored = "" if bed.name == "duckdb" else " STORED"
    number = "BIGINT" if bed.name != "sqlite" else "INTEGER"
    bed.do(f"CREATE TABLE sums (n {number}, twice {number} GENERATED ALWAYS AS (n * 2){stored})")
    bed.do("INSERT INTO sums (n) VALUES (21)")
    with connect() as db:
        db.index()
        (table,) = db.opened_index().catalog.tables
        assert [c.name for c in table.columns] == ["n", "twice"]
        assert db.sql("SELECT twice FROM sums").execution.rows == ((42,),)


@kind("comments")
def test_comments_of_tables(bed: Bed, connect: Connect) -> None:
    if bed.name == "files":
        pytest.skip("files have no comments")
    bed.make(Made("t1", {"a": "int"}, [(1,)], comment="invoices' archive"))
    with connect() as db:
        db.index()
        (table,) = db.opened_index().catalog.tables
    assert table.comment == "invoices' archive"


@kind("all of 120 tables are seen")
def test_every_table_is_seen(bed: Bed, connect: Connect) -> None:
    bed.make(*(Made(f"table_{i}", {"a": "int"}, [(i,)]) for i in range(120)))
    with connect() as db:
        report = db.index()
        assert report.sources[0].tables == 120
        assert len(db.search("table 7", top=200, k=200).candidates) == 120


@kind("a table of 500 columns")
def test_a_wide_table(bed: Bed, connect: Connect) -> None:
    columns = {f"column_{i}": "int" for i in range(500)}
    bed.make(Made("wide", columns, [tuple(range(500))]))
    with connect("SELECT column_499 FROM wide", votes=1) as db:
        db.index()
        answer = db.ask("What is column_499 of wide?")
    assert answer.execution.rows == ((499,),)
