from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dbrag.errors import UsageError, WeightsError
from dbrag.evaluation.datasets import GoldAnswer, Question
from dbrag.evaluation.experiments import evaluate_answers, evaluate_retrieval
from dbrag.evaluation.methods import (
    ANSWER_METHODS,
    RETRIEVAL_METHODS,
    Tools,
    check_method,
)
from dbrag.evaluation.records import read_records
from dbrag.types import Answer, Execution, Program, ResultColumn

from .conftest import ANIMAL, CUSTOMER, ORDER, Parrot, SmallBench, make_catalog


def tools(bench: SmallBench) -> Tools:
    return Tools(bench, make_catalog(), lambda: Parrot(""))


QUESTIONS = [
    Question("q-0", "shop", "customers", (CUSTOMER,)),
    Question("q-1", "shop", "both", (CUSTOMER, ORDER)),
    Question("q-2", "zoo", "fail", (ANIMAL,)),
    Question("q-3", "zoo", "bug", (ANIMAL,)),
]


def retrieve(bench: SmallBench, out: Path, method: str = "hybrid", **more: Any) -> dict[str, Any]:
    rank = RETRIEVAL_METHODS[method](tools(bench))
    options = {"config": {"method": method}, "k": 2, **more}
    return evaluate_retrieval(rank, QUESTIONS, out=out, **options)


def test_retrieval_scores_every_question(bench: SmallBench, tmp_path: Path) -> None:
    summary = retrieve(bench, tmp_path / "run")
    assert summary["n"] == 4
    assert summary["failed"] == 2
    assert summary["errors"] == {"execution": 1, "internal": 1}
    assert summary["R@1"] == 0.375  # 1, 1/2, and two failures that count
    assert summary["R@2"] == 0.375
    assert summary["CR@2"] == 0.25
    assert summary["by_tables"]["1"] == {"n": 3, "R@1": 0.333333, "R@2": 0.333333, "CR@2": 0.333333}
    assert summary["by_tables"]["2"]["R@2"] == 0.5
    assert summary["config"]["k"] == 2
    assert summary["config"]["task"] == "retrieval"
    assert {"dbrag", "python", "sqlglot"} <= summary["versions"].keys()
    assert summary["seconds"].keys() == {"median", "p95", "total"}
    assert json.loads((tmp_path / "run" / "summary.json").read_text()) == summary
    records = read_records(tmp_path / "run")
    assert records[1]["prediction"] == {"tables": ["shop.customer", "zoo.animal"]}
    assert records[1]["gold"] == {"tables": ["shop.customer", "shop.order"]}
    assert records[3]["error"] == {"code": "internal", "message": "KeyError: 'bug'"}
    assert "Ada" not in json.dumps(summary)


def test_a_part_of_the_ranking_alone(bench: SmallBench, tmp_path: Path) -> None:
    retrieve(bench, tmp_path / "run", method="names")
    assert read_records(tmp_path / "run")[0]["prediction"]["tables"] == ["zoo.animal", "shop.order"]
    summary = retrieve(bench, tmp_path / "columns", method="columns")
    assert summary["failed"] == 4
    assert "has no part 'columns'" in read_records(tmp_path / "columns")[0]["error"]["message"]


def test_one_run_scores_the_order_before_by_the_model_and_fused(
    bench: SmallBench, tmp_path: Path
) -> None:
    summary = retrieve(bench, tmp_path / "run", method="rerank")
    record = read_records(tmp_path / "run")[0]  # gold: customer
    assert record["prediction"] == {
        "tables": ["shop.customer", "zoo.animal"],
        "prior": ["zoo.animal", "shop.customer", "shop.order"],
        "model": ["shop.order", "zoo.animal", "shop.customer"],
    }
    assert record["scores"]["R@1"] == 1
    assert record["orders"]["prior"] == {"R@1": 0, "R@2": 1, "CR@2": 1}
    assert record["orders"]["model"]["R@2"] == 0
    assert record["tokens"]["prompt"] == 100
    assert record["stages"] == {"retrieve": 0.25, "rerank": 0.75}
    assert record["rerank"]["valid"] == 1
    assert summary["R@1"] == 0.375
    assert summary["orders"]["prior"]["R@1"] == 0
    assert summary["orders"]["model"]["R@1"] == 0.125  # the second question: order
    gain = summary["orders"]["prior"]["gain"]["R@1"]
    assert gain["mean"] == 0.375
    assert gain["questions"][0] <= 0.375 <= gain["questions"][1]
    assert summary["rerank"] == {"n": 2, "valid": 2, "votes": 4, "k": 3}
    assert summary["stages"]["rerank"]["median"] == 0.75
    assert summary["tokens"]["median"] == 55  # two of four failed

    alone = retrieve(bench, tmp_path / "alone", method="rerank-only")
    assert alone["R@1"] == 0.125
    assert sorted(alone["orders"]) == ["fused", "prior"]
    assert "orders" not in retrieve(bench, tmp_path / "plain", method="hybrid")


def test_resume_asks_only_what_is_left(bench: SmallBench, tmp_path: Path) -> None:
    whole = retrieve(bench, tmp_path / "run")
    path = tmp_path / "run" / "records.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:2]) + lines[2][:20])
    bench.asked.clear()
    seen: list[tuple[int, int, str]] = []
    again = retrieve(
        bench,
        tmp_path / "run",
        resume=True,
        on_record=lambda done, n, record: seen.append((done, n, record["id"])),
    )
    assert bench.asked == ["fail", "bug"]
    assert seen == [(1, 4, "q-0"), (2, 4, "q-1"), (3, 4, "q-2"), (4, 4, "q-3")]
    assert {k: v for k, v in again.items() if k != "seconds"} == {
        k: v for k, v in whole.items() if k != "seconds"
    }
    with pytest.raises(UsageError, match="another configuration"):
        retrieve(bench, tmp_path / "run", resume=True, k=3)


