from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.errors import UsageError
from dbrag.evaluation.datasets import (
    GoldAnswer,
    Question,
    file_hash,
    is_ordered,
    load_questions,
    sample,
    tables_in,
    with_answers,
)

from .conftest import ANIMAL, CUSTOMER, ORDER, SmallBench, make_catalog


def write(path: Path, data: Any) -> Path:
    path.write_text(data if isinstance(data, str) else json.dumps(data), encoding="utf-8")
    return path


def record(**changes: Any) -> dict[str, Any]:
    base = {
        "db_id": "shop",
        "question": "Who?",
        "tables": ["Customer"],
        "query": "SELECT name FROM customer ORDER BY id",
        "answer": {"columns": ["name"], "rows": [["Ada"], ["Bob"]]},
    }
    return {k: v for k, v in {**base, **changes}.items() if v != "gone"}


def test_our_packs_records(tmp_path: Path) -> None:
    path = write(
        tmp_path / "dev.json", [record(), record(db_id="ZOO", tables=["animal"], query=None)]
    )
    first, second = load_questions(path, make_catalog())
    assert first == Question(
        "dev-0",
        "shop",
        "Who?",
        (CUSTOMER,),
        "SELECT name FROM customer ORDER BY id",
        GoldAnswer(("name",), (("Ada",), ("Bob",))),
        ordered=True,
    )
    assert (second.id, second.db_id, second.tables) == ("dev-1", "zoo", (ANIMAL,))
    assert second.sql is None
    assert not second.ordered


def test_spiders_own_records_get_tables_and_answers_from_the_sql(
    tmp_path: Path, bench: SmallBench
) -> None:
    sql = (
        'SELECT c.name, COUNT(*) FROM customer AS c JOIN "order" AS o '
        "ON o.customer_id = c.id GROUP BY c.name"
    )
    spider = record(
        query=sql, tables="gone", answer="gone", sql={"select": []}, query_toks=["SELECT"]
    )
    (question,) = load_questions(write(tmp_path / "d.json", [spider]), make_catalog())
    assert question.tables == (CUSTOMER, ORDER)
    assert question.answer is None
    (ready,), failures = with_answers([question], bench.run_sql)
    assert ready.answer is not None
    assert set(ready.answer.rows) == {("Ada", 2), ("Bob", 1)}
    assert failures == {}


def test_gold_sql_that_fails_is_told_and_kept(bench: SmallBench) -> None:
    question = Question("d-0", "shop", "Who?", (CUSTOMER,), sql="SELECT nothing FROM customer")
    (kept,), failures = with_answers([question], bench.run_sql)
    assert kept == question
    assert "nothing" in failures["d-0"]


def test_no_gold_at_all_is_an_error_that_says_what_to_do(bench: SmallBench) -> None:
    with pytest.raises(UsageError, match="'d-0' has neither") as caught:
        with_answers([Question("d-0", "shop", "Who?", (CUSTOMER,))], bench.run_sql)
    assert "eval retrieval" in caught.value.hint


