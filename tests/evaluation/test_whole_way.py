"""Evaluation of the real ``Database`` with a scripted model: what its trace has to tell."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dbrag.evaluation import run_eval
from dbrag.evaluation.records import read_records
from dbrag.models.testing import FunctionModel, HashEmbedder, ScriptedModel
from dbrag.settings import Settings

TABLES = {
    "zoo": "CREATE TABLE animal (animal_name TEXT, legs INTEGER);"
    "INSERT INTO animal VALUES ('Emu', 2), ('Cow', 4);"
    "CREATE TABLE keeper (keeper_name TEXT); INSERT INTO keeper VALUES ('Ada');",
    "shop": 'CREATE TABLE "odd.table" (price REAL); INSERT INTO "odd.table" VALUES (2.5);',
}
RIGHT, WRONG = "SELECT animal_name FROM animal", "SELECT legs FROM animal"
OTHER, BROKEN = "SELECT COUNT(*) + 7 FROM animal", "SELECT nothing_such FROM nowhere"


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    for name, script in TABLES.items():
        (tmp_path / "database" / name).mkdir(parents=True)
        file = tmp_path / "database" / name / f"{name}.sqlite"
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript(script)
    return tmp_path


def evaluate(pack: Path, asked: list[tuple[str, str, str]], model: Any, **more: Any) -> Any:
    keys = ("db_id", "question", "query")
    file = pack / "questions.json"
    file.write_text(json.dumps([dict(zip(keys, one, strict=True)) for one in asked]))
    given = more.pop("settings", {})
    summary = run_eval(
        "answers",
        data=pack / "database",
        questions=file,
        settings=Settings(index=str(pack / "index"), cache=str(pack / "cache"), **given),
        out=pack / "run",
        chat_model=model,
        embedder=HashEmbedder(),
        **more,
    )
    return summary, read_records(pack / "run")


ANIMALS = ("zoo", "What is the animal name of every animal?", RIGHT)


@pytest.mark.parametrize(
    ("replies", "first", "best"),
    [
        ([WRONG, RIGHT, OTHER], 0, 1),
        ([RIGHT, WRONG, OTHER], 1, 1),
        ([WRONG, OTHER, WRONG], 0, 0),
        ([BROKEN, RIGHT, RIGHT], 0, 1),
    ],
)
def test_the_first_and_the_best_of_three_votes(
    pack: Path, replies: list[str], first: int, best: int
) -> None:
    model = ScriptedModel(replies)
    summary, (record,) = evaluate(pack, [ANIMALS], model, votes=3, settings={"rounds": 0})
    assert (summary["FirstEX"], summary["BestEX"]) == (first, best)
    assert record["scores"]["EX"] <= best
    assert summary["calibration"]["agreement"]["n"] == 1


def test_a_repair_belongs_to_its_attempt(pack: Path) -> None:
    model = ScriptedModel([BROKEN, RIGHT])
    summary, _ = evaluate(pack, [ANIMALS], model, votes=1, settings={"rounds": 1})
    assert (summary["EX"], summary["FirstEX"], summary["BestEX"]) == (1, 1, 1)


def test_programs_of_steps_are_scored(pack: Path) -> None:
    replies = [
        "known: SELECT animal_name, legs FROM animal",
        "answer: SELECT animal_name FROM known",
    ]
    settings = {"program": "steps", "rounds": 0}
    summary, (record,) = evaluate(
        pack, [ANIMALS], ScriptedModel(replies), votes=1, settings=settings
    )
    assert summary["failed"] == 0, record["error"]
    assert (summary["EX"], summary["FirstEX"], summary["BestEX"]) == (1, 1, 1)


def test_only_the_gold_tables_are_shown_to_the_ceiling(pack: Path) -> None:
    def sql(prompt: Any) -> str:
        text = prompt.text()
        assert "keeper_name" not in text
        return 'SELECT price FROM "odd.table"' if "price" in text else RIGHT

    asked = [
        ("zoo", "keeper?", RIGHT),  # its words lead elsewhere
        ("shop", "animal?", 'SELECT price FROM "odd.table"'),
    ]
    summary, records = evaluate(pack, asked, FunctionModel(sql), votes=1, method="gold-tables")
    assert (summary["EX"], summary["RightTables"], summary["failed"]) == (1, 1, 0)
    assert [one["prediction"]["tables"] for one in records] == [["zoo.animal"], ["shop.odd.table"]]
    assert summary["config"]["method"] == "gold-tables"
