"""Warnings about noisy texts that a program takes as they stand."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from dbrag.catalog.catalog import Catalog
from dbrag.catalog.profile import _profile
from dbrag.reasoning.noise import noise_warnings
from dbrag.types import Column, Program, Table, TableRef

SHOP: dict[str, Sequence[object]] = {
    "shop_id": [1, 2, 3, 4, 5, 6],
    "city": ["Paris", "paris ", "PARIS", "Rome", "Rome", "Oslo"],
    "opened": ["05.03.2024", "2023-12-25", "31.01.2020", "2021-01-01", "2022-02-02", "N/A"],
    "closed": ["3/25/24", "1/2/24", "1/3/24", "1/4/24", "1/5/24", "1/6/24"],
    "rent": ["€1,200", "900", "1.100,50 €", "800", "€2,000", "-"],
    "area": ["12 m2", "1 km2", "100 m2", "80 m2", "9 m2", "N/A"],
    "stars": ["9", "10", "8", "7", "6", "N/A"],
    "owner": ["ann", "bob ", "cid", "dan", "eve", "fay"],
    "note": ["fine", "good", "bad", "so so", "well", "old"],
}


def catalog(*, sampled: bool = False) -> Catalog:
    columns = tuple(
        Column(name, "INTEGER" if isinstance(values[0], int) else "TEXT")
        for name, values in SHOP.items()
    )
    profile = tuple(_profile(name, values) for name, values in SHOP.items())
    shop = Table(
        TableRef("s", None, "shop"), columns, profile=profile, row_count=6, sampled=sampled
    )
    people = Table(
        TableRef("s", None, "people"),
        (Column("name", "TEXT"), Column("age", "INTEGER")),
        profile=(_profile("name", ["ann", "bob"]), _profile("age", [1, 2])),
    )
    return Catalog((people, shop))


def warned(sql: str, dialect: str = "sqlite", *, sampled: bool = False) -> list[tuple[str, str]]:
    known = catalog(sampled=sampled)
    program = Program((), sql, dialect, tuple(known.refs))
    return [(one.code, one.message) for one in noise_warnings(program, known)]


def test_other_spellings_of_a_compared_value() -> None:
    said = "shop.city also holds 'paris ' and 'PARIS' (2 rows), not equal to 'Paris'"
    for sql in (
        "SELECT COUNT(*) FROM shop WHERE city = 'Paris'",
        "SELECT COUNT(*) FROM shop AS s WHERE s.city IN ('Paris', 'Rome')",
        "SELECT COUNT(*) FROM (SELECT city AS place FROM shop) AS t WHERE t.place <> 'Paris'",
        "WITH a AS (SELECT * FROM people), b AS (SELECT city FROM shop) "
        "SELECT COUNT(*) FROM b WHERE 'Paris' = city",
    ):
        assert warned(sql) == [("mixed_spellings", said)], sql
    for sql in (
        "SELECT SUM(CASE WHEN city = 'Paris' THEN 1 ELSE 0 END) FROM shop",
        "SELECT SUM(CASE WHEN city IN ('Paris') AND rent > 1 THEN rent END) FROM shop",
        "SELECT COUNT(CASE WHEN 'Paris' <> city THEN city END) FROM shop",
        "SELECT SUM(CASE (city) WHEN 'Rome' THEN 2 WHEN 'Paris' THEN 1 END) FROM shop",
        "SELECT SUM(IIF(city = 'Paris', 1, 0)) FROM shop",
        "SELECT CASE WHEN shop_id > 1 THEN 0 ELSE CASE WHEN city = 'Paris' THEN 1 END END "
        "FROM shop",
        "SELECT CASE WHEN city = 'Paris' THEN 1 ELSE CASE WHEN city = 'Rome' THEN 2 END END "
        "FROM shop",
    ):
        assert warned(sql) == [("mixed_spellings", said)], sql
    sql = "SELECT COUNT(*) FROM shop WHERE city = 'Paris'"
    assert warned(sql, sampled=True)[0][1] == said.replace(" (2 rows)", "")
    assert warned(sql, "mysql") == []  # there = overlooks them


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT COUNT(*) FROM shop WHERE city = 'Rome'",
        "SELECT COUNT(*) FROM shop WHERE city IN ('Paris', 'PARIS', 'paris ')",
        "SELECT COUNT(*) FROM shop WHERE city = 'Paris' OR city = 'PARIS' OR city = 'paris '",
        "SELECT COUNT(*) FROM shop WHERE lower(trim(city)) = 'paris'",
        "SELECT COUNT(*) FROM shop WHERE city = 'Paris' COLLATE NOCASE",
        "SELECT lower(trim(city)) AS city, COUNT(*) FROM shop GROUP BY lower(trim(city))",
        "SELECT lower(trim(city)) AS city, COUNT(*) FROM shop GROUP BY city",
        "SELECT city FROM shop",
        "SELECT note, COUNT(*) FROM shop WHERE note = 'fine' GROUP BY note ORDER BY note",
        "SELECT MAX(shop_id), SUM(shop_id) FROM shop WHERE shop_id > 3",
        "SELECT rent FROM shop WHERE opened IN ('N/A')",
        "SELECT rent FROM shop WHERE opened LIKE '2024-%' OR opened LIKE '%.2024'",
        "SELECT MIN(CASE WHEN opened LIKE '__.__.____' THEN substr(opened, 7) ELSE opened END) "
        "FROM shop",
        "SELECT CASE WHEN city IN ('PARIS', 'paris ') THEN 'Paris' ELSE city END FROM shop",
        "SELECT CASE city WHEN 'PARIS' THEN 'Paris' ELSE trim(city) END FROM shop",
        "SELECT IIF(city = 'PARIS', 'Paris', city) FROM shop",
        "SELECT SUM(CASE WHEN lower(trim(city)) = 'paris' THEN 1 END) FROM shop",
        "SELECT SUM(CASE WHEN city IN ('Paris', 'PARIS', 'paris ') THEN 1 END) FROM shop",
        "SELECT SUM(CASE WHEN opened = 'n/a' THEN 1 END) FROM shop",
        "SELECT SUM(CAST(replace(replace(rent, '€', ''), ',', '') AS REAL)) FROM shop",
        "SELECT SUM(CAST(area AS REAL) * CASE WHEN area LIKE '%km2' THEN 1000000 ELSE 1 END) "
        "FROM shop WHERE area <> 'N/A'",
        "SELECT AVG(CAST(stars AS REAL)) FROM shop WHERE stars <> 'N/A'",
        "SELECT stars FROM shop ORDER BY CAST(stars AS REAL)",
        "SELECT CAST(stars AS REAL) AS stars FROM shop ORDER BY stars",
        "SELECT age FROM people ORDER BY age",
        "not a statement at all ((",
    ],
)
def test_no_false_alarm(sql: str) -> None:
    assert warned(sql) == []


@pytest.mark.parametrize(
    ("sql", "code", "part"),
    [
        ("SELECT city, COUNT(*) FROM shop GROUP BY city", "mixed_spellings", "counted apart"),
        ("SELECT DISTINCT city FROM shop", "mixed_spellings", "'Paris', 'paris ' and 'PARIS'"),
        ("SELECT COUNT(DISTINCT city) FROM shop", "mixed_spellings", "counted apart"),
        (
            "SELECT p.age FROM people AS p JOIN shop AS s ON s.owner = p.name",
            "mixed_spellings",
            "shop.owner has blanks around some of its values",
        ),
        ("SELECT MIN(opened) FROM shop", "dates_as_text", "shop.opened holds dates as text (YYYY"),
        ("SELECT note FROM shop ORDER BY opened", "dates_as_text", "sorted as text"),
        ("SELECT note FROM shop WHERE closed > '1/1/24'", "dates_as_text", "(M/D/YY)"),
        ("SELECT strftime('%Y', closed) FROM shop", "dates_as_text", "functions do not read"),
        ("SELECT note FROM shop WHERE opened = '2024-03-05'", "dates_as_text", "another way"),
        ("SELECT note FROM shop WHERE opened LIKE '2024-%'", "dates_as_text", "fewer patterns"),
        ("SELECT note FROM shop ORDER BY rent", "numbers_as_text", "sorted as text"),
        ("SELECT note FROM shop ORDER BY stars DESC LIMIT 1", "numbers_as_text", "sorted as"),
        ("SELECT note FROM shop WHERE stars > 8", "numbers_as_text", "compared"),
        ("SELECT SUM(rent) FROM shop", "numbers_as_text", "no digit: '€1,200'"),
        ("SELECT AVG(CAST(rent AS REAL)) FROM shop", "numbers_as_text", "no digit"),
        ("SELECT CAST(area AS REAL) FROM shop", "numbers_as_text", "without their units"),
        ("SELECT AVG(stars) FROM shop", "numbers_as_text", "added up with 0 for 'N/A'"),
        ("SELECT stars * 2 FROM shop", "numbers_as_text", "added up with 0 for 'N/A'"),
    ],
)
def test_what_is_warned_of(sql: str, code: str, part: str) -> None:
    ((said, message),) = warned(sql)
    assert said == code
    assert part in message


def test_engines_that_read_numbers_of_texts_themselves() -> None:
    assert warned("SELECT note FROM shop WHERE stars > 8", "mysql") == []
    assert warned("SELECT note FROM shop WHERE stars > '8'", "mysql") != []
    assert warned("SELECT city, COUNT(*) FROM shop GROUP BY city", "mysql") == []
