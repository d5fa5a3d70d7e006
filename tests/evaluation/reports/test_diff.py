from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dbrag.errors import UsageError
from dbrag.evaluation.records import slim
from dbrag.evaluation.reports.diff import CHANGES, diff_document, make_diff, read_asked
from dbrag.evaluation.reports.markdown import markdown_of

from .made import not_run, recall, record, write_run


def answer(id_: str, ex: float, sql: str | None, db: str = "shop", **more: Any) -> Any:
    scores = {"EX": ex, "TableEM": 0.0, "BestEX": ex}
    prediction = {"status": "answered", "sql": sql, "tables": [f"{db}.t"], "confidence": 0.5}
    gold = {"tables": [f"{db}.t", f"{db}.u"]}
    return record(id_, db, 2, scores, prediction=prediction, gold=gold, **more)


A = [
    answer("dev-0", 0, "SELECT 1"),
    answer("dev-1", 1, "SELECT 2"),
    answer("dev-2", 0, "SELECT 3"),
    answer("dev-3", 0, "SELECT  4"),
    answer("dev-4", 1, "SELECT 5"),
    answer("dev-5", 0, "SELECT 6"),
    answer("dev-6", 1, None),
]
B = [
    answer("dev-0", 1, "SELECT x\nFROM t"),
    record("dev-1", "shop", 2, {}, prediction=None),
    answer("dev-2", 0, "SELECT 33"),
    answer("dev-3", 0, "SELECT\n4"),
    answer("dev-4", 1, "SELECT 55"),
    record("dev-5", "shop", 2, {}),
    answer("dev-9", 1, None),
]


