"""The ways of ranking tables and of answering that ``dbrag eval --method`` can name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from dbrag.errors import UsageError
from dbrag.evaluation.baselines import names, rankings
from dbrag.evaluation.programs import Voted, voted_programs

if TYPE_CHECKING:
    from dbrag.catalog.catalog import Catalog
    from dbrag.evaluation.datasets import Question
    from dbrag.index.store import Index
    from dbrag.models.base import ChatModel, Embedder
    from dbrag.settings import Settings
    from dbrag.sources.base import Source
    from dbrag.types import Answer, Execution, SearchResult, TableRef


class Bench(Protocol):
    """What evaluation needs of :class:`dbrag.Database`."""

    settings: Settings

    def search(
        self,
        question: str,
        top: int | None = None,
        k: int | None = None,
        *,
        rerank: bool | None = None,
    ) -> SearchResult:
        """Rank tables."""
        ...

    def ask(self, question: str, votes: int | None = None, tables: Sequence[str] = ()) -> Answer:
        """Answer a question, from these tables only where any are given."""
        ...

    def run_sql(self, source_name: str, statement: str) -> Execution:
        """Run one statement on the named source, guarded and limited."""
        ...

    def source(self, name: str) -> Source:
        """The open source of that name."""
        ...

    def embedder(self) -> Embedder:
        """The text encoder."""
        ...

    def opened_index(self) -> Index:
        """The index, brought up to date."""
        ...


@dataclass(frozen=True)
class Prediction:
    """What a method answered, as far as it is scored or recorded.

    ``status`` is that of an answer; ``columns`` and ``rows`` are the whole result.
    ``stages`` are seconds by stage. ``agreement`` and ``confidence`` are shares, 0..1, None
    where they are not known. ``programs`` are all that were voted on.
    """

    status: str
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[Any, ...], ...] = ()
    tables: tuple[TableRef, ...] = ()
    sql: str | None = None
    tokens: Mapping[str, int] = field(default_factory=dict)
    stages: Mapping[str, float] = field(default_factory=dict)
    agreement: float | None = None
    confidence: float | None = None
    programs: tuple[Voted, ...] = ()
    votes_valid: int | None = None
    warnings: tuple[str, ...] = ()
    error: Mapping[str, str] | None = None


@dataclass(frozen=True)
class Ranking:
    """Tables, best first, and what it took to rank them.

    ``others`` are further orders of the same call, scored beside it: "prior" before a
    reranking, "model" by the chat model alone, "fused", "base" below a baseline. ``facts``
    are told in the record: of a reranking; ``told`` of a baseline.
    """

    tables: Sequence[TableRef]
    others: Mapping[str, Sequence[TableRef]] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)
    stages: Mapping[str, float] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    told: Mapping[str, Any] = field(default_factory=dict)


class RetrievalMethod(Protocol):
    """Ranks tables for a question."""

    def __call__(self, question: str, k: int) -> Ranking:
        """The best ``k`` tables."""
        ...


class TextMethod(Protocol):
    """Answers a question from its text alone, as a user would have it answered."""

    def __call__(self, question: str) -> Prediction:
        """The answer; whatever goes wrong is told in it or raised."""
        ...


class AnswerMethod(Protocol):
    """Answers a benchmark's question; a ceiling may look at what is known of its answer."""

    def __call__(self, question: Question) -> Prediction:
        """The answer; whatever goes wrong is told in it or raised."""
        ...


@dataclass(frozen=True)
class Tools:
    """What methods are made from.

    ``model`` loads the chat model on first use. ``dialects`` are sqlglot's names by source.
    ``baseline`` is what the caller says of a retrieval baseline, ``asked`` the texts of the
    questions by id.
    """

    db: Bench
    catalog: Catalog
    model: Callable[[], ChatModel]
    dialects: Mapping[str, str] = field(default_factory=dict)
    votes: int | None = None
    baseline: names.BaselineOptions = names.NO_OPTIONS
    asked: Mapping[str, str] = field(default_factory=dict)


def searched(rerank: bool | None) -> Callable[[Tools], RetrievalMethod]:
    """``Database.search``: with the chat model, without it, or (None) as the settings say."""

    def make(tools: Tools) -> RetrievalMethod:
        def rank(question: str, k: int) -> Ranking:
            return _ranking(tools.db.search(question, top=k, k=k, rerank=rerank))

        return rank

    return make


def rerank_only(tools: Tools) -> RetrievalMethod:
    """The chat model's order alone, not fused with the order it was given."""

    def rank(question: str, k: int) -> Ranking:
        both = _ranking(tools.db.search(question, top=k, k=k, rerank=True))
        if "model" not in both.others:
            return both  # a single table: there was nothing to order
        others = {"prior": both.others["prior"], "fused": both.tables}
        return replace(both, tables=both.others["model"], others=others)

    return rank


def _ranking(result: SearchResult) -> Ranking:
    tables = [candidate.table for candidate in result.candidates]
    told = result.rerank
    if told is None:
        return Ranking(tables)
    return Ranking(
        tables,
        others=result.orders,
        tokens=told["tokens"],
        stages={"retrieve": result.seconds - told["seconds"], "rerank": told["seconds"]},
        facts={name: told[name] for name in ("k", "votes", "valid", "calls", "left_out")},
    )


