"""What is reflected of a PostgreSQL database: everything the user may read, by its real name."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from dbrag.catalog.profile import profile_table
from dbrag.errors import ExecutionError, Refused, SourceNotFound, SourceUnreadable
from dbrag.execution.guard import admit
from dbrag.options import OpenOptions
from dbrag.sources.servers.open import open_server
from dbrag.types import ForeignKey, Table, TableRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbrag.sources.base import Source
    from tests.servers import TestDatabase

LONG = "a" * 63

SCHEMA = f'''
CREATE SCHEMA shop;
CREATE SCHEMA "Mixed Case";
CREATE SCHEMA empty;
CREATE EXTENSION citext;
CREATE EXTENSION pg_stat_statements;
CREATE TYPE shop.mood AS ENUM ('sad', 'it''s ok');
CREATE DOMAIN shop.price AS numeric(38,20) CHECK (VALUE >= 0);
CREATE DOMAIN shop.dear AS shop.price NOT NULL;
CREATE TABLE shop.customers (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name varchar(40) NOT NULL,
    feeling shop.mood,
    feelings shop.mood[],
    budget shop.dear,
    mail public.citext,
    size int GENERATED ALWAYS AS (length(name)) STORED,
    at timestamptz(3),
    gone int
);
ALTER TABLE shop.customers DROP COLUMN gone;
COMMENT ON TABLE shop.customers IS 'who buys';
COMMENT ON COLUMN shop.customers.budget IS 'in EUR';
INSERT INTO shop.customers (name, budget) VALUES ('Anna', 1), ('Ben', 2);
CREATE TABLE "Mixed Case"."Order ""Lines""" (
    "from" int, "Line No" int, "价格" numeric, customer bigint REFERENCES shop.customers,
    {LONG} text, PRIMARY KEY ("Line No", "from")
);
CREATE TABLE shop.parts (
    "line" int, "order" int, part int PRIMARY KEY, parent int REFERENCES shop.parts,
    FOREIGN KEY ("line", "order") REFERENCES "Mixed Case"."Order ""Lines""" ("Line No", "from")
);
CREATE TABLE shop.events (id int, at date, customer bigint REFERENCES shop.customers,
    PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE shop.events_2020 PARTITION OF shop.events
    FOR VALUES FROM ('2020-01-01') TO ('2021-01-01') PARTITION BY LIST (id);
CREATE TABLE shop.events_2020_a PARTITION OF shop.events_2020 DEFAULT;
CREATE TABLE shop.events_2021 PARTITION OF shop.events
    FOR VALUES FROM ('2021-01-01') TO ('2022-01-01');
INSERT INTO shop.events SELECT i, '2020-05-05' FROM generate_series(1, 700) i;
INSERT INTO shop.events SELECT i, '2021-05-05' FROM generate_series(1, 300) i;
CREATE TABLE shop.animals (name text);
CREATE TABLE shop.dogs (barks bool) INHERITS (shop.animals);
INSERT INTO shop.dogs VALUES ('Rex', true);
CREATE VIEW shop.rich AS SELECT name, budget FROM shop.customers WHERE budget > 1;
COMMENT ON VIEW shop.rich IS 'over 1';
CREATE MATERIALIZED VIEW shop.daily AS SELECT at, count(*) AS n FROM shop.events GROUP BY at;
CREATE MATERIALIZED VIEW shop.never AS SELECT 1 AS n WITH NO DATA;
CREATE VIEW shop.broken AS SELECT 1 / (budget - budget) AS x FROM shop.customers;
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE shop.passwords (line text) SERVER files OPTIONS (filename '/etc/hostname');
CREATE TABLE "select" ("SELECT" int);
CREATE UNLOGGED TABLE public.nothing ();
ANALYZE;
'''


@pytest.fixture(scope="module")
def database(postgres: TestDatabase) -> TestDatabase:
    with postgres.connect() as connection:
        connection.execute(SCHEMA)
    return postgres


@pytest.fixture(scope="module")
def source(database: TestDatabase) -> Iterator[Source]:
    opened = open_server("db", database.url, database.url, OpenOptions())
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def tables(source: Source) -> dict[str, Table]:
    return {f"{table.ref.schema}.{table.ref.name}": table for table in source.reflect()}


def test_all_kinds_of_tables_and_no_others(tables: dict[str, Table]) -> None:
    assert {name: table.kind for name, table in tables.items()} == {
        'Mixed Case.Order "Lines"': "table",
        "public.nothing": "table",
        "public.select": "table",
        "shop.animals": "table",
        "shop.broken": "view",
        "shop.customers": "table",
        "shop.daily": "materialized view",
        "shop.dogs": "table",
        "shop.events": "table",
        "shop.never": "materialized view",
        "shop.parts": "table",
        "shop.passwords": "foreign table",
        "shop.rich": "view",
    }
    assert list(tables) == sorted(tables)


def test_columns(tables: dict[str, Table]) -> None:
    customers = tables["shop.customers"]
    assert [(c.name, c.type, c.nullable, c.comment) for c in customers.columns] == [
        ("id", "bigint", False, ""),
        ("name", "character varying(40)", False, ""),
        ("feeling", "enum('sad','it''s ok')", True, ""),
        ("feelings", "enum('sad','it''s ok')[]", True, ""),
        ("budget", "numeric(38,20)", False, "in EUR"),
        ("mail", "citext", True, ""),
        ("size", "integer", True, ""),
        ("at", "timestamp(3) with time zone", True, ""),
    ]
    assert customers.comment == "who buys"
    assert tables["shop.rich"].comment == "over 1"
    odd = tables['Mixed Case.Order "Lines"']
    assert [c.name for c in odd.columns] == ["from", "Line No", "价格", "customer", LONG]
    assert tables["public.nothing"].columns == ()


def test_keys(tables: dict[str, Table]) -> None:
    lines = TableRef("db", "Mixed Case", 'Order "Lines"')
    customers = TableRef("db", "shop", "customers")
    parts = TableRef("db", "shop", "parts")
    assert tables['Mixed Case.Order "Lines"'].primary_key == ("Line No", "from")
    assert tables['Mixed Case.Order "Lines"'].foreign_keys == (
        ForeignKey(("customer",), customers, ("id",)),
    )
    assert tables["shop.parts"].foreign_keys == (
        ForeignKey(("line", "order"), lines, ("Line No", "from")),
        ForeignKey(("parent",), parts, ("part",)),
    )
    assert tables["shop.events"].primary_key == ("id", "at")
    assert tables["shop.events"].foreign_keys == (ForeignKey(("customer",), customers, ("id",)),)


def test_estimates(tables: dict[str, Table]) -> None:
    estimates = {name: table.estimate for name, table in tables.items()}
    assert estimates["shop.events"] == 1000
    assert estimates["shop.customers"] == 2
    assert estimates["shop.animals"] == 1
    assert estimates["shop.daily"] == 2
    assert estimates["shop.rich"] is None
    assert estimates["shop.passwords"] is None


def test_everything_can_be_profiled(source: Source, tables: dict[str, Table]) -> None:
    counts = {}
    for name, table in tables.items():
        profiled, _ = profile_table(source, table, profile_rows=2000, profile_s=10)
        counts[name] = profiled.row_count
        if name in ("shop.broken", "shop.never"):
            assert profiled.comment.startswith("cannot be read: ")
    assert counts["shop.events"] == 1000
    assert counts["shop.animals"] == 1
    assert counts["shop.passwords"] == 1
    assert counts["public.select"] == 0


@pytest.mark.parametrize("tables", [10, 200])
def test_the_number_of_queries_is_fixed(
    database: TestDatabase, monkeypatch: pytest.MonkeyPatch, tables: int
) -> None:
    names = [f"many.t{i}" for i in range(tables)]
    database.run(
        "DROP SCHEMA IF EXISTS many CASCADE",
        "CREATE SCHEMA many",
        *(f"CREATE TABLE {name} (id int PRIMARY KEY, other int)" for name in names),
    )
    opened = open_server("db", database.url, database.url, OpenOptions(schemas=("many",)))
    queries = []
    execute = psycopg.Connection.execute

    def counted(self: Any, query: Any, *args: Any, **kwargs: Any) -> Any:
        queries.append(query)
        return execute(self, query, *args, **kwargs)

    monkeypatch.setattr(psycopg.Connection, "execute", counted)
    found = opened.reflect()
    assert len(found) == len(opened.marks()) == tables
    assert not any(opened.statistics(table) for table in found[:5])
    assert len(queries) < 40
    opened.close()
    database.run("DROP SCHEMA many CASCADE")


def test_schemas_that_are_asked_for(database: TestDatabase) -> None:
    def reflected(*schemas: str) -> list[str]:
        opened = open_server("db", database.url, database.url, OpenOptions(schemas=schemas))
        try:
            return [str(table.ref) for table in opened.reflect()]
        finally:
            opened.close()

    assert reflected("Mixed Case", "public") == [
        'db.Mixed Case.Order "Lines"',
        "db.public.nothing",
        "db.public.select",
    ]
    with pytest.raises(SourceNotFound, match="'mixed case'") as caught:
        reflected("mixed case")
    assert "'Mixed Case'" in caught.value.hint
    with pytest.raises(SourceNotFound) as caught:
        reflected("zzz")
    assert "'shop'" in caught.value.hint
    with pytest.raises(SourceUnreadable, match="no tables"):
        reflected("empty")
    with pytest.raises(SourceNotFound):
        reflected("pg_catalog")


def test_unqualified_names_lead_to_the_schemas_read(database: TestDatabase) -> None:
    options = OpenOptions(schemas=("shop",))
    opened = open_server("db", database.url, database.url, options)
    with opened.session(10) as session:
        session.execute("SELECT count(*) FROM customers WHERE mail = 'X' OR true")
        assert session.fetch(1) == [(2,)]
    opened.close()


def test_statistics(source: Source, tables: dict[str, Table], database: TestDatabase) -> None:
    database.run(
        "CREATE TABLE shop.measured AS SELECT i AS id, "
        "CASE WHEN i % 4 = 0 THEN NULL WHEN i % 4 = 1 THEN 'a,\"b' ELSE 'c' END AS word, "
        "ARRAY[i % 2, 7] AS pair, i::numeric / 4 AS n FROM generate_series(1, 10000) i",
        "ANALYZE shop.measured",
    )
    (table,) = [t for t in source.reflect() if t.ref.name == "measured"]
    facts = source.statistics(table)
    assert facts["id"].distinct == 10000
    assert (facts["id"].minimum, facts["id"].maximum) == ("1", "10000")
    assert facts["word"].null_share == pytest.approx(0.25, abs=0.02)
    shares = dict(facts["word"].frequent)
    assert list(shares) == ["c", 'a,"b']
    assert shares["c"] == pytest.approx(0.5, abs=0.02)
    assert {value for value, _ in facts["pair"].frequent} == {"{0,7}", "{1,7}"}
    # A view has none.
    assert source.statistics(tables["shop.rich"]) == {}
    database.run("DROP TABLE shop.measured")


FUNCTIONS = """
CREATE FUNCTION shop.twice(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 2 * x';
CREATE FUNCTION shop.four(x int) RETURNS int LANGUAGE sql IMMUTABLE
    AS 'SELECT shop.twice(shop.twice(x))';
CREATE FUNCTION shop.modern(x int) RETURNS int LANGUAGE sql STABLE RETURN x + 1;
CREATE FUNCTION shop."Mixed"(x int) RETURNS int LANGUAGE plpgsql STABLE
    AS $$ BEGIN RETURN x; END $$;
CREATE FUNCTION shop.volatile_one(x int) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT x';
CREATE FUNCTION shop.calls_it(x int) RETURNS int LANGUAGE sql STABLE
    AS 'SELECT shop.volatile_one(x)';
CREATE FUNCTION shop.calls_that(x int) RETURNS int LANGUAGE sql STABLE
    AS 'SELECT shop.calls_it(x)';
CREATE FUNCTION shop.definer(x int) RETURNS int LANGUAGE sql STABLE SECURITY DEFINER
    AS 'SELECT x';
CREATE FUNCTION shop.many(x int) RETURNS SETOF int LANGUAGE sql STABLE AS 'SELECT x';
CREATE FUNCTION shop.pg_sleep(x text) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
CREATE FUNCTION shop.sleepy(x int) RETURNS text LANGUAGE sql STABLE
    AS 'SELECT pg_sleep(x)::text';
CREATE FUNCTION shop.any_text(q text) RETURNS int LANGUAGE plpgsql STABLE
    AS $$ DECLARE r int; BEGIN EXECUTE q INTO r; RETURN r; END $$;
CREATE FUNCTION shop.half(x int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT x / 2';
CREATE FUNCTION public.half(x text) RETURNS int LANGUAGE sql VOLATILE AS 'SELECT 1';
"""


def test_functions_that_only_compute(database: TestDatabase) -> None:
    with database.connect() as connection:
        connection.execute(FUNCTIONS)
    for schemas, expected in (
        ((), {"twice", "four", "modern", "mixed"}),
        (("public",), set()),
    ):
        opened = open_server("db", database.url, database.url, OpenOptions(schemas=schemas))
        assert opened.functions() == expected
        opened.close()


def test_a_built_in_function_that_the_user_has_too(database: TestDatabase) -> None:
    """The server takes the one that fits the arguments, here one with its owner's rights."""
    database.run(
        "CREATE FUNCTION public.upper(int) RETURNS text LANGUAGE sql STABLE SECURITY DEFINER "
        "AS $$ SELECT 'secret' $$",
        "CREATE FUNCTION public.initcap(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1'",
    )
    opened = open_server("db", database.url, database.url, OpenOptions())
    try:
        own, tables = opened.functions(), opened.reflect()
        assert "!upper" in own
        assert "!initcap" not in own
        for statement in ("SELECT upper(5)", "SELECT Upper (5)", "SELECT public.upper(5)"):
            with pytest.raises(Refused):
                admit(statement, "postgres", tables, functions=own)
        admit("SELECT pg_catalog.upper('x')", "postgres", tables, functions=own)
    finally:
        opened.close()
        database.run("DROP FUNCTION public.upper(int), public.initcap(int)")


def test_only_what_the_user_may_read(
    database: TestDatabase, caplog: pytest.LogCaptureFixture
) -> None:
    role = f"{database.name}_reader"
    database.run(
        f"CREATE ROLE {role} LOGIN",
        f"GRANT USAGE ON SCHEMA shop TO {role}",
        f"GRANT SELECT ON shop.rich, shop.parts TO {role}",
        f"GRANT SELECT (id, name) ON shop.customers TO {role}",
        # Without USAGE on its schema, a grant on a table is not enough.
        f'GRANT SELECT ON ALL TABLES IN SCHEMA "Mixed Case" TO {role}',
    )
    url = database.url_as(role)
    try:
        opened = open_server("db", url, url, OpenOptions())
        with caplog.at_level(logging.WARNING):
            tables = {table.ref.name: table for table in opened.reflect()}
        assert set(tables) == {"rich", "parts", "customers"}
        assert "no permission to read" in caplog.text
        customers = tables["customers"]
        assert [c.name for c in customers.columns] == ["id", "name"]
        assert "budget" in customers.redacted
        # The key leads to a table that may not be read.
        assert tables["parts"].foreign_keys == (
            ForeignKey(("parent",), TableRef("db", "shop", "parts"), ("part",)),
        )
        profiled, rows = profile_table(opened, customers, profile_rows=10, profile_s=5)
        assert profiled.row_count == 2
        assert [row[1] for row in rows] == ["Anna", "Ben"]
        assert set(opened.marks()) == {table.ref for table in tables.values()}
        with opened.session(5) as session, pytest.raises(ExecutionError) as caught:
            session.execute("SELECT * FROM shop.events")
        assert "events" in caught.value.message
        assert f'GRANT SELECT ON events TO "{role}"' in caught.value.hint
        opened.close()
        with pytest.raises(SourceUnreadable, match="no permission"):
            open_server("db", url, url, OpenOptions(schemas=("Mixed Case",))).reflect()
        database.run(f"REVOKE ALL ON ALL TABLES IN SCHEMA shop FROM {role}")
        database.run(f"REVOKE ALL (id, name) ON shop.customers FROM {role}")
        opened = open_server("db", url, url, OpenOptions())
        with pytest.raises(SourceUnreadable, match="may read none") as none:
            opened.reflect()
        assert "GRANT SELECT ON ALL TABLES" in none.value.hint
        opened.close()
    finally:
        database.run(f"DROP OWNED BY {role}", f"DROP ROLE {role}")


def test_an_empty_database_says_so(postgres: TestDatabase) -> None:
    url = postgres.parsed.set(database="template1").render_as_string(hide_password=False)
    opened = open_server("db", url, url, OpenOptions())
    with pytest.raises(SourceUnreadable, match="is empty"):
        opened.reflect()
    opened.close()
