"""``bench/first_token.py`` on two small databases with a model that tells a time."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dbrag
from dbrag.errors import UsageError
from dbrag.evaluation.pack import read_asked
from dbrag.models.base import Prompt, Reply
from dbrag.models.testing import FunctionModel, HashEmbedder

PATH = Path(__file__).parents[2] / "bench" / "first_token.py"
TABLES = {
    "zoo": "CREATE TABLE animal (animal_name TEXT); INSERT INTO animal VALUES ('Emu');",
    "shop": "CREATE TABLE product (price REAL); INSERT INTO product VALUES (2.5);",
    "school": "CREATE TABLE pupil (grade INTEGER); INSERT INTO pupil VALUES (3);",
}
ASKED = [
    ("zoo", "List the animal name of every animal"),
    ("zoo", "List the animal name of every animal"),  # the same text is no second question
    ("shop", "What is the price of each product?"),
    ("zoo", "How many animal name are there of an animal?"),
    ("school", "Which grade has each pupil?"),
    ("shop", "Show the highest price of a product"),
    ("zoo", "What is the price of a product?"),  # leads elsewhere
]


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    spec = importlib.util.spec_from_file_location("first_token", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["first_token"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules["first_token"]


@pytest.fixture
def index(tmp_path: Path) -> Path:
    folder = tmp_path / "database"
    folder.mkdir()
    for name, script in TABLES.items():
        with closing(sqlite3.connect(folder / f"{name}.sqlite")) as connection:
            connection.executescript(script)
    (tmp_path / "train.json").write_text(
        json.dumps([{"db_id": db_id, "question": question} for db_id, question in ASKED])
    )
    with dbrag.connect(folder, index=tmp_path / "index", embedder=HashEmbedder()) as db:
        db.index()
    return tmp_path / "index"


class Slow(FunctionModel):
    """Takes 100 ms where the tables are new to it, else 20; nothing is waited for."""

    def __init__(self, tells: bool = True) -> None:
        super().__init__(lambda prompt: "SELECT 1", name="test:slow")
        self.tells = tells
        self.seen: list[str] = []

    def sample(self, prompt: Prompt, n: int = 1, **options: Any) -> list[Reply]:
        (reply,) = super().sample(prompt, n, **options)
        known = prompt.context in self.seen
        self.seen.append(prompt.context)
        seconds = (0.02 if known else 0.1) if self.tells else None
        return [replace(reply, first_token_s=seconds, cached_tokens=5 * known)]


def call(bench: Any, index: Path, model: Any, *more: str) -> int:
    arguments = ["--index", str(index), "--questions", str(index.parent / "train.json"), *more]
    code: int = bench.main(arguments, chat_model=model, embedder=HashEmbedder())
    return code


def test_pairs_are_about_the_same_tables_of_their_own_database(bench: Any, index: Path) -> None:
    questions = read_asked(index.parent / "train.json")
    orders = set()
    for seed in range(6):
        silent = FunctionModel(lambda prompt: "SELECT 1")
        with dbrag.connect(index=index, chat_model=silent, embedder=HashEmbedder()) as db:
            pairs, other = bench.find_pairs(db, questions, 10, seed)
            again, _ = bench.find_pairs(db, questions, 10, seed)
            (one,), _ = bench.find_pairs(db, questions, 1, seed)
        assert pairs == again
        assert {(p.db_id, p.tables) for p in pairs} == {
            ("zoo", ("zoo.animal",)),
            ("shop", ("shop.product",)),
        }
        assert one in pairs
        assert all(p.first.question != p.second.question for p in pairs)
        assert other is not None
        assert other.db_id == "school"
        orders.add(tuple((p.db_id, p.first.id) for p in pairs))
    assert len(orders) > 1


def test_the_second_question_is_timed_against_the_first(
    bench: Any, index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Slow()
    assert call(bench, index, model, "--out", str(tmp_path / "out" / "figures.json")) == 0
    shown = capsys.readouterr().out
    assert "2 pairs, median ms to the first token: first 100.0, second 20.0" in shown
    assert "median ratio 0.200 (0.200 to 0.200), at most half in 2 of 2" in shown
    found = json.loads((tmp_path / "out" / "figures.json").read_text())
    assert found["config"]["settings"]["model"] == "test:slow"
    assert [one["tables"] for one in found["pairs"]] == [1, 1]
    assert found["cached"] == [0, 5]
    # The one about another table comes first, then pair by pair; no repairs.
    assert len(model.seen) == 5
    assert model.seen[0] not in model.seen[1:]
    assert model.seen[1] == model.seen[2] != model.seen[3] == model.seen[4]


def test_mistakes(bench: Any, index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(bench, index, Slow(tells=False)) == 2
    assert "'test:slow' does not tell the time to its first token" in capsys.readouterr().err
    (index.parent / "train.json").write_text(
        json.dumps([{"db_id": db_id, "question": question} for db_id, question in ASKED[:2]])
    )
    assert call(bench, index, Slow()) == 2
    assert "no two questions" in capsys.readouterr().err
    for wrong in ('{"db_id": 1}', "[]", "[1]", '[{"db_id": "zoo"}]', "nothing"):
        (index.parent / "train.json").write_text(wrong)
        with pytest.raises(UsageError, match="is not a JSON list"):
            read_asked(index.parent / "train.json")
