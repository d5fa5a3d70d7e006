"""What MySQL and MariaDB tell of their tables: columns, keys, functions, rights."""

from __future__ import annotations

import secrets
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from dbrag.catalog.profile import profile_table
from dbrag.errors import DbragError, ExecutionError, Refused, SourceNotFound, SourceUnreadable
from dbrag.execution.functions import ALLOWED
from dbrag.execution.guard import admit
from dbrag.sources import statements
from dbrag.sources.servers.source import ServerSource
from dbrag.types import Column, ForeignKey, Table, TableRef
from tests.servers import MYSQL, TestDatabase, fresh_database

from .mysql_bed import is_mariadb, source_of, user

if TYPE_CHECKING:
    from collections.abc import Iterator


DOCS = Path(__file__).parents[3] / "docs" / "sources.md"


@pytest.fixture
def database() -> Iterator[TestDatabase]:
    with fresh_database(MYSQL, "mysql") as database:
        yield database


@pytest.fixture
def other() -> Iterator[TestDatabase]:
    with fresh_database(MYSQL, "mysql") as database:
        yield database


def tables_of(source: ServerSource) -> dict[str, Table]:
    return {table.ref.name: table for table in source.reflect()}


@contextmanager
def documented_user(database: TestDatabase) -> Iterator[str]:
    """The user that the documentation makes, as written there, for our database."""
    section = DOCS.read_text(encoding="utf-8").partition("### A user that can only read")[2]
    written = section.partition("```sql\n")[2].partition("```")[0]
    name = f"dbrag_{secrets.token_hex(4)}"
    written = written.replace("dbrag_reader", name).replace("shop.", f"{database.name}.")
    statements = [part for part in written.split(";") if part.strip()]
    assert len(statements) == 2
    database.run(*statements)
    try:
        yield database.url_as(name, "change me")
    finally:
        database.run(f"DROP USER {name}@'%'")


def source_user(url: str) -> str:
    from sqlalchemy.engine import make_url

    return str(make_url(url).username)


def test_tables_views_keys_and_comments(database: TestDatabase) -> None:
    database.run(
        "CREATE TABLE a (x int, y int, PRIMARY KEY (y, x)) COMMENT 'größe'",
        "CREATE TABLE b (i int PRIMARY KEY AUTO_INCREMENT, x int COMMENT 'it''s', y int NOT NULL,"
        " n decimal(38,20), e enum('a','b''c'), g int AS (x + 1) VIRTUAL,"
        " s int AS (x + 2) STORED, FOREIGN KEY (y, x) REFERENCES a (y, x))",
        "CREATE VIEW v AS SELECT i, n FROM b",
        "CREATE TABLE p (i int) PARTITION BY RANGE (i)"
        " (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN MAXVALUE)",
        "CREATE TABLE m (i int) ENGINE = MyISAM",
        "INSERT INTO p VALUES (1), (20)",
        "INSERT INTO m VALUES (1), (2), (3)",
    )
    found = tables_of(source_of(database))
    assert list(found) == ["a", "b", "m", "p", "v"]
    a, b = found["a"], found["b"]
    assert a.ref == TableRef("my", database.name, "a")
    assert a.comment == "größe"
    assert a.primary_key == ("y", "x")
    assert [(c.name, c.nullable) for c in a.columns] == [("x", False), ("y", False)]
    assert b.primary_key == ("i",)
    assert b.foreign_keys == (ForeignKey(("y", "x"), a.ref, ("y", "x")),)
    types = {c.name: c.type for c in b.columns}
    assert list(types) == ["i", "x", "y", "n", "e", "g", "s"]
    assert types["n"] == "decimal(38,20)"
    assert types["e"] == "enum('a','b''c')"
    assert b.columns[1].comment == "it's"
    assert found["v"].kind == "view"
    assert found["v"].estimate is None
    assert [c.name for c in found["v"].columns] == ["i", "n"]
    assert found["m"].estimate == 3
    assert found["p"].estimate is not None


def test_sequences_are_no_tables_and_history_is_hidden(database: TestDatabase) -> None:
    if not is_mariadb(database):
        pytest.skip("kinds of MariaDB")
    database.run(
        "CREATE SEQUENCE q",
        "CREATE TABLE h (i int) WITH SYSTEM VERSIONING",
        "CREATE TABLE c (i int, hidden int INVISIBLE)",
    )
    found = tables_of(source_of(database))
    assert list(found) == ["c", "h"]
    assert [c.name for c in found["h"].columns] == ["i"]
    assert [c.name for c in found["c"].columns] == ["i", "hidden"]


NAMES = [
    "order",
    "two words",
    "Mixed",
    "mixed",
    "日本",
    "a-b",
    "a.b",
    "50%",
    "it's",
    'q"q',
    "b`b",
    "ß",
]