def test_csv(tmp_path: Path) -> None:
    text = (
        "\ufeffQuestion,Tables,SQL\r\n"
        '"Who, and\nhow much?", shop.customer ; ORDER ,"SELECT name FROM customer"\r\n'
        "Which?,animal,\r\n"
    )
    first, second = load_questions(write(tmp_path / "q.csv", text), make_catalog())
    assert first.question == "Who, and\nhow much?"
    assert (first.id, first.db_id, first.tables) == ("q-0", "shop", (CUSTOMER, ORDER))
    assert first.sql == "SELECT name FROM customer"
    assert (second.tables, second.sql) == ((ANIMAL,), None)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("d.json", "{nonsense", "is not JSON"),
        ("d.json", {"a": 1}, "holds a dict, not a list"),
        ("d.json", [], "holds no question"),
        ("d.json", [record(), 3], "record 1 of 'd.json' is not an object"),
        ("d.json", [record(), record(db_id="shoop")], "record 1 of 'd.json': .*'shoop'"),
        ("d.json", [record(db_id=7)], "no db_id but 7"),
        ("d.json", [record(tables=["nope"])], "record 0 .* has no table 'nope'"),
        ("d.json", [record(tables=["nope"])] * 3, "and 2 more such records"),
        ("d.json", [record(tables="customer")], "tables is not a list of names"),
        ("d.json", [record(tables=[])], "no gold table"),
        ("d.json", [record(question=" ")], "no question but ' '"),
        ("d.json", [record(query=3)], "gold SQL is not text"),
        ("d.json", [record(tables="gone", query=None)], "neither tables nor query"),
        ("d.json", [record(tables="gone", query="SELECT FROM WHERE (")], "does not parse"),
        ("d.json", [record(answer={"rows": []})], "answer is not"),
        ("d.json", [record(answer={"columns": ["a"], "rows": [[1, 2]]})], "has not 1 values"),
        ("d.json", [record(answer={"columns": ["a"], "rows": "xy"})], "answer is not"),
        ("d.json", [record(answer={"columns": ["a"], "rows": ["x"]})], "answer is not"),
        ("d.json", [record(answer={"columns": "a", "rows": [[1]]})], "answer is not"),
        ("q.csv", "tables,question,tables\na,b,c\n", "names a column twice: .*'tables'"),
        ("q.csv", "a,b\n1,2\n", "lacks the columns question and tables"),
        ("q.csv", "", "lacks the columns"),
        ("q.csv", "question,tables\nWho?,customer\nWhich?,nope\n", "line 3 of 'q.csv': .*'nope'"),
        ("q.csv", "question,tables\nWho, where?,customer\n", "line 2 of 'q.csv' has not 2"),
        ("q.csv", "question,tables\nWho?\n", "line 2 of 'q.csv' has not 2"),
        ("q.csv", 'question,tables\n"Who?,customer\n', "not CSV"),
    ],
)
def test_wrong_files_name_the_place(tmp_path: Path, name: str, data: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        load_questions(write(tmp_path / name, data), make_catalog())
    assert "\n" not in caught.value.message


def test_missing_and_binary_files(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no question file"):
        load_questions(tmp_path / "none.json", make_catalog())
    with pytest.raises(UsageError, match="cannot read"):
        load_questions(tmp_path, make_catalog())
    (tmp_path / "b.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="UTF-8"):
        load_questions(tmp_path / "b.json", make_catalog())


def test_a_near_name_is_suggested(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        load_questions(write(tmp_path / "d.json", [record(db_id="shoop")]), make_catalog())
    assert "shop" in caught.value.hint


def test_file_hash_changes_with_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "d.json", "[]")
    before = file_hash(path)
    assert before == file_hash(path)
    write(path, "[ ]")
    assert file_hash(path) != before


@pytest.mark.parametrize(
    ("sql", "ordered"),
    [
        ("SELECT a FROM t ORDER BY a", True),
        ("SELECT a FROM t", False),
        ("SELECT a FROM (SELECT a FROM t ORDER BY a)", False),
        ("WITH x AS (SELECT a FROM t ORDER BY a) SELECT * FROM x", False),
        ("WITH x AS (SELECT a FROM t) SELECT * FROM x ORDER BY 1 LIMIT 3;", True),
        ("SELECT a FROM t UNION SELECT a FROM u ORDER BY a", True),
        ("SELECT a FROM t WHERE a IN (SELECT b FROM u ORDER BY b LIMIT 1)", False),
        ("SELECT ROW_NUMBER() OVER (ORDER BY a) FROM t", False),
        ("(SELECT a FROM t ORDER BY a)", True),
        ("SELECT a FROM t WHERE b = 'order by a'", False),
        ("SELECT FROM ORDER BY (", False),
    ],
)
def test_only_the_outermost_order_counts(sql: str, ordered: bool) -> None:
    assert is_ordered(sql) is ordered


def test_tables_in_leaves_ctes_out() -> None:
    sql = 'WITH big AS (SELECT * FROM "order") SELECT * FROM BIG, customer JOIN "order" USING (id)'
    assert sorted(tables_in(sql)) == ["customer", "order"]


def numbered(sizes: list[int]) -> list[Question]:
    names = [f"db{i}" for i, size in enumerate(sizes) for _ in range(size)]
    return [Question(f"q-{i}", db, "?", ()) for i, db in enumerate(names)]


@given(
    st.lists(st.integers(1, 30), min_size=1, max_size=12), st.integers(1, 400), st.integers(0, 3)
)
def test_sample_is_stratified_and_repeatable(sizes: list[int], limit: int, seed: int) -> None:
    questions = numbered(sizes)
    chosen = sample(questions, limit, seed)
    assert chosen == sample(list(questions), limit, seed)
    assert len(chosen) == min(limit, len(questions))
    assert [q for q in questions if q in chosen] == chosen
    counts = Counter(q.db_id for q in chosen)
    for i, size in enumerate(sizes):
        share = len(chosen) * size / len(questions)
        assert abs(counts[f"db{i}"] - share) < 1


def test_sample_depends_on_the_seed_and_is_the_same_everywhere() -> None:
    questions = numbered([20, 20])
    first = [q.id for q in sample(questions, 4, seed=0)]
    assert first != [q.id for q in sample(questions, 4, seed=1)]
    # Fixed by value: another Python or machine must not draw other questions.
    assert first == FIRST_SAMPLE
    assert sample(questions, None) == questions


FIRST_SAMPLE = ["q-0", "q-7", "q-29", "q-30"]


def test_sample_wants_a_positive_limit() -> None:
    with pytest.raises(UsageError, match="--limit must be at least 1, not 0"):
        sample(numbered([3]), 0)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (None, None),
        ("SELECT a FROM t", False),
        ("SELECT a FROM t where b = 1", True),
        ("SELECT a FROM t JOIN (SELECT b FROM u\nWHERE c) ON 1", True),
        ("SELECT 'where it''s where' AS \"where\", `where` FROM t", False),
        ("SELECT a FROM t -- where\n/* where\nwhere */", False),
        ("SELECT a FROM t HAVING wherever = 1", False),
    ],
)
def test_whether_the_gold_sql_filters(sql: str | None, expected: bool | None) -> None:
    assert Question("q-0", "d", "?", (), sql=sql).has_where is expected
