"""What the line that is redrawn says while a question is worked on."""

from __future__ import annotations

import pytest

from dbrag.interfaces.cli.notices import next_text


@pytest.mark.parametrize(
    ("event", "text"),
    [
        ({"stage": "index"}, "reading and indexing …"),
        ({"stage": "retrieve"}, "choosing tables …"),  # a reranking may follow
        ({"stage": "rerank"}, "choosing tables …"),
        ({"stage": "select"}, "writing a program …"),
        ({"stage": "program"}, "running it …"),
        ({"stage": "vote", "cast": 2}, "2 programs so far, writing another …"),
    ],
)
def test_what_goes_on_after_a_stage(event: dict[str, object], text: str) -> None:
    assert next_text(event) == text
