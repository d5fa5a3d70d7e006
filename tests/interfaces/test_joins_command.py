"""``dbrag joins``, and what an answer over an inferred join says, on real files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dbrag
from dbrag.database import connect
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.settings import Settings
from tests.index.conftest import write_db
from tests.index.test_joins_index import KEYED, OLD, TO_CUSTOMERS, TO_PRODUCTS

SQL = (
    "SELECT customers.name, COUNT(*) FROM orders "
    "JOIN customers ON orders.customer_id = customers.id GROUP BY customers.name"
)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return write_db(tmp_path / "old.db", OLD)


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_fakes(*, settings: Settings) -> Any:
        fake = FunctionModel(lambda _: f"```sql\n{SQL}\n```")
        return connect(settings=settings, chat_model=fake, embedder=HashEmbedder())

    monkeypatch.setitem(vars(dbrag), "connect", with_fakes)


def config(folder: Path, text: str) -> Path:
    path = folder / "dbrag.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_for_programs(cli, old: Path) -> None:
    told = cli("joins", "-s", old, "--json").json
    assert told["schema"] == 1
    assert told["warnings"] == []
    first = told["joins"][0]
    assert 0.5 < first.pop("confidence") < 1
    assert first == {
        "left": {"source": "old", "schema": None, "name": "orders"},
        "left_columns": ["customer_id"],
        "right": {"source": "old", "schema": None, "name": "customers"},
        "right_columns": ["id"],
        "declared": False,
        "evidence": "all 30 values found in a primary key; the name fits",
    }
    assert len(told["joins"]) == 2


def test_for_people(cli, old: Path) -> None:
    lines = cli("joins", "-s", old).out.splitlines()
    assert lines[0].split() == ["join", "sure", "why"]
    assert lines[2].startswith(TO_CUSTOMERS)
    assert lines[2].split("%")[1].strip() == ("all 30 values found in a primary key; the name fits")


def test_of_some_tables(cli, old: Path) -> None:
    assert len(cli("joins", "products", "-s", old, "--json").json["joins"]) == 1
    assert len(cli("joins", "products", "old.customers", "-s", old, "--json").json["joins"]) == 2
    wrong = cli("joins", "suppliers", "-s", old)
    assert wrong.code == 2
    assert "suppliers" in wrong.err


def test_declared_or_inferred(cli, tmp_path: Path) -> None:
    path = write_db(tmp_path / "old.db", KEYED)
    declared = cli("joins", "-s", path, "--declared", "--json").json["joins"]
    inferred = cli("joins", "-s", path, "--inferred", "--json").json["joins"]
    assert [(e["declared"], e["confidence"], e["left_columns"]) for e in declared] == [
        (True, 1.0, ["customer_id"])
    ]
    assert [(e["declared"], e["left_columns"]) for e in inferred] == [(False, ["product_id"])]
    assert cli("joins", "-s", path, "--inferred", "--declared").code == 2


def test_no_joins(cli, tmp_path: Path) -> None:
    path = write_db(tmp_path / "zoo.db", "CREATE TABLE animal (id INTEGER PRIMARY KEY);")
    assert cli("joins", "-s", path).out == "no joins are known\n"


def test_corrections_take_effect_at_once(cli, old: Path, tmp_path: Path) -> None:
    assert cli("index", "-s", old).code == 0
    path = config(
        tmp_path, f'[joins]\nremove = ["{TO_PRODUCTS}"]\nadd = ["{TO_CUSTOMERS}", "a.b = c.d"]\n'
    )
    told = cli("joins", "-s", old, "--config", path, "--json").json
    assert [(e["declared"], e["evidence"]) for e in told["joins"]] == [
        (True, "added in dbrag.toml")
    ]
    assert [warning["code"] for warning in told["warnings"]] == ["joins_setting"]
    assert "'a.b = c.d'" in told["warnings"][0]["message"]
    answer = cli("ask", "-s", old, "--config", path, "How many orders?", "--json").json
    assert "joins_setting" in [warning["code"] for warning in answer["warnings"]]
    assert "inferred_join" not in [warning["code"] for warning in answer["warnings"]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("joins = 3", "joins must be a table"),
        ('[joins]\nadd = "a.b = c.d"', "add in [joins]"),
        ("[joins]\nadds = []", "did you mean add?"),
        ('infer_joins = "maybe"', "infer_joins must be one of"),
    ],
)
def test_wrong_settings(cli, old: Path, tmp_path: Path, text: str, words: str) -> None:
    done = cli("joins", "-s", old, "--config", config(tmp_path, text))
    assert done.code == 2
    assert words in done.err


def test_an_answer_over_an_inferred_join_says_so(cli, old: Path) -> None:
    answer = cli("ask", "-s", old, "How many orders of each customer?", "--json").json
    assert answer["status"] == "answered"
    told = {warning["code"]: warning["message"] for warning in answer["warnings"]}
    assert told["inferred_join"].startswith(
        f"joined by {TO_CUSTOMERS}: not declared, inferred with"
    )


def test_an_answer_over_a_declared_key_does_not(cli, tmp_path: Path) -> None:
    path = write_db(tmp_path / "old.db", KEYED)
    answer = cli("ask", "-s", path, "How many orders of each customer?", "--json").json
    assert answer["status"] == "answered"
    assert "inferred_join" not in [warning["code"] for warning in answer["warnings"]]


def test_search_tells_inferred_joins(cli, old: Path) -> None:
    found = cli("search", "-s", old, "orders of customers", "--json").json["candidates"]
    assert any("(inferred, " in candidate["reason"] for candidate in found)
