"""Row context: the rows of a table that go with its name and columns (s_i⁺ of the paper).

"relevant": the rows that answer the question best (the row index), filled up with sample
rows where fewer share a word with it; "random": the table's sample rows; "none".
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbrag.index.rows import row_of, row_texts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.index.row_search import RowMode
    from dbrag.index.store import Index
    from dbrag.types import Table, TableRef

    Row = Mapping[str, Any]

KINDS = ("relevant", "random", "none")
_HITS = 500
_TOLD_APART = 40
"""Characters of a cell: no prompt shows more."""
_ROUNDS = 3
"""One table's many matching rows may crowd out another's few: those are asked for again."""


def row_context(
    index: Index,
    question: str,
    tables: Sequence[Table],
    *,
    kind: str,
    limit: int,
    mode: RowMode = "text",
    vector: NDArray[np.float32] | None = None,
) -> dict[TableRef, tuple[Row, ...]]:
    """At most ``limit`` rows of each table as column → value, best first; the same every time.

    Args:
        kind: one of ``KINDS``.
        mode: how relevant rows are found, the setting ``row_search``.
        vector: of the question, ``[dim]``, length 1; needed unless ``mode`` is "text".

    Raises:
        IndexUnusable: the index is damaged, or lacks the row vectors asked for.
    """
    if kind == "none" or limit < 1:
        return {table.ref: () for table in tables}
    found: dict[TableRef, list[Row]] = {table.ref: [] for table in tables}
    if kind == "relevant":
        look = index.rows.look(question, _HITS, mode=mode, vector=vector)
        for _ in range(_ROUNDS):
            missing = [ref for ref, rows in found.items() if not rows]
            more = look.rows_of(missing, limit) if missing else {}
            if not more:
                break
            for ref, new in more.items():
                found[ref].extend(new)
    for table in tables:
        rows = found[table.ref]
        known = [_as_indexed(row) for row in rows]
        for row in _samples(table):
            if len(rows) >= limit:
                break
            if (indexed := _as_indexed(row)) not in known:
                rows.append(row)
                known.append(indexed)
    return {ref: tuple(rows) for ref, rows in found.items()}


def _samples(table: Table) -> list[Row]:
    names = [column.name for column in table.columns]
    return [dict(zip(names, row, strict=False)) for row in table.sample_rows]


def _as_indexed(row: Row) -> list[tuple[str, str]]:
    """What tells a row from others: a sample with line breaks, or cut, is the same row."""
    indexed = row_of(list(row), row_texts([tuple(row.values())])[0])
    return sorted((name, str(value)[:_TOLD_APART]) for name, value in indexed.items())
