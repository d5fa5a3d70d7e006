"""The settings of reranking, selection and prompts."""

from __future__ import annotations

from pathlib import Path

import pytest

from dbrag.errors import UsageError
from dbrag.settings import Settings, load_settings


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ('rerank = "yes"', 'rerank must be one of "auto", "on", "off", not \'yes\''),
        ('row_context = "all"', 'row_context must be one of "relevant", "random", "none"'),
        ("rerank_k = 0", "rerank_k must be at least 2, not 0"),
        ("rerank_k = 1", "rerank_k must be at least 2, not 1"),
        ("rerank_votes = 0", "rerank_votes must be at least 1"),
        ("rerank_tokens = 0", "rerank_tokens must be at least 1"),
        ("m = 0", "m must be at least 1"),
        ('selection = "on"', 'selection must be one of "auto", "off", not \'on\''),
        ('mend = "yes"', 'mend must be one of "on", "off", not \'yes\''),
        ("prompt_tokens = 0", "prompt_tokens must be at least 1, not 0"),
        ('prompt_tokens = "many"', "prompt_tokens in .* must be a whole number, not 'many'"),
        ("context_rows = -1", "context_rows must not be negative"),
    ],
)
def test_wrong_values_are_told(tmp_path: Path, toml: str, message: str) -> None:
    (tmp_path / "dbrag.toml").write_text(toml)
    with pytest.raises(UsageError, match=message):
        load_settings(environ={}, directory=tmp_path)


def test_the_budgets_of_the_paper_are_the_defaults() -> None:
    settings = Settings()
    assert (settings.k, settings.m, settings.context_rows) == (50, 5, 2)
    assert (settings.rerank, settings.row_context, settings.rerank_k) == ("auto", "relevant", None)
