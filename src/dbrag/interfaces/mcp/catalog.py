"""The catalog for agents: tables, one table, and where a value is stored."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from dbrag import scope
from dbrag.errors import UsageError
from dbrag.interfaces.mcp.pages import json_size, page_of, take
from dbrag.interfaces.mcp.shapes import (
    ColumnInfo,
    FoundTable,
    FoundTables,
    FoundValue,
    FoundValues,
    JoinInfo,
    MatchedValue,
    Notice,
    TableInfo,
)
from dbrag.retrieval.typos import mentions_in
from dbrag.values import json_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dbrag.catalog.joins import JoinEdge
    from dbrag.database import Database
    from dbrag.index.store import Index
    from dbrag.types import AnswerWarning, Candidate, ColumnProfile, SearchResult, Table, TableRef

TABLES_URI = "dbrag://tables"
"""The resource that lists the tables; that of a table is its name behind it."""
LISTED = 500
"""Tables on one page of the list."""
_NAMED_COLUMNS = 40
_FREQUENT = 5
_JOINS = 30
_SAMPLE_ROWS = 3
_LONGEST = 300
MAX_VALUES = 500
"""Values that are looked up for one text."""


def table_uri(ref: TableRef) -> str:
    """The resource of a table."""
    return f"{TABLES_URI}/{quote(str(ref), safe='')}"


def open_refs(database: Database, index: Index) -> list[TableRef]:
    """The tables of the open sources; an index may hold others."""
    names = {source.name for source in database.sources}
    return [ref for ref in index.catalog.refs if ref.source in names]


def resolve(database: Database, index: Index, name: str) -> TableRef:
    """A table of an open source by its text.

    Raises:
        UsageError: no such table, or several.
    """
    ref = scope.resolve(index.catalog, name)
    if ref.source not in {source.name for source in database.sources}:
        raise UsageError(f"the source of {name!r} is not open", f"add it: -s {ref.source}=…")
    return ref


def table_list(refs: Sequence[TableRef], offset: int) -> dict[str, Any]:
    """A page of the list of tables, with the resource of each.

    Raises:
        UsageError: the page lies behind the end.
    """
    window = refs[offset : offset + LISTED]
    page = page_of((0 for _ in window), offset, len(refs), "tables")
    more = page.next_offset
    return {
        "tables": [{"table": str(ref), "uri": table_uri(ref)} for ref in window],
        "total": page.total,
        "shown": page.shown,
        "next": None if more is None else f"{TABLES_URI}?offset={more}",
    }


def found_tables(index: Index, result: SearchResult, offset: int, limit: int) -> FoundTables:
    """A page of the ranked tables.

    Raises:
        UsageError: the page lies behind the end.
    """
    window = [_found_table(index, one) for one in result.candidates[offset : offset + limit]]
    sizes = (json_size(asdict(one)) for one in window)
    page = page_of(sizes, offset, len(result.candidates), "tables")
    return FoundTables(
        question=result.question,
        tables=window[: page.end - offset],
        total=page.total,
        offset=offset,
        next_offset=page.next_offset,
        shown=page.shown,
        warnings=notices(result.warnings),
    )


def _found_table(index: Index, candidate: Candidate) -> FoundTable:
    table = index.catalog.by_ref[candidate.table]
    return FoundTable(
        table=str(table.ref),
        score=round(candidate.score, 4),
        reason=candidate.reason,
        row_count=table.row_count,
        columns=[_short(column.name) for column in table.columns[:_NAMED_COLUMNS]],
        column_count=len(table.columns),
        values=[MatchedValue(m.column, m.value, m.said, m.how) for m in candidate.matches],
        rows=[{name: _cell(value) for name, value in row.items()} for row in candidate.rows],
    )


def table_info(index: Index, ref: TableRef, dialect: str, offset: int, limit: int) -> TableInfo:
    """A table with a page of its columns.

    Raises:
        UsageError: the page lies behind the last column.
    """
    table = index.catalog.by_ref[ref]
    profiles = {profile.column: profile for profile in table.profile}
    columns = [_column_info(table, i, profiles) for i in range(len(table.columns))]
    shown, page = take(columns, offset, limit, "columns", lambda one: json_size(asdict(one)))
    joins = list(_joins(index, ref))
    return TableInfo(
        table=str(ref),
        source=ref.source,
        sql_name=_sql_name(ref, dialect),
        dialect=dialect,
        kind=table.kind,
        comment=_short(table.comment),
        row_count=table.row_count,
        rows_read=table.rows_read,
        primary_key=list(table.primary_key),
        joins=[_join_info(edge, ref) for edge in joins[:_JOINS]],
        join_count=len(joins),
        columns=shown,
        column_count=len(columns),
        offset=offset,
        next_offset=page.next_offset,
        shown=page.shown,
        sample_rows=_sample(table, offset, page.end),
        notes=list(table.notes),
        redacted=len(table.redacted),
    )


def _column_info(table: Table, place: int, profiles: Mapping[str, ColumnProfile]) -> ColumnInfo:
    column = table.columns[place]
    comment, profile = _short(column.comment), profiles.get(column.name)
    if profile is None:
        return ColumnInfo(column.name, column.type, column.nullable, comment)
    return ColumnInfo(
        column.name,
        column.type,
        column.nullable,
        comment,
        nulls=profile.nulls,
        distinct=profile.distinct,
        minimum=profile.minimum,
        maximum=profile.maximum,
        frequent=[value for value, _ in profile.frequent[:_FREQUENT]],
    )


def _sample(table: Table, start: int, end: int) -> list[dict[str, Any]]:
    names = [column.name for column in table.columns]
    return [
        {name: _cell(value) for name, value in list(zip(names, row, strict=False))[start:end]}
        for row in table.sample_rows[:_SAMPLE_ROWS]
    ]


def _joins(index: Index, ref: TableRef) -> Iterator[JoinEdge]:
    """The joins of a table, each once: declared ones first, then the most confident."""
    others = [ref, *index.joins.neighbours(ref)]
    edges = {edge for other in others for edge in index.joins.between(ref, other)}
    yield from sorted(edges, key=lambda e: (not e.declared, -e.confidence, str(e)))


def _join_info(edge: JoinEdge, ref: TableRef) -> JoinInfo:
    other = edge.right if edge.left == ref else edge.left
    return JoinInfo(str(edge), str(other), edge.declared, round(edge.confidence, 4), edge.evidence)


def _sql_name(ref: TableRef, dialect: str) -> str:
    from sqlglot import exp

    return exp.table_(ref.name, db=ref.schema, quoted=True).sql(dialect)


def found_values(
    database: Database,
    index: Index,
    text: str,
    tables: Sequence[str],
    offset: int,
    limit: int,
) -> FoundValues:
    """A page of the places where a text is stored as a value.

    First what the text holds whole, in other forms or with a typo too, then values that share a
    word with it.

    Raises:
        UsageError: an unknown table, or the page lies behind the end.
    """
    text = scope.checked_question(text)
    chosen = {resolve(database, index, name) for name in tables}
    allowed = chosen or set(open_refs(database, index))
    # Others in the index would take the places of these.
    only = allowed if chosen or len(allowed) < len(index.catalog.refs) else None
    found: dict[tuple[TableRef, str, str], str] = {}
    for mention in mentions_in(index, database.embedder(), text):
        found.setdefault((mention.table, mention.column, mention.value), mention.how)
    for hit in index.values.search(text, MAX_VALUES, only):
        found.setdefault((hit.table, hit.column, hit.value), "word")
    values = [
        FoundValue(str(ref), column, value, how)
        for (ref, column, value), how in found.items()
        if ref in allowed
    ][:MAX_VALUES]
    shown, page = take(values, offset, limit, "values", lambda one: json_size(asdict(one)))
    best = " best" if len(values) == MAX_VALUES else ""
    return FoundValues(text, shown, offset, page.next_offset, page.shown + best)


def notices(warnings: Iterable[AnswerWarning]) -> list[Notice]:
    """The warnings of a result."""
    return [Notice(warning.code, warning.message) for warning in warnings]


def _cell(value: Any) -> Any:
    """A cell of an example."""
    plain = json_value(value)
    return _short(plain) if isinstance(plain, str) else plain


def _short(text: str) -> str:
    """A text of which more than the beginning would say little; a cut one says how long it is."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… ({len(text):,} characters)"
