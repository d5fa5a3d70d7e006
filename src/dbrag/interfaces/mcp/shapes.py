"""What the tools give back, as agents see it: structured content and its schemas.

Tables are named by their text, ``source.schema.name``: every tool takes it back. A list is a page
of a longer one: ``shown`` says which part in words, ``next_offset`` where the next begins, null at
the end. Rows hold exact values, as in the JSON of ``dbrag sql``.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, is_dataclass
from functools import cache
from types import GenericAlias
from typing import Annotated, Any, get_args, get_type_hints


class Doc(str):
    """What a field holds, for the schema."""

    __slots__ = ()


Shown = Annotated[str, Doc('Which part this is, for example "rows 1-50 of 1,234".')]
Offset = Annotated[int, Doc("Entries before this page.")]
NextOffset = Annotated[int | None, Doc("The offset of the next page; null: this is the last one.")]
TableName = Annotated[str, Doc("source.schema.name or source.name; every tool takes it.")]


@dataclass(frozen=True)
class Notice:
    """Something the reader of a result has to know."""

    code: Annotated[str, Doc("Stable, for programs.")]
    message: str


@dataclass(frozen=True)
class MatchedValue:
    """A cell value that the question mentions."""

    column: str
    value: str
    said: Annotated[str, Doc("How the question puts it.")]
    how: Annotated[str, Doc('"exact", "inflected" or "typo".')]


@dataclass(frozen=True)
class FoundTable:
    """A table that may help to answer the question."""

    table: TableName
    score: Annotated[float, Doc("To be compared within this list only.")]
    reason: str
    row_count: Annotated[int | None, Doc("Rows when it was indexed; null: not counted.")]
    columns: Annotated[list[str], Doc("The first columns; describe_table has all.")]
    column_count: int
    values: Annotated[list[MatchedValue], Doc("Values that the question mentions.")]
    rows: Annotated[list[dict[str, Any]], Doc("Rows that share words with the question.")]


@dataclass(frozen=True)
class FoundTables:
    """The tables that fit a question, best first."""

    question: str
    tables: list[FoundTable]
    total: Annotated[int, Doc("Tables that were ranked.")]
    offset: Offset
    next_offset: NextOffset
    shown: Shown
    warnings: list[Notice] = field(default_factory=list)


@dataclass(frozen=True)
class ColumnInfo:
    """A column: as declared, and what a bounded read of the table showed."""

    name: str
    type: Annotated[str, Doc("The engine's own; empty: untyped.")]
    nullable: bool
    comment: str = ""
    nulls: Annotated[int | None, Doc("Of the rows that were read.")] = None
    distinct: Annotated[int | None, Doc("Of the rows that were read.")] = None
    minimum: str | None = None
    maximum: str | None = None
    frequent: Annotated[list[str], Doc("Most frequent first.")] = field(default_factory=list)


@dataclass(frozen=True)
class JoinInfo:
    """A possible join with another table."""

    on: Annotated[str, Doc("The condition, columns with their tables.")]
    other: TableName
    declared: Annotated[bool, Doc("By the database or the user; else inferred.")]
    confidence: Annotated[float, Doc("0..1; 1 for a declared one.")]
    evidence: str


@dataclass(frozen=True)
class TableInfo:
    """A table with a page of its columns."""

    table: TableName
    source: Annotated[str, Doc("What run_query takes as its source.")]
    sql_name: Annotated[str, Doc("Its name in statements for that source.")]
    dialect: Annotated[str, Doc("The SQL dialect of the source.")]
    kind: str
    comment: str
    row_count: Annotated[int | None, Doc("Rows when it was indexed; null: not counted.")]
    rows_read: Annotated[int, Doc("Rows that the figures of the columns were made from.")]
    primary_key: list[str]
    joins: Annotated[list[JoinInfo], Doc("Declared ones first, then the most confident.")]
    join_count: int
    columns: list[ColumnInfo]
    column_count: int
    offset: Offset
    next_offset: NextOffset
    shown: Shown
    sample_rows: Annotated[list[dict[str, Any]], Doc("A few rows, columns of this page.")]
    notes: Annotated[list[str], Doc("How a data file was read, and what was odd in it.")]
    redacted: Annotated[int, Doc("Columns that nobody may read and that are not shown.")]


@dataclass(frozen=True)
class FoundValue:
    """A place where a value is stored."""

    table: TableName
    column: str
    value: Annotated[str, Doc("Exactly as stored.")]
    how: Annotated[
        str, Doc('"exact", "inflected", "typo", or "word": it shares a word with the text.')
    ]


@dataclass(frozen=True)
class FoundValues:
    """Where a text is stored as a value, best first."""

    text: str
    values: list[FoundValue]
    offset: Offset
    next_offset: NextOffset
    shown: Shown


@dataclass(frozen=True)
class ResultColumnInfo:
    """A column of a result; names may repeat."""

    name: str
    type: Annotated[str, Doc("As Arrow names it.")]


@dataclass(frozen=True)
class CutCell:
    """A cell of which only the beginning is shown."""

    row: Annotated[int, Doc("Position within rows, from 0.")]
    column: Annotated[int, Doc("Position within columns, from 0.")]
    characters: Annotated[int, Doc("Length of the whole cell as text.")]


@dataclass(frozen=True)
class Rows:
    """The result of a statement: a page of its rows."""

    source: Annotated[str | None, Doc("Null: it read no table.")]
    dialect: str
    sql: Annotated[str, Doc("The statement that ran; run_query takes it for other pages.")]
    tables: Annotated[list[str], Doc("The tables that it read.")]
    columns: list[ResultColumnInfo]
    rows: Annotated[
        list[list[Any]],
        Doc("Decimals, large integers, dates are strings; binary is base64."),
    ]
    row_count: Annotated[int, Doc("Rows of the whole result.")]
    offset: Offset
    next_offset: NextOffset
    shown: Shown
    paging: Annotated[str, Doc("What holds for the other pages; empty where there are none.")]
    cut: Annotated[list[CutCell], Doc("Cells that were too long to show whole.")]
    seconds: float
    warnings: list[Notice] = field(default_factory=list)


@dataclass(frozen=True)
class OtherReading:
    """Another meaning of the question that as many programs took for right."""

    text: Annotated[str, Doc("Its answer in a sentence.")]
    difference: Annotated[str, Doc("What its program does otherwise.")]
    sql: str
    votes: int


@dataclass(frozen=True)
class Answered:
    """The answer to a question, computed by the engine."""

    question: str
    status: Annotated[str, Doc('"answered", "unanswerable" or "failed".')]
    text: Annotated[str, Doc("The answer in a sentence, made from its cells.")]
    result: Annotated[Rows | None, Doc("Null where nothing was computed.")]
    sql: Annotated[str | None, Doc("The program; also one that failed.")]
    agreement: Annotated[float | None, Doc("Share of the programs with this result, 0..1.")]
    confidence: Annotated[float | None, Doc("Estimated probability that it is right, 0..1.")]
    votes_requested: int
    votes_valid: int
    readings: list[OtherReading]
    evidence: Annotated[list[str], Doc("What the program does, in words.")]
    model: str | None
    seconds: float
    error: Annotated[Notice | None, Doc("Why there is no answer.")] = None
    warnings: list[Notice] = field(default_factory=list)


Shape = FoundTables | TableInfo | FoundValues | Rows | Answered


def to_json(shape: Any) -> dict[str, Any]:
    """A shape as the JSON that its schema describes; half characters are escaped."""
    plain: dict[str, Any] = sound(asdict(shape))
    return plain


def sound(value: Any) -> Any:
    """JSON that can be sent as UTF-8: half a surrogate pair of a damaged cell cannot."""
    if isinstance(value, str):
        return value if _is_sound(value) else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, dict):
        return {sound(key): sound(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [sound(one) for one in value]
    return value


def _is_sound(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= character <= "\udfff" for character in text)


@cache
def model_of(shape: type) -> Any:
    """The pydantic model of a shape, docstrings and :class:`Doc` as its descriptions."""
    from pydantic import Field, create_model

    defined: dict[str, Any] = {}
    hints = get_type_hints(shape, include_extras=True)
    for one in fields(shape):
        hint = hints[one.name]
        words = [part for part in getattr(hint, "__metadata__", ()) if isinstance(part, Doc)]
        # No defaults: what is given back always has every field.
        defined[one.name] = (_with_models(hint), Field(description=words[0] if words else None))
    return create_model(shape.__name__, __doc__=shape.__doc__, **defined)


def _with_models(hint: Any) -> Any:
    """A type whose shapes are models."""
    if getattr(hint, "__metadata__", None):
        return _with_models(get_args(hint)[0])
    if isinstance(hint, type) and is_dataclass(hint):
        return model_of(hint)
    arguments = get_args(hint)
    if not arguments:
        return hint
    if isinstance(hint, GenericAlias):  # list[…], dict[…]
        origin: Any = hint.__origin__
        return GenericAlias(origin, tuple(map(_with_models, arguments)))
    union = _with_models(arguments[0])
    for other in arguments[1:]:
        union = union | _with_models(other)
    return union
