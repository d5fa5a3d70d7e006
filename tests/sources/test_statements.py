# ruff: noqa: E501 - statements are easier to compare on one line
"""The statements that dbrag sends to read tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import sqlglot
from hypothesis import given
from hypothesis import strategies as st

from dbrag.sources.statements import (
    HIDDEN,
    count_rows,
    form_of,
    key_range,
    sample_rows,
    select_rows,
    spread_rows,
)
from dbrag.types import Column, Table, TableRef

ODD = Table(
    TableRef("s", "my schema", 'Dash-"board'),
    (Column("id", "bigint"), Column('a"b', "text"), Column("pic", "bytea"), Column("h", "", comment=HIDDEN)),
    primary_key=("id",),
)  # fmt: skip


def test_sqlite_as_ever() -> None:
    table = Table(
        TableRef("s", None, 't"x'), (Column("a", "TEXT"), Column("b", ""), *ODD.columns[3:])
    )
    assert select_rows(table, 7) == (
        'SELECT "a", CASE WHEN TYPEOF("b") = \'blob\' AND LENGTH("b") > 64 THEN \'<blob \' || '
        'LENGTH("b") || \' bytes>\' ELSE "b" END, NULL FROM "t""x" LIMIT 7'
    )
    assert count_rows(table) == 'SELECT COUNT(*) FROM "t""x"'
    large = replace(table, estimate=10**9)
    assert sample_rows(large, 7) is key_range(large, 7, "sqlite") is None


def test_postgres() -> None:
    assert select_rows(ODD, 7, "postgres") == (
        'SELECT "id", left("a""b", 10001), CASE WHEN octet_length("pic") > 64 THEN '
        "convert_to('<blob ' || octet_length(\"pic\") || ' bytes>', 'UTF8') ELSE \"pic\" END, NULL "
        'FROM "my schema"."Dash-""board" LIMIT 7'
    )
    assert select_rows(ODD, 7, "postgres", as_text=True).startswith(
        'SELECT left(CAST("id" AS text), 10001), left('
    )


def test_samples_only_of_much_larger_tables() -> None:
    large = replace(ODD, estimate=1_000_000)
    sample = sample_rows(large, 1000, "postgres")
    assert sample is not None
    assert sample.endswith("TABLESAMPLE SYSTEM (0.22000000) REPEATABLE (0) LIMIT 1000")
    assert sample_rows(replace(large, kind="materialized view"), 1000, "postgres") == sample
    assert str(sample_rows(large, 1000, "duckdb")).endswith(
        "TABLESAMPLE SYSTEM (0.22000000%) REPEATABLE (0) LIMIT 1000"
    )
    for other in (
        ODD,
        replace(large, estimate=2000),
        replace(large, kind="view"),
        replace(large, kind="foreign table"),
    ):
        assert sample_rows(other, 1000, "postgres") is None
    assert sample_rows(large, 1000, "mysql") is None
    assert sample_rows(large, 1000, "snowflake") is None


def test_mysql_reads_from_all_over_the_key() -> None:
    large = replace(ODD, estimate=1_000_000)
    assert key_range(large, 1000, "mysql") == (
        'SELECT MIN(`id`), MAX(`id`) FROM `my schema`.`Dash-"board`'
    )
    for other in (
        ODD,
        replace(large, primary_key=()),
        replace(large, primary_key=("id", "pic")),
        replace(large, primary_key=("pic",)),
        replace(large, kind="view"),
    ):
        assert key_range(other, 1000, "mysql") is None
    statement = spread_rows(large, 50, "mysql", 1, 1000)
    assert statement.count("UNION ALL") == 19
    assert "WHERE `id` >= 951 AND `id` < 1001 ORDER BY `id` LIMIT 2)" in statement


@given(st.integers(-(2**40), 2**40), st.integers(0, 2**40), st.integers(1, 10_000))
def test_the_places_of_a_key_cover_it_once(low: int, width: int, limit: int) -> None:
    import re

    statement = spread_rows(ODD, limit, "mysql", low, low + width)
    found = re.findall(r">= (-?\d+) AND `id` < (-?\d+) ORDER BY `id` LIMIT (\d+)", statement)
    places = [(int(a), int(b)) for a, b, _ in found]
    assert sum(int(n) for *_, n in found) == limit
    assert places[0][0] == low
    assert places[-1][1] > low + width
    assert all(a[1] == b[0] for a, b in pairwise(places))


@pytest.mark.parametrize("dialect", ["sqlite", "postgres", "mysql", "duckdb", "snowflake"])
@pytest.mark.parametrize("as_text", [False, True])
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_any_name_is_one_identifier(dialect: str, as_text: bool, name: str) -> None:
    table = Table(TableRef("s", None, name), (Column(name, "text"), Column(name, "int")))
    (statement,) = sqlglot.parse(select_rows(table, 5, dialect, as_text=as_text), dialect=dialect)
    assert isinstance(statement, sqlglot.exp.Select)
    assert {column.name for column in statement.find_all(sqlglot.exp.Column)} == {name}
    assert [one.name for one in statement.find_all(sqlglot.exp.Table)] == [name]


@pytest.mark.parametrize(
    ("declared", "form"),
    [
        ("int", "plain"), ("bigint(20) unsigned", "plain"), ("double precision", "plain"),
        ("numeric(38,20)", "plain"), ("timestamp(6) without time zone", "plain"),
        ("timestamp[us, tz=UTC]", "plain"), ("date32[day]", "plain"), ("uuid", "plain"),
        ("BOOLEAN", "plain"), ("decimal128(10, 2)", "plain"), ("HUGEINT", "plain"),
        ("text", "text"), ("character varying", "text"), ("VARCHAR", "text"), ("large_string", "text"),
        ("varchar(20000)", "text"), ("varchar(20)", "short text"), ("character varying(255)", "short text"),
        ("enum('a','b')", "short text"), ("char(5)", "short text"), ("longtext", "text"),
        ("bytea", "binary"), ("varbinary(16)", "binary"), ("BLOB", "binary"), ("fixed_size_binary[16]", "binary"),
        ("jsonb", "other"), ("integer[]", "other"), ("text[]", "other"), ("varchar(20)[]", "other"),
        ("INTEGER[3]", "other"), ("STRUCT(a INTEGER)", "other"), ("list<item: int64>", "other"),
        ("interval", "other"), ("bit(3)", "other"), ("mood", "other"), ("", "other"), ("point", "other"),
        ('"char"', "other"), ("tsvector", "other"), ("dictionary<values=string, indices=int32>", "other"),
    ],
)  # fmt: skip
def test_forms(declared: str, form: Any) -> None:
    assert form_of(declared) == form
