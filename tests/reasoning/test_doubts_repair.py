"""A doubt about a program sends it back once; a model that insists is believed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import dbrag
from dbrag.models.testing import HashEmbedder, ScriptedModel
from dbrag.types import Answer

JOIN = "FROM stores s JOIN orders o ON o.store_id = s.id"
TRAP = f"SELECT SUM(s.budget) {JOIN}"
RIGHT = "SELECT SUM(budget) FROM stores WHERE id IN (SELECT store_id FROM orders)"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with closing(sqlite3.connect(tmp_path / "shop.db")) as db:
        db.executescript(
            "CREATE TABLE stores (id INTEGER PRIMARY KEY, city TEXT, budget INT);"
            "CREATE TABLE orders (store_id INT REFERENCES stores, kind TEXT, total INT);"
            "INSERT INTO stores VALUES (1, 'Lisbon', 5), (2, 'Rome', 7);"
            "INSERT INTO orders VALUES (1, 'a', 1), (1, 'b', 2), (2, 'a', 3);"
        )
    return tmp_path / "shop.db"


def ask(path: Path, *replies: str) -> tuple[Answer, ScriptedModel]:
    model = ScriptedModel(list(replies))
    with dbrag.connect(
        path, index=path.parent / "index", embedder=HashEmbedder(), chat_model=model
    ) as db:
        db.index()
        return db.ask("What is the total budget of stores with orders?", votes=1), model


def test_a_trap_is_repaired(path: Path) -> None:
    answer, model = ask(path, TRAP, RIGHT)
    assert answer.execution is not None
    assert answer.execution.rows == ((12,),)
    told = model.prompts[1].turns[0][1]
    assert "Joining stores with orders repeats rows of stores" in told


def test_a_model_that_insists_is_believed(path: Path) -> None:
    answer, model = ask(path, TRAP, TRAP)
    assert answer.execution is not None
    assert answer.execution.rows == ((17,),)
    assert len(model.prompts) == 2
    assert "join_multiplies" in {warning.code for warning in answer.warnings}


def test_a_missing_value_is_repaired(path: Path) -> None:
    wrong = "SELECT budget FROM stores WHERE city = 'Lissabon'"
    answer, model = ask(path, wrong, "SELECT budget FROM stores WHERE city = 'Lisbon'")
    assert answer.execution is not None
    assert answer.execution.rows == ((5,),)
    assert "nearest: 'Lisbon'" in model.prompts[1].turns[0][1]
