"""Remembered replies through the façade: the second answer costs no tokens and says so."""

from __future__ import annotations

from pathlib import Path

import dbrag
from dbrag.models.cache import CachedModel, ReplyCache
from dbrag.models.testing import HashEmbedder, ScriptedModel


def test_the_second_answer_costs_no_tokens(small_shop: Path, tmp_path: Path) -> None:
    inner = ScriptedModel(["SELECT COUNT(*) FROM customers"] * 2)
    model = CachedModel(inner, ReplyCache(tmp_path / "replies"), lambda: "")
    with dbrag.connect(small_shop, chat_model=model, embedder=HashEmbedder(), votes=2) as db:
        first, second = (db.ask("How many customers are there?") for _ in range(2))
    assert first.execution is not None
    assert second.execution is not None
    assert first.execution.rows == second.execution.rows
    assert first.tokens["cache_hits"] == 0
    assert first.tokens["prompt"] > 0
    calls = len(inner.prompts)
    assert second.tokens == {"prompt": 0, "cached": 0, "completion": 0, "cache_hits": calls}
    programs = [event for event in second.trace if event["stage"] == "program"]
    assert [event["from_cache"] for event in programs] == [True] * calls
    assert not any(e["from_cache"] for e in first.trace if e["stage"] == "program")
