"""Rows as text: which rows of which tables share words with a question.

Cells are cut at 300 characters and rows at 2,000; binary cells are left out. This
limits what is found by search, never what a program computes.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from dbrag.values import json_value, text_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ROWS = "rows"
MAX_CELL = 300
MAX_ROW = 2_000

_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False)
_ABSENT: dict[str, str] = {}
"""Stands for a binary cell: no words, and told apart from NULL."""


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


def row_json(columns: Sequence[str], text: str) -> str:
    """A row text as the paper's ``{"column": value, …}``, for the encoder."""
    return json.dumps(row_of(columns, text), ensure_ascii=False)


def row_of(columns: Sequence[str], text: str) -> dict[str, Any]:
    """A row text as a mapping of column names to cells, binary ones left out."""
    cells = json.loads(text)
    return {
        name: cell for name, cell in zip(columns, cells, strict=False) if not isinstance(cell, dict)
    }
