"""The values that travel between the stages: frozen, without behaviour of their own.

Source → Catalog → index → Candidate → Program → Execution → Answer, in the
order of Figure 1 of the paper. Nothing here imports anything at run time
but the standard library, ``values``, ``arrow`` and ``display``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from dbrag.arrow import arrow_table
from dbrag.display import Displayed, Tabular
from dbrag.values import json_value

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 1
"""Version of every JSON object that dbrag prints."""


@dataclass(frozen=True, slots=True, order=True)
class TableRef:
    """A table's identity: (source, schema, name); ``schema`` is None where there is none."""

    source: str
    schema: str | None
    name: str

    def __str__(self) -> str:
        return ".".join(part for part in (self.source, self.schema, self.name) if part is not None)

    def to_dict(self) -> dict[str, str | None]:
        """The table id of the JSON contract."""
        return {"source": self.source, "schema": self.schema, "name": self.name}


@dataclass(frozen=True, slots=True)
class Column:
    """A column as declared: ``type`` is the engine's own text, empty when untyped.

    ``synonyms`` are the user's other names for it (``catalog.notes``).
    """

    name: str
    type: str = ""
    nullable: bool = True
    comment: str = ""
    synonyms: tuple[str, ...] = ()


TableKind = Literal["table", "view", "materialized view", "foreign table"]


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A declared key, composite ones too: ``columns[i]`` refers to ``target_columns[i]``."""

    columns: tuple[str, ...]
    target: TableRef
    target_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ColumnProfile:
    """What a bounded read of a column showed.

    ``distinct`` is exact over the rows read. ``frequent`` holds (value, count),
    most frequent first; ``samples`` a few distinct non-null values in row order.
    Values are display strings, cut at 200 characters. ``whole`` names the facts that
    the engine told of the whole table instead, where only a part was read; they may be
    its estimates.
    """

    column: str
    nulls: int
    distinct: int
    minimum: str | None
    maximum: str | None
    frequent: tuple[tuple[str, int], ...]
    samples: tuple[str, ...]
    whole: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Table:
    """A table or view with keys, profile and sample rows.

    ``row_count`` is exact, or None where counting went over the budget.
    ``sampled`` is true when the profile and the row index saw only
    ``rows_read`` of more rows. ``estimate`` is the engine's own guess of the
    number of rows. ``redacted`` names columns that nobody may read: they are
    not in ``columns``, and ``*`` must not bring them back. ``notes`` tell how a
    data file was read and what was odd in it, for people; ``odd`` are those of them that
    a reader of its numbers has to know. ``synonyms`` and ``preferred`` (before similar
    tables) are the user's (``catalog.notes``).
    """

    ref: TableRef
    columns: tuple[Column, ...]
    kind: TableKind = "table"
    primary_key: tuple[str, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    comment: str = ""
    row_count: int | None = None
    rows_read: int = 0
    sampled: bool = False
    profile: tuple[ColumnProfile, ...] = ()
    sample_rows: tuple[tuple[str | None, ...], ...] = ()
    estimate: int | None = None
    redacted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    odd: tuple[str, ...] = ()
    synonyms: tuple[str, ...] = ()
    preferred: bool = False

    def column(self, name: str) -> Column | None:
        """The column of that name, letter case ignored."""
        wanted = name.casefold()
        return next((c for c in self.columns if c.name.casefold() == wanted), None)


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What indexing did with one source: a line of ``dbrag index``.

    ``tables_read`` of its ``tables`` were new or changed and read; the others were
    taken over from the index.
    """

    name: str
    status: Literal["built", "unchanged", "skipped"]
    reason: str = ""
    tables: int = 0
    rows: int = 0
    rows_indexed: int = 0
    sampled: bool = False
    seconds: float = 0.0
    tables_read: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The ``sources`` entry of the JSON contract."""
        return {name: _rounded(getattr(self, name)) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class IndexReport(Displayed):
    """What one indexing run did; ``warnings`` name the files that were left out."""

    sources: tuple[SourceReport, ...]
    seconds: float
    peak_mb: float
    bytes: int
    warnings: tuple[AnswerWarning, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """The JSON of ``dbrag index``."""
        return {
            "schema": SCHEMA_VERSION,
            "sources": [source.to_dict() for source in self.sources],
            "seconds": round(self.seconds, 3),
            "peak_mb": round(self.peak_mb, 1),
            "bytes": self.bytes,
            "warnings": [warning.to_dict() for warning in self.warnings],
        }


@dataclass(frozen=True, slots=True)
class ValueMatch:
    """A cell value that the question mentions: as ``said``, and ``how`` near to it."""

    column: str
    value: str
    said: str = ""
    how: Literal["exact", "inflected", "typo"] = "exact"


@dataclass(frozen=True, slots=True)
class Candidate(Displayed):
    """A table with its score, the parts the score was added from, and the evidence.

    ``similarity`` is the largest cosine of the question with the table's summary or one
    of its columns, -1..1: unlike the score it can be compared between questions.
    """

    table: TableRef
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)
    rows: tuple[Mapping[str, Any], ...] = ()
    matches: tuple[ValueMatch, ...] = ()
    reason: str = ""
    similarity: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The ``candidates`` entry of the JSON contract."""
        return {
            "table": self.table.to_dict(),
            "score": round(self.score, 4),
            "parts": {name: round(part, 4) for name, part in self.parts.items()},
            "rows": [{k: json_value(v) for k, v in row.items()} for row in self.rows],
            "matches": [{n: getattr(m, n) for n in m.__slots__} for m in self.matches],
            "reason": self.reason,
            "similarity": round(self.similarity, 4),
        }


