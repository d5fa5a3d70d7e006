"""What a data set is made of: its tables, its questions, their answers; counts only.

These are the kinds of figures that the paper's Appendix A describes. Its own table is missing
from the text at hand; what else is known of its corpora stands in :mod:`dbrag.evaluation.paper`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any

from dbrag.catalog.catalog import Catalog
from dbrag.errors import DbragError, UsageError
from dbrag.evaluation.datasets import Question, load_questions, with_answers
from dbrag.evaluation.paper import Corpus, corpus_of
from dbrag.evaluation.summary import quantile
from dbrag.sources.statements import count_rows
from dbrag.types import SCHEMA_VERSION, Table, TableRef

if TYPE_CHECKING:
    from dbrag.database import Database
    from dbrag.settings import Settings
    from dbrag.sources.base import Source


_ALL = 2**62
"""More rows than a table has, and a number that every engine takes."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Of whole numbers: how many there are, their sum, and how they spread."""

    n: int
    total: int
    least: int
    median: float
    mean: float
    p95: int
    most: int

    @classmethod
    def of(cls, values: Sequence[int]) -> Spread | None:
        """None where there is no value."""
        if not values:
            return None
        at_95 = int(quantile(values, 0.95))
        return cls(
            len(values), sum(values), min(values), median(values), fmean(values), at_95, max(values)
        )

    def to_dict(self) -> dict[str, float]:
        """JSON, the mean rounded to three places."""
        return {name: round(getattr(self, name), 3) for name in self.__slots__}


@dataclass(frozen=True)
class CorpusStatistics:
    """Of all databases that are searched.

    ``rows`` and ``columns`` are by table, ``tables`` by database. ``unread`` names tables whose
    rows could not be counted; they are left out of ``rows``.
    """

    databases: int
    tables: Spread | None
    views: int
    columns: Spread | None
    rows: Spread | None
    empty: int
    keys: int
    same_name: int
    unread: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return _json_of(self)


@dataclass(frozen=True)
class QuestionStatistics:
    """Of one question file.

    ``by_tables`` counts questions by number of gold tables; ``gold`` and ``distinct`` the gold
    tables and how many of them differ in name or content. ``rows``, ``columns`` and ``cells`` are
    those of the gold answers; ``failed`` counts questions whose gold SQL fails, ``unknown`` those
    without a gold answer that nothing computes.
    """

    name: str
    n: int
    databases: int
    by_tables: Mapping[int, int]
    with_sql: int
    where: int
    ordered: int
    gold: int
    distinct: int | None
    rows: Spread | None = None
    columns: Spread | None = None
    cells: Spread | None = None
    empty: int = 0
    failed: int = 0
    unknown: int = 0

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return _json_of(self)


