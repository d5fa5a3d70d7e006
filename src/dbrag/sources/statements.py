"""The few statements dbrag itself sends to read tables, in the dialect of each engine.

Huge cells are cut inside the engine, so that they never cross the wire: texts after
10,001 characters (the reader then shows that they were longer), binary cells of more
than 64 bytes stand as ``<blob 1234 bytes>``. What drivers return in their own ways
(JSON, arrays, geometry, intervals) is read as the engine's text of it.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp

    from dbrag.sources.base import Session, Source
    from dbrag.types import Column, Table

HIDDEN = "hidden column of a virtual table"
"""Comment of a column that can be searched or sorted by, but holds no data."""

LONG_BLOB_BYTES = 64
"""Longer binary cells are read as the text ``<blob … bytes>``; keys (UUIDs) stay exact."""

LONG_TEXT_CHARACTERS = 10_000
"""Longest text of a cell that is kept; one more is read where there is more."""

MUCH_LARGER = 2
"""A table of more than so many times the rows to read is sampled, not read from its start."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_FETCH = 1000

Form = Literal["plain", "short text", "text", "binary", "other"]

_RANGES = 20
"""Places of a key's range from which the rows of a sample are read."""
# Rows asked of a sample beyond the limit: the engine's number of rows is a guess.
_SURPLUS = 1.2
_SURPLUS_ROWS = 1000

_PLAIN = _words(
    "smallint integer int bigint tinyint mediumint hugeint uhugeint utinyint usmallint uinteger"
    " ubigint int2 int4 int8 int16 int32 int64 uint8 uint16 uint32 uint64 serial bigserial"
    " smallserial oid real float float4 float8 float16 float32 float64 half halffloat double"
    " numeric decimal dec number decimal32 decimal64 decimal128 decimal256 bool boolean date"
    " date32 date64 datetime timestamp timestamptz timestamp_s timestamp_ms timestamp_ns time"
    " timetz time32 time64 time_ns year uuid"
)
_TEXT = _words(
    "text varchar character char bpchar nvarchar nchar string large_string string_view utf8"
    " large_utf8 clob nclob ntext citext tinytext mediumtext longtext varchar2 nvarchar2"
)
_BINARY = _words(
    "blob bytea binary varbinary bytes tinyblob mediumblob longblob image raw large_binary"
    " fixed_size_binary binary_view"
)
_GEOMETRY = _words(
    "geometry point linestring polygon multipoint multilinestring multipolygon geomcollection"
    " geometrycollection"
)
_NESTED = ("list", "struct", "map", "union", "array", "row", "dictionary", "variant", "json")
_TIMED_BY_UNIT = ("timestamp[", "time32[", "time64[", "date32[", "date64[")
_SIZED = "fixed_size_binary["


def select_rows(table: Table, limit: int, dialect: str = "sqlite", *, as_text: bool = False) -> str:
    """A SELECT of at most ``limit`` rows, columns in the order of ``table``.

    Args:
        as_text: read every cell as the engine's own text, for values that the driver
            cannot load (dates before Christ, infinite ones).
    """
    from sqlglot import exp

    if dialect not in _CELLS:
        cells = [_portable_cell(column, dialect, as_text) for column in table.columns]
        return exp.select(*(cells or [exp.null()])).from_(_name(table)).limit(limit).sql(dialect)
    return f"{_select(table, dialect, as_text)} LIMIT {limit}"


def all_rows(session: Session) -> Iterator[tuple[Any, ...]]:
    """The rows of the statement that the session has started, fetched as they are needed.

    Raises:
        ExecutionError, SourceError, LimitReached: as ``Session.fetch``.
    """
    while batch := session.fetch(_FETCH):
        yield from batch


@contextmanager
def scanned(source: Source, table: Table, limit: int) -> Iterator[Iterator[tuple[Any, ...]]]:
    """``Source.scan`` for any source whose sessions run SQL.

    Raises:
        ExecutionError, SourceError: it cannot be read.
    """
    with source.session() as session:
        session.execute(select_rows(table, limit, source.dialect))
        yield all_rows(session)