def test_each_question_changes_in_one_way(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a", A), write_run(tmp_path / "b", B)
    (tmp_path / "dev.json").write_text(
        json.dumps([{"question": f"How | many {i}?", "query": f"SELECT\n{i}"} for i in range(7)])
    )
    diff = make_diff(a, b, questions=tmp_path / "dev.json")
    kinds = {change.id: change.kind for change in diff.changes}
    assert kinds == {
        "dev-0": "won",
        "dev-1": "lost",
        "dev-2": "both wrong, differently",
        "dev-3": "both wrong, alike",  # the same program, written with other blanks
        "dev-4": "both right",
        "dev-5": "both wrong, differently",
    }
    assert diff.counts == dict(zip(CHANGES, (1, 1, 2, 1, 1), strict=True))
    assert (diff.only_a, diff.only_b) == (("dev-6",), ("dev-9",))
    told = diff.to_dict()
    assert [one["id"] for one in told["questions"]] == ["dev-0", "dev-1", "dev-2", "dev-5"]
    first, second = told["questions"][:2]
    assert first["db_id"] == "shop"
    assert first["n_tables"] == 2
    assert first["question"] == "How | many 0?"
    assert first["gold_sql"] == "SELECT\n0"
    assert first["gold_tables"] == ["shop.t", "shop.u"]
    assert (first["a"]["sql"], first["b"]["sql"]) == ("SELECT 1", "SELECT x\nFROM t")
    assert second["b"]["error"] == "30 s are over"
    assert told["comparisons"][0]["wins"] == ["dev-0"]
    assert told["comparisons"][0]["p"] == 1.0
    assert [one["id"] for one in diff.to_dict(["both right"])["questions"]] == ["dev-4"]


def test_people_read_the_programs_of_both(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a", A), write_run(tmp_path / "b", B)
    text = markdown_of(diff_document(make_diff(f"old={a}", f"new={b}")))
    assert "## Won: 1" in text
    assert "| dev-0 | shop | 2 | answered, 50% sure | answered, 50% sure |" in text
    assert "old: SELECT 1\nnew: SELECT x FROM t" in text
    assert "| dev-1 | shop | 2 | answered, 50% sure | failed: limit |" in text
    assert "Only in old: 1 questions" in text
    assert "dev-4" not in text


def test_rankings_tell_what_was_not_found(tmp_path: Path) -> None:
    gold = {"tables": ["s.a", "s.b"]}
    found = {"tables": ["s.a", "s.c", "s.d", "s.e", "s.f", "s.b"]}
    full = {"tables": ["s.b", "s.a"]}
    x = [recall("q-0", "s", 2, 0.5, gold=gold, prediction=found)]
    y = [recall("q-0", "s", 2, 1.0, gold=gold, prediction=full)]
    a, b = (write_run(tmp_path / n, r, "retrieval") for n, r in (("a", x), ("b", y)))
    diff = make_diff(a, b)
    assert diff.metric == "CR@5"
    assert diff.counts["won"] == 1
    assert "a: s.a, s.c, s.d, s.e, s.f; without s.b\nb: s.b, s.a\n" in markdown_of(
        diff_document(diff)
    )
    (pair,) = make_diff(a, b, "R@5").pairs
    assert pair.found.metric == "R@5"


def test_published_records_are_compared_by_their_scores(tmp_path: Path) -> None:
    for name, records in (("a", A), ("b", B)):
        lines = "".join(json.dumps(slim(one)) + "\n" for one in records)
        (tmp_path / f"{name}.jsonl").write_text(lines)
    diff = make_diff(str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl"))
    kinds = {change.id: change.kind for change in diff.changes}
    assert kinds["dev-2"] == "both wrong, alike"  # what was written is not published
    assert kinds["dev-5"] == "both wrong, differently"  # one of them failed
    assert "Some records hold no program" in markdown_of(diff_document(diff))


def test_runs_that_do_not_fit(tmp_path: Path) -> None:
    a = write_run(tmp_path / "a", A)
    ranked = write_run(tmp_path / "r", [recall("dev-0", "shop", 2, 1)], "retrieval")
    with pytest.raises(UsageError, match="'a' is of answers, 'r' of retrieval"):
        make_diff(a, ranked)
    with pytest.raises(UsageError, match="'n' was not run: no weights"):
        make_diff(a, not_run(tmp_path / "n", "answers", "mtqa", "no weights", "get them"))
    far = write_run(tmp_path / "far", [answer("dev-99", 1, "SELECT 1")])
    with pytest.raises(UsageError, match="share no question"):
        make_diff(a, far)
    with pytest.raises(UsageError, match="no metric 'XX'"):
        make_diff(a, write_run(tmp_path / "b", B), "XX")
    config = json.loads((tmp_path / "b" / "summary.json").read_text())
    config["config"]["questions"] = {"name": "train.json", "sha256": "99"}
    (tmp_path / "b" / "summary.json").write_text(json.dumps(config))
    with pytest.raises(UsageError, match=r"of other questions: 'dev\.json' and 'train"):
        make_diff(a, str(tmp_path / "b"))


def test_a_question_file_of_other_runs(tmp_path: Path) -> None:
    a, b = write_run(tmp_path / "a", A), write_run(tmp_path / "b", B)
    file = tmp_path / "mine.csv"
    file.write_text("question,tables\nHow many?,shop.a\n")
    with pytest.raises(
        UsageError, match=r"mine\.csv' holds no question of the runs: .*'dev-0'"
    ) as e:
        make_diff(a, b, questions=file)
    assert e.value.hint.startswith("--questions dev.json")


def test_question_files(tmp_path: Path) -> None:
    file = tmp_path / "mine.csv"
    file.write_text('Question,tables,sql\nHow many?,shop.a,"SELECT 1, 2"\n Who? ,shop.b,\n')
    asked = read_asked(file)
    assert [(id_, one.question, one.sql) for id_, one in asked.items()] == [
        ("mine-0", "How many?", "SELECT 1, 2"),
        ("mine-1", "Who?", None),
    ]
    for name, text in (("x.json", "{}"), ("y.json", '[{"a": 1}]'), ("z.csv", "a,b\n1,2\n")):
        (tmp_path / name).write_text(text)
        with pytest.raises(UsageError, match="holds no questions"):
            read_asked(tmp_path / name)
