"""The few statements dbrag itself sends, written by sqlglot for every dialect."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlglot import exp

    from dbrag.types import Column, Table

HIDDEN = "hidden column of a virtual table"
"""Comment of a column that can be searched or sorted by, but holds no data."""

LONG_BLOB_BYTES = 64
"""Longer binary cells are read as the text ``<blob … bytes>``; keys (UUIDs) stay exact."""


def select_rows(table: Table, limit: int, dialect: str = "sqlite") -> str:
    """A SELECT of at most ``limit`` rows, columns in the order of ``table``.

    Long binary cells come as ``<blob 1234 bytes>``: SQLite then reads their length
    from the row's header and leaves the bytes on disk.
    """
    from sqlglot import exp

    columns = [_cell(column, dialect) for column in table.columns]
    query = exp.select(*(columns or [exp.null()])).from_(_name(table)).limit(limit)
    return query.sql(dialect)


def count_rows(table: Table, dialect: str = "sqlite") -> str:
    """A SELECT of the number of rows."""
    from sqlglot import exp

    return exp.select(exp.Count(this=exp.Star())).from_(_name(table)).sql(dialect)


def _name(table: Table) -> exp.Table:
    from sqlglot import exp

    return exp.table_(table.ref.name, db=table.ref.schema, quoted=True)


def _cell(column: Column, dialect: str) -> exp.Expression:
    from sqlglot import exp

    if column.comment == HIDDEN:
        return exp.null()
    cell = exp.column(column.name, quoted=True)
    if dialect != "sqlite" or not _may_hold_blobs(column.type):
        return cell
    length = exp.func("length", cell.copy())
    is_long = exp.and_(
        exp.func("typeof", cell.copy()).eq("blob"), exp.GT(this=length, expression=_number())
    )
    text = exp.DPipe(
        this=exp.DPipe(this=exp.Literal.string("<blob "), expression=length.copy()),
        expression=exp.Literal.string(" bytes>"),
    )
    return exp.case().when(is_long, text).else_(cell)


def _number() -> exp.Expression:
    from sqlglot import exp

    return exp.Literal.number(LONG_BLOB_BYTES)


def _may_hold_blobs(declared: str) -> bool:
    """Any SQLite column may, but big ones are in practice where the type says so."""
    kind = declared.upper()
    words = ("BLOB", "BINARY", "BYTE", "IMAGE", "RAW", "PHOTO", "PICTURE")
    return not kind.strip() or any(word in kind for word in words)