def answered(sql: str, *rows: tuple[Any, ...], tables: Any = (CUSTOMER,)) -> Answer:
    columns = tuple(ResultColumn(f"c{i}", "") for i in range(len(rows[0]) if rows else 1))
    return Answer(
        "?",
        "answered",
        "",
        execution=Execution(columns, rows, 0.0),
        program=Program((), sql, "sqlite", tables),
        tables=tables,
        agreement=1.0,
        votes_valid=3,
        seconds={"total": 1.0, "execute": 0.25},
        tokens={"prompt": 10, "cached": 0, "completion": 2},
    )


GOLD = GoldAnswer(("name", "n"), (("Ada", 2), ("Bob", 1)))


def test_answers_are_scored_by_what_they_return(bench: SmallBench, tmp_path: Path) -> None:
    bench.answers = {
        "right": answered("SELECT …", (1.0, "Bob"), (2.0, "Ada")),
        "unsorted": answered("SELECT …", (1.0, "Bob"), (2.0, "Ada"), tables=(ANIMAL,)),
        "wrong": answered("SELECT …", ("Ada", 2)),
        "silent": Answer("?", "unanswerable", "", error={"code": "unanswerable", "message": "no"}),
        "failed": Answer("?", "failed", "", error={"code": "limit", "message": "30 s"}),
        "crash": ZeroDivisionError("x"),
        "no reason": Answer("?", "failed", ""),
        "no gold": answered("SELECT …", ("Ada", 2)),
    }
    questions = [
        Question(f"q-{i}", "shop", text, (CUSTOMER,), None, GOLD, ordered=text == "unsorted")
        for i, text in enumerate(bench.answers)
    ]
    questions[-1] = Question("q-7", "shop", "no gold", (CUSTOMER, ORDER), "SELECT")
    summary = evaluate_answers(
        ANSWER_METHODS["dbrag"](tools(bench)),
        questions,
        run=bench.run_sql,
        out=tmp_path / "run",
        config={"method": "dbrag"},
        gold_failures={"q-7": "near SELECT"},
    )
    records = {r["id"]: r for r in read_records(tmp_path / "run")}
    assert [records[f"q-{i}"]["scores"].get("EX", 0.0) for i in range(8)] == [1] + [0] * 7
    assert summary["EX"] == 0.125
    assert summary["n"] == 8
    assert summary["errors"] == {
        "gold": 1,
        "internal": 1,
        "limit": 1,
        "unanswerable": 1,
        "failed": 1,
    }
    assert summary["failed"] == 5
    assert records["q-0"]["scores"]["RightSource"] == 1
    assert records["q-0"]["scores"]["RightTables"] == 1
    assert records["q-1"]["scores"]["RightSource"] == 0
    assert records["q-2"]["scores"]["RowF1"] == pytest.approx(2 / 3)
    assert records["q-0"]["prediction"]["agreement"] == 1.0
    assert records["q-0"]["stages"] == {"total": 1.0, "execute": 0.25}
    assert records["q-7"]["error"] == {"code": "gold", "message": "near SELECT"}
    assert summary["tokens"]["median"] == 0  # a failed question without tokens is one, too
    assert records["q-0"]["tokens"] == {"prompt": 10, "cached": 0, "completion": 2}
    assert records["q-6"]["error"] == {"code": "failed", "message": "no reason given"}
    assert "Ada" not in json.dumps(summary)


@pytest.mark.parametrize(
    "outcome",
    [
        WeightsError("no weights"),
        Answer("?", "failed", "", error={"code": "weights", "message": "no weights"}),
    ],
)
def test_a_broken_set_up_stops_the_run(
    bench: SmallBench, tmp_path: Path, outcome: Answer | Exception
) -> None:
    bench.answers = {"a": outcome}
    with pytest.raises(WeightsError, match="no weights"):
        evaluate_answers(
            ANSWER_METHODS["dbrag"](tools(bench)),
            [Question("q-0", "shop", "a", (CUSTOMER,), None, GOLD)],
            run=bench.run_sql,
            out=tmp_path / "run",
            config={},
        )
    assert read_records(tmp_path / "run") == []


def test_the_naive_method_runs(
    make_tools: Callable[[str], tuple[Tools, Parrot]], tmp_path: Path
) -> None:
    given, _ = make_tools("SELECT name FROM customer")
    gold = GoldAnswer(("name",), (("Bob",), ("Ada",)))
    summary = evaluate_answers(
        ANSWER_METHODS["naive"](given),
        [Question("q-0", "shop", "Who?", (CUSTOMER,), None, gold)],
        run=given.db.run_sql,
        out=tmp_path / "run",
        config={"method": "naive"},
    )
    assert (summary["EX"], summary["TableEM"], summary["RightTables"]) == (1.0, 0.0, 1.0)


def test_methods_are_checked() -> None:
    assert check_method("retrieval", None) == "dbrag"
    assert check_method("answers", None) == "dbrag"
    with pytest.raises(UsageError, match="unknown method 'naive' for eval retrieval") as caught:
        check_method("retrieval", "naive")
    assert "hybrid" in caught.value.hint
    with pytest.raises(UsageError, match="unknown task 'x'"):
        check_method("x", None)


def test_no_questions(bench: SmallBench, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no question"):
        evaluate_retrieval(lambda question, k: [], [], out=tmp_path / "run", config={})
    assert not (tmp_path / "run").exists()