def sample_rows(
    table: Table, limit: int, dialect: str = "sqlite", *, as_text: bool = False
) -> str | None:
    """A SELECT of at most ``limit`` rows from all over a table that holds many more.

    The same data give the same sample. None where the table is not much larger, as far
    as the engine knows, or where the engine has no cheap sample: then its first rows
    have to do.
    """
    if table.estimate is None or table.estimate <= MUCH_LARGER * limit:
        return None
    if dialect not in ("postgres", "duckdb") or table.kind not in ("table", "materialized view"):
        return None
    share = min(100.0, 100 * (limit * _SURPLUS + _SURPLUS_ROWS) / table.estimate)
    percent = f"{share:.8f}" if dialect == "postgres" else f"{share:.8f}%"
    how = f"TABLESAMPLE SYSTEM ({percent}) REPEATABLE (0)"
    return f"{_select(table, dialect, as_text)} {how} LIMIT {limit}"


def key_range(table: Table, limit: int, dialect: str) -> str | None:
    """A SELECT of the least and greatest key, where ``spread_rows`` can be used."""
    if dialect != "mysql" or table.estimate is None or table.estimate <= MUCH_LARGER * limit:
        return None
    key = _whole_number_key(table)
    if key is None or table.kind != "table":
        return None
    name = quoted(key, dialect)
    return f"SELECT MIN({name}), MAX({name}) FROM {_from(table, dialect)}"


