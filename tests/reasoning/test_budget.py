"""What one question may cost: when it is used up, no further call of the model is started."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

import dbrag
from dbrag.errors import LimitReached
from dbrag.models.base import Prompt, Reply
from dbrag.models.testing import HashEmbedder, ScriptedModel
from dbrag.reasoning.budget import Budget, Usage
from dbrag.reasoning.learned_file import Pair, write_pair
from dbrag.types import Answer

COUNT = "SELECT COUNT(*) FROM customers"


def ask(path: Path, *replies: Any, **settings: Any) -> tuple[Answer, int]:
    """The answer, and how often the model was called."""
    model = ScriptedModel(replies)
    with dbrag.connect(path, chat_model=model, embedder=HashEmbedder(), **settings) as db:
        return db.ask("How many customers are there?"), len(model.prompts)


def slowly(_: Prompt) -> str:
    time.sleep(1.1)
    return COUNT


def warnings(answer: Answer) -> list[str]:
    return [w.message for w in answer.warnings if w.code == "budget_used_up"]


def test_a_budget_remembers_what_it_refused() -> None:
    usage = Usage(started=time.perf_counter() - 2.0)
    assert Budget(usage).allows()
    seconds = Budget(usage, seconds=1.0)
    assert seconds.warnings() == ()
    assert not seconds.allows()
    assert isinstance(seconds.refused, LimitReached)
    assert "1 s for one question" in seconds.refused.message
    assert "answer_s" in seconds.refused.hint
    tokens = Budget(usage, tokens=100)
    usage.add(Reply("x", prompt_tokens=60, completion_tokens=39))
    assert tokens.allows()
    usage.add(Reply("x", completion_tokens=1))
    assert not tokens.allows()
    assert "100 tokens for one question" in tokens.warnings()[0].message


def test_what_is_there_is_voted_on_when_time_is_up(small_shop: Path) -> None:
    answer, calls = ask(small_shop, slowly, COUNT, COUNT, votes=3, answer_s=1)
    assert calls == 1
    assert answer.status == "answered"
    assert answer.execution is not None
    assert answer.execution.rows == ((3,),)
    assert answer.votes_valid == 1
    assert "no further program was written or repaired" in warnings(answer)[0]


def test_what_is_there_is_voted_on_when_tokens_are_used_up(small_shop: Path) -> None:
    answer, calls = ask(small_shop, COUNT, COUNT, COUNT, votes=3, answer_tokens=10)
    assert calls == 1
    assert answer.status == "answered"
    assert "10 tokens for one question are used up" in warnings(answer)[0]


def test_enough_budget_is_not_told(small_shop: Path) -> None:
    answer, calls = ask(small_shop, COUNT, COUNT, votes=2, answer_tokens=100_000, answer_s=600)
    assert calls == 2
    assert warnings(answer) == []


@pytest.mark.parametrize("program", ["query", "steps"])
def test_no_result_in_the_budget_is_a_limit(small_shop: Path, program: str) -> None:
    first = "a: SELECT * FROM customers" if program == "steps" else "SELECT nothing FROM customers"
    answer, calls = ask(small_shop, first, COUNT, votes=2, answer_tokens=10, program=program)
    assert calls == 1
    assert (answer.status, answer.exit_code) == ("failed", 6)
    assert answer.error is not None
    assert answer.error["code"] == "limit"
    assert "answer_tokens" in answer.error["hint"]


def test_a_repair_is_not_begun(small_shop: Path) -> None:
    nobody = "SELECT name FROM customers WHERE city = 'Oslo'"
    answer, calls = ask(small_shop, nobody, COUNT, votes=1, answer_tokens=10)
    assert calls == 1
    assert answer.execution is not None
    assert answer.execution.rows == ()
    assert warnings(answer)


def test_a_learned_answer_needs_no_budget(small_shop: Path, tmp_path: Path) -> None:
    learned = tmp_path / "learned.sql"
    write_pair(learned, Pair("How many customers are there?", COUNT))
    answer, calls = ask(small_shop, learned=str(learned), answer_s=0.000001)
    assert (answer.status, calls) == ("answered", 0)
    assert warnings(answer) == []


def test_a_reply_may_be_as_long_as_set(small_shop: Path) -> None:
    model = ScriptedModel([COUNT])
    with dbrag.connect(
        small_shop, chat_model=model, embedder=HashEmbedder(), votes=1, program_tokens=77
    ) as db:
        db.ask("How many customers are there?")
    assert model.calls[0]["max_tokens"] == 77


def test_a_reply_that_was_cut_is_asked_for_shorter(small_shop: Path) -> None:
    class Cut(ScriptedModel):
        def sample(self, *args: Any, **kwargs: Any) -> list[Reply]:
            (reply,) = super().sample(*args, **kwargs)
            finish = "length" if reply.text.endswith("FROM") else "stop"
            return [Reply(reply.text, finish=finish)]  # type: ignore[arg-type]

    model = Cut(["SELECT COUNT(*) FROM", COUNT])
    with dbrag.connect(small_shop, chat_model=model, embedder=HashEmbedder(), votes=1) as db:
        answer = db.ask("How many customers are there?")
    assert answer.status == "answered"
    assert "longer than 800 tokens" in model.prompts[1].turns[0][1]
