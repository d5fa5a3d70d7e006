"""The paper's ablations on the whole way: what the settings change in the prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dbrag
from dbrag.errors import UsageError
from dbrag.models.base import Prompt
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.settings import Settings, load_settings

QUESTION = "How many orders did the customer Ben O'Brien place?"
SQL = "SELECT COUNT(*) FROM orders"


def asked(path: Path, reply: str = SQL, votes: int = 1, **settings: Any) -> list[Prompt]:
    """The program prompts of a question."""
    model = FunctionModel(lambda _: reply)
    with dbrag.connect(path, chat_model=model, embedder=HashEmbedder(), **settings) as db:
        assert db.ask(QUESTION, votes=votes).status == "answered"
    return model.prompts


def rows_of(prompt: Prompt) -> list[str]:
    """The lines of rows in a prompt."""
    return [line for line in prompt.context.split("\n") if line.startswith("-- ") and "|" in line]


def test_the_defaults_change_no_prompt(small_shop: Path) -> None:
    (plain,) = asked(small_shop)
    told = {"program_rows": "sample", "naming_hint": "off", "vote_temperature": 0.7}
    assert asked(small_shop, **told) == [plain]
    assert asked(small_shop, row_context="none", context_rows=0) == [plain]  # of reranking only


def test_the_row_context_reaches_the_program_prompt(small_shop: Path) -> None:
    shown = {
        kind: asked(small_shop, program_rows="context", row_context=kind, context_rows=1)[0]
        for kind in ("relevant", "random", "none")
    }
    assert "Ben O'Brien" in "".join(rows_of(shown["relevant"]))
    assert "Values in the data" in shown["relevant"].request
    assert "Anna Costa" in "".join(rows_of(shown["random"]))
    assert "Ben O'Brien" not in shown["random"].context
    assert "Values in the data" not in shown["random"].request
    assert not rows_of(shown["none"])
    assert "-- rows" not in shown["none"].context
    assert "Values in the data" not in shown["none"].request
    assert "CREATE TABLE customers" in shown["none"].context


@pytest.mark.parametrize("n", [0, 1, 3])
def test_the_number_of_rows_is_l(small_shop: Path, n: int) -> None:
    (prompt,) = asked(small_shop, program_rows="context", context_rows=n, selection="off", top=1)
    assert len(rows_of(prompt)) == n


def test_rows_are_found_by_vectors_where_the_settings_say_so(small_shop: Path) -> None:
    (prompt,) = asked(small_shop, program_rows="context", row_search="dense", context_rows=1)
    assert rows_of(prompt)


def test_the_naming_hint_names_the_column(small_shop: Path) -> None:
    (plain,) = asked(small_shop)
    model = FunctionModel(lambda _: 'SELECT COUNT(*) AS "count(*)" FROM orders')
    settings: dict[str, Any] = {"naming_hint": "on", "votes": 1}
    with dbrag.connect(small_shop, chat_model=model, embedder=HashEmbedder(), **settings) as db:
        answer = db.ask(QUESTION)
    assert answer.execution is not None
    assert [column.name for column in answer.execution.columns] == ["count(*)"]
    (told,) = model.prompts
    assert told.system.startswith(plain.system)
    assert "count(*)" in told.system
    assert (told.context, told.request) == (plain.context, plain.request)


def test_votes_are_sampled_at_the_temperature_of_the_settings(small_shop: Path) -> None:
    replies = iter(f"SELECT {n}, COUNT(*) FROM orders" for n in range(9))
    model = FunctionModel(lambda _: next(replies))
    settings: dict[str, Any] = {"vote_temperature": 0.8, "selection": "off"}
    with dbrag.connect(small_shop, chat_model=model, embedder=HashEmbedder(), **settings) as db:
        db.ask(QUESTION, votes=3)
    heats = [call["temperature"] for call in model.calls]
    assert heats[0] == 0.0
    assert 0.8 in heats
    assert 0.7 not in heats


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"program_rows": "all"}, 'program_rows must be one of "sample", "context"'),
        ({"naming_hint": "yes"}, 'naming_hint must be one of "on", "off"'),
        ({"vote_temperature": -0.1}, "vote_temperature must be 0 to 2, not -0.1"),
        ({"readtable_tokens": 0}, "readtable_tokens must be at least 1, not 0"),
        (
            {"row_context": "random", "context_rows": 6},
            'context_rows must be at most 5 with row_context = "random", not 6',
        ),
    ],
)
def test_wrong_values_are_told(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Settings(**wrong)


def test_the_environment_sets_them() -> None:
    settings = load_settings(
        environ={
            "DBRAG_PROGRAM_ROWS": "context",
            "DBRAG_NAMING_HINT": "on",
            "DBRAG_VOTE_TEMPERATURE": "0.8",
            "DBRAG_READTABLE_TOKENS": "16385",
            "DBRAG_MTQA_MODEL": "vaishali/multitabqa-base-atis",
        },
        directory=Path("/"),
    )
    assert (settings.program_rows, settings.naming_hint) == ("context", "on")
    assert (settings.vote_temperature, settings.readtable_tokens) == (0.8, 16_385)
    assert settings.mtqa_model == "vaishali/multitabqa-base-atis"
