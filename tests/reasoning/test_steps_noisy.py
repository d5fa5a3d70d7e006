"""The ideal programs of the noisy market, written step by step: as right as at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dbrag.database import connect
from dbrag.models.base import Prompt
from dbrag.models.testing import FunctionModel, HashEmbedder
from tests.evaluation.test_noisy import alike, made, market  # noqa: F401  fixtures


def test_thirty_programs_in_steps(market: Any, made: Any, tmp_path: Path) -> None:  # noqa: F811
    questions = market["market_questions"].QUESTIONS
    clean = market["market_data"].clean_market()
    programs = {asked.question: asked.steps for asked in questions}

    def ideal(prompt: Prompt) -> str:
        name, sql = programs[prompt.request.rpartition("Question: ")[2]][len(prompt.turns)]
        return f"{name}: {sql}"

    model = FunctionModel(ideal)
    with connect(
        made[0],
        index=str(tmp_path / "index"),
        chat_model=model,
        embedder=HashEmbedder(),
        votes=1,
        program="steps",
    ) as database:
        for asked in questions:
            answer = database.ask(asked.question)
            assert answer.execution is not None, answer.error
            assert alike(answer.execution.rows) == alike(asked.answer(clean)), asked.question
            assert not [w for w in answer.warnings if w.code == "mended"]
    # Nothing had to be repaired, and every step but the last was looked at.
    assert len(model.prompts) == sum(len(asked.steps) for asked in questions)
    told = [turn[1] for prompt in model.prompts for turn in prompt.turns]
    assert told
    assert all(" rows.\n-- columns: " in text for text in told)