def test_any_name_can_be_read(database: TestDatabase) -> None:
    for name in NAMES:
        quoted = statements.quoted(name, "mysql")
        if name == "Mixed" and database.run("SELECT @@lower_case_table_names") != [(0,)]:
            continue
        database.run(f"CREATE TABLE {quoted} ({quoted} int PRIMARY KEY)")
        database.run(f"INSERT INTO {quoted} VALUES (7)")
    made = [name for (name,) in database.run("SHOW TABLES")]
    source = source_of(database)
    found = tables_of(source)
    assert set(found) == set(made)
    assert set(made) >= set(NAMES) - {"Mixed"}
    assert {ref.name for ref in source.marks()} == set(made)
    for name, table in found.items():
        assert table.columns[0].name.lower() == name.lower()
        with source.scan(table, 5) as rows:
            assert list(rows) == [(7,)]
        assert source.statistics(table)[table.columns[0].name].distinct == 1
    source.close()


def test_schemas_are_those_asked_for(database: TestDatabase, other: TestDatabase) -> None:
    database.run("CREATE TABLE a (i int PRIMARY KEY)")
    other.run(f"CREATE TABLE b (i int, FOREIGN KEY (i) REFERENCES {database.name}.a (i))")
    server = database.url.removesuffix(database.name)

    def names(*schemas: str, url: str = "") -> set[tuple[str | None, str]]:
        found = source_of(database, *schemas, url=url).reflect()
        return {(table.ref.schema, table.ref.name) for table in found}

    assert names() == {(database.name, "a")}
    assert names(other.name) == {(other.name, "b")}
    both = source_of(database, database.name, other.name)
    by_name = tables_of(both)
    assert by_name["b"].foreign_keys == (ForeignKey(("i",), by_name["a"].ref, ("i",)),)
    everything = names(url=server)
    assert {(database.name, "a"), (other.name, "b")} <= everything
    assert not {s for s, _ in everything} & {"mysql", "sys", "information_schema"}
    with pytest.raises(SourceNotFound, match="no schema 'nope'"):
        names("nope")


def test_nothing_to_read(database: TestDatabase) -> None:
    with pytest.raises(SourceUnreadable, match="nothing to read"):
        source_of(database).reflect()


def test_a_broken_view_says_why(database: TestDatabase) -> None:
    database.run(
        "CREATE TABLE t (i int)", "CREATE TABLE k (i int)", "CREATE VIEW v AS SELECT i FROM t",
        "DROP TABLE t",
    )  # fmt: skip
    source = source_of(database)
    view = tables_of(source)["v"]
    assert view.columns == ()
    assert "references invalid" in view.comment
    assert len(source.marks()) == 2


def test_only_what_the_user_may_read(database: TestDatabase) -> None:
    database.run("CREATE TABLE t (i int PRIMARY KEY, pay int, x int)", "CREATE TABLE n (i int)")
    grants = (f"GRANT SELECT (i, x) ON {database.name}.t", f"GRANT INSERT ON {database.name}.n")
    with user(database, *grants) as url:
        source = source_of(database, url=url)
        (table,) = source.reflect()
        assert [c.name for c in table.columns] == ["i", "x"]
        assert table.primary_key == ("i",)
        assert set(source.marks()) == {table.ref}
        with pytest.raises(ExecutionError, match="no right") as caught, source.session() as session:
            session.execute("SELECT pay FROM t")
        assert "GRANT SELECT" in caught.value.hint
        source.close()


def test_the_documented_user_reads_everything_and_writes_nothing(database: TestDatabase) -> None:
    database.run(
        "CREATE TABLE t (i int PRIMARY KEY, s text)",
        "INSERT INTO t VALUES (1, 'one'), (2, 'two')",
        "CREATE VIEW v AS SELECT s FROM t",
        "CREATE FUNCTION twice(x int) RETURNS int DETERMINISTIC NO SQL SQL SECURITY INVOKER"
        " RETURN 2 * x",
    )
    with documented_user(database) as url:
        source = source_of(database, url=url)
        found = tables_of(source)
        assert set(found) == {"t", "v"}
        assert found["t"].primary_key == ("i",)
        profiled, rows = profile_table(source, found["t"], profile_rows=100, profile_s=10)
        assert profiled.row_count == 2
        assert rows == [(1, "one"), (2, "two")]
        assert "twice" not in source.functions()
        account = f"{source_user(url)}@'%'"
        database.run(f"GRANT EXECUTE ON FUNCTION {database.name}.twice TO {account}")
        again = source_of(database, url=url)  # what was found is kept for a few seconds
        assert again.functions() >= {"twice"}
        again.close()
        before = source.marks()
        database.run("INSERT INTO t VALUES (3, 'three')")
        changed = {r.name for r, mark in source.marks().items() if before[r] != mark}
        assert changed == {"t", "v"}
        with source.session() as session:
            session.execute("SELECT twice(COUNT(*)) FROM v")
            assert session.fetch(2) == [(6,)]
        source.close()
        # Even without our read-only session the server refuses.
        for statement in (
            "INSERT INTO t VALUES (9, 'x')", "UPDATE t SET s = ''", "DELETE FROM t", "DROP TABLE t",
            "TRUNCATE t", "CREATE TABLE x (i int)", "ALTER TABLE t ADD x int",
            "SELECT * INTO OUTFILE '/tmp/dbrag_test' FROM t", "SET GLOBAL max_connections = 5",
            "FLUSH TABLES", "LOCK TABLES t WRITE",
        ):  # fmt: skip
            with pytest.raises(Exception, match="denied"):
                TestDatabase(url).run(statement)
        with TestDatabase(url).connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT LOAD_FILE('/etc/passwd')")
            assert cursor.fetchall() == ((None,),)
    assert len(database.run("SELECT * FROM t")) == 3