def spread_rows(
    table: Table, limit: int, dialect: str, low: int, high: int, *, as_text: bool = False
) -> str:
    """A SELECT of at most ``limit`` rows from 20 places of the table's whole-number key.

    Args:
        low: the least key; ``high``: the greatest one.
    """
    key = quoted(_whole_number_key(table) or "", dialect)
    step = max(1, -(-(high - low + 1) // _RANGES))
    starts = [low + i * step for i in range(_RANGES) if low + i * step <= high]
    each, more = divmod(limit, len(starts))
    select = _select(table, dialect, as_text)
    parts = [
        f"({select} WHERE {key} >= {start} AND {key} < {start + step}"
        f" ORDER BY {key} LIMIT {each + (i < more)})"
        for i, start in enumerate(starts)
    ]
    return " UNION ALL ".join(parts)


def count_rows(table: Table, dialect: str = "sqlite") -> str:
    """A SELECT of the number of rows."""
    from sqlglot import exp

    return exp.select(exp.Count(this=exp.Star())).from_(_name(table)).sql(dialect)


def quoted(name: str, dialect: str = "") -> str:
    """An identifier between the dialect's quotes, which mostly are SQL's own."""
    mark = "`" if dialect == "mysql" else '"'
    return mark + name.replace(mark, 2 * mark) + mark


def form_of(declared: str) -> Form:
    """How cells of a declared type are to be read."""
    kind = " ".join(declared.lower().split())
    word = re.split(r"[ (\[<]", kind, maxsplit=1)[0]
    if kind.startswith(_TIMED_BY_UNIT):
        return "plain"
    if word in _NESTED or (kind.endswith("]") and not kind.startswith(_SIZED)):
        return "other"
    if word == "enum" or word == "set":
        return "short text"
    if word in _BINARY:
        return "binary"
    if word in _TEXT:
        length = re.search(r"\((\d+)", kind)
        short = length is not None and int(length[1]) <= LONG_TEXT_CHARACTERS
        return "short text" if short else "text"
    return "plain" if word in _PLAIN else "other"


def _select(table: Table, dialect: str, as_text: bool) -> str:
    cell = _CELLS[dialect]
    cells = [
        "NULL" if column.comment == HIDDEN else cell(quoted(column.name, dialect), column, as_text)
        for column in table.columns
    ]
    return f"SELECT {', '.join(cells or ['NULL'])} FROM {_from(table, dialect)}"


def _from(table: Table, dialect: str) -> str:
    parts = [part for part in (table.ref.schema, table.ref.name) if part is not None]
    return ".".join(quoted(part, dialect) for part in parts)


def _whole_number_key(table: Table) -> str | None:
    """The only column of the primary key, if it holds whole numbers."""
    column = table.column(table.primary_key[0]) if len(table.primary_key) == 1 else None
    is_whole = column is not None and re.match(r"(big|medium|small|tiny)?int", column.type.lower())
    return column.name if column is not None and is_whole else None


def _sqlite_cell(name: str, column: Column, as_text: bool) -> str:
    """SQLite reads the length of a binary cell from the row's header, not the bytes."""
    if not _may_hold_blobs(column.type):
        return name
    return (
        f"CASE WHEN TYPEOF({name}) = 'blob' AND LENGTH({name}) > {LONG_BLOB_BYTES} "
        f"THEN '<blob ' || LENGTH({name}) || ' bytes>' ELSE {name} END"
    )


def _postgres_cell(name: str, column: Column, as_text: bool) -> str:
    form = form_of(column.type)
    if form == "binary":
        size = f"octet_length({name})"
        text = f"convert_to('<blob ' || {size} || ' bytes>', 'UTF8')"
        return f"CASE WHEN {size} > {LONG_BLOB_BYTES} THEN {text} ELSE {name} END"
    if form in ("plain", "short text") and not as_text:
        return name
    text = name if form == "text" else f"CAST({name} AS text)"
    return f"left({text}, {LONG_TEXT_CHARACTERS + 1})"


def _mysql_cell(name: str, column: Column, as_text: bool) -> str:
    form = form_of(column.type)
    word = column.type.lower().split("(")[0].strip()
    if word == "bit":
        return f"CAST({name} AS UNSIGNED)"
    if word in _GEOMETRY:
        return f"LEFT(ST_AsText({name}), {LONG_TEXT_CHARACTERS + 1})"
    if form == "binary":
        size = f"LENGTH({name})"
        text = f"CONCAT('<blob ', {size}, ' bytes>')"
        return f"CASE WHEN {size} > {LONG_BLOB_BYTES} THEN {text} ELSE {name} END"
    if form in ("plain", "short text") and not as_text:
        return name
    text = name if form == "text" else f"CAST({name} AS CHAR)"
    return f"LEFT({text}, {LONG_TEXT_CHARACTERS + 1})"


def _duckdb_cell(name: str, column: Column, as_text: bool) -> str:
    form = form_of(column.type)
    if form == "binary":
        size = f"octet_length({name})"
        text = f"encode('<blob ' || {size} || ' bytes>')"
        return f"CASE WHEN {size} > {LONG_BLOB_BYTES} THEN {text} ELSE {name} END"
    if form in ("plain", "short text") and not as_text:
        return name
    text = name if form == "text" else f"CAST({name} AS VARCHAR)"
    return f"left({text}, {LONG_TEXT_CHARACTERS + 1})"


_CELLS = {
    "sqlite": _sqlite_cell,
    "postgres": _postgres_cell,
    "mysql": _mysql_cell,
    "duckdb": _duckdb_cell,
}


def _portable_cell(column: Column, dialect: str, as_text: bool) -> exp.Expression:
    """For engines without a function of their own here, written by sqlglot."""
    from sqlglot import exp

    if column.comment == HIDDEN:
        return exp.null()
    cell = exp.column(column.name, quoted=True)
    form = form_of(column.type)
    if form == "binary" or (form != "text" and not as_text):
        return cell
    text: exp.Expression = exp.cast(cell, "text", dialect=dialect) if as_text else cell
    end = exp.Literal.number(LONG_TEXT_CHARACTERS + 1)
    return exp.Substring(this=text, start=exp.Literal.number(1), length=end)


def _name(table: Table) -> exp.Table:
    from sqlglot import exp

    return exp.table_(table.ref.name, db=table.ref.schema, quoted=True)


def _may_hold_blobs(declared: str) -> bool:
    """Any SQLite column may, but big ones are in practice where the type says so."""
    kind = declared.upper()
    words = ("BLOB", "BINARY", "BYTE", "IMAGE", "RAW", "PHOTO", "PICTURE")
    return not kind.strip() or any(word in kind for word in words)
