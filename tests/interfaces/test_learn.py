"""``dbrag learn`` on real files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dbrag
from dbrag.database import connect
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.settings import Settings

QUESTION = "How many customers live in each city?"
SQL = "SELECT city, COUNT(*) AS n FROM customers GROUP BY city"


@pytest.fixture
def learned(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file; the model behind the commands knows one statement."""
    path = tmp_path_factory.mktemp("learned") / "learned.sql"
    monkeypatch.setenv("DBRAG_LEARNED", str(path))
    model = FunctionModel(lambda _: "SELECT COUNT(*) FROM customers")

    def with_fakes(*, settings: Settings) -> Any:
        return connect(settings=settings, chat_model=model, embedder=HashEmbedder())

    monkeypatch.setitem(vars(dbrag), "connect", with_fakes)
    return path


def test_learn_list_ask_and_forget(cli, learned: Path, small_shop: Path) -> None:
    done = cli("learn", "-s", small_shop, QUESTION, "--sql", SQL)
    assert done.code == 0
    assert "Lisbon" in done.out
    assert "3 rows" in done.out
    assert f"file: {learned}" in done.out
    value = cli("learn", "-s", small_shop, "--list", "--json").json
    (pair,) = value["pairs"]
    assert (pair["question"], pair["source"], pair["problem"]) == (QUESTION, "small shop", None)
    assert pair["tables"] == [{"source": "small shop", "schema": None, "name": "customers"}]
    answer = cli("ask", "-s", small_shop, QUESTION.upper(), "--json").json
    assert answer["sql"] == SQL
    assert answer["model"] is None
    assert "learned" in [w["code"] for w in answer["warnings"]]
    again = cli("learn", "-s", small_shop, QUESTION, "--sql", "SELECT 1 FROM customers;", "--json")
    assert again.json["replaced"] is True
    assert again.json["row_count"] == 3
    gone = cli("learn", "-s", small_shop, "--forget", "how many customers live in each city")
    assert gone.code == 0
    assert cli("learn", "-s", small_shop, "--list", "--json").json["pairs"] == []
    answer = cli("ask", "-s", small_shop, QUESTION, "--json").json
    assert answer["model"] == "test:function"


def test_broken_pairs_are_listed(cli, learned: Path, small_shop: Path) -> None:
    learned.write_text(
        "-- question: a\n-- source: small shop\nSELECT * FROM gone;\n"
        "-- question: b\n-- source: elsewhere\nSELECT 1;\n"
        "-- question: \x1b[31mc\nSELECT COUNT(*) FROM orders;\n-- question: d\n"
    )
    done = cli("learn", "-s", small_shop, "--list")
    assert done.code == 0
    assert "gone" in done.out
    assert "'elsewhere' is not open" in done.out
    assert "works" in done.out
    assert "has no statement" in done.out
    assert "\x1b" not in done.out
    value = cli("learn", "-s", small_shop, "--list", "--json").json
    assert [bool(pair["problem"]) for pair in value["pairs"]] == [True, True, False]
    assert value["problems"] == [{"line": 9, "message": "the question has no statement"}]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((QUESTION,), "nothing to learn"),
        ((), "nothing to learn"),
        ((QUESTION, "--sql", SQL, "--forget"), "do not go together"),
        ((QUESTION, "--list"), "takes no question"),
        (("-", "--sql", "-"), "both come from standard input"),
        (("--forget",), "question is empty"),
        (("  ", "--sql", SQL), "question is empty"),
        ((QUESTION, "--sql", " "), "statement is empty"),
        ((QUESTION, "--sql", "DELETE FROM customers"), "DELETE"),
        ((QUESTION, "--sql", "SELECT nam FROM customers"), "nam"),
        (("--forget", QUESTION), "not among the learned"),
    ],
)
def test_wrong_use(
    cli, learned: Path, small_shop: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = cli("learn", "-s", small_shop, *arguments)
    assert done.code in (1, 2)
    assert said in done.err
    assert not learned.exists()


def test_a_forgotten_question_names_the_nearest(cli, learned: Path, small_shop: Path) -> None:
    cli("learn", "-s", small_shop, QUESTION, "--sql", SQL)
    done = cli("learn", "-s", small_shop, "--forget", "How many customers live in every city?")
    assert done.code == 2
    assert f'dbrag learn --forget "{QUESTION}"' in done.err


def test_off_and_unreadable(
    cli, learned: Path, small_shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned.write_bytes(b"\xff")
    assert "not UTF-8" in cli("learn", "-s", small_shop, "--list").err
    monkeypatch.setenv("DBRAG_LEARNED", "off")
    done = cli("learn", "-s", small_shop, "--list")
    assert done.code == 2
    assert '"off"' in done.err


def test_beside_the_index_without_a_settings_file(
    cli, learned: Path, small_shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DBRAG_LEARNED")
    index = tmp_path / "new index"
    done = cli("learn", "-s", small_shop, "--index", index, QUESTION, "--sql", SQL)
    assert done.code == 0
    assert (index / "learned.sql").is_file()
    assert cli("index", "-s", small_shop, "--index", index, "--force").code == 0
    assert QUESTION in cli("learn", "-s", small_shop, "--index", index, "--list").out