def test_only_functions_that_compute(database: TestDatabase, other: TestDatabase) -> None:
    kinds = {
        "pure": "DETERMINISTIC NO SQL SQL SECURITY INVOKER",
        "Reads": "DETERMINISTIC READS SQL DATA SQL SECURITY INVOKER",
        "definer": "DETERMINISTIC NO SQL",
        "writes": "DETERMINISTIC MODIFIES SQL DATA SQL SECURITY INVOKER",
        "moody": "NOT DETERMINISTIC NO SQL SQL SECURITY INVOKER",
    }
    # Functions of other schemas count: names of no other test.
    mark = secrets.token_hex(4)
    for name, kind in kinds.items():
        database.run(f"CREATE FUNCTION {name}_{mark} (x int) RETURNS int {kind} RETURN x")
    for name in ("sleep", "benchmark", "abs"):
        database.run(f"CREATE FUNCTION `{name}` (x int) RETURNS int {kinds['pure']} RETURN x")
    other.run(
        f"CREATE FUNCTION far_{mark} (x int) RETURNS int {kinds['pure']} RETURN x",
        f"CREATE FUNCTION reads_{mark} (x int) RETURNS int {kinds['writes']} RETURN x",
    )
    found = source_of(database).functions()
    mine = {name for name in found if "." not in name}
    assert mine == {f"pure_{mark}"}  # elsewhere "reads" writes
    assert f"{other.name}.far_{mark}" in found
    assert {f"{database.name}.pure_{mark}", f"{database.name}.reads_{mark}"} <= found


def test_a_stored_function_does_not_pass_for_a_built_in_one(database: TestDatabase) -> None:
    database.run(
        "CREATE TABLE t (i int)", "INSERT INTO t VALUES (5)",
        "CREATE FUNCTION `count` (x int) RETURNS int MODIFIES SQL DATA RETURN 777",
    )  # fmt: skip
    source = source_of(database)
    tables, own = source.reflect(), source.functions()
    with pytest.raises(Refused, match="count"):
        admit("SELECT `count`(i) FROM t", "mysql", tables, functions=own)
    for text in ("SELECT count(i) FROM t", "SELECT COUNT (i) FROM t"):
        with source.session() as session:
            session.execute(admit(text, "mysql", tables, functions=own).sql)
            assert session.fetch(2) == [(1,)]
    source.close()


def test_many_tables_take_few_queries(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pymysql.connections

    sent: list[Any] = []
    original = pymysql.connections.Connection.query

    def count(self: Any, sql: Any, unbuffered: bool = False) -> Any:
        sent.append(sql)
        return original(self, sql, unbuffered)

    database.run(*(f"CREATE TABLE t{i} (i int PRIMARY KEY)" for i in range(60)))
    source = source_of(database)
    source.functions()  # connected
    monkeypatch.setattr(pymysql.connections.Connection, "query", count)
    assert len(source.reflect()) == 60
    assert len(sent) < 12
    started = time.monotonic()
    assert len(source.marks()) == 60
    assert time.monotonic() - started < 5


def test_no_password_in_an_error(database: TestDatabase) -> None:
    with user(database) as url:
        wrong = url.replace("s3cret", "wr0ng")
        source = source_of(database, url=wrong)
        with pytest.raises(SourceUnreadable, match="does not let us in") as caught:
            source.reflect()
        assert "wr0ng" not in f"{caught.value} {caught.value.hint} {source!r}"
        denied = source_of(database, url=url)
        with pytest.raises(DbragError) as refused:
            denied.reflect()
        assert "s3cret" not in f"{refused.value} {refused.value.hint} {denied!r}"


def test_every_allowed_function_is_a_built_in_one(database: TestDatabase) -> None:
    """A name that the server does not know would be a stored function, whatever that does."""
    from pymysql.err import MySQLError

    unknown = []
    with database.connect() as connection, connection.cursor() as cursor:
        for name in sorted(ALLOWED["mysql"]):
            for arguments in ("", "1", "1, 1", "1, 1, 1"):
                try:
                    cursor.execute(f"SELECT {name}({arguments})")
                except MySQLError as error:
                    if error.args[0] in (1305, 1630):
                        unknown.append(name)
                        break
    assert not unknown


@pytest.mark.parametrize("call", ["CUBE (i)", "ROLLUP(i)", "GROUPING(i)", "ANY_VALUE(i)"])
def test_words_of_other_engines_are_no_stored_functions(call: str) -> None:
    tables = [Table(TableRef("s", "d", "t"), (Column("i", "int"),))]
    with pytest.raises(Refused, match="not available"):
        admit(f"SELECT COUNT(*) FROM t GROUP BY {call}", "mysql", tables)
