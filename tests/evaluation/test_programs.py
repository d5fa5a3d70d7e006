from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbrag.evaluation.datasets import GoldAnswer, Question
from dbrag.evaluation.experiments import evaluate_answers
from dbrag.evaluation.methods import ANSWER_METHODS, Tools
from dbrag.evaluation.programs import Voted, program_scores, voted_programs
from dbrag.evaluation.records import read_records
from dbrag.types import Answer, Execution, Program, ResultColumn

from .conftest import CUSTOMER, ORDER, Parrot, SmallBench, make_catalog

GOLD = GoldAnswer(("name",), (("Ada",), ("Bob",)))
RIGHT, WRONG = "SELECT name FROM customer", "SELECT id FROM customer"
BROKEN = "SELECT nothing FROM customer"


def select(source: str = "shop") -> dict[str, Any]:
    return {"stage": "select", "source": source, "tables": []}


def program(sql: str | None, round_: int = 0, rows: int | None = 1) -> dict[str, Any]:
    error = None if rows is not None else {"code": "execution", "message": "no"}
    return {"stage": "program", "round": round_, "sql": sql, "row_count": rows, "error": error}


def test_the_last_program_that_ran_stands_for_its_attempt() -> None:
    trace = [
        {"stage": "retrieve"},
        select(),
        program("a0", rows=None),
        program("a1", 1, rows=0),
        program("a2", 2, rows=3),
        {"stage": "vote", "cast": 1, "valid": 1},
        program(None, rows=None),  # no statement at all
        program("b1", 1, rows=None),
        program("c0", rows=2),
        program("c1", 1, rows=None),  # a repair that failed does not undo what ran
        select("zoo"),
        program("d0", rows=0),
    ]
    assert voted_programs(trace) == (
        Voted("shop", "a2"),
        Voted("shop", None),
        Voted("shop", "c0"),
        Voted("zoo", "d0"),
    )
    assert voted_programs(()) == ()


def step(round_: int = 0) -> dict[str, Any]:
    return {"stage": "step", "round": round_, "number": 1, "sql": "s", "error": None}


def test_programs_of_several_steps() -> None:
    vote = {"stage": "vote"}
    trace = [
        select(), step(), step(), program("a"), vote,
        step(), step(1), vote,  # came to no program
        step(1), program("c", 2, rows=None), step(3), program("c3", 3), vote,
        step(), step(1), program("d", 1),  # no vote was told: the round goes back
        step(), program("e"),
    ]  # fmt: skip
    assert [one.sql for one in voted_programs(trace)] == ["a", None, "c3", "d", "e"]


def scores(
    bench: SmallBench, *sql: str | None, answer: tuple[str | None, float] = (None, 0.0)
) -> tuple[float, float]:
    voted = [Voted("shop", one) for one in sql]
    found = program_scores(voted, answer, GOLD, False, bench.run_sql)
    return found["FirstEX"], found["BestEX"]


def test_first_and_best(bench: SmallBench) -> None:
    assert scores(bench, RIGHT, WRONG) == (1, 1)
    assert scores(bench, WRONG, RIGHT) == (0, 1)
    assert scores(bench, WRONG, BROKEN) == (0, 0)
    assert scores(bench, None, RIGHT) == (0, 1)
    assert scores(bench, None, None) == (0, 0)
    assert scores(bench, WRONG, answer=("x", 1.0)) == (0, 1)  # the answer counts in any case
    assert scores(bench, answer=("x", 1.0)) == (1, 1)  # a method without votes
    assert scores(bench) == (0, 0)


def test_nothing_is_run_twice(bench: SmallBench) -> None:
    ran: list[str] = []

    def run(source: str, sql: str) -> Execution:
        ran.append(sql)
        return bench.run_sql(source, sql)

    voted = [Voted("shop", sql) for sql in (RIGHT, WRONG, WRONG, BROKEN, BROKEN, RIGHT)]
    program_scores(voted, (RIGHT, 1.0), GOLD, False, run)
    assert ran == [WRONG, BROKEN]


ONE = st.sampled_from(["right", "wrong", "fails", None])


