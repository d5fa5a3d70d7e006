"""Guard properties over generated statements."""

from __future__ import annotations

import sqlite3
from functools import cache
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbrag.errors import DbragError, Refused, UnknownName
from dbrag.execution.guard import admit
from tests.execution.conftest import SCRIPT
from tests.execution.test_guard import HONEST, fetch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbrag.sources import Source
    from dbrag.types import Table

quick = settings(
    max_examples=50,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

_TEXT = """SELECT FROM WHERE singer concert name age * ( ) , ; = 'x' "x" 1 AS s . UNION WITH VALUES
DELETE INSERT INTO DROP TABLE PRAGMA ATTACH UPDATE SET JOIN ON GROUP BY ORDER LIMIT RETURNING NOT IN
load_extension count readfile sqlite_master json_each -- /* */ ? : @ # $ || -> x'00' ` [ ] é LIKE
CASE WHEN END"""
WORDS = ["\n", *_TEXT.split()]


def column(kind: str) -> st.SearchStrategy[str]:
    names = {"n": ["age", "singer_id", "s.age"], "t": ["name", "s.country", '"Name"', "born"]}
    return st.sampled_from(names[kind])


@cache
def numbers(depth: int = 2) -> st.SearchStrategy[str]:
    leaf = st.one_of(column("n"), st.integers(-5, 50).map(str))
    if not depth:
        return leaf
    n, t = numbers(depth - 1), texts(depth - 1)
    return st.one_of(
        leaf,
        st.builds("({} {} {})".format, n, st.sampled_from("+-*%"), n),
        st.builds("abs({})".format, n),
        st.builds("mod({}, 7)".format, n),
        st.builds("CAST({} AS {})".format, t, st.sampled_from(["INT", "REAL", "DECIMAL(5, 2)"])),
        st.builds("length({})".format, t),
        st.builds("CASE WHEN {} THEN {} ELSE {} END".format, conditions(depth - 1), n, n),
        st.just("(SELECT count(*) FROM concert WHERE year > s.age)"),
    )


@cache
def texts(depth: int = 2) -> st.SearchStrategy[str]:
    leaf = st.one_of(
        column("t"), st.sampled_from(["'France'", "'it''s'", "''", "'--'", "'/* */'", "';'"])
    )
    if not depth:
        return leaf
    t = texts(depth - 1)
    return st.one_of(
        leaf,
        st.builds("({} || {})".format, t, t),
        st.builds("upper({})".format, t),
        st.builds("ifnull({}, 'none')".format, t),
        st.builds("substr({}, 1, 2)".format, t),
    )


@cache
def conditions(depth: int = 2) -> st.SearchStrategy[str]:
    n, t = numbers(max(0, depth - 1)), texts(max(0, depth - 1))
    signs = st.sampled_from(["<", "=", "<>", ">=", "IS", "IS NOT"])
    leaf = st.one_of(
        st.builds("{} {} {}".format, n, signs, n),
        st.builds("{} LIKE '%{}%'".format, t, st.sampled_from("aeiou")),
        st.builds("{} IN ({}, {})".format, t, t, t),
        st.builds("{} BETWEEN {} AND {}".format, n, n, n),
        st.builds("{} IS NOT NULL".format, t),
        st.just("EXISTS (SELECT 1 FROM singer_in_concert x WHERE x.singer_id = s.singer_id)"),
    )
    if not depth:
        return leaf
    c = conditions(depth - 1)
    return st.one_of(leaf, st.builds("NOT ({})".format, c), st.builds("({} OR {})".format, c, c))


@st.composite
def selects(draw: st.DrawFn) -> str:
    items = draw(st.lists(st.one_of(numbers(), texts()), min_size=1, max_size=3))
    sql = f"SELECT {draw(st.sampled_from(['', 'DISTINCT ']))}{', '.join(items)} FROM singer AS s"
    if draw(st.booleans()):
        sql += f" WHERE {draw(conditions())}"
    if draw(st.booleans()):
        sql += f" ORDER BY abs({draw(numbers())}), 1"
    if draw(st.booleans()):
        sql = f"SELECT * FROM ({sql}) UNION ALL SELECT {', '.join('1' for _ in items)}"
    if draw(st.booleans()):
        sql = f"WITH w AS ({sql}) SELECT * FROM w"
    return sql


@quick
@given(sql=selects())
def test_generated_queries_are_admitted_and_give_the_same_rows(
    band: Source, tables: Sequence[Table], sql: str
) -> None:
    assert fetch(band, admit(sql, "sqlite", tables).sql) == fetch(band, sql)


@quick
@given(sql=selects(), data=st.data())
def test_comments_and_blanks_between_words_change_nothing(
    band: Source, tables: Sequence[Table], sql: str, data: st.DataObject
) -> None:
    gaps = st.sampled_from([" ", "\n", "\t", "  ", " /* ; DROP */ ", " -- ' x\n"])
    outside_text = sql.split("'")
    for i in range(0, len(outside_text), 2):
        words = outside_text[i].split(" ")
        spread = words[0]
        for word in words[1:]:
            spread += data.draw(gaps) + word
        outside_text[i] = spread
    expected = fetch(band, sql)
    admitted = admit("'".join(outside_text), "sqlite", tables)
    assert fetch(band, admitted.sql)[1] == expected[1]


@quick
@given(words=st.lists(st.sampled_from(WORDS), max_size=15), text=st.text(max_size=15))
def test_anything_is_admitted_or_refused_never_a_crash(
    tables: Sequence[Table], words: list[str], text: str
) -> None:
    for sql in (
        " ".join(words),
        "SELECT " + " ".join(words),
        text,
        "SELECT name FROM singer " + text,
    ):
        try:
            admitted = admit(sql, "sqlite", tables)
        except (Refused, UnknownName):
            continue
        check_reads_only(admitted.sql)


@quick
@given(sql=st.sampled_from(HONEST), data=st.data())
def test_mutated_queries_stay_harmless(
    tables: Sequence[Table], sql: str, data: st.DataObject
) -> None:
    words = sql.split(" ")
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(words)))
        words[place : place + data.draw(st.integers(0, 2))] = [data.draw(st.sampled_from(WORDS))]
    try:
        admitted = admit(" ".join(words), "sqlite", tables)
    except (Refused, UnknownName):
        return
    check_reads_only(admitted.sql)


