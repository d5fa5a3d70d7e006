"""Time to the first token: the second question on the same tables against the first.

    dbrag index -s $DBRAG_BENCH/spider/database --index /tmp/spider-index
    python bench/first_token.py --index /tmp/spider-index \
        --questions $DBRAG_BENCH/spider/train.json --out runs/first-token.json

Pairs of questions about one database for which the same tables are selected, one pair a
database, so that the first of a pair meets tables that no question before it was about.
Their order, and which of the two comes first, are random. All run in one process, each
through ``Database.ask`` (one vote, no repairs, nothing executed), one right after the other.
What is timed is the model's call, from sending the prompt to its first token; a question
about other tables goes before all, so that loading the model and the instructions, which all
prompts share, are on no pair's account.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import dbrag
from dbrag.errors import DbragError, UsageError
from dbrag.evaluation import config as settled
from dbrag.evaluation.datasets import Question, file_hash
from dbrag.evaluation.pack import read_asked
from dbrag.evaluation.records import write_json
from dbrag.evaluation.scripts import run_script
from dbrag.evaluation.significance import bootstrap_median
from dbrag.evaluation.summary import versions
from dbrag.models.base import Prompt, Reply
from dbrag.models.testing import FunctionModel
from dbrag.settings import Settings, load_settings

if TYPE_CHECKING:
    from dbrag.models.base import ChatModel, Embedder

Chosen = tuple[str, ...]
"""The tables selected for a question, by name."""


@dataclass(frozen=True)
class Pair:
    """Two questions of one database on the same tables."""

    db_id: str
    tables: Chosen
    first: Question
    second: Question


@dataclass(frozen=True)
class Timed:
    """One pair, measured: milliseconds to the first token, and tokens of both prompts.

    ``cached`` are those of the second prompt that had been evaluated for the first.
    """

    db_id: str
    ids: tuple[str, str]
    tables: int
    first_ms: float
    second_ms: float
    ratio: float
    prompt: tuple[int, int]
    cached: tuple[int, int]


class Watched:
    """A chat model that keeps its replies, call by call."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self.name, self.remote = model.name, model.remote
        self.calls: list[list[Reply]] = []

    @property
    def context_tokens(self) -> int:
        return self._model.context_tokens

    def sample(self, prompt: Prompt, n: int = 1, **options: Any) -> list[Reply]:
        replies = self._model.sample(prompt, n, **options)
        self.calls.append(replies)
        return replies

    def close(self) -> None:
        self._model.close()


def selected(db: dbrag.Database, question: str) -> Chosen | None:
    """The tables that dbrag selects for a question; None where it refuses it before that."""
    answer = db.ask(question, votes=1, dry_run=True)
    chosen = [event for event in answer.trace if event["stage"] == "select"]
    return tuple(sorted(chosen[0]["tables"])) if chosen else None


def find_pairs(
    db: dbrag.Database, questions: Sequence[Question], wanted: int, seed: int
) -> tuple[list[Pair], Question | None]:
    """Pairs in random order, and a question about none of their tables to begin with.

    Args:
        db: with any model: nothing of its replies is used.
        wanted: pairs at most, one a database.
    """
    order = list(questions)
    random.Random(seed).shuffle(order)
    waiting: dict[tuple[str, Chosen], Question] = {}
    pairs: dict[str, Pair] = {}
    for question in order:
        if len(pairs) == wanted:
            break
        if question.db_id in pairs:
            continue
        tables = selected(db, question.question)
        # Of a wrong database they would be about another pair's tables.
        if not tables or any(name.split(".")[0] != question.db_id for name in tables):
            continue
        earlier = waiting.setdefault((question.db_id, tables), question)
        if earlier is not question and earlier.question != question.question:
            pairs[question.db_id] = Pair(question.db_id, tables, earlier, question)
    others = [one for (db_id, _), one in waiting.items() if db_id not in pairs]
    return list(pairs.values()), others[0] if others else None


def first_call(db: dbrag.Database, model: Watched, question: Question) -> Reply:
    """The first reply of the first call for a question.

    Raises:
        UsageError: the model does not tell the time to its first token, or was not asked.
    """
    model.calls.clear()
    db.ask(question.question, votes=1, dry_run=True)
    if not model.calls:
        raise UsageError(f"the model was not asked for {question.id}")
    reply = model.calls[0][0]
    if reply.first_token_s is None:
        raise UsageError(
            f"{model.name!r} does not tell the time to its first token", "use a local model"
        )
    return reply


