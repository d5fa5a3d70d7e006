"""Questions put to a database that cannot answer them: refused, unsure, or invented.

    python bench/wrong_database.py --data $DBRAG_BENCH/spider/database \
        --questions $DBRAG_BENCH/spider/train.json --out runs/wrong
    python bench/wrong_database.py … --right --out runs/right

Every question is asked one other database drawn at random, opened alone as a user would
open it; ``--right`` asks its own, for the refusals that are false. Few draws may happen to
be able to answer (several databases hold students, or flights): they count as they come.

An answer is sure where its confidence (where that is not told, its agreement) reaches the
threshold, or where nothing tells the reader to doubt it. A killed run goes on with
``--resume``; a finished one is summed up again with another ``--threshold`` by the same.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import dbrag
from dbrag.errors import DbragError, ModelNotInstalled, UsageError, WeightsError
from dbrag.evaluation import config as settled
from dbrag.evaluation.calibration import SURE
from dbrag.evaluation.datasets import Question, file_hash, sample
from dbrag.evaluation.pack import read_asked
from dbrag.evaluation.records import RunFolder
from dbrag.evaluation.scripts import run_script
from dbrag.evaluation.significance import wilson
from dbrag.settings import Settings, load_settings

if TYPE_CHECKING:
    from dbrag.models.base import ChatModel, Embedder

WRONG = ("refused", "unsure", "invented", "failed")
RIGHT = ("refused", "unsure", "sure", "failed")
"""What can become of a question, asked the wrong database and its own."""


def databases(data: Path) -> dict[str, Path]:
    """The SQLite files under a folder by their stems, which are the ``db_id``.

    Raises:
        UsageError: fewer than two: there is no wrong one.
    """
    found = {file.stem: file for file in sorted(data.rglob("*.sqlite"))}
    if len(found) < 2:
        raise UsageError(f"{str(data)!r} holds {len(found)} SQLite databases", "check --data")
    return found


def drawn(question: Question, names: Sequence[str], seed: int, right: bool) -> str:
    """The database that a question is asked: one other at random, or its own.

    Raises:
        UsageError: its own is not there.
    """
    if right:
        if question.db_id not in names:
            raise UsageError(f"there is no database {question.db_id!r} under --data")
        return question.db_id
    others = sorted(name for name in names if name != question.db_id)
    return random.Random(f"{seed}:{question.id}").choice(others)


def verdict(told: Mapping[str, Any], threshold: float, right: bool = False) -> str:
    """One of ``WRONG``, or of ``RIGHT``.

    Args:
        told: a record's prediction: status, confidence, agreement.
    """
    if told["status"] != "answered":
        return "refused" if told["status"] == "unanswerable" else "failed"
    sure = told["agreement"] if told["confidence"] is None else told["confidence"]
    if sure is not None and sure < threshold:
        return "unsure"
    return "sure" if right else "invented"


def summed_up(
    records: Sequence[Mapping[str, Any]], threshold: float, right: bool
) -> dict[str, Any]:
    """Shares of all questions with 95% intervals (Wilson), errors by code, seconds."""
    counts = Counter(verdict(one["prediction"], threshold, right) for one in records)
    n = len(records)
    shares: dict[str, Any] = {}
    for name in RIGHT if right else WRONG:
        low, high = wilson(counts[name], n)
        share = {"n": counts[name], "share": round(counts[name] / n, 6)}
        shares[name] = {**share, "interval": [round(low, 6), round(high, 6)]}
    codes = Counter(one["error"]["code"] for one in records if one["error"])
    return {
        "schema": 1,
        "mode": "right" if right else "wrong",
        "n": n,
        "threshold": threshold,
        **shares,
        "errors": dict(sorted(codes.items())),
        "seconds": round(median(one["seconds"] for one in records), 2),
    }


def asked(db: dbrag.Database, question: Question, name: str) -> dict[str, Any]:
    """The record of one question; whatever goes wrong with it is told in it.

    Raises:
        ModelNotInstalled, WeightsError: no question can be answered.
    """
    started = time.perf_counter()
    told: dict[str, Any] = {"status": "failed", "agreement": None, "confidence": None}
    error: Mapping[str, str] | None
    tokens: Mapping[str, int] = {}
    try:
        answer = db.ask(question.question)
    except (ModelNotInstalled, WeightsError):
        raise
    except DbragError as caught:
        error = {"code": caught.code, "message": caught.message}
    else:
        told = {
            "status": answer.status,
            "agreement": answer.agreement,
            "confidence": getattr(answer, "confidence", None),
            "sql": answer.sql,
            "text": answer.text,
        }
        error, tokens = answer.error, dict(answer.tokens)
    return {
        "id": question.id,
        "db_id": question.db_id,
        "asked": name,
        "prediction": told,
        "scores": {},
        "tokens": tokens,
        "error": error and {key: error[key] for key in ("code", "message")},
        "seconds": round(time.perf_counter() - started, 4),
    }


def run(
    given: argparse.Namespace,
    settings: Settings,
    chat_model: ChatModel | None = None,
    embedder: Embedder | None = None,
) -> dict[str, Any]:
    """Ask all questions, database by database, so that each is indexed once.

    Raises:
        UsageError: wrong arguments, or a folder of another run.
    """
    if not 0 <= given.threshold <= 1:
        raise UsageError(f"--threshold must lie between 0 and 1, not {given.threshold!r}")
    questions = sample(read_asked(given.questions), given.limit, given.seed)
    files = databases(given.data)
    settings = settled.for_run(settings, "answers", "dbrag", chat_model)
    config = {
        "task": "right database" if given.right else "wrong database",
        "questions": {"name": given.questions.name, "sha256": file_hash(given.questions)},
        "databases": len(files),
        "limit": given.limit,
        "seed": given.seed,
        **settled.behaviour(settings, "answers", "dbrag"),
    }
    plan = [(drawn(one, list(files), given.seed, given.right), one) for one in questions]
    plan.sort(key=lambda pair: pair[0])
    with RunFolder(given.out, config, resume=given.resume) as folder:
        for name, group in groupby(plan, key=lambda pair: pair[0]):
            left = [one for _, one in group if one.id not in folder.done]
            if not left:
                continue
            with (
                tempfile.TemporaryDirectory(prefix="dbrag-alone-") as index,
                dbrag.connect(
                    files[name],
                    index=index,
                    settings=settings,
                    chat_model=chat_model,
                    embedder=embedder,
                ) as db,
            ):
                db.index()  # before the first question, whose seconds it is none of
                for one in left:
                    folder.append(asked(db, one, name))
                    print(f"{len(folder.done)} of {len(plan)}: {one.id}", file=sys.stderr)
        found = summed_up([folder.done[one.id] for one in questions], given.threshold, given.right)
        folder.finish({**found, "config": config})
    return found


def table(found: Mapping[str, Any]) -> str:
    """The summary as text."""
    lines = [f"{found['mode']} database, {found['n']} questions, sure from {found['threshold']:g}"]
    for name in RIGHT if found["mode"] == "right" else WRONG:
        low, high = (100 * end for end in found[name]["interval"])
        share = 100 * found[name]["share"]
        lines.append(f"{name:9} {found[name]['n']:4}  {share:5.1f}% ({low:.1f} to {high:.1f})")
    codes = ", ".join(f"{code} {n}" for code, n in found["errors"].items()) or "none"
    return "\n".join([*lines, f"errors: {codes}", f"median seconds: {found['seconds']}"])


def main(arguments: Sequence[str] | None = None, **models: Any) -> int:
    """Run the command; the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of SQLite databases")
    parser.add_argument("--questions", type=Path, required=True, help="JSON of the pack")
    parser.add_argument("--out", type=Path, required=True, help="folder of the run")
    parser.add_argument("--limit", type=int, default=100, help="questions, stratified by database")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--right", action="store_true", help="ask each its own database")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--threshold", type=float, default=SURE, help="sure from this on")
    parser.add_argument("--model", help="chat model as provider:name")
    given = parser.parse_args(arguments)
    try:
        print(table(run(given, load_settings({"model": given.model}), **models)))
    except DbragError as error:
        print(f"{error.message}. {error.hint}".rstrip(), file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("stopped; go on with --resume", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(run_script(main))