@dataclass(frozen=True, slots=True)
class SearchResult(Displayed):
    """The ranked candidates, a chat model's part in it, seconds by stage (some overlap)."""

    question: str
    candidates: tuple[Candidate, ...]
    seconds: float
    warnings: tuple[AnswerWarning, ...] = ()
    rerank: Mapping[str, Any] | None = None
    orders: Mapping[str, tuple[TableRef, ...]] = field(default_factory=dict)
    stages: Mapping[str, float] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """The JSON of ``dbrag search``."""
        return {
            "schema": SCHEMA_VERSION,
            "question": self.question,
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "warnings": [warning.to_dict() for warning in self.warnings],
            "seconds": round(self.seconds, 4),
            "stages": {name: round(s, 4) for name, s in self.stages.items()},
            "rerank": None if self.rerank is None else dict(self.rerank),
        }


@dataclass(frozen=True, slots=True)
class AnswerWarning:
    """Something the reader of an answer has to know."""

    code: str
    message: str

    def to_dict(self) -> dict[str, str]:
        """The ``warnings`` entry of the JSON contract."""
        return {"code": self.code, "message": self.message}


@dataclass(frozen=True, slots=True)
class Step:
    """One read-only SELECT; it may read earlier steps by their names."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Program:
    """Steps in order; ``sql`` is the single statement they become, comments removed."""

    steps: tuple[Step, ...]
    sql: str
    dialect: str
    tables: tuple[TableRef, ...]


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A result column; names may repeat.

    ``type`` is an Arrow type's text, or a name of ``arrow.AS_TEXT``: text in Arrow.
    """

    name: str
    type: str


@dataclass(frozen=True)
class Execution(Tabular):
    """The whole result of one statement, every value as the engine gave it."""

    columns: tuple[ResultColumn, ...]
    rows: tuple[tuple[Any, ...], ...]
    seconds: float

    @cached_property
    def table(self) -> pa.Table:
        """The result as Arrow ``[n_rows, n_columns]``, exactly; names may repeat."""
        return arrow_table([(column.name, column.type) for column in self.columns], self.rows)

    def to_dict(self, max_rows: int | None) -> dict[str, Any]:
        """The result in the JSON contract: ``rows`` is cut at ``max_rows``, nothing else is."""
        shown = self.rows if max_rows is None else self.rows[:max_rows]
        return {
            "columns": [{"name": c.name, "type": c.type} for c in self.columns],
            "rows": [[json_value(value) for value in row] for row in shown],
            "row_count": len(self.rows),
            "truncated": len(shown) < len(self.rows),
        }


_NO_RESULT = Execution((), (), 0.0)


@dataclass(frozen=True, slots=True)
class Reading(Displayed):
    """A result with as many votes as the answer; ``difference`` says what its program does."""

    text: str
    difference: str
    program: Program
    execution: Execution
    votes: int

    def to_dict(self, max_rows: int | None) -> dict[str, Any]:
        """The ``readings`` entry of the JSON contract."""
        return {
            "text": self.text,
            "difference": self.difference,
            "sql": self.program.sql,
            "tables": [table.to_dict() for table in self.program.tables],
            **self.execution.to_dict(max_rows),
            "votes": self.votes,
        }


Status = Literal["answered", "unanswerable", "failed"]


@dataclass(frozen=True)
class Answer(Tabular):
    """What ``ask`` gives back: the engine's result with its program and evidence.

    ``agreement`` is the share of valid votes behind the answer, None with one vote;
    ``confidence`` p(right) as calibrated; ``evidence`` tells what the program does
    (``reasoning.explanation``), JSON-ready.
    """

    question: str
    status: Status
    text: str
    execution: Execution | None = None
    program: Program | None = None
    tables: tuple[TableRef, ...] = ()
    agreement: float | None = None
    confidence: float | None = None
    votes_requested: int = 1
    votes_valid: int = 0
    warnings: tuple[AnswerWarning, ...] = ()
    error: Mapping[str, str] | None = None
    exit_code: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    tokens: Mapping[str, int] = field(default_factory=dict)
    model: str | None = None
    trace: tuple[Mapping[str, Any], ...] = ()
    max_rows: int | None = None
    evidence: Mapping[str, Any] | None = None
    readings: tuple[Reading, ...] = ()

    @property
    def sql(self) -> str | None:
        """The statement that was run."""
        return self.program.sql if self.program else None

    @property
    def table(self) -> pa.Table | None:
        """The whole result as Arrow, never cut."""
        return self.execution.table if self.execution else None

    def to_dict(self) -> dict[str, Any]:
        """The JSON of ``dbrag ask``; rows are cut at ``max_rows``, nothing else is."""
        steps = self.program.steps if self.program else ()
        return {
            "schema": SCHEMA_VERSION,
            "question": self.question,
            "status": self.status,
            **(self.execution or _NO_RESULT).to_dict(self.max_rows),
            "text": self.text,
            "steps": [{"name": step.name, "sql": step.sql} for step in steps],
            "sql": self.sql,
            "dialect": self.program.dialect if self.program else None,
            "tables": [table.to_dict() for table in self.tables],
            "agreement": _rounded(self.agreement, 4),
            "confidence": _rounded(self.confidence, 4),
            "votes": {"requested": self.votes_requested, "valid": self.votes_valid},
            "warnings": [warning.to_dict() for warning in self.warnings],
            "evidence": dict(self.evidence) if self.evidence else None,
            "readings": [reading.to_dict(self.max_rows) for reading in self.readings],
            "error": dict(self.error) if self.error else None,
            "seconds": {name: round(s, 4) for name, s in self.seconds.items()},
            "tokens": dict(self.tokens),
            "model": self.model,
        }


def _rounded(value: object, digits: int = 3) -> object:
    return round(value, digits) if isinstance(value, float) else value