@dataclass(frozen=True)
class DataStatistics:
    """A corpus and its question files, and the paper's data set that it is, if any."""

    name: str
    corpus: CorpusStatistics
    questions: tuple[QuestionStatistics, ...] = ()
    known: Corpus | None = None
    together: QuestionStatistics | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON."""
        return {
            "schema": SCHEMA_VERSION,
            "data": self.name,
            "corpus": self.corpus.to_dict(),
            "questions": [one.to_dict() for one in self.questions],
            "together": self.together.to_dict() if self.together else None,
            "paper": _paper_json(self.known),
        }


def data_statistics(
    data: Path, files: Sequence[Path], settings: Settings, *, distinct: bool = False
) -> DataStatistics:
    """``dbrag eval stats``: the databases under ``data`` and the questions about them.

    Neither an index nor a model is needed. Gold answers that a file does not hold are computed.

    Args:
        distinct: also tell how many gold tables differ in name or content, which reads them.

    Raises:
        UsageError: no such data, or a question file that cannot be used.
        SourceError: a database cannot be read.
    """
    from dbrag.database import Database

    if not data.exists():
        raise UsageError(f"no folder or database {str(data)!r}", "check --data")
    with Database(replace(settings, sources=(str(data),), learned="off")) as db:
        catalog, corpus = read_corpus(db.sources, [one.name for one in db.skipped])
        dialects = {source.name: source.dialect for source in db.sources}
        content = content_of(db.sources, catalog) if distinct else None
        parts: list[QuestionStatistics] = []
        every: list[Question] = []
        failed: dict[str, str] = {}
        for file in files:
            ready, failures = _answered(load_questions(file, catalog, dialects), db)
            parts.append(question_statistics(file.name, ready, failures, content))
            every += ready
            failed |= failures
        together = (
            question_statistics("together", every, failed, content) if len(files) > 1 else None
        )
        known = known_corpus(catalog, [source.name for source in db.sources])
    name = known.name if known else data.resolve().stem
    return DataStatistics(name, corpus, tuple(parts), known, together)


def _answered(
    questions: Sequence[Question], db: Database
) -> tuple[list[Question], Mapping[str, str]]:
    """The questions with gold answers, where there is one or SQL that computes it."""
    without = [one for one in questions if one.answer is None and one.sql is None]
    ready, failures = with_answers(
        [one for one in questions if one.answer is not None or one.sql is not None], db.run_sql
    )
    return [*ready, *without], failures


def read_corpus(
    sources: Sequence[Source], skipped: Sequence[str] = ()
) -> tuple[Catalog, CorpusStatistics]:
    """The tables of all sources, and what they are like; every table's rows are counted.

    Raises:
        SourceError: a source cannot be read.
    """
    tables: list[Table] = []
    rows: list[int] = []
    unread: list[str] = []
    for source in sources:
        found = source.reflect()
        tables += found
        for one in found:
            if one.kind != "table":
                continue
            try:
                rows.append(_count(source, one))
            except DbragError:
                unread.append(str(one.ref))
    real = [one for one in tables if one.kind == "table"]
    names = Counter(one.ref.name.casefold() for one in real)
    by_source = Counter(one.ref.source for one in real)
    statistics = CorpusStatistics(
        databases=len(sources),
        tables=Spread.of(list(by_source.values())),
        views=len(tables) - len(real),
        columns=Spread.of([len(one.columns) for one in real]),
        rows=Spread.of(rows),
        empty=rows.count(0),
        keys=sum(len(one.foreign_keys) for one in real),
        same_name=sum(n for n in names.values() if n > 1),
        unread=tuple(unread),
        skipped=tuple(skipped),
    )
    return Catalog(tuple(tables)), statistics


def _count(source: Source, one: Table) -> int:
    with source.session() as session:
        session.execute(count_rows(one, source.dialect))
        return int(session.fetch(1)[0][0])


def question_statistics(
    name: str,
    questions: Sequence[Question],
    failures: Mapping[str, str] | None = None,
    content: Callable[[TableRef], str] | None = None,
) -> QuestionStatistics:
    """What a question file is like.

    Args:
        questions: with gold answers, where they are known (``datasets.with_answers``).
        failures: why a question has no gold answer, by id.
        content: a hash of a table's name, columns and rows, to tell equal tables of several
            databases; None: not told.
    """
    answers = [q.answer for q in questions if q.answer is not None]
    failed = failures or {}
    gold = {table for question in questions for table in question.tables}
    return QuestionStatistics(
        name=name,
        n=len(questions),
        databases=len({question.db_id for question in questions}),
        by_tables=dict(sorted(Counter(len(question.tables) for question in questions).items())),
        with_sql=sum(question.sql is not None for question in questions),
        where=sum(question.has_where is True for question in questions),
        ordered=sum(question.ordered for question in questions),
        gold=len(gold),
        distinct=len({content(table) for table in gold}) if content else None,
        rows=Spread.of([len(answer.rows) for answer in answers]),
        columns=Spread.of([len(answer.columns) for answer in answers]),
        cells=Spread.of([len(answer.rows) * len(answer.columns) for answer in answers]),
        empty=sum(not answer.rows for answer in answers),
        failed=len(failed),
        unknown=sum(q.answer is None and q.id not in failed for q in questions),
    )


def content_of(sources: Sequence[Source], catalog: Catalog) -> Callable[[TableRef], str]:
    """Hashes of tables by name, columns and rows, without their databases; read once each."""
    by_name = {source.name: source for source in sources}
    known: dict[TableRef, str] = {}

    def content(ref: TableRef) -> str:
        if ref not in known:
            one, source = catalog.by_ref[ref], by_name[ref.source]
            names = [ref.name.casefold(), *(column.name.casefold() for column in one.columns)]
            digest = hashlib.sha256(repr(names).encode("utf-8", "backslashreplace"))
            with source.scan(one, _ALL) as rows:
                for row in rows:
                    digest.update(repr(row).encode("utf-8", "backslashreplace"))
            known[ref] = digest.hexdigest()
        return known[ref]

    return content


def known_corpus(catalog: Catalog, databases: Sequence[str]) -> Corpus | None:
    """The paper's data set that these databases are."""
    real = [one for one in catalog.tables if one.kind == "table"]
    return corpus_of(len(real), databases)


def _json_of(one: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in one.__dataclass_fields__:
        value = getattr(one, name)
        if isinstance(value, Spread):
            value = value.to_dict()
        elif isinstance(value, Mapping):
            value = {str(key): inner for key, inner in value.items()}
        found[name] = list(value) if isinstance(value, tuple) else value
    return found


def _paper_json(known: Corpus | None) -> dict[str, Any] | None:
    if known is None:
        return None
    return {
        "name": known.name,
        "databases": known.databases,
        "tables": known.tables,
        "questions": known.questions,
        "by_tables": {str(n): count for n, count in known.by_tables.items()},
        "differs": dict(known.differs),
    }
