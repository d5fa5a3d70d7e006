"""The column naming hint: one fixed paragraph, and without it the prompt of before."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from dbrag.reasoning.naming import NAMING_HINT, naming_hint
from dbrag.reasoning.prompts import fitted_prompt
from dbrag.reasoning.step_prompts import first_step

from .test_prompts import LINES, STORES

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion


def test_the_prompt_with_the_hint(snapshot: SnapshotAssertion) -> None:
    told = fitted_prompt("How many?", [STORES], dialect="sqlite", matches={}, hint=True)
    plain = fitted_prompt("How many?", [STORES], dialect="sqlite", matches={})
    assert told.prompt.system == snapshot
    assert told.prompt.system == f"{plain.prompt.system} {naming_hint('sqlite')}"
    assert (told.prompt.context, told.prompt.request) == (
        plain.prompt.context,
        plain.prompt.request,
    )
    assert told.tokens > plain.tokens


@pytest.mark.parametrize(
    ("dialect", "alias"),
    [("sqlite", '"count(*)"'), ("postgres", '"count(*)"'), ("mysql", "`count(*)`")],
)
def test_the_alias_is_quoted_as_the_dialect_does(dialect: str, alias: str) -> None:
    assert naming_hint(dialect).startswith(NAMING_HINT)
    assert naming_hint(dialect).endswith(f"COUNT(*) AS {alias}.")


def test_steps_are_told_too() -> None:
    prompt = fitted_prompt(
        "How many?", [STORES, LINES], dialect="sqlite", matches={}, hint=True
    ).prompt
    assert first_step(prompt).system == prompt.system
