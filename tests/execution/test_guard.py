# ruff: noqa: E501 - statements are easier to compare on one line
"""The guard refuses whatever does more than read, and nothing else."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import sqlglot

from dbrag.errors import Refused, UnknownName
from dbrag.execution.guard import MAX_CHARACTERS, admit
from dbrag.types import Column, Table, TableRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbrag.sources import Source

HONEST = [
    "SELECT 1",
    "SELECT * FROM singer",
    "SELECT s.* FROM singer s",
    "SELECT name, NAME, Name FROM SINGER WHERE Country = 'France'",
    "SELECT count(*) FROM singer;",
    "SELECT count(*), count(DISTINCT country), avg(age), total(age), group_concat(name, ';') FROM singer",
    "SELECT DISTINCT country FROM singer ORDER BY country COLLATE NOCASE DESC NULLS LAST",
    "SELECT country, count(*) AS n FROM singer GROUP BY country HAVING n > 1 ORDER BY n DESC, 1",
    "SELECT name FROM singer WHERE age > (SELECT avg(age) FROM singer)",
    "SELECT name FROM singer s WHERE EXISTS (SELECT 1 FROM singer_in_concert c WHERE c.singer_id = s.singer_id"
    " AND age > 3)",
    "SELECT s.name, c.title FROM singer AS s JOIN singer_in_concert AS x ON s.singer_id = x.singer_id "
    "JOIN concert c ON c.concert_id = x.concert_id AND c.year BETWEEN 2000 AND 2014",
    "SELECT * FROM singer NATURAL JOIN singer_in_concert LEFT OUTER JOIN concert USING (concert_id)",
    "SELECT a.name, b.name FROM singer a, singer b WHERE a.age = b.age AND a.singer_id < b.singer_id",
    "SELECT name FROM (singer JOIN singer_in_concert x ON x.singer_id = singer.singer_id) CROSS JOIN concert",
    "SELECT name FROM (singer)",
    "SELECT n FROM (SELECT name AS n FROM singer UNION SELECT title FROM concert) ORDER BY n",
    "SELECT q.n FROM (SELECT count(*) n FROM singer GROUP BY country) AS q WHERE q.n > 1",
    'SELECT "count(*)" FROM (SELECT count(*) FROM singer)',
    "SELECT name FROM singer UNION SELECT title FROM concert INTERSECT SELECT name FROM singer",
    "SELECT name FROM singer EXCEPT SELECT name FROM singer WHERE age > 40 ORDER BY name LIMIT 2 OFFSET 1",
    "SELECT age FROM singer UNION ALL SELECT year FROM concert ORDER BY age",
    "WITH old AS (SELECT * FROM singer WHERE age > 40), n(c) AS (SELECT count(*) FROM old) "
    "SELECT name, c, (SELECT max(age) FROM old) FROM old, n",
    "WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS y FROM a) SELECT * FROM b UNION SELECT * FROM a",
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < 5) SELECT n FROM c",
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 4) SELECT sum(n) FROM c",
    "WITH RECURSIVE up AS (SELECT id, boss, name FROM staff WHERE id = 3 UNION ALL "
    "SELECT s.id, s.boss, s.name FROM staff s JOIN up ON s.id = up.boss) SELECT name FROM up",
    "SELECT name, row_number() OVER (PARTITION BY country ORDER BY age) AS r FROM singer",
    "SELECT name, sum(age) OVER w, lag(name, 1, '-') OVER w FROM singer WINDOW w AS (ORDER BY singer_id)",
    "SELECT sum(age) FILTER (WHERE country = 'France') OVER (ORDER BY singer_id "
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM singer",
    "SELECT CASE WHEN age IS NULL THEN 'none' WHEN age > 40 THEN 'old' ELSE 'young' END FROM singer",
    "SELECT CASE country WHEN 'France' THEN 1 END, iif(age > 40, 1, 0), ifnull(age, 0) FROM singer",
    "SELECT name FROM singer WHERE name LIKE 'A%' OR name GLOB 'B*' OR name NOT LIKE '%\\_%' ESCAPE '\\'",
    "SELECT name FROM singer WHERE age IN (30, 41) AND country NOT IN (SELECT title FROM concert)",
    "SELECT name FROM singer WHERE (name, age) IN (SELECT name, age FROM adults)",
    "SELECT name FROM singer WHERE (country, age) = ('Peru', 41)",
    "WITH ids AS (SELECT concert_id FROM singer_in_concert) SELECT title FROM concert WHERE concert_id IN ids",
    "SELECT age IS NULL, age NOTNULL, age ISNULL, age IS NOT 3, age == 30, age <> 30, NOT age FROM singer",
    "SELECT -age, +age, ~age, age << 1, age & 3 | 4, age % 7, age / 7, age * 1.0 / 7, age || '' FROM singer",
    "SELECT CAST(age AS TEXT), CAST('3' AS DECIMAL), CAST('3.7' AS INT), CAST(born AS DATE) FROM singer",
    "SELECT mod(age, 7), round(age / 7.0, 2), abs(-3), pow(2, 3), sqrt(9), log(100), ln(2) FROM singer",
    "SELECT date('2020-01-31', '+1 month'), strftime('%Y', born), julianday(born) - 1 FROM singer",
    "SELECT born > date('1980-01-01') AND born < '2000', substr(born, 1, 4) FROM singer",
    "SELECT json_extract(extra, '$.a'), extra -> 'a', extra ->> '$.a[1]', json_type(extra) FROM concert",
    "SELECT c.title, j.value FROM concert c, json_each(c.extra, '$.a') AS j",
    "SELECT value, fullkey FROM json_tree('[1, [2]]')",
    "SELECT json_group_array(name), json_object('n', count(*)) FROM singer",
    "SELECT printf('%05.1f', age), upper(name), trim(name), replace(name, 'A', 'a'), instr(name, 'n') FROM singer",
    "SELECT hex(name), length(name), unicode(name), char(65, 66), quote(name), typeof(age) FROM singer",
    "SELECT x'00ff', 0x1F, .5, 1e3, 'it''s', TRUE, NULL, 12345678901234567890",
    "SELECT rowid, _rowid_, s.oid FROM singer s",
    'SELECT "Unit Price" * [Order], `select`, "quo""te" FROM "Order Details" WHERE "Order" > 0',
    "SELECT 名称 FROM 客户 WHERE 城市 = '北京'",
    "SELECT name FROM adults WHERE age > 20",
    "SELECT title FROM docs WHERE docs MATCH 'fox' ORDER BY rank",
    "SELECT highlight(docs, 0, '<', '>'), bm25(docs) FROM docs WHERE body MATCH 'runs'",
    "VALUES (1, 'a'), (2, 'b')",
    "SELECT column1 + 1 FROM (VALUES (1), (2))",
    "SELECT max(age, 40), min(age) FROM singer LIMIT 5",
    "SELECT name FROM singer LIMIT 1, 2",
    "SELECT name FROM singer LIMIT -1",
    "SELECT name AS 'Full Name' FROM singer ORDER BY \"Full Name\"",
    "SELECT name /* why */ FROM -- not\n singer",
    "SELECT 'DELETE FROM singer; DROP TABLE x --', country AS update_count FROM singer",
    "SELECT name AS created_at, age AS dropped FROM singer WHERE name <> 'INSERT'",
]


def fetch(source: Source, sql: str) -> tuple[list[str], list[tuple[object, ...]]]:
    with source.session() as session:
        names = list(session.execute(sql))
        return names, session.fetch(1000)


@pytest.mark.parametrize("sql", HONEST)
def test_honest_queries_run_as_they_were_written(
    band: Source, tables: Sequence[Table], sql: str
) -> None:
    admitted = admit(sql, "sqlite", tables)
    names, rows = fetch(band, admitted.sql)
    # SQLite names a result column by its text, in which [x] is now "x".
    written = sql.replace("[Order]", '"Order"')
    assert (names, rows) == fetch(band, written)
    assert "--" not in admitted.sql.replace("x --'", "")
    assert "/*" not in admitted.sql
    # What was admitted is admitted again, unchanged.
    again = admit(admitted.sql, "sqlite", tables)
    assert (again.sql, again.tables) == (admitted.sql, admitted.tables)


REFUSED = [
    ("", "empty"),
    (" ; ", "empty"),
    ("-- only a comment", "empty"),
    ("DELETE FROM singer", "DELETE"),
    ("INSERT INTO singer DEFAULT VALUES", "INSERT"),
    ("REPLACE INTO singer VALUES (1)", "REPLACE"),
    ("UPDATE singer SET age = 1", "UPDATE"),
    ("DROP TABLE singer", "DROP"),
    ("CREATE TABLE x AS SELECT * FROM singer", "CREATE"),
    ("ALTER TABLE singer RENAME TO x", "ALTER"),
    ("ATTACH 'x.db' AS x", "ATTACH"),
    ("DETACH x", "DETACH"),
    ("PRAGMA table_info(singer)", "PRAGMA"),
    ("PRAGMA query_only = off", "PRAGMA"),
    ("EXPLAIN SELECT 1", "EXPLAIN"),
    ("VACUUM INTO 'x.db'", "VACUUM"),
    ("BEGIN", "BEGIN"),
    ("ANALYZE", "ANALYZE"),
    ("EXEC('DELETE FROM singer')", "EXEC"),
    ("singer", "singer"),
    ("SELECT 1; SELECT 2", "more than one"),
    ("SELECT 1; DROP TABLE singer", "more than one"),
    ("SELECT 1;; -- \n DELETE FROM singer", "more than one"),
    ("SELECT * INTO x FROM singer", "INTO"),
    ("SELECT * FROM singer FOR UPDATE", "LOCK"),
    ("WITH d AS (DELETE FROM singer RETURNING *) SELECT * FROM d", "DELETE"),
    ("WITH d AS (SELECT 1) DELETE FROM singer", "DELETE"),
    ("WITH d AS (INSERT INTO singer VALUES (1)) SELECT 1", "INSERT"),
    ("SELECT (DELETE FROM singer)", ""),
    ("SELECT 1 UNION DELETE FROM singer", ""),
    ("SELECT load_extension('x')", "load_extension"),
    ("SELECT LOAD_EXTENSION ('x')", "LOAD_EXTENSION"),
    ("SELECT \"load_extension\"('x')", "load_extension"),
    ("SELECT `load_extension`/**/('x')", "load_extension"),
    ("SELECT readfile('/etc/passwd')", "readfile"),
    ("SELECT writefile('x', 'y')", "writefile"),
    ("SELECT edit(name) FROM singer", "edit"),
    ("SELECT fts3_tokenizer('simple')", "fts3_tokenizer"),
    ("SELECT sqlite_compileoption_get(1)", "sqlite_compileoption_get"),
    ("SELECT name FROM singer ORDER BY no_such_function(age)", "no_such_function"),
    ("SELECT name FROM singer WHERE name REGEXP '(a+)+$'", "REGEXP"),
    ("SELECT * FROM sqlite_master", "internal"),
    ("SELECT * FROM sqlite_schema", "internal"),
    ("SELECT * FROM main.sqlite_master", "internal"),
    ("SELECT * FROM temp.sqlite_temp_master", "internal"),
    ('SELECT * FROM "sqlite_master"', "internal"),
    ("SELECT * FROM sqlite_sequence", "internal"),
    ("SELECT 1 WHERE 1 IN sqlite_master", "internal"),
    ("SELECT * FROM pragma_table_info('singer')", "pragma_table_info"),
    ("SELECT * FROM pragma_database_list", "internal"),
    ("SELECT * FROM dbstat", "internal"),
    ("SELECT * FROM generate_series(1, 9)", "generate_series"),
    ("SELECT * FROM fts5vocab('docs', 'row')", "fts5vocab"),
    ("SELECT * FROM read_csv('/etc/passwd')", ""),
    ("SELECT ?", "no value"),
    ("SELECT ?1", "no value"),
    ("SELECT :a", "no value"),
    ("SELECT @a", "no value"),
    ("SELECT 'abc", "cannot be read"),
    ("SELECT name FROM", "cannot be parsed"),
    ("SELECT (1", "cannot be parsed"),
    ("SELECT '\0'", "no text"),
    ("SELECT '\ud800'", "no text"),
    (
        "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT max(n) FROM c",
        "never ends",
    ),
    ("SELECT " + "(" * 5000 + "1" + ")" * 5000, ""),
    ("SELECT " + "1 + " * 60000 + "1", "characters"),
]


@pytest.mark.parametrize(("sql", "reason"), REFUSED, ids=[sql[:40] for sql, _ in REFUSED])
def test_what_does_more_than_read_is_refused(
    tables: Sequence[Table], sql: str, reason: str
) -> None:
    with pytest.raises(Refused) as refused:
        admit(sql, "sqlite", tables)
    assert reason in refused.value.message
    assert refused.value.hint
    assert "\n" not in refused.value.message
    assert refused.value.code == "refused"


def test_the_length_limit_is_exact(tables: Sequence[Table]) -> None:
    sql = "SELECT '" + "x" * (MAX_CHARACTERS - 9) + "'"
    assert len(sql) == MAX_CHARACTERS
    assert admit(sql, "sqlite", tables).sql == sql
    with pytest.raises(Refused, match="100,001 characters"):
        admit(sql + " ", "sqlite", tables)


@pytest.mark.parametrize(
    ("sql", "instead"),
    [
        ("SELECT YEAR(born) FROM singer", "strftime"),
        ("SELECT left(name, 1) FROM singer", "substr"),
        ("SELECT datediff(born, born) FROM singer", "julianday"),
        ("SELECT subst(name, 1) FROM singer", "substr"),
    ],
)
def test_functions_of_other_engines_are_refused_with_what_to_write(
    tables: Sequence[Table], sql: str, instead: str
) -> None:
    with pytest.raises(Refused, match="not available in sqlite") as refused:
        admit(sql, "sqlite", tables)
    assert instead in refused.value.hint


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT band.singer.name FROM band.singer", "SELECT singer.name FROM singer"),
        ("SELECT main.singer.name FROM main . singer", "SELECT singer.name FROM singer"),
        ("SELECT BAND.main.singer.name FROM band.singer", "SELECT singer.name FROM singer"),
        ('SELECT "main.singer".name FROM "main.singer"', 'SELECT "singer".name FROM "singer"'),
        ('SELECT "band.singer"."name" FROM "band.singer"', 'SELECT "singer"."name" FROM "singer"'),
        ('SELECT "singer.name" FROM singer', 'SELECT "singer"."name" FROM singer'),
        ('SELECT t."t.name" FROM singer t', 'SELECT t."name" FROM singer t'),
        (
            'SELECT name FROM singer WHERE country = "France"',
            "SELECT name FROM singer WHERE country = 'France'",
        ),
        ('SELECT "abs"(age) FROM [singer]', 'SELECT "abs"(age) FROM "singer"'),
        ("(SELECT 1)", "SELECT 1"),
        (
            "(SELECT name FROM singer) UNION (SELECT title FROM concert)",
            "SELECT name FROM singer UNION SELECT title FROM concert",
        ),
        (
            "SELECT 1 UNION (SELECT 2 UNION ALL SELECT 2)",
            "SELECT 1 UNION SELECT * FROM (SELECT 2 UNION ALL SELECT 2)",
        ),
        ("SELECT count( * )\n\n FROM\tsinger", "SELECT count( * ) FROM singer"),
        ("SELECT/**/name/**/FROM/**/singer", "SELECT name FROM singer"),
        ('SELECT x"ab" FROM (SELECT 1 AS x)', 'SELECT x "ab" FROM (SELECT 1 AS x)'),
    ],
)
def test_what_can_be_put_right_is(
    band: Source, tables: Sequence[Table], sql: str, expected: str
) -> None:
    admitted = admit(sql, "sqlite", tables)
    assert admitted.sql == expected
    fetch(band, admitted.sql)
    assert admitted.expression == sqlglot.parse_one(expected, read="sqlite")


def test_a_parenthesised_part_keeps_its_own_order_and_limit(
    band: Source, tables: Sequence[Table]
) -> None:
    sql = "(SELECT name FROM singer ORDER BY name DESC LIMIT 1) UNION (SELECT title FROM concert LIMIT 1)"
    assert fetch(band, admit(sql, "sqlite", tables).sql)[1] == [("Gala",), ("it's me",)]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT name FROM singer ORDER BY name", True),
        ("SELECT name FROM singer UNION SELECT title FROM concert ORDER BY 1", True),
        ("WITH a AS (SELECT 1 AS x) SELECT x FROM a ORDER BY x", True),
        ("SELECT name FROM singer", False),
        ("SELECT name FROM (SELECT name FROM singer ORDER BY age)", False),
        ("SELECT row_number() OVER (ORDER BY age) FROM singer", False),
        ("WITH a AS (SELECT name FROM singer ORDER BY age) SELECT name FROM a", False),
    ],
)
def test_ordered_is_about_the_outermost_query(
    tables: Sequence[Table], sql: str, expected: bool
) -> None:
    assert admit(sql, "sqlite", tables).ordered is expected


def used(sql: str, tables: Sequence[Table]) -> list[str]:
    return [ref.name for ref in admit(sql, "sqlite", tables).tables]


def test_tables_are_those_really_read(tables: Sequence[Table]) -> None:
    assert used("SELECT 1", tables) == []
    assert used("SELECT (SELECT max(year) FROM CONCERT) FROM singer, singer s", tables) == [
        "singer",
        "concert",
    ]
    # A WITH entry hides the table of its name.
    assert used("WITH concert AS (SELECT * FROM singer) SELECT * FROM concert", tables) == [
        "singer"
    ]
    assert used("SELECT 1 WHERE 1 IN singer_in_concert", tables) == ["singer_in_concert"]


def test_earlier_steps_may_be_read_by_name(tables: Sequence[Table]) -> None:
    steps = {"step1": ("n", "total"), "step2": None}
    admitted = admit("SELECT n, Total FROM Step1", "sqlite", tables, ctes=steps)
    assert admitted.tables == ()
    admit("SELECT anything FROM step2", "sqlite", tables, ctes=steps)
    with pytest.raises(UnknownName) as unknown:
        admit("SELECT m FROM step1", "sqlite", tables, ctes=steps)
    assert unknown.value.names == ("m",)
    with pytest.raises(UnknownName):
        admit("SELECT n FROM step3", "sqlite", tables, ctes=steps)


def other(table: str, *columns: str) -> Table:
    return Table(TableRef("other", None, table), tuple(map(Column, columns)))


def test_a_query_is_about_one_source(tables: Sequence[Table]) -> None:
    mixed = [*tables, other("singer", "name", "label"), other("album", "name")]
    assert admit("SELECT age FROM singer", "sqlite", mixed).tables[0].source == "band"
    assert admit("SELECT label FROM singer", "sqlite", mixed).tables[0].source == "other"
    assert admit("SELECT name FROM other.singer", "sqlite", mixed).tables[0].source == "other"
    assert admit("SELECT 1 FROM singer, album", "sqlite", mixed).tables[0].source == "other"
    with pytest.raises(Refused, match="several sources"):
        admit("SELECT 1 FROM album, concert", "sqlite", mixed)
    with pytest.raises(UnknownName):
        admit("SELECT 1 FROM nothing", "sqlite", mixed)


def test_a_schema_may_stand_before_a_table() -> None:
    table = Table(TableRef("db", "inventory", "orders"), (Column("id"),))
    for sql in ("SELECT id FROM inventory.orders", 'SELECT id FROM "inventory.orders"'):
        assert admit(sql, "sqlite", [table]).tables == (table.ref,)
    with pytest.raises(UnknownName):
        admit("SELECT id FROM main.orders", "sqlite", [table])


def test_a_view_that_could_not_be_read_is_left_to_the_engine(tables: Sequence[Table]) -> None:
    broken = replace(tables[0], ref=TableRef("band", None, "broken"), columns=(), kind="view")
    assert admit("SELECT anything FROM broken", "sqlite", [*tables, broken]).tables == (broken.ref,)


def test_a_long_chain_of_unions_is_fine(band: Source, tables: Sequence[Table]) -> None:
    sql = " UNION ALL ".join(f"SELECT {i} AS n" for i in range(300))
    assert len(fetch(band, admit(sql, "sqlite", tables).sql)[1]) == 300
