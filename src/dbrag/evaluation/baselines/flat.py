"""A table as one text or as cells: what the baselines read of it.

The source's name is in neither: users do not know which database to name, and on a pooled
corpus it would give the answer away.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dbrag.types import Table

ROWS = 2
"""Sample rows in the text, as in the paper."""


def flat_text(table: Table, rows: int = ROWS) -> str:
    """The paper's s_i: ``table name: n col: a | b row 1: v | v row 2: v | v``, in lower case.

    Rows are the index's samples: of the first 20 those with the fewest NULLs. An encoder
    cuts the text at its own limit.

    Source: section 3.3 of the DBRAG paper; the form is that of the authors' code.
    """
    parts = [f"table name: {table.ref.name}", f"col: {_joined(c.name for c in table.columns)}"]
    for number, row in enumerate(table.sample_rows[:rows], start=1):
        parts.append(f"row {number}: {_joined(row)}")
    return " ".join(parts).lower()


def flat_texts(tables: Iterable[Table]) -> list[str]:
    """One text for each table."""
    return [flat_text(table) for table in tables]


def _joined(values: Iterable[str | None]) -> str:
    return " | ".join(" ".join((value or "").split()) for value in values)


def cells(table: Table) -> tuple[list[str], list[list[str]]]:
    """Header and sample rows, ``[n_rows][n_columns]``, NULL as an empty cell."""
    header = [column.name for column in table.columns]
    return header, [_padded(row, len(header)) for row in table.sample_rows]


def _padded(row: Sequence[str | None], width: int) -> list[str]:
    known = [value or "" for value in row[:width]]
    return known + [""] * (width - len(known))
