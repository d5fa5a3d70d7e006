"""Rows as text: which rows of which tables share words with a question.

Cells are cut at 300 characters and rows at 2,000; binary cells are left out. This
limits what is found by search, never what a program computes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dbrag.index.fulltext import TextTable
from dbrag.values import json_value, text_value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from dbrag.types import TableRef

ROWS = "rows"
MAX_CELL = 300
MAX_ROW = 2_000

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)
_ABSENT: dict[str, str] = {}
"""Stands for a binary cell: no words, and told apart from NULL."""


@dataclass(frozen=True, slots=True)
class RowHit:
    """A row that shares words with the question; cells as JSON values, text cut."""

    table: TableRef
    score: float
    row: Mapping[str, Any]


class RowIndex:
    """All indexed rows of all tables.

    Args:
        tables: for every ``layout.table_id`` the table and its column names.
    """

    def __init__(
        self, texts: TextTable, tables: Mapping[int, tuple[TableRef, Sequence[str]]]
    ) -> None:
        self._texts = texts
        self._tables = tables

    def search(
        self, question: str, limit: int, tables: Collection[TableRef] | None = None
    ) -> list[RowHit]:
        """The best matching rows, best first (BM25 over stemmed words).

        Raises:
            IndexUnusable: the index is damaged.
        """
        hits = []
        for hit in self._texts.search(question, limit, tables):
            if hit.table in self._tables:
                ref, columns = self._tables[hit.table]
                hits.append(RowHit(ref, hit.score, _row(columns, hit.text)))
        return hits

    def best(self, question: str, limit: int) -> dict[TableRef, float]:
        """The score of the best row of each table among the ``limit`` best rows of all."""
        found = self._texts.best(question, limit)
        return {self._tables[key][0]: s for key, s in found.items() if key in self._tables}


def row_texts(rows: Iterable[Sequence[Any]]) -> list[str]:
    """One text per row: a JSON array of its cells, capped; later cells drop out first."""
    return [_row_text(row) for row in rows]


def _row_text(row: Sequence[Any]) -> str:
    cells: list[Any] = []
    size = 0
    for value in row:
        cell = _cell(value)
        size += len(cell) if isinstance(cell, str) else 8
        if size > MAX_ROW:
            break
        cells.append(cell)
    return _ENCODER.encode(cells)


def _cell(value: Any) -> Any:
    """A cell for the row text. Line breaks become spaces: escaped they would hide words."""
    if isinstance(value, str):
        if value.startswith("<blob ") and value.endswith(" bytes>"):
            return _ABSENT
        return " ".join(value[: 2 * MAX_CELL].split())[:MAX_CELL]
    if value is None or type(value) is bool:
        return value
    if isinstance(value, (int, float)):
        return json_value(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _ABSENT
    return " ".join(text_value(value)[: 2 * MAX_CELL].split())[:MAX_CELL]


def _row(columns: Sequence[str], text: str) -> dict[str, Any]:
    cells = json.loads(text)
    return {
        name: cell for name, cell in zip(columns, cells, strict=False) if not isinstance(cell, dict)
    }