def by_part(part: str) -> Callable[[Tools], RetrievalMethod]:
    """All tables ordered by one part of dbrag's score alone, ties by the whole score."""

    def make(tools: Tools) -> RetrievalMethod:
        everything = max(1, len(tools.catalog.refs))

        def rank(question: str, k: int) -> Ranking:
            result = tools.db.search(question, top=everything, k=everything, rerank=False)
            found = result.candidates
            if not any(part in c.parts for c in found):
                known = sorted({name for c in found for name in c.parts})
                raise UsageError(f"the ranking has no part {part!r}", f"it has {known}")
            ordered = sorted(found, key=lambda c: -c.parts.get(part, float("-inf")))
            return Ranking([c.table for c in ordered[:k]])

        return rank

    return make


def from_text(make: Callable[[Tools], TextMethod]) -> Callable[[Tools], AnswerMethod]:
    """A method that is given the question's text and nothing else, so no gold can leak in."""

    def made(tools: Tools) -> AnswerMethod:
        answer = make(tools)
        return lambda question: answer(question.question)

    return made


def dbrag(tools: Tools) -> TextMethod:
    """dbrag's own way: ``Database.ask``."""

    def answer(question: str) -> Prediction:
        return from_answer(tools.db.ask(question, votes=tools.votes))

    return answer


def gold_tables(tools: Tools) -> AnswerMethod:
    """A ceiling: ``Database.ask`` with exactly the gold tables, as if retrieval were perfect."""

    def answer(question: Question) -> Prediction:
        tables = tuple(str(table) for table in question.tables)
        return from_answer(tools.db.ask(question.question, votes=tools.votes, tables=tables))

    return answer


def naive(tools: Tools) -> TextMethod:
    """One greedy query from DDL and two rows of the five best tables."""
    from dbrag.evaluation.baselines.naive import Naive

    return Naive(tools)


def readtable(tools: Tools) -> TextMethod:
    """The chat model reads all rows of the retrieved tables (Chen et al. 2024b)."""
    from dbrag.evaluation.baselines.readtable import ReadTable

    return ReadTable(tools)


def mtqa(tools: Tools) -> AnswerMethod:
    """MultiTabQA on the retrieved tables (Pal et al. 2023); of the question it reads the text."""
    from dbrag.evaluation.baselines.mtqa import Mtqa

    return Mtqa(tools)


def mtqa_gold(tools: Tools) -> AnswerMethod:
    """MultiTabQA with the gold tables given, as its authors measured it."""
    from dbrag.evaluation.baselines.mtqa import Mtqa

    return Mtqa(tools, gold=True)


RETRIEVAL_METHODS: Mapping[str, Callable[[Tools], RetrievalMethod]] = {
    "dbrag": searched(None),
    "hybrid": searched(rerank=False),
    "rerank": searched(rerank=True),
    "rerank-only": rerank_only,
    **{part: by_part(part) for part in ("names", "columns")},
    **{name: rankings.make(name) for name in names.RETRIEVAL_BASELINES},
}
"""``dbrag`` as the settings say; ``hybrid`` never asks a model, ``rerank`` always."""
MODEL_METHODS = ("rerank", "rerank-only")
"""Retrieval methods for which the chat model and the settings of reranking count."""
ANSWER_METHODS: Mapping[str, Callable[[Tools], AnswerMethod]] = {
    "dbrag": from_text(dbrag),
    "gold-tables": gold_tables,
    "naive": from_text(naive),
    "readtable": from_text(readtable),
    "mtqa": mtqa,
    "mtqa-gold": mtqa_gold,
}


def from_answer(answer: Answer) -> Prediction:
    """An :class:`Answer` as a prediction."""
    execution = answer.execution
    return Prediction(
        status=answer.status,
        columns=tuple(c.name for c in execution.columns) if execution else (),
        rows=execution.rows if execution else (),
        tables=answer.tables,
        sql=answer.sql,
        tokens=dict(answer.tokens),
        stages=dict(answer.seconds),
        agreement=answer.agreement,
        confidence=answer.confidence,
        programs=voted_programs(answer.trace),
        votes_valid=answer.votes_valid,
        warnings=tuple(warning.code for warning in answer.warnings),
        error=answer.error,
    )


def check_method(task: str, name: str | None) -> str:
    """The method's name, or the task's default.

    Raises:
        UsageError: an unknown task or method.
    """
    known: Mapping[str, Any]
    if task == "retrieval":
        known, default = RETRIEVAL_METHODS, "dbrag"
    elif task == "answers":
        known, default = ANSWER_METHODS, "dbrag"
    else:
        raise UsageError(f"unknown task {task!r}", "dbrag eval retrieval or dbrag eval answers")
    if name is None:
        return default
    if name not in known:
        raise UsageError(
            f"unknown method {name!r} for eval {task}", f"known methods: {', '.join(known)}"
        )
    return name
