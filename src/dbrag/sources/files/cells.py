"""Cells that have a type already (JSON, spreadsheets), gathered as texts with their kinds."""

from __future__ import annotations

from dbrag.sources.files.guess import Evidence
from dbrag.sources.files.raw import RawTable

NUMBER, TEXT, BOOL, DATE, OTHER = "n", "s", "b", "d", "j"
Cell = tuple[str, str]
"""(kind, text)"""
_BATCH_CELLS = 400_000
_BATCH_CHARACTERS = 32 << 20


class CellTable:
    """Rows of typed cells on their way into a raw table; columns may come later.

    A column becomes numbers only if all its cells are numbers, and so on: of text cells
    only dates are recognised. Cells of several kinds become text exactly as written.
    """

    def __init__(self, raw: RawTable) -> None:
        self.raw = raw
        self._words = raw.new_evidence().words
        self._longest = max(map(len, self._words)) + 8  # blanks around
        self._columns: dict[str, list[str | None]] = {name: [] for name in raw.columns}
        self._kinds: dict[str, set[str]] = {name: set() for name in raw.columns}
        self._rows = 0
        self._size = 0

    def add(self, row: dict[str, Cell | None]) -> None:
        """Append one row; columns that it does not name are NULL."""
        rows = self._rows
        for name, cell in row.items():
            values = self._columns.get(name)
            if values is None:
                values = self._columns[name] = []
                self._kinds.setdefault(name, set())
            if cell is None:
                continue
            kind, text = cell
            if len(values) < rows:
                values.extend([None] * (rows - len(values)))
            values.append(text)
            self._size += len(text)
            # Texts like "N/A" leave open what the column is.
            if kind != TEXT or len(text) > self._longest or text.strip().lower() not in self._words:
                self._kinds[name].add(kind)
        self._rows = rows + 1
        if self._rows * (len(self._columns) + 1) > _BATCH_CELLS or self._size > _BATCH_CHARACTERS:
            self.flush()

    @property
    def width(self) -> int:
        """Columns so far."""
        return len(self._kinds)

    def flush(self) -> None:
        """Hand the rows on."""
        import pyarrow as pa

        if not self._rows:
            return
        arrays = []
        for values in self._columns.values():
            values.extend([None] * (self._rows - len(values)))
            arrays.append(pa.array(values, pa.string()))
        if not arrays:  # rows without any column
            arrays = [pa.nulls(self._rows, pa.string())]
            self._columns["value"] = []
            self._kinds.setdefault("value", set())
        self.raw.add(list(self._columns), arrays)
        self._columns = {name: [] for name in self._columns}
        self._rows = self._size = 0

    def finish(self) -> None:
        """The last row was added: what each column may be is settled."""
        self.flush()
        for name, kinds in self._kinds.items():
            evidence = self.raw.evidence.get(name)
            if evidence is not None:
                _restrict(evidence, kinds)


def _restrict(evidence: Evidence, kinds: set[str]) -> None:
    """Leave only those types possible that the kinds of the cells allow."""
    if not kinds <= {NUMBER}:
        evidence.formats = {}
        if NUMBER not in kinds and evidence.spoiled[0] == "numbers":
            evidence.spoiled = "", ()  # texts that look like numbers
    if not kinds <= {BOOL}:
        evidence.bools = None
    if not kinds <= {TEXT, DATE}:
        evidence.forms = {}
