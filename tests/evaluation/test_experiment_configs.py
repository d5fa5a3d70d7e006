"""The committed configurations load, and say what the text beside them says."""

from __future__ import annotations

from pathlib import Path

from dbrag.settings import load_settings

FOLDER = Path(__file__).parents[2] / "experiments"


def test_the_papers_setting() -> None:
    settings = load_settings(config=str(FOLDER / "paper.toml"), environ={})
    assert (settings.k, settings.rerank_k, settings.m, settings.context_rows) == (50, 50, 5, 2)
    assert (settings.model, settings.rerank_votes) == ("openai:gpt-3.5-turbo", 5)
    assert settings.encoder == "openai:text-embedding-3-small"
    assert (settings.rerank, settings.row_context, settings.row_search) == (
        "on",
        "relevant",
        "dense",
    )


def test_the_local_setting() -> None:
    settings = load_settings(config=str(FOLDER / "local.toml"), environ={})
    assert (settings.rerank, settings.rerank_k, settings.rerank_votes) == ("on", 15, 1)
    assert settings.model.startswith("local:")
    assert settings.index != load_settings(config=str(FOLDER / "paper.toml"), environ={}).index