def timed(db: dbrag.Database, model: Watched, pair: Pair) -> Timed:
    """Both questions of a pair, one right after the other."""
    first, second = (first_call(db, model, one) for one in (pair.first, pair.second))
    first_ms, second_ms = (1000 * (one.first_token_s or 0.0) for one in (first, second))
    return Timed(
        db_id=pair.db_id,
        ids=(pair.first.id, pair.second.id),
        tables=len(pair.tables),
        first_ms=round(first_ms, 1),
        second_ms=round(second_ms, 1),
        ratio=round(second_ms / first_ms, 4),
        prompt=(first.prompt_tokens, second.prompt_tokens),
        cached=(first.cached_tokens, second.cached_tokens),
    )


def summed_up(found: Sequence[Timed]) -> dict[str, Any]:
    """Medians in milliseconds, the median ratio with its 95% bootstrap interval."""
    ratio = bootstrap_median([one.ratio for one in found])
    return {
        "n": len(found),
        "first_ms": round(median(one.first_ms for one in found), 1),
        "second_ms": round(median(one.second_ms for one in found), 1),
        "ratio": {"median": ratio.mean, "low": ratio.low, "high": ratio.high},
        "at_most_half": sum(one.ratio <= 0.5 for one in found),
        "prompt": [median(one.prompt[i] for one in found) for i in (0, 1)],
        "cached": [median(one.cached[i] for one in found) for i in (0, 1)],
    }


def run(
    given: argparse.Namespace,
    settings: Settings,
    chat_model: ChatModel | None = None,
    embedder: Embedder | None = None,
) -> dict[str, Any]:
    """Find pairs without the model, then time them with it.

    Raises:
        UsageError: no pair, or a model that does not tell the time.
    """
    settings = replace(settings, learned="off", reply_cache="off", rerank="off", rounds=0)
    questions = read_asked(given.questions)
    silent = FunctionModel(lambda prompt: "SELECT 1")
    options: dict[str, Any] = {"index": given.index, "settings": settings, "embedder": embedder}
    with dbrag.connect(chat_model=silent, **options) as db:
        pairs, other = find_pairs(db, questions, given.pairs, given.seed)
    if not pairs:
        raise UsageError("no two questions of one database select the same tables")
    print(f"{len(pairs)} pairs of {len(questions):,} questions", file=sys.stderr)
    if chat_model is None:
        from dbrag.models.load import load_chat_model

        chat_model = load_chat_model(settings.model, settings)
    model = Watched(chat_model)
    found = []
    with dbrag.connect(chat_model=model, **options) as db:
        if other is not None:
            first_call(db, model, other)
        for pair in pairs:
            found.append(timed(db, model, pair))
            print(f"{len(found)} of {len(pairs)}: ratio {found[-1].ratio}", file=sys.stderr)
    return {
        "schema": 1,
        **summed_up(found),
        "config": {
            "questions": {"name": given.questions.name, "sha256": file_hash(given.questions)},
            "pairs": given.pairs,
            "seed": given.seed,
            **settled.behaviour(replace(settings, model=model.name), "answers", "dbrag"),
        },
        "versions": versions(),
        "pairs": [asdict(one) for one in found],
    }


def table(found: Mapping[str, Any]) -> str:
    """The summary as text."""
    ratio = found["ratio"]
    within = "" if ratio["low"] is None else f" ({ratio['low']:.3f} to {ratio['high']:.3f})"
    return (
        f"{found['n']} pairs, median ms to the first token: first {found['first_ms']:,}, "
        f"second {found['second_ms']:,}\n"
        f"median ratio {ratio['median']:.3f}{within}, "
        f"at most half in {found['at_most_half']} of {found['n']}\n"
        f"median tokens of the prompts {found['prompt']}, of them evaluated before "
        f"{found['cached']}"
    )


def main(arguments: Sequence[str] | None = None, **models: Any) -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--index", type=Path, required=True, help="of the folder of databases")
    parser.add_argument("--questions", type=Path, required=True, help="JSON of the pack")
    parser.add_argument("--pairs", type=int, default=40, help="at most, one a database")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", help="chat model as provider:name")
    parser.add_argument("--out", type=Path, help="JSON file for the figures")
    given = parser.parse_args(arguments)
    try:
        found = run(given, load_settings({"model": given.model}), **models)
        if given.out:
            given.out.parent.mkdir(parents=True, exist_ok=True)
            write_json(given.out, found)
        print(table(found))
    except DbragError as error:
        print(f"{error.message}. {error.hint}".rstrip(), file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(run_script(main))