def check_reads_only(sql: str) -> None:
    """An unprotected connection must not change, nor read its catalog, by what was admitted."""
    connection = unprotected()
    actions = []

    def note(action: int, first: str | None, *_: object) -> int:
        actions.append((action, first))
        return sqlite3.SQLITE_OK

    connection.set_authorizer(note)
    connection.set_progress_handler(lambda: 1, 100_000)
    changes = connection.total_changes
    try:
        connection.execute(sql).fetchmany(10)
    except sqlite3.Error:
        pass
    finally:
        connection.set_authorizer(None)
        connection.set_progress_handler(None, 0)
    assert connection.total_changes == changes
    assert {action for action, _ in actions} <= {
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
        sqlite3.SQLITE_PRAGMA,  # data_version, asked by full-text tables
    }
    assert not any(f == "sqlite_master" for a, f in actions if a == sqlite3.SQLITE_READ)
    assert {f for a, f in actions if a == sqlite3.SQLITE_PRAGMA} <= {"data_version"}


def unprotected(cache: list[sqlite3.Connection] = []) -> sqlite3.Connection:  # noqa: B006
    if not cache:
        cache.append(sqlite3.connect(":memory:", isolation_level=None))
        cache[0].executescript(SCRIPT)
        # Virtual tables declare themselves when first touched: not the statement's doing.
        for table in ("json_each('[]')", "json_tree('[]')", "docs"):
            cache[0].execute(f"SELECT * FROM {table}").fetchall()
    return cache[0]


def test_the_check_itself_sees_a_change() -> None:
    with pytest.raises(AssertionError):
        check_reads_only("UPDATE staff SET name = name")
    with pytest.raises(AssertionError):
        check_reads_only("SELECT * FROM sqlite_master")


def test_errors_are_all_of_the_tree(tables: Sequence[Table]) -> None:
    for sql in ("SELECT a", "SELECT * FROM x", "\0", "SELECT (", "a b c"):
        with pytest.raises(DbragError):
            admit(sql, "sqlite", tables)
