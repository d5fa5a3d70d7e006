"""Every type of PostgreSQL, exactly, from the server to the result."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
import pytest

from dbrag.execution.run import run
from dbrag.options import OpenOptions
from dbrag.sources.servers.open import open_server
from dbrag.types import TableRef

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dbrag.sources.base import Source
    from tests.servers import TestDatabase

UTC = dt.UTC
NO_TIME = dt.timezone(dt.timedelta(hours=2))

# (expression, value): the value's type counts too.
EXACT: list[tuple[str, Any]] = [
    ("NULL::text", None),
    ("''::text", ""),
    ("true", True),
    ("32767::int2", 32767),
    ("9223372036854775807::int8", 9223372036854775807),
    ("(-9223372036854775808)::int8", -9223372036854775808),
    ("4294967295::oid", 4294967295),
    (
        "123456789012345678.12345678901234567890::numeric(38,20)",
        Decimal("123456789012345678.12345678901234567890"),
    ),
    ("1.10::numeric", Decimal("1.10")),
    ("1e-20::numeric", Decimal("0.00000000000000000001")),
    ("'Infinity'::numeric", Decimal("Infinity")),
    ("'-Infinity'::numeric", Decimal("-Infinity")),
    ("0.1::float8", 0.1),
    ("1.1::float4", 1.1),
    ("'-Infinity'::float8", -math.inf),
    ("5e-324::float8", 5e-324),
    ("'$1234.50'::money::numeric", Decimal("1234.50")),
    (
        "'6c84fb90-12c4-11e1-840d-7b25c5ee775a'::uuid",
        UUID("6c84fb90-12c4-11e1-840d-7b25c5ee775a"),
    ),
    ("'2024-02-29'::date", dt.date(2024, 2, 29)),
    ("'infinity'::date", "infinity"),
    ("'0044-03-15 BC'::date", "0044-03-15 BC"),
    ("'10000-01-01'::date", "10000-01-01"),
    ("'2024-01-02 03:04:05.000001'::timestamp", dt.datetime(2024, 1, 2, 3, 4, 5, 1)),
    ("'-infinity'::timestamp", "-infinity"),
    ("'294276-01-01'::timestamp", "294276-01-01 00:00:00"),
    (
        "'2024-01-02 03:04:05.678+05:30'::timestamptz",
        dt.datetime(2024, 1, 1, 21, 34, 5, 678000, UTC),
    ),
    ("'infinity'::timestamptz", "infinity"),
    ("'0044-03-15 12:00+00 BC'::timestamptz", "0044-03-15 12:00:00+00 BC"),
    ("'23:59:59.999999'::time", dt.time(23, 59, 59, 999999)),
    ("'24:00:00'::time", "24:00:00"),
    ("'03:04:05+02'::timetz", dt.time(3, 4, 5, tzinfo=NO_TIME)),
    ("'1 year 2 mons 3 days 04:05:06.7'::interval", "P1Y2M3DT4H5M6.7S"),
    ("'1 month'::interval", "P1M"),
    ("'30 days'::interval", "P30D"),
    ("'-1 mon +3 days'::interval", "P-1M3D"),
    ("'0'::interval", "PT0S"),
    ("""'{"a": 1.10, "b":12345678901234567890}'::json""", '{"a": 1.10, "b":12345678901234567890}'),
    ("""'{"b": 1.10}'::jsonb""", '{"b": 1.10}'),
    ("'null'::jsonb", "null"),
    ("'\\x00ff'::bytea", b"\x00\xff"),
    ("''::bytea", b""),
    ("B'10101'::bit(5)", "10101"),
    ("B''::bit varying", ""),
    ("'{1,NULL,3}'::int[]", [1, None, 3]),
    ("'{{1,2},{3,4}}'::int[]", [[1, 2], [3, 4]]),
    ("'{}'::numeric[]", []),
    ("'[2:3]={1,2}'::int[]", [1, 2]),
    ("ARRAY['a,b', NULL, 'NULL', '', '\"q\"']", ["a,b", None, "NULL", "", '"q"']),
    ("ARRAY['infinity'::timestamp]", ["infinity"]),
    ("ARRAY['1 mon'::interval]", ["P1M"]),
    ("'[1,5)'::int4range", "[1,5)"),
    ("'empty'::daterange", "empty"),
    ("'(,infinity]'::tsrange", "(,infinity]"),
    ("'{[1,2),[5,6)}'::int4multirange", "{[1,2),[5,6)}"),
    ("'10.0.0.1/8'::inet", "10.0.0.1/8"),
    ("'10.0.0.1'::inet", "10.0.0.1"),
    ("'08:00:2b:01:02:03'::macaddr", "08:00:2b:01:02:03"),
    ("'ab'::char(5)", "ab   "),
    ("'q'::\"char\"", "q"),
    ("'x'::name", "x"),
    ("'<a>1</a>'::xml", "<a>1</a>"),
    ("'fat cat'::tsvector", "'cat' 'fat'"),
    ("'(1,2)'::point", "(1,2)"),
    ("'((0,0),(1,1))'::polygon", "((0,0),(1,1))"),
    ("row(1, 'a,b', NULL)", '(1,"a,b",)'),
    ("'happy'::mood", "happy"),
    ("'{sad,happy}'::mood[]", "{sad,happy}"),
    ("1.5::price", Decimal("1.50")),
    ("(1, 'x')::pair", "(1,x)"),
    ("'Hello'::citext", "Hello"),
    ("'a=>1'::hstore", '"a"=>"1"'),
    ("'pg_class'::regclass", "pg_class"),
    ("repeat('ä😀', 200000)", "ä😀" * 200000),
    ("E'a\\tb\\nc\\\\'", "a\tb\nc\\"),
]


@pytest.fixture(scope="module")
def source(postgres: TestDatabase) -> Iterator[Source]:
    postgres.run(
        "CREATE EXTENSION citext",
        "CREATE EXTENSION hstore",
        "CREATE TYPE mood AS ENUM ('sad', 'happy')",
        "CREATE DOMAIN price AS numeric(8,2)",
        "CREATE TYPE pair AS (a int, b text)",
        # An answer must not depend on the settings of a role or of a database.
        f"ALTER DATABASE {postgres.name} SET DateStyle = 'German'",
        f"ALTER DATABASE {postgres.name} SET IntervalStyle = 'postgres_verbose'",
        f"ALTER DATABASE {postgres.name} SET TimeZone = 'Asia/Tokyo'",
        f"ALTER DATABASE {postgres.name} SET bytea_output = 'escape'",
        f"ALTER DATABASE {postgres.name} SET extra_float_digits = -5",
    )
    opened = open_server("db", postgres.url, postgres.url, OpenOptions())
    yield opened
    opened.close()


@pytest.mark.parametrize(("expression", "value"), EXACT, ids=[e[:40] for e, _ in EXACT])
def test_value_is_exact(source: Source, expression: str, value: Any) -> None:
    with source.session(30) as session:
        session.execute(f"SELECT {expression} AS v")
        ((got,),) = session.fetch(5)
    assert got == value
    assert type(got) is type(value)


def test_not_a_number(source: Source) -> None:
    with source.session(30) as session:
        session.execute("SELECT 'NaN'::numeric, 'NaN'::float8")
        ((exact, double),) = session.fetch(1)
    assert exact.is_nan()
    assert math.isnan(double)


def test_result_of_all_types_as_arrow_and_json(source: Source) -> None:
    columns = ", ".join(expression for expression, _ in EXACT)
    result = run(source, f"SELECT {columns}", timeout_s=30, max_rows=10, max_mb=50)
    assert result.table.num_rows == 1
    assert result.table.num_columns == len(EXACT)


def test_duplicate_names_are_kept(source: Source) -> None:
    with source.session(30) as session:
        assert session.execute("SELECT 1 AS n, 2 AS n") == ["n", "n"]
        assert session.fetch(9) == [(1, 2)]
        # also where there is no row, and where there is no column
        assert session.execute("SELECT 1 AS n, 2 AS n WHERE false") == ["n", "n"]
        assert session.fetch(9) == []
        assert session.execute("SELECT") == []


def test_any_bytes_in_a_database_without_encoding(postgres: TestDatabase) -> None:
    name = f"{postgres.name}_ascii"
    postgres.run(f"CREATE DATABASE {name} ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
    try:
        url = postgres.parsed.set(database=name).render_as_string(hide_password=False)
        opened = open_server("db", url, url, OpenOptions(schemas=("中文",)))
        with psycopg.connect(url, client_encoding="latin1", autocommit=True) as connection:
            connection.execute('CREATE SCHEMA "中文"'.encode())
            connection.execute('CREATE TABLE "中文"."größe" ("naïve" text)'.encode())
            connection.execute('INSERT INTO "中文"."größe" VALUES (\'ä\')'.encode())
            connection.execute('INSERT INTO "中文"."größe" VALUES (E\'\\377A\')'.encode())
        (table,) = opened.reflect()
        assert table.ref == TableRef("db", "中文", "größe")
        assert [column.name for column in table.columns] == ["naïve"]
        with opened.session(30) as session:
            assert session.execute('SELECT * FROM "größe" WHERE "naïve" <> \'ö\'') == ["naïve"]
            assert session.fetch(9) == [("ä",), ("\ufffdA",)]
        opened.close()
    finally:
        postgres.run(f"DROP DATABASE {name} WITH (FORCE)")
