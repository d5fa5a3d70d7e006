"""Unknown names are found before anything runs, with the names that were meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbrag.errors import UnknownName
from dbrag.execution.guard import admit
from dbrag.execution.schema import likeness, nearest, spelling

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbrag.types import Table

UNKNOWN = [
    ("SELECT nmae FROM singer", ("nmae",), "singer.Name"),
    ('SELECT "nmae" FROM singer', ("nmae",), "singer.Name"),
    ("SELECT name FROM singers", ("singers",), "singer"),
    ("SELECT s.nme, c.titel FROM singer s, concert c", ("s.nme", "c.titel"), "concert.title"),
    ("SELECT year FROM singer", ("year",), "concert.year"),
    ("SELECT singer.year FROM singer, concert", ("singer.year",), "concert.year"),
    ("SELECT singer.name FROM singer AS s", ("singer.name",), "singer.Name"),
    ("SELECT x.name FROM singer", ("x.name",), "singer.Name"),
    ("SELECT x.* FROM singer", ("x",), "singer"),
    ("SELECT name FROM singer WHERE \"contry\" = 'Peru'", ("contry",), "singer.country"),
    ('SELECT name FROM singer WHERE "contry" = "Peru"', ("contry",), "singer.country"),
    ("SELECT name FROM singer WHERE \"contry\" IN ('Peru')", ("contry",), "singer.country"),
    ('SELECT name FROM singer WHERE "contry" IS NULL', ("contry",), "singer.country"),
    (
        'SELECT name FROM singer WHERE "agee" < (SELECT avg(age) FROM singer)',
        ("agee",),
        "singer.age",
    ),
    ('SELECT name FROM singer WHERE "foo" = "bar"', ("foo",), None),
    ('SELECT sum("agee") FROM singer', ("agee",), "singer.age"),
    ('SELECT name FROM singer ORDER BY "agee"', ("agee",), "singer.age"),
    ('SELECT count(*) FROM singer GROUP BY "contry"', ("contry",), "singer.country"),
    ('SELECT upper("nmae") FROM singer', ("nmae",), "singer.Name"),
    (
        "SELECT name FROM singer WHERE age > (SELECT max(yaer) FROM concert)",
        ("yaer",),
        "concert.year",
    ),
    ("SELECT (SELECT s.nme FROM concert) FROM singer s", ("s.nme",), "singer.Name"),
    ("WITH a AS (SELECT name FROM singer) SELECT age FROM a", ("age",), "singer.age"),
    ("WITH a(n) AS (SELECT name FROM singer) SELECT name FROM a", ("name",), "singer.Name"),
    ("WITH a AS (SELECT nme FROM singer) SELECT 1", ("nme",), "singer.Name"),
    ("SELECT age FROM (SELECT name FROM singer)", ("age",), "singer.age"),
    ("SELECT q.age FROM (SELECT name FROM singer) q", ("q.age",), "singer.age"),
    ("SELECT name FROM singer UNION SELECT titel FROM concert", ("titel",), "concert.title"),
    (
        "SELECT name FROM singer UNION SELECT title FROM concert ORDER BY agee",
        ("agee",),
        "singer.age",
    ),
    (
        "SELECT name FROM singer JOIN concert ON singer_id = concert_idd",
        ("concert_idd",),
        "concert.concert_id",
    ),
    ("SELECT sum(age) OVER (PARTITION BY contry) FROM singer", ("contry",), "singer.country"),
    ("SELECT 1 FROM concert, json_each(extraa)", ("extraa",), "concert.extra"),
    ("SELECT rowid FROM (SELECT name FROM singer)", ("rowid",), None),
    ("SELECT name FROM elsewhere.singer", ("elsewhere.singer",), None),
    ("SELECT a.b.c.d.e FROM singer", ("a.b.c.d.e",), None),
]


@pytest.mark.parametrize(("sql", "names", "meant"), UNKNOWN, ids=[u[0][:50] for u in UNKNOWN])
def test_unknown_names(
    tables: Sequence[Table], sql: str, names: tuple[str, ...], meant: str | None
) -> None:
    with pytest.raises(UnknownName) as unknown:
        admit(sql, "sqlite", tables)
    error = unknown.value
    assert error.names == names
    for name in names:
        assert repr(name) in error.message
    if meant is not None:
        assert meant in error.suggestions
        assert meant in error.message
    assert error.code == "unknown_name"
    assert error.hint


def test_an_unknown_prefix_says_what_stands_in_from(tables: Sequence[Table]) -> None:
    with pytest.raises(UnknownName) as unknown:
        admit("SELECT singer.name FROM singer AS T1", "sqlite", tables)
    assert "'singer' is not in FROM; there is: T1" in unknown.value.hint


def test_text_in_double_quotes_that_cannot_be_meant_so_says_how_to_write_it(
    tables: Sequence[Table],
) -> None:
    with pytest.raises(UnknownName) as unknown:
        admit('SELECT "it\'s text" FROM singer', "sqlite", tables)
    assert "'it''s text'" in unknown.value.hint


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('country = "France"', "country = 'France'"),
        ('"France" = country', "'France' = country"),
        ('country != ""', "country != ''"),
        ('country IN ("France", "Peru")', "country IN ('France', 'Peru')"),
        ('name LIKE "%n%"', "name LIKE '%n%'"),
        ('name NOT LIKE "%n%"', "name NOT LIKE '%n%'"),
        ('name GLOB "A*"', "name GLOB 'A*'"),
        ('name = "it\'s me"', "name = 'it''s me'"),
        (
            'born BETWEEN "1980-01-01" AND "2000-01-01"',
            "born BETWEEN '1980-01-01' AND '2000-01-01'",
        ),
        ('lower(country) = "france"', "lower(country) = 'france'"),
        ('country = ("France")', "country = ('France')"),
        ('country = "France" COLLATE NOCASE', "country = 'France' COLLATE NOCASE"),
        ('(country, age) = ("Peru", 41)', "(country, age) = ('Peru', 41)"),
        ('strftime("%Y", born) = "1990"', "strftime('%Y', born) = '1990'"),
        ('country || "-" || age = "Peru-41"', "country || '-' || age = 'Peru-41'"),
        (
            'CASE WHEN age > 40 THEN "old" ELSE "new" END = "old"',
            "CASE WHEN age > 40 THEN 'old' ELSE 'new' END = 'old'",
        ),
        (
            "CASE WHEN age > 40 THEN \"son\" END = 'son'",
            "CASE WHEN age > 40 THEN 'son' END = 'son'",
        ),
        ('iif(age > 40, "x", "y") = "x"', "iif(age > 40, 'x', 'y') = 'x'"),
        ('(SELECT max(title) FROM concert) = "Gala"', "(SELECT max(title) FROM concert) = 'Gala'"),
    ],
)
def test_text_in_double_quotes_becomes_text(
    tables: Sequence[Table], written: str, meant: str
) -> None:
    sql = "SELECT name FROM singer WHERE "
    assert admit(sql + written, "sqlite", tables).sql == sql + meant


def test_a_column_in_double_quotes_stays_one(tables: Sequence[Table]) -> None:
    sql = 'SELECT "name" FROM "singer" WHERE "country" = "name"'
    assert admit(sql, "sqlite", tables).sql == sql


def test_likeness() -> None:
    assert likeness("Song_Name", "songname") == 1
    assert likeness("name", "Song_Name") >= 0.75
    assert likeness("abc", "xyz") == 0
    assert spelling("agee", "age") >= 0.75 > spelling("man", "manager")
    assert nearest("custmer", ["customers", "orders", "customer"]) == ["customer", "customers"]
    assert nearest("客", ["客户", "城市"]) == ["客户"]
