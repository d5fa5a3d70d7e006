"""Row context: the rows of a table that go with its name and columns (s_i⁺ of the paper).

"relevant": the rows that answer the question best (the row index), filled up with sample
rows where fewer share a word with it; "random": the table's sample rows; "none".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbrag.index.store import Index
    from dbrag.types import Table, TableRef

    Row = Mapping[str, Any]

KINDS = ("relevant", "random", "none")
_HITS_PER_TABLE = 20
"""Rows asked for are this many times the tables, at least ``_FEWEST_HITS``."""
_FEWEST_HITS = 200
_ROUNDS = 2
"""One table's many matching rows may crowd out another's few: those are asked for again."""


def row_context(
    index: Index, question: str, tables: Sequence[Table], *, kind: str, limit: int
) -> dict[TableRef, tuple[Row, ...]]:
    """At most ``limit`` rows of each table as column → value, best first; the same every time.

    Raises:
        IndexUnusable: the index is damaged.
    """
    if kind == "none" or limit < 1:
        return {table.ref: () for table in tables}
    found: dict[TableRef, list[Row]] = {table.ref: [] for table in tables}
    if kind == "relevant":
        _search(index, question, found, limit)
    for table in tables:
        rows = found[table.ref]
        for row in _samples(table):
            if len(rows) >= limit:
                break
            if _text(row) not in [_text(other) for other in rows]:
                rows.append(row)
    return {ref: tuple(rows) for ref, rows in found.items()}


def _search(index: Index, question: str, found: dict[TableRef, list[Row]], limit: int) -> None:
    missing = list(found)
    for _ in range(_ROUNDS):
        hits = max(_FEWEST_HITS, _HITS_PER_TABLE * len(missing))
        for hit in index.rows.search(question, hits, missing):
            rows = found[hit.table]
            if len(rows) < limit and hit.row not in rows:
                rows.append(hit.row)
        left = [ref for ref in missing if not found[ref]]
        if not left or len(left) == len(missing):
            break
        missing = left


def _samples(table: Table) -> list[Row]:
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=False)) for row in table.sample_rows]


def _text(row: Row) -> list[tuple[str, str]]:
    return sorted((name, str(value)) for name, value in row.items())
