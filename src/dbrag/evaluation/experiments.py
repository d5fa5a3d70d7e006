"""Runs: every question through a method, scored, recorded, summarised.

``run_eval`` is ``dbrag eval``; ``evaluate_retrieval`` and ``evaluate_answers`` are the
two kinds of run on a database that is already open.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbrag.errors import (
    DbragError,
    EncoderMismatch,
    IndexLocked,
    IndexUnusable,
    ModelNotInstalled,
    UsageError,
    WeightsError,
)
from dbrag.evaluation import config as settled
from dbrag.evaluation import datasets, methods
from dbrag.evaluation.baselines.missing import MISSING, not_run_summary
from dbrag.evaluation.baselines.names import NO_OPTIONS, BaselineOptions
from dbrag.evaluation.baselines.rankings import configured
from dbrag.evaluation.datasets import GoldAnswer, Question
from dbrag.evaluation.metrics import ANSWER_METRICS, EX, retrieval_metrics
from dbrag.evaluation.programs import PROGRAM_METRICS, RunSql, program_scores
from dbrag.evaluation.records import RunFolder
from dbrag.evaluation.summary import summarise

if TYPE_CHECKING:
    from dbrag.database import Database
    from dbrag.evaluation.methods import AnswerMethod, Prediction, RetrievalMethod
    from dbrag.models.base import ChatModel, Embedder
    from dbrag.settings import Settings
    from dbrag.types import TableRef

OnRecord = Callable[[int, int, Mapping[str, Any]], None]
"""Called with (questions done, questions in all, the record just written)."""

RETRIEVAL_DEPTH = 50

# With one of these no question can be answered: the set-up is wrong, not the method.
_FATAL = (ModelNotInstalled, WeightsError, IndexUnusable, IndexLocked, EncoderMismatch)
_FATAL_CODES = {error.code: error for error in _FATAL}


def evaluate_retrieval(
    rank: RetrievalMethod,
    questions: Sequence[Question],
    *,
    out: Path,
    config: Mapping[str, Any],
    resume: bool = False,
    k: int = RETRIEVAL_DEPTH,
    identity: Mapping[str, Any] | None = None,
    on_record: OnRecord | None = None,
) -> dict[str, Any]:
    """Rank tables for every question; returns and writes the summary.

    A question that fails scores 0 and stays in the denominator. Where a method gives
    further orders (a reranking: before it, and by the model alone), they are scored too.

    Args:
        rank: a method of :data:`methods.RETRIEVAL_METHODS`, made with its tools.
        config: what makes two runs the same run; ``k`` is added to it.
        k: depth of the rankings.

    Raises:
        UsageError: the folder cannot be used (see :class:`RunFolder`).
        ModelError, IndexUnusable: the set-up is wrong, so every question would fail.
    """
    metrics = retrieval_metrics(k)

    def score(question: Question) -> dict[str, Any]:
        ranking = rank(question.question, k)
        gold = [str(table) for table in question.tables]
        orders = {"tables": ranking.tables, **ranking.others}
        ranked = {name: [str(table) for table in tables] for name, tables in orders.items()}
        scores = {
            name: {str(metric): metric(gold, tables) for metric in metrics}
            for name, tables in ranked.items()
        }
        record = {
            "prediction": ranked,
            "scores": scores.pop("tables"),
            "stages": {name: round(s, 4) for name, s in ranking.stages.items()},
            "tokens": dict(ranking.tokens),
        }
        if scores:
            record["orders"] = scores
        if ranking.facts:
            record["rerank"] = dict(ranking.facts)
        if ranking.told:
            record["told"] = dict(ranking.told)
        return record

    return _run(
        questions,
        score,
        metrics=[str(metric) for metric in metrics],
        out=out,
        config={"task": "retrieval", **config, "k": k},
        resume=resume,
        identity=identity,
        on_record=on_record,
    )


def evaluate_answers(
    answer: AnswerMethod,
    questions: Sequence[Question],
    *,
    run: RunSql,
    out: Path,
    config: Mapping[str, Any],
    resume: bool = False,
    gold_failures: Mapping[str, str] | None = None,
    identity: Mapping[str, Any] | None = None,
    on_record: OnRecord | None = None,
) -> dict[str, Any]:
    """Answer every question; returns and writes the summary.

    A question that fails, times out, or whose gold SQL fails scores 0 and stays in the
    denominator. Besides the answer metrics, ``RightSource`` and ``RightTables`` tell
    whether the program used the gold database and exactly the gold tables, ``FirstEX`` and
    ``BestEX`` whether the first and any of the programs voted on is right. ``seconds`` are
    those of the answer, not of scoring it.

    Args:
        answer: a method of :data:`methods.ANSWER_METHODS`, made with its tools.
        questions: with gold answers (:func:`datasets.with_answers`).
        run: runs the programs voted on once more, to score them.
        config: what makes two runs the same run.
        gold_failures: why a question has no gold answer, by id.

    Raises:
        UsageError: the folder cannot be used (see :class:`RunFolder`).
        ModelError, IndexUnusable: the set-up is wrong, so every question would fail.
    """

    def score(question: Question) -> dict[str, Any]:
        if question.answer is None:
            reason = (gold_failures or {}).get(question.id, "the question has no gold answer")
            return {"error": {"code": "gold", "message": reason}}
        started = time.perf_counter()
        prediction = answer(question)
        seconds = time.perf_counter() - started
        _stop_if_fatal(prediction.error)
        return {
            "prediction": _prediction(prediction),
            "scores": _answer_scores(prediction, question, question.answer, run),
            "seconds": round(seconds, 4),
            "stages": {name: round(s, 4) for name, s in prediction.stages.items()},
            "tokens": dict(prediction.tokens),
            "error": _reason(prediction),
        }

    return _run(
        questions,
        score,
        metrics=[*map(str, ANSWER_METRICS), *PROGRAM_METRICS, "RightSource", "RightTables"],
        out=out,
        config={"task": "answers", **config},
        resume=resume,
        identity=identity,
        on_record=on_record,
    )


def run_eval(
    task: str,
    *,
    data: str | Path,
    questions: str | Path,
    settings: Settings,
    limit: int | None = None,
    seed: int = 0,
    method: str | None = None,
    votes: int | None = None,
    baseline: BaselineOptions = NO_OPTIONS,
    out: str | Path | None = None,
    resume: bool = False,
    chat_model: ChatModel | None = None,
    embedder: Embedder | None = None,
    on_record: OnRecord | None = None,
    progress: Callable[[Any], None] | None = None,
) -> dict[str, Any]:
    """``dbrag eval retrieval|answers``: the summary, also written to ``out`` (named in it).

    All databases under ``data`` are pooled. The index is brought up to date first. Of a method
    whose weights or packages are missing the summary holds ``not_run`` and no figure.

    Args:
        task: "retrieval" or "answers".
        votes: programs voted on; default: that of the settings.
        method: a name in ``methods``; default: dbrag itself.
        baseline: weights and sub-questions, of retrieval baselines that take them.
        out: the run's folder, ``resume`` goes on with it; default: one under ``./dbrag-eval``.
        progress: gets the progress of indexing.

    Raises:
        UsageError: wrong arguments or questions; see :func:`datasets.load_questions`.
        SourceError: ``data`` cannot be opened.
    """
    from dbrag.database import Database

    method = methods.check_method(task, method)
    folder, path, file = settled.out_folder(out, resume, task, method), Path(data), Path(questions)
    digest = datasets.file_hash(file)
    if not path.exists():
        raise UsageError(f"no folder or database {str(data)!r}", "check --data")
    votes = settings.votes if votes is None else votes
    settings = replace(settings, sources=(str(path),), votes=votes)
    settings = settled.for_run(settings, task, method, chat_model)
    with Database(settings, chat_model=chat_model, embedder=embedder) as db:
        db.index(progress=progress)
        tools = replace(_tools(db), baseline=baseline)
        loaded = datasets.load_questions(file, tools.catalog, tools.dialects)
        chosen = datasets.sample(loaded, limit, seed)
        config = {
            "method": method,
            "data": settled.corpus(db, path),
            "questions": {"name": file.name, "sha256": digest, "n": len(loaded)},
            **_behaviour(settings, task, method, baseline),
            **_sampled(limit, seed),
        }
        run = {"out": folder, "config": config, "resume": resume, "on_record": on_record}
        run["identity"] = settled.identity(db, task, method)
        return {**_evaluate(task, tools, method, chosen, run), "out": str(folder)}


def _sampled(limit: int | None, seed: int) -> dict[str, int | None]:
    return {"limit": limit, "seed": None if limit is None else seed}


def _tools(db: Database) -> methods.Tools:
    dialects = {source.name: source.dialect for source in db.sources}
    catalog = db.opened_index().catalog
    return methods.Tools(db, catalog, db.chat_model, dialects, db.settings.votes)


def _behaviour(
    settings: Settings, task: str, method: str, baseline: BaselineOptions
) -> dict[str, Any]:
    found = settled.behaviour(settings, task, method)
    return configured(found, method, baseline, settled.told(settings.model))


def _evaluate(
    task: str,
    tools: methods.Tools,
    method: str,
    questions: Sequence[Question],
    run: Mapping[str, Any],
) -> dict[str, Any]:
    tools = replace(tools, asked={question.id: question.question for question in questions})
    try:
        if task == "retrieval":
            rank = methods.RETRIEVAL_METHODS[method](tools)
        else:
            answer = methods.ANSWER_METHODS[method](tools)
    except MISSING as error:
        return not_run_summary(run["out"], error, run["config"], task)
    if task == "retrieval":
        return evaluate_retrieval(rank, questions, **run)
    ready, failures = datasets.with_answers(questions, tools.db.run_sql)
    return evaluate_answers(answer, ready, gold_failures=failures, run=tools.db.run_sql, **run)


# ---- one run ------------------------------------------------------------------------


def _run(
    questions: Sequence[Question],
    score: Callable[[Question], dict[str, Any]],
    *,
    metrics: Sequence[str],
    out: Path,
    config: Mapping[str, Any],
    resume: bool,
    identity: Mapping[str, Any] | None,
    on_record: OnRecord | None,
) -> dict[str, Any]:
    if not questions:
        raise UsageError("there is no question to evaluate", "check --questions and --limit")
    with RunFolder(out, config, resume=resume) as folder:
        for done, question in enumerate(questions, start=1):
            if question.id not in folder.done:
                folder.append(_record(question, score))
            if on_record:
                on_record(done, len(questions), folder.done[question.id])
        records = [folder.done[question.id] for question in questions]
        summary = summarise(records, metrics, config, identity)
        folder.finish(summary)
    return summary


def _record(question: Question, score: Callable[[Question], dict[str, Any]]) -> dict[str, Any]:
    started = time.perf_counter()
    try:
        outcome = score(question)
    except _FATAL:
        raise
    except DbragError as error:
        outcome = {"error": {"code": error.code, "message": error.message}}
    except Exception as error:  # a bug must cost its question, not the night's run
        message = f"{type(error).__name__}: {error}"
        outcome = {"error": {"code": "internal", "message": message}}
    return {
        "id": question.id,
        "db_id": question.db_id,
        "n_tables": len(question.tables),
        "where": question.has_where,
        "gold": {"tables": [str(table) for table in question.tables]},
        "prediction": None,
        "scores": {},
        "tokens": {},
        "error": None,
        "seconds": round(time.perf_counter() - started, 4),
        **outcome,
    }


def _prediction(prediction: Prediction) -> dict[str, Any]:
    return {
        "status": prediction.status,
        "tables": [str(table) for table in prediction.tables],
        "sql": prediction.sql,
        "row_count": len(prediction.rows),
        "agreement": prediction.agreement,
        "confidence": prediction.confidence,
        "votes_valid": prediction.votes_valid,
        "warnings": list(prediction.warnings),
    }


def _reason(prediction: Prediction) -> Mapping[str, str] | None:
    """Why there is no answer; None where there is one."""
    if prediction.status == "answered":
        return None
    if prediction.error:
        return {key: prediction.error[key] for key in ("code", "message")}
    return {"code": prediction.status, "message": "no reason given"}


def _answer_scores(
    prediction: Prediction, question: Question, gold: GoldAnswer, run: RunSql
) -> dict[str, float]:
    used: set[TableRef] = set(prediction.tables)
    places = {
        "RightSource": float({table.source for table in used} == {question.db_id}),
        "RightTables": float(used == set(question.tables)),
    }
    if prediction.status == "answered":
        scores = {str(m): m(prediction, gold, question.ordered) for m in ANSWER_METRICS}
    else:
        scores = {str(metric): 0.0 for metric in ANSWER_METRICS}
    shown = prediction.sql if prediction.status == "answered" else None
    answer = shown, scores[str(EX)]
    voted = program_scores(prediction.programs, answer, gold, question.ordered, run)
    return {**scores, **voted, **places}


def _stop_if_fatal(error: Mapping[str, str] | None) -> None:
    kind = _FATAL_CODES.get(error["code"]) if error else None
    if kind is not None and error is not None:
        raise kind(error["message"], error.get("hint", ""))
