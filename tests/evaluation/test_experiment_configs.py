"""The committed configurations load, and say what the text beside them says."""

from __future__ import annotations

import tomllib
from dataclasses import fields
from pathlib import Path

import pytest

from dbrag.errors import UsageError
from dbrag.models.local import CONTEXT_TOKENS
from dbrag.settings import Settings, load_settings

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


def test_the_papers_setting_of_answers() -> None:
    settings = load_settings(config=str(FOLDER / "paper.toml"), environ={})
    assert (settings.votes, settings.vote_temperature) == (5, 0.8)
    assert (settings.program_rows, settings.naming_hint) == ("context", "on")
    assert settings.readtable_tokens == 16_385
    assert settings.mtqa_model == "vaishali/multitabqa-base"


@pytest.mark.parametrize("name", ["paper.toml", "local.toml"])
def test_every_key_is_known_and_an_unknown_one_refused(name: str, tmp_path: Path) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    keys = tomllib.loads(text).keys()
    assert keys <= {one.name for one in fields(Settings)}
    changed = tmp_path / name
    changed.write_text(text.replace("readtable_tokens", "readtable_token"), encoding="utf-8")
    with pytest.raises(UsageError, match="unknown setting 'readtable_token'"):
        load_settings(config=str(changed), environ={})


def test_the_local_setting() -> None:
    settings = load_settings(config=str(FOLDER / "local.toml"), environ={})
    assert (settings.rerank, settings.rerank_k, settings.rerank_votes) == ("on", 15, 1)
    assert settings.model.startswith("local:")
    assert settings.readtable_tokens == CONTEXT_TOKENS
    assert (settings.naming_hint, settings.program_rows) == ("off", "sample")
    assert settings.index != load_settings(config=str(FOLDER / "paper.toml"), environ={}).index
