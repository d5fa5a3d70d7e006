"""Tables as texts, on the way to typed Parquet: written once, read back as often as needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dbrag.sources.files.guess import Evidence

MAX_COLUMNS = 10_000
"""Columns of one table."""


class RawTable:
    """Texts of one table in files of the cache's work folder, and what their types may be.

    Args:
        folder: where its files go.
        name: of the table.
        new_evidence: makes the evidence of one column.
        sheet: of a spreadsheet.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        new_evidence: Callable[[], Evidence],
        sheet: str | None = None,
    ) -> None:
        self.name = name
        self.sheet = sheet
        self.columns: list[str] = []
        self.evidence: dict[str, Evidence] = {}
        self.rows = 0
        self.guessed: list[str] = []
        self.warnings: list[str] = []
        self.line_of: Callable[[int], int] = lambda row: row + 1
        """The line (or sheet row) of a row of the table, from 0, in the user's file."""
        self._folder = folder
        self.new_evidence = new_evidence
        self._parts: list[Path] = []
        self._open: Any = None
        self._schema: tuple[str, ...] | None = None

    def add(self, names: Sequence[str], arrays: Sequence[Any]) -> None:
        """Append rows; columns that came before and are not named are NULL in them."""
        import pyarrow as pa

        if tuple(names) != self._schema:
            self._start(tuple(names))
        batch = pa.RecordBatch.from_arrays(list(arrays), names=[f"c{i}" for i in range(len(names))])
        self._open.write_batch(batch)
        self.rows += batch.num_rows
        for name, array in zip(names, arrays, strict=True):
            self.evidence[name].add(array)

    def _start(self, names: tuple[str, ...]) -> None:
        import pyarrow as pa

        self.finish()
        for name in names:
            if name not in self.evidence:
                self.columns.append(name)
                self.evidence[name] = self.new_evidence()
        schema = pa.schema([(f"c{i}", pa.string()) for i in range(len(names))])
        schema = schema.with_metadata({str(i): name for i, name in enumerate(names)})
        path = self._folder / f"{id(self):x}-{len(self._parts)}.arrow"
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        self._open = pa.ipc.new_stream(str(path), schema, options=options)
        self._parts.append(path)
        self._schema = names

    def declare(self, names: Sequence[str]) -> None:
        """Columns of a table that may stay without rows."""
        for name in names:
            if name not in self.evidence:
                self.columns.append(name)
                self.evidence[name] = self.new_evidence()

    def finish(self) -> None:
        """Nothing more is added under these names."""
        if self._open is not None:
            self._open.close()
            self._open = None
            self._schema = None

    def batches(self) -> Iterator[list[Any]]:
        """The rows again: for each batch one array of texts per column."""
        import pyarrow as pa

        self.finish()
        for path in self._parts:
            with pa.OSFile(str(path)) as file, pa.ipc.open_stream(file) as reader:
                meta = reader.schema.metadata
                place = {meta[str(i).encode()].decode(): i for i in range(len(reader.schema))}
                for batch in reader:
                    empty = pa.nulls(batch.num_rows, pa.string())
                    yield [
                        batch.column(place[name]) if name in place else empty
                        for name in self.columns
                    ]

    def drop_empty(self, names: Sequence[str]) -> None:
        """Leave out those columns that hold nothing at all."""
        for name in names:
            if not self.evidence[name].seen and not self.evidence[name].found:
                self.columns.remove(name)
                del self.evidence[name]

    def reset(self) -> None:
        """Forget all rows: the file is read in another way."""
        self.remove()
        self.columns.clear()
        self.evidence.clear()
        self.rows = 0

    def remove(self) -> None:
        """Delete its files."""
        self.finish()
        for path in self._parts:
            path.unlink(missing_ok=True)
        self._parts.clear()
