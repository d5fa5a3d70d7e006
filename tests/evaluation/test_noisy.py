"""Thirty questions on noisy data and multi-step needs, the whole way with an ideal model."""

from __future__ import annotations

import importlib
import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dbrag.database import connect
from dbrag.evaluation import run_eval
from dbrag.evaluation.records import read_records
from dbrag.models.base import Prompt
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.reasoning.sureness import UNSURE
from dbrag.settings import Settings

FOLDER = Path(__file__).parents[2] / "experiments" / "noisy"
NAMES = ("market_data", "market_sql", "market_answers", "market_questions", "make")


@pytest.fixture(scope="module")
def market() -> Any:
    """The modules of the experiment, as its own script sees them."""
    sys.path.insert(0, str(FOLDER))
    try:
        yield {name: importlib.import_module(name) for name in NAMES}
    finally:
        sys.path.remove(str(FOLDER))
        for name in NAMES:
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def made(market: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    paths: tuple[Path, Path] = market["make"].make(tmp_path_factory.mktemp("noisy"))
    return paths


def alike(rows: Any) -> list[str]:
    cells = [[round(v, 6) if isinstance(v, float) else v for v in row] for row in rows]
    return sorted(map(repr, cells))


def test_the_clean_records_and_the_noisy_tables_agree(market: Any, made: Any) -> None:
    clean, questions = market["market_data"].clean_market(), market["market_questions"].QUESTIONS
    assert len(questions) == 30
    assert len({asked.question for asked in questions}) == 30
    assert sum(len(asked.steps) > 1 for asked in questions) >= 10
    with closing(sqlite3.connect(made[0])) as connection:
        for asked in questions:
            found = connection.execute(asked.sql).fetchall()
            assert alike(found) == alike(asked.answer(clean)), asked.question
            assert found not in ([], [(0,)], [(None,)]), f"tells nothing: {asked.question}"


def test_the_same_seed_makes_the_same_market(market: Any, tmp_path: Path) -> None:
    data = market["market_data"]
    assert data.clean_market() == data.clean_market()
    dumps = []
    for name in "ab":
        data.write_noisy(data.clean_market(), tmp_path / name)
        with closing(sqlite3.connect(tmp_path / name)) as connection:
            dumps.append(list(connection.iterdump()))
    assert dumps[0] == dumps[1]
    with pytest.raises(FileExistsError):
        data.write_noisy(data.clean_market(), tmp_path / "a")


def test_an_ideal_model_is_right_thirty_times(market: Any, made: Any, tmp_path: Path) -> None:
    programs = {
        asked.question: json.dumps({"steps": [{"name": n, "sql": s} for n, s in asked.steps]})
        for asked in market["market_questions"].QUESTIONS
    }

    def ideal(prompt: Prompt) -> str:
        return programs[prompt.request.rpartition("Question: ")[2]]

    model = FunctionModel(ideal, name="test:ideal")
    summary = run_eval(
        "answers",
        data=made[0],
        questions=made[1],
        settings=Settings(index=str(tmp_path / "index"), cache=str(tmp_path / "cache")),
        votes=1,
        out=tmp_path / "run",
        chat_model=model,
        embedder=HashEmbedder(),
    )
    records = read_records(tmp_path / "run")
    assert [r["id"] for r in records if r["scores"]["EX"] != 1.0] == []
    assert summary["n"] == 30
    assert len(model.prompts) == 30  # nothing had to be repaired
    told = {code for r in records for code in r["prediction"]["warnings"]}
    assert told <= {"inferred_join"}  # of noise there is nothing to warn of


@pytest.mark.parametrize(
    ("question", "sql", "code"),
    [
        (
            "How many customers live in Paris?",
            "SELECT COUNT(*) FROM customers WHERE city = 'Paris'",
            "mixed_spellings",
        ),
        (
            "On which day was the first order placed?",
            "SELECT MIN(order_date) FROM orders",
            "dates_as_text",
        ),
        (
            "What do all products cost together?",
            "SELECT SUM(price) FROM products",
            "numbers_as_text",
        ),
    ],
)
def test_a_naive_model_is_warned_of(
    made: Any, tmp_path_factory: pytest.TempPathFactory, question: str, sql: str, code: str
) -> None:
    folder = tmp_path_factory.getbasetemp() / "naive"  # one index for all cases
    with connect(
        made[0],
        settings=Settings(index=str(folder / "index"), cache=str(folder / "cache"), votes=1),
        chat_model=FunctionModel(lambda _: sql),
        embedder=HashEmbedder(),
    ) as db:
        db.index()
        answer = db.ask(question)
    assert answer.status == "answered"
    assert code in {warning.code for warning in answer.warnings}
    assert answer.confidence is not None
    assert answer.confidence < UNSURE
    assert "not sure: the data are written in several ways" in answer.text
