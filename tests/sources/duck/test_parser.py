"""DuckDB's own view of a statement: exactly one SELECT, nothing else inside."""

from __future__ import annotations

import threading

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dbrag.errors import Refused
from dbrag.sources.duck.parser import parse_select

HONEST = [
    "select 1;",
    "-- x\nselect 1 -- y",
    "from t",
    "values (1)",
    "table t",
    "select * from t limit 10%",
    "select a from t order by a asc nulls first",
    "select * from (pivot t on x in ('a','b') using sum(y) group by z)",
    "unpivot t on a, b",
    "select * from a asof join b using (x)",
    "select distinct on (a) b from t",
    "select 1 union by name select 2 order by 1",
    "select a is distinct from b, a[1:2], a.b.c, #1, columns(*), * exclude (a) from t",
    "with recursive r(n) as (select 1 union all select n + 1 from r) select * from r",
    "select count(*) filter (where a), sum(b) over (partition by c order by d) from t",
    "select * from t tablesample 10%",
    "from t select list_transform(a, lambda x: x + 1), [y for y in z]",
    "select case a when 1 then 2 end, a in (1, 2), exists(select 1), try_cast(a as int)",
    "select * from generate_series(1, 2) g(i) where i between 1 and 2 group by all having true",
    "select date '2020-01-01', interval 3 day, {'a': 1}, map {1: 2}",
    "select a collate nocase from t group by grouping sets ((a), ())",
    "select * from t positional join u natural join v left join lateral (select 1) on true",
    "select 'INSERT INTO t; DROP TABLE t', {'type': 'DELETE_QUERY_NODE', 'class': 'PARAMETER'}",
    'select "delete", "class" from "copy"',
    "(select 1) union all (select 2)",
    "select lpad(a, 10, '0'), repeat('-', 80), rpad(repeat('ab', 3), 20), repeat(a, b * 2) from t",
    "select * from range(10_000_000_000) r(i), generate_series(1, 5_000_000_000)",
    "select range(20240101, 20240131), printf('%08d of %s', a, '1234567890') from t",
]
HOSTILE = [
    "",
    ";",
    "-- nothing",
    "select 1; select 2",
    "select 1; drop table t",
    "describe t",
    "summarize t",
    "show tables",
    "select * from (describe t)",
    "select * from (show tables)",
    "with a as (delete from t returning *) select * from a",
    "with a as (insert into t values (1) returning *) select * from a",
    "select (with a as (update t set x = 1 returning *) select x from a)",
    "copy t to 'x'",
    "copy (select 1) to 'x' (use_tmp_file false)",
    "export database 'x'",
    "import database 'x'",
    "attach 'x'",
    "install httpfs",
    "load httpfs",
    "set memory_limit = '1TB'",
    "reset memory_limit",
    "pragma database_list",
    "call pragma_version()",
    "explain select 1",
    "explain analyze select 1",
    "create table x as select 1",
    "create temp view x as select 1",
    "prepare p as select 1",
    "execute p",
    "begin",
    "use main",
    "checkpoint",
    "pivot t on a",
    "select ?",
    "select $name",
    "select * from t limit ?",
    "select default",
    "merge into t using u on true when matched then delete",
    "selec 1",
    "select 'a",
    "select 1 /* open",
    "select " + "(" * 5000 + "1" + ")" * 5000,
    "select " + " + ".join(["a"] * 3000),
    "select repeat('x', 3_000_000_000)",
    "select a || repeat('x', 10_000_000) from t",
    "select generate_series(1, 10_000_000)",
    "select range(1, 1000 * 1000 * 1000)",
    "select repeat(repeat('x', 100000), 100000)",
    "select length(concat(repeat(upper(repeat('x', 20000)), 20000)))",
    "select repeat('x', 1000 * 1000 * 1000)",
    "select repeat('x', 3000000000::BIGINT)",
    "select repeat('x', 1e10)",
    "select rpad('x', 2000000000, 'y'), a from t",
    "select range(1_000_000_000)",
    "select list_resize([1], 900000000, 0)",
    "select bitstring('1', 2000000000)",
    "select printf('%2000000000d', 1)",
    "select format('{:>2000000000}', 1)",
    "select * from unnest(range(1_000_000_000))",
    "select \ud800",
    "select \0 1",
]


@pytest.mark.parametrize("sql", HONEST)
def test_honest_ones_are_read(sql: str) -> None:
    parse_select(sql)


@pytest.mark.parametrize("sql", HOSTILE, ids=lambda sql: repr(sql[:40]))
def test_all_others_are_refused(sql: str) -> None:
    with pytest.raises(Refused):
        parse_select(sql)


def test_every_name_is_told() -> None:
    parsed = parse_select(
        "with Q as (select GetEnv('x') from s.\"T t\") "
        "select sum(a) over (), main.f(b), 1 + 2, 'x'.upper(), Current_User "
        "from read_csv('x'), c.s.t, q, 'file.csv'"
    )
    assert parsed.functions == {"getenv", "sum", "f", "upper"}
    assert parsed.table_functions == {"read_csv"}
    assert set(parsed.tables) == {("s", "T t"), ("c", "s", "t"), ("q",), ("file.csv",)}
    assert parsed.columns >= {"a", "b", "current_user"}
    assert parsed.ctes == {"q"}
    assert not parsed.recursive


def test_a_function_that_stands_in_both_places_is_told_twice() -> None:
    parsed = parse_select("select range(3) from range(2)")
    assert parsed.functions == parsed.table_functions == {"range"}


def test_recursion_is_told() -> None:
    assert parse_select("with recursive r as (select 1 a union select a from r) from r").recursive


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=60))
@example("CONNECT")  # a kind of statement that DuckDB's Python package has no name for
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_select(text)
    except Refused:
        return


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(" ".join(HONEST + HOSTILE[:34]).split()), min_size=1, max_size=25))
def test_any_words_are_read_or_refused(words: list[str]) -> None:
    try:
        parse_select(" ".join(words))
    except Refused:
        return


def test_many_threads_parse_at_once() -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for i in range(20):
                assert parse_select(f"select {i} from t{i}").tables == ((f"t{i}",),)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
