"""``bench/wrong_database.py`` on three small databases with a scripted model."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dbrag.errors import UsageError
from dbrag.evaluation.datasets import Question
from dbrag.evaluation.records import read_records, write_slim
from dbrag.models.base import Prompt
from dbrag.models.testing import FunctionModel, HashEmbedder

PATH = Path(__file__).parents[2] / "bench" / "wrong_database.py"

TABLES = {
    "zoo": "CREATE TABLE animal (animal_name TEXT); INSERT INTO animal VALUES ('Emu');",
    "shop": "CREATE TABLE product (price REAL); INSERT INTO product VALUES (2.5);",
    "school": "CREATE TABLE pupil (grade INTEGER); INSERT INTO pupil VALUES (3);",
}


@pytest.fixture(scope="module")
def wrong() -> Any:
    spec = importlib.util.spec_from_file_location("wrong_database", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "database"
    for name, script in TABLES.items():
        (folder / name).mkdir(parents=True)
        with closing(sqlite3.connect(folder / name / f"{name}.sqlite")) as connection:
            connection.executescript(script)
    asked = [
        ("zoo", "List the animal_name of every animal"),
        ("shop", "What is the price of each product?"),
        ("school", "Which grade has each pupil?"),
        ("school", "How many pupil are there?"),
    ]
    records = [{"db_id": db_id, "question": question} for db_id, question in asked]
    (tmp_path / "train.json").write_text(json.dumps(records))
    return folder


def told(status: str, confidence: float | None, agreement: float | None = None) -> dict[str, Any]:
    return {"status": status, "confidence": confidence, "agreement": agreement}


@pytest.mark.parametrize(
    ("given", "verdict"),
    [
        (told("unanswerable", None), "refused"),
        (told("failed", None), "failed"),
        (told("answered", 0.8, 0.2), "invented"),  # confidence goes before agreement
        (told("answered", 0.79, 1.0), "unsure"),
        (told("answered", None, 1.0), "invented"),
        (told("answered", None, 0.5), "unsure"),
        (told("answered", None), "invented"),  # nothing tells the reader to doubt it
        (told("answered", 0.0), "unsure"),
    ],
)
def test_verdicts(wrong: Any, given: dict[str, Any], verdict: str) -> None:
    assert wrong.verdict(given, 0.8) == verdict
    assert wrong.verdict(given, 0.8, right=True) == verdict.replace("invented", "sure")


def test_the_draw_is_seeded_and_never_the_own_database(wrong: Any) -> None:
    names = [f"db{i}" for i in range(20)]
    questions = [Question(f"train-{i}", f"db{i % 20}", "?", ()) for i in range(200)]
    first = [wrong.drawn(one, names, 0, False) for one in questions]
    assert first == [wrong.drawn(one, names[::-1], 0, False) for one in questions]
    assert first != [wrong.drawn(one, names, 1, False) for one in questions]
    assert all(name != one.db_id for name, one in zip(first, questions, strict=True))
    assert set(first) == set(names)
    assert [wrong.drawn(one, names, 0, True) for one in questions] == [q.db_id for q in questions]
    with pytest.raises(UsageError, match="no database 'x'"):
        wrong.drawn(Question("q", "x", "?", ()), names, 0, True)


def test_the_summary_by_hand(wrong: Any) -> None:
    kinds = [told("unanswerable", None)] * 6 + [told("answered", 0.5)] * 3 + [told("answered", 0.9)]
    records = [
        {
            "prediction": one,
            "seconds": 2.0,
            "error": {"code": "unanswerable"} if one["status"] == "unanswerable" else None,
        }
        for one in kinds
    ]
    found = wrong.summed_up(records, 0.8, right=False)
    assert [found[name]["share"] for name in wrong.WRONG] == [0.6, 0.3, 0.1, 0.0]
    low, high = found["invented"]["interval"]
    assert (low, high) == (pytest.approx(0.0179, abs=1e-4), pytest.approx(0.4042, abs=1e-4))
    assert found["errors"] == {"unanswerable": 6}
    assert wrong.summed_up(records, 0.5, right=True)["sure"]["share"] == 0.4
    assert "invented     1   10.0% (1.8 to 40.4)" in wrong.table(found)


def call(wrong: Any, data: Path, *more: str, model: Any) -> int:
    arguments = ["--data", str(data), "--questions", str(data.parent / "train.json")]
    arguments += ["--out", str(data.parent / "run"), *more]
    code: int = wrong.main(arguments, chat_model=model, embedder=HashEmbedder())
    return code


def pick(prompt: Prompt) -> str:
    """A program on whatever table is shown."""
    for column, table in (("animal_name", "animal"), ("price", "product"), ("grade", "pupil")):
        if table in prompt.text():
            return f"SELECT {column} FROM {table}"
    raise AssertionError(prompt.text())


def test_a_run_can_be_cut_and_resumed(
    wrong: Any, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = FunctionModel(pick)
    assert call(wrong, data, model=first) == 0
    shown = capsys.readouterr().out
    assert "wrong database, 4 questions" in shown
    records = read_records(data.parent / "run")
    assert len(records) == 4
    assert all(one["asked"] != one["db_id"] for one in records)
    assert [one["asked"] for one in records] == sorted(one["asked"] for one in records)
    file = data.parent / "run" / "records.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3]) + lines[3][:9])
    assert call(wrong, data, model=FunctionModel(pick)) == 2
    assert "already holds a run" in capsys.readouterr().err
    again = FunctionModel(pick)
    assert call(wrong, data, "--resume", model=again) == 0
    assert len(again.prompts) <= len(first.prompts) / 2  # the last question only
    assert capsys.readouterr().out.splitlines()[:-1] == shown.splitlines()[:-1]
    assert [one["id"] for one in read_records(file)] == [one["id"] for one in records]
    assert not list(data.rglob("*-journal"))
    write_slim(data.parent / "run", data.parent / "kept.jsonl")
    kept = read_records(data.parent / "kept.jsonl")
    assert {"asked", "told", "error"} <= kept[0].keys()
    assert "SELECT" not in (data.parent / "kept.jsonl").read_text()


def test_the_right_database(wrong: Any, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(wrong, data, "--right", "--limit", "3", model=FunctionModel(pick)) == 0
    assert "right database, 3 questions" in capsys.readouterr().out
    records = read_records(data.parent / "run")
    assert all(one["asked"] == one["db_id"] for one in records)
    assert {one["prediction"]["status"] for one in records} == {"answered"}
    assert [one["prediction"]["sql"] for one in records][-1] is not None


def test_mistakes(wrong: Any, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (data.parent / "train.json").write_text('{"db_id": 1}')
    assert call(wrong, data, model=FunctionModel(pick)) == 2
    assert "is not a JSON list" in capsys.readouterr().err
    assert call(wrong, data, "--threshold", "80", model=FunctionModel(pick)) == 2
    assert "must lie between 0 and 1, not 80.0" in capsys.readouterr().err
    with pytest.raises(UsageError, match="holds 1 SQLite databases"):
        wrong.databases(data / "zoo")


def test_a_stopped_run_says_how_to_go_on(
    wrong: Any, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(prompt: Prompt) -> str:
        raise KeyboardInterrupt

    assert call(wrong, data, "--right", model=FunctionModel(stop)) == 130
    assert "--resume" in capsys.readouterr().err
    assert call(wrong, data, "--right", "--resume", model=FunctionModel(pick)) == 0
    assert len(read_records(data.parent / "run")) == 4
