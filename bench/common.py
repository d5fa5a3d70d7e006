"""What the scripts on programs share: a question as the product sees it, and the pool's format.

A pool is JSONL, one question a line: ``id``, ``db`` (whose question it is), ``q``, with a wrong
database ``other`` and ``refused``, and ``attempts``: ``v`` (variant), ``tables`` (shown),
``events``, of each round ``reply``, ``logprob`` and ``tokens``. It holds replies only: what
becomes of them is computed by today's code.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import dbrag
from dbrag.errors import DbragError, Unanswerable
from dbrag.evaluation.calibration import Call, reliability
from dbrag.reasoning.answerable import check_evidence
from dbrag.reasoning.attempt import Report, Workshop
from dbrag.reasoning.budget import Usage
from dbrag.reasoning.select import Selection, select
from dbrag.retrieval.coverage import SourceVocabulary
from dbrag.types import Candidate, TableRef

SPIDER = Path(os.environ.get("DBRAG_BENCH", "../shared/benchmarks")) / "spider"


@dataclass(frozen=True)
class Found:
    """What the product knows of a question before a program is written."""

    question: str
    candidates: Sequence[Candidate]
    coverage: Mapping[str, float]
    selection: Selection


class Desk:
    """An open database with all that is made of it once for many questions."""

    def __init__(self, db: dbrag.Database) -> None:
        self.db = db
        self.index = db.opened_index()
        self.catalog = self.index.catalog
        self.sources = {source.name: source for source in db.sources}

    @cached_property
    def vocabulary(self) -> SourceVocabulary:
        return SourceVocabulary(list(self.catalog.bare(set(self.sources))))

    def refused(self, candidates: Sequence[Candidate]) -> bool:
        """Whether no program would be written for want of evidence."""
        encoder = self.index.manifest.encoder
        try:
            check_evidence(candidates, encoder.sha256 if encoder else "")
        except Unanswerable:
            return True
        return False

    def candidates(self, question: str) -> Sequence[Candidate]:
        found = self.db.search(question, top=self.db.settings.k, rerank=False)
        return found.candidates

    def found(self, question: str, candidates: Sequence[Candidate]) -> Found:
        coverage = self.vocabulary.coverage(question)
        selection = self.selection(question, candidates, coverage)
        return Found(question, candidates, coverage, selection)

    def selection(
        self, question: str, candidates: Sequence[Candidate], coverage: Mapping[str, float]
    ) -> Selection:
        return select(
            question,
            candidates,
            self.catalog,
            self.index.joins,
            coverage,
            parts=self.vocabulary.parts,
            settings=self.db.settings,
        )

    def home(self, ref: TableRef) -> str:
        """The source, or part of one, that a table belongs to."""
        return self.vocabulary.parts.get(ref, ref.source)

    def workshop(self, source: str, model: Any, report: Report) -> Workshop:
        return Workshop(
            source=self.sources[source],
            tables=self.catalog.of_source(source),
            joins=self.index.joins,
            model=model,
            settings=self.db.settings,
            report=report,
            usage=Usage(),
        )


def print_reliability(calls: Sequence[Call]) -> None:
    """What was told against what was right, in bins."""
    print("told          n    mean   right")
    for one in reliability(calls):
        span = f"{one.low:.1f} to {one.high:.1f}"
        print(f"{span} {one.n:6} {100 * one.mean:6.1f}% {100 * one.right:6.1f}%")


def run(command: Callable[[], None]) -> None:
    """Run a script; whatever is wrong with its input ends it with one line.

    Raises:
        SystemExit: something is.
    """
    try:
        command()
    except DbragError as error:
        raise SystemExit(f"{error.message}. {error.hint}".rstrip()) from error
    except KeyboardInterrupt:
        raise SystemExit("stopped") from None


def read_pool(path: Path) -> list[dict[str, Any]]:
    """The whole lines of a pool; a last one that a killed run cut is left out."""
    if not path.exists():
        return []
    whole, _, _ = path.read_bytes().rpartition(b"\n")
    return [json.loads(line) for line in whole.splitlines() if line.strip()]


def cut_to_whole_lines(path: Path) -> None:
    """Remove what a killed run left of a last line, so that others can follow."""
    if path.exists():
        whole, newline, rest = path.read_bytes().rpartition(b"\n")
        if rest:
            path.write_bytes(whole + newline)