@given(st.lists(ONE, max_size=6), st.sampled_from([0.0, 1.0]))
def test_the_best_is_never_below_the_first_nor_the_answer(
    written: list[str | None], score: float
) -> None:
    from dbrag.errors import ExecutionError

    def run(source: str, sql: str) -> Execution:
        if sql == "fails":
            raise ExecutionError("no")
        rows = GOLD.rows if sql == "right" else ((1,),)
        return Execution((ResultColumn("c", ""),), rows, 0.0)

    voted = [Voted("shop", sql) for sql in written]
    found = program_scores(voted, (None, score), GOLD, False, run)
    assert found["BestEX"] >= max(score, found["FirstEX"])
    if written:
        assert found["FirstEX"] == float(written[0] == "right")
        assert found["BestEX"] == max(score, float("right" in written))


def test_order_counts_where_the_gold_orders(bench: SmallBench) -> None:
    turned = [Voted("shop", RIGHT + " ORDER BY name DESC")]
    for ordered, score in ((True, 0.0), (False, 1.0)):
        found = program_scores(turned, (None, 0.0), GOLD, ordered, bench.run_sql)
        assert found["BestEX"] == score


def told(sql: str, trace: list[dict[str, Any]], rows: Any = ((1,), (2,))) -> Answer:
    return Answer(
        "?",
        "answered",
        "",
        execution=Execution((ResultColumn("c", ""),), rows, 0.0),
        program=Program((), sql, "sqlite", (CUSTOMER,)),
        tables=(CUSTOMER,),
        trace=tuple(trace),
    )


def test_records_and_summary_hold_both(bench: SmallBench, tmp_path: Path) -> None:
    trace = [select(), program(WRONG), program(RIGHT), program(WRONG)]
    failed = Answer("?", "failed", "", trace=tuple(trace))
    bench.answers = {"outvoted": told(WRONG, trace), "refused": failed, "lost": KeyError("x")}
    tools = Tools(bench, make_catalog(), lambda: Parrot(""))
    summary = evaluate_answers(
        ANSWER_METHODS["dbrag"](tools),
        [
            Question(f"q-{i}", "shop", q, (CUSTOMER,), None, GOLD)
            for i, q in enumerate(bench.answers)
        ],
        run=bench.run_sql,
        out=tmp_path / "run",
        config={},
    )
    assert (summary["EX"], summary["FirstEX"]) == (0, 0)
    assert summary["BestEX"] == pytest.approx(2 / 3, abs=1e-6)
    assert summary["by_tables"]["1"]["BestEX"] == summary["BestEX"]
    first, second, third = read_records(tmp_path / "run")
    assert (first["scores"]["EX"], first["scores"]["BestEX"]) == (0, 1)
    assert second["scores"]["BestEX"] == 1  # it was written, though not told
    assert third["scores"] == {}


def test_seconds_are_those_of_the_answer(bench: SmallBench, tmp_path: Path) -> None:
    def slowly(source: str, sql: str) -> Execution:
        time.sleep(0.3)
        return bench.run_sql(source, sql)

    bench.answers = {"?": told(WRONG, [select(), program(RIGHT)])}
    summary = evaluate_answers(
        ANSWER_METHODS["dbrag"](Tools(bench, make_catalog(), lambda: Parrot(""))),
        [Question("q-0", "shop", "?", (CUSTOMER,), None, GOLD)],
        run=slowly,
        out=tmp_path / "run",
        config={},
    )
    assert summary["BestEX"] == 1
    assert summary["seconds"]["median"] < 0.3


def test_the_gold_tables_are_given_to_the_ceiling_alone(bench: SmallBench, tmp_path: Path) -> None:
    bench.answers = {"?": told(RIGHT, [], GOLD.rows)}
    tools = Tools(bench, make_catalog(), lambda: Parrot(RIGHT), votes=5)
    question = Question("q-0", "shop", "?", (CUSTOMER, ORDER), RIGHT, GOLD)
    for method, tables in (("gold-tables", ("shop.customer", "shop.order")), ("dbrag", ())):
        summary = evaluate_answers(
            ANSWER_METHODS[method](tools),
            [question],
            run=bench.run_sql,
            out=tmp_path / method,
            config={"method": method},
        )
        assert bench.given[-1] == tables
        assert summary["EX"] == summary["FirstEX"] == summary["BestEX"] == 1
    ANSWER_METHODS["naive"](tools)(question)
    assert len(bench.given) == 2
