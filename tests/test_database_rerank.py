"""Reranking on the whole way: ``search`` and ``ask`` over a real file with scripted models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import dbrag
from dbrag.errors import ModelError, UsageError
from dbrag.models.testing import FunctionModel, HashEmbedder, ScriptedModel

QUESTION = "Which products did customers order?"


def connect(path: Path, model: Any, **arguments: Any) -> dbrag.Database:
    return dbrag.connect(path, chat_model=model, embedder=HashEmbedder(), **arguments)


def test_search_asks_a_model_only_when_told(small_shop: Path) -> None:
    model = ScriptedModel(['{"tables": [4, 3, 2]}'], name="local:test")
    with connect(small_shop, model) as db:
        plain = db.search(QUESTION)
        assert (plain.rerank, plain.orders) == (None, {})
        assert not model.prompts
        events: list[Any] = []
        found = db.search(QUESTION, rerank=True, on_event=events.append)
    assert events[-1]["stage"] == "rerank"
    assert found.rerank is not None
    assert (found.rerank["model"], found.rerank["k"], found.rerank["valid"]) == ("local:test", 4, 1)
    assert found.orders["prior"] == tuple(c.table for c in plain.candidates)
    assert found.orders["model"][0] == plain.candidates[3].table
    assert {c.table for c in found.candidates} == {c.table for c in plain.candidates}
    assert found.seconds >= found.rerank["seconds"]
    json.dumps(found.to_dict())
    assert plain.to_dict()["rerank"] is None


def test_a_failure_of_the_replies_is_warned_of_and_one_of_the_model_raised(
    small_shop: Path,
) -> None:
    with connect(small_shop, ScriptedModel(["?", "?", "?"])) as db:
        plain = db.search(QUESTION)
        found = db.search(QUESTION, rerank=True)
        assert [w.code for w in found.warnings] == ["rerank_failed"]
        assert [c.table for c in found.candidates] == [c.table for c in plain.candidates]
        with pytest.raises(ModelError):
            db.search(QUESTION, rerank=True)


def test_auto_reranks_with_a_remote_model_what_exceeds_m(small_shop: Path) -> None:
    model = FunctionModel(lambda _: "[1, 2]", remote=True, name="test:far")
    with connect(small_shop, model, m=2) as db:
        found = db.search(QUESTION)
        assert found.rerank is not None
        (warning,) = found.warnings
        assert (warning.code, "test:far" in warning.message) == ("remote_model", True)
        assert db.search(QUESTION, rerank=False).rerank is None
    with connect(small_shop, model) as db:
        assert db.search(QUESTION).rerank is None  # four tables, five are shown
    with connect(small_shop, model, m=2, rerank="off") as db:
        assert db.search(QUESTION).rerank is None


def test_auto_without_a_key_is_an_error_that_names_it(
    small_shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    settings = {"embedder": HashEmbedder(), "model": "openai:gpt-4o", "m": 2}
    with dbrag.connect(small_shop, **settings) as db:  # type: ignore[arg-type]
        with pytest.raises(ModelError, match="OPENAI_API_KEY"):
            db.search(QUESTION)
        assert db.search(QUESTION, rerank=False).candidates
    with dbrag.connect(small_shop, offline=True, **settings) as db:  # type: ignore[arg-type]
        assert db.search(QUESTION).candidates
        monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
        with pytest.raises(UsageError, match="offline"):
            db.search(QUESTION, rerank=True)


def test_ask_uses_the_new_order_and_tells_of_it(small_shop: Path) -> None:
    replies = ["[4]", "SELECT COUNT(*) FROM customers"]
    with connect(small_shop, ScriptedModel(replies), votes=1, rerank="on") as db:
        answer = db.ask(QUESTION)
    stages = [entry["stage"] for entry in answer.trace]
    assert stages[:3] == ["retrieve", "rerank", "select"]
    event = answer.trace[1]
    assert event["before"] == [c["table"] for c in answer.trace[0]["candidates"]]
    assert event["after"] != event["before"]
    assert answer.tokens["prompt"] > event["tokens"]["prompt"] > 100
    assert answer.seconds["retrieve"] >= event["seconds"]
    parts = ("retrieve", "reason", "execute")
    assert answer.seconds["total"] == pytest.approx(sum(answer.seconds[name] for name in parts))


def test_tables_that_the_user_names_are_not_reranked(small_shop: Path) -> None:
    model = ScriptedModel(["SELECT COUNT(*) FROM customers"])
    with connect(small_shop, model, votes=1, rerank="on") as db:
        answer = db.ask(QUESTION, tables=["customers"], rerank=True)
    assert answer.status == "answered"
    assert "rerank" not in {entry["stage"] for entry in answer.trace}


def test_what_the_model_need_not_be_asked_is_not_reranked(
    small_shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    learned = tmp_path / "learned.sql"
    learned.write_text(f"-- question: {QUESTION}\nSELECT COUNT(*) FROM customers;\n")
    model = ScriptedModel([])  # any call would fail
    with connect(small_shop, model, learned=str(learned), rerank="on") as db:
        answer = db.ask(QUESTION)
        assert (answer.status, answer.model) == ("answered", None)
        assert [entry["stage"] for entry in answer.trace] == ["retrieve", "learned"]
        floor = {db.embedder().sha256: 2.0}
        monkeypatch.setattr("dbrag.reasoning.answerable.SIMILARITY_FLOOR", floor)
        assert db.ask("Who won the cup?").status == "unanswerable"
    assert not model.prompts


def test_a_remote_model_that_reranks_and_answers_is_warned_of_once(small_shop: Path) -> None:
    def reply(prompt: Any) -> str:
        return "[2, 1]" if "best tables" in prompt.request else "SELECT COUNT(*) FROM customers"

    model = FunctionModel(reply, remote=True, name="test:far")
    with connect(small_shop, model, votes=1, rerank="on") as db:
        answer = db.ask(QUESTION)
    assert answer.status == "answered"
    assert [w.code for w in answer.warnings].count("remote_model") == 1


@pytest.mark.parametrize("count", [0, -1])
def test_counts_below_one_are_refused(small_shop: Path, count: int) -> None:
    with connect(small_shop, ScriptedModel([])) as db:
        for name in ("top", "k"):
            with pytest.raises(UsageError, match=f"{name} must be at least 1, not {count}"):
                db.search(QUESTION, **{name: count})  # type: ignore[arg-type]
        with pytest.raises(UsageError, match=f"votes must be at least 1, not {count}"):
            db.ask(QUESTION, votes=count)
