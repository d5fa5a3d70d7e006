"""``dbrag demo``."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dbrag.demo import QUESTIONS, is_demo
from dbrag.types import Execution, ResultColumn
from tests.interfaces.conftest import an_answer


def test_it_writes_the_shop_and_lists_the_questions(cli) -> None:
    done = cli("demo")
    assert done.code == 0
    assert is_demo(Path("demo/shop.db"))
    for question in QUESTIONS:
        assert f'dbrag ask -s demo/shop.db "{question.question}"' in done.out
    value = cli("demo", "other shop.db", "--json", "--seed", "3").json
    assert value["seed"] == 3
    assert len(value["questions"]) == 6
    assert "-s 'other shop.db'" in cli("demo", "other shop.db").out


def test_it_overwrites_nothing_else(cli, small_shop: Path) -> None:
    before = small_shop.read_bytes()
    done = cli("demo", small_shop)
    assert done.code == 2
    assert "--force" in done.err
    assert small_shop.read_bytes() == before
    assert cli("demo", small_shop, "--force").code == 0


def test_ask(cli, fake) -> None:
    done = cli("demo", "--ask")
    assert done.code == 0
    assert fake.calls[0][1]["question"] == QUESTIONS[0].question
    assert done.out.startswith('dbrag ask -s demo/shop.db "What is')
    assert cli("demo", "--ask", "--json").json["question"] == QUESTIONS[0].question
    fake.result = an_answer(exit_code=4, status="unanswerable", error={"message": "no"})
    assert cli("demo", "--ask").code == 4


@pytest.mark.parametrize(
    ("wrong", "code", "words"),
    [
        (set(), 0, "6 of 6 right"),
        ({3}, 0, "5 of 6 right"),
        ({3, 4}, 1, "4 of 6 right"),
        ({0}, 1, "5 of 6 right"),
    ],
)
def test_check(cli, fake, wrong: set[int], code: int, words: str) -> None:
    gold = {question.question: question.sql for question in QUESTIONS}
    bad = {QUESTIONS[i].question for i in wrong}

    def reply(arguments: dict[str, Any]) -> Any:
        sql = arguments.get("statement") or gold[arguments["question"]]
        with closing(sqlite3.connect("demo/shop.db")) as connection:
            rows = connection.execute(sql).fetchall()
        if arguments.get("question") in bad:
            rows = rows[1:]
        columns = tuple(ResultColumn(f"c{i}", "string") for i in range(2))
        return an_answer(execution=Execution(columns, tuple(rows), 0.0))

    fake.result = reply
    done = cli("demo", "--check")
    assert done.code == code
    assert done.out.splitlines()[-1] == words
    assert done.out.count("WRONG") == len(wrong)
    value = cli("demo", "--check", "--json")
    assert value.code == code
    assert value.json["right"] == 6 - len(wrong)
