"""The Parquet files of one table: one schema for all, their rows, and whether they changed."""

from __future__ import annotations

import os
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from dbrag.errors import SourceBusy, SourceError, SourceNotFound, SourceUnreadable
from dbrag.sources.base import ColumnStatistics
from dbrag.sources.duck.arrowtypes import Reading, reading
from dbrag.sources.duck.part import rows_from_all_over
from dbrag.sources.filestate import change_mark, file_error
from dbrag.sources.statements import quoted

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    import pyarrow.dataset as ds
    from duckdb import DuckDBPyConnection

    from dbrag.sources.files.table import FileTable

_READERS = 8
_HIDDEN = "\u2063"
"""Starts the name of what a view is made of; no file has such a name."""
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})|\d{2}")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_MAX_CHUNKS = 200_000
"""Column chunks whose statistics are read; reading more takes too long."""
_LONG_TEXT = 64
"""Writers may cut longer texts in their statistics."""


class ParquetTable:
    """The files of a table as they are at this moment; a later look takes a new object.

    Args:
        table: the files.

    Raises:
        SourceError: one of them is missing, no Parquet, or malformed; it is named.
    """

    def __init__(self, table: FileTable) -> None:
        self.table = table
        self.mark = marks_of(table.parquet)
        schemas, counts = _footers(table.parquet)
        self.rows = sum(counts)
        self._partitions = _partition_types(table) if table.partitioned else {}
        self.readings = _unified(schemas, table)
        own = {name.casefold() for name in self.readings}
        for name in [name for name in self._partitions if name.casefold() in own]:
            # A file that holds the column, too, knows its type better than its folder's name.
            del self._partitions[name]
        self._dataset: ds.Dataset | None = None

    def register(self, cursor: DuckDBPyConnection, part_rows: int | None = None) -> None:
        """Let the cursor read the table under its name.

        Args:
            part_rows: only so many rows, from all over it.

        Raises:
            duckdb.Error: DuckDB cannot read it.
            OSError, ValueError: with ``part_rows``, a file cannot be read.
        """
        if self._dataset is None:
            self._dataset = self._open()
        data: Any = self._dataset
        if part_rows is not None:
            data = rows_from_all_over(self._dataset, part_rows)
        name = self.table.name
        derived = {n: one.sql for n, one in self.readings.items() if one.sql}
        if not derived:
            cursor.register(name, data)
            return
        cursor.register(_HIDDEN + name, data)
        changed = ", ".join(f"{sql} AS {quoted(column)}" for column, sql in derived.items())
        cursor.execute(
            f"CREATE OR REPLACE TEMP VIEW {quoted(name)} AS "
            f"SELECT * REPLACE ({changed}) FROM {quoted(_HIDDEN + name)}"
        )

    def check_unchanged(self) -> None:
        """The files must be the ones whose footers were read.

        Raises:
            SourceBusy: they are not.
        """
        if not self.is_current():
            raise SourceBusy(f"{self._changed()!r} was changed while it was read", "run it again")

    def is_current(self) -> bool:
        """True while no file was written."""
        return marks_of(self.table.parquet) == self.mark

    def statistics(self) -> Mapping[str, ColumnStatistics]:
        """Extremes and shares of NULL, from the footers; {} where that takes too long."""
        import pyarrow.parquet as pq

        names = [name for name, one in self.readings.items() if one.type is not None]
        found: dict[str, _Range] = {}
        chunks = 0
        for path in self.table.parquet:
            try:
                footer = pq.read_metadata(path)
            except (OSError, ValueError):  # changed meanwhile: a statement will say so
                return {}
            chunks += footer.num_row_groups * footer.num_columns
            if chunks > _MAX_CHUNKS:
                return {}
            _add_statistics(found, footer)
        return {
            name: found[name].known(self.rows)
            for name in names
            if name in found and _is_plain(self.readings[name])
        }

    def _open(self) -> ds.Dataset:
        import pyarrow as pa
        import pyarrow.dataset as ds

        fields = [(n, one.type) for n, one in self.readings.items() if one.type is not None]
        parts = list(self._partitions.items())
        partitioning = ds.partitioning(pa.schema(parts), flavor="hive") if parts else None
        return ds.dataset(
            list(self.table.parquet),
            schema=pa.schema(fields + parts),
            format=ds.ParquetFileFormat(
                # The old 12-byte timestamps hold years that nanoseconds cannot.
                coerce_int96_timestamp_unit="us",
                default_fragment_scan_options=ds.ParquetFragmentScanOptions(
                    page_checksum_verification=True  # where there are checksums
                ),
            ),
            partitioning=partitioning,
            partition_base_dir=self.table.path if parts else None,
        )

    def _changed(self) -> str:
        for path, mark in zip(self.table.parquet, self.mark, strict=True):
            if change_mark(path) != mark:
                return path
        return self.table.path


def marks_of(paths: Iterable[str]) -> tuple[tuple[int, ...], ...]:
    """For each file what differs after somebody wrote to it; () for one that is gone."""
    return tuple(map(change_mark, paths))


def _footers(paths: Sequence[str]) -> tuple[list[pa.Schema], list[int]]:
    """The different schemas of the files, and the number of rows of each file."""
    schemas: list[pa.Schema] = []
    counts = []
    with ThreadPoolExecutor(min(_READERS, len(paths) or 1)) as pool:
        for schema, rows in pool.map(_footer, paths):
            counts.append(rows)
            if not any(schema.equals(other) for other in schemas):
                schemas.append(schema)
    return schemas, counts


def _footer(path: str) -> tuple[pa.Schema, int]:
    import pyarrow.parquet as pq

    try:
        footer = pq.read_metadata(path)
        return footer.schema.to_arrow_schema().remove_metadata(), footer.num_rows
    except FileNotFoundError as error:
        raise file_error(path, error) from error
    except (OSError, ValueError, NotImplementedError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())[:200]
        raise SourceUnreadable(
            f"cannot read {path!r} as Parquet: {reason}", "check the file, or leave it out"
        ) from error


def _unified(schemas: Sequence[pa.Schema], table: FileTable) -> dict[str, Reading]:
    """How each column is read, in the order of the first file, later ones' columns behind."""
    types: dict[str, list[Any]] = {}
    for schema in schemas:
        if len(set(schema.names)) < len(schema.names):
            twice = next(name for name in schema.names if schema.names.count(name) > 1)
            raise SourceUnreadable(
                f"{table.path!r} has two columns {twice!r}", "rename one of them"
            )
        for field in schema:
            kinds = types.setdefault(field.name, [])
            if field.type not in kinds:
                kinds.append(field.type)
    readings = {name: reading(name, kinds) for name, kinds in types.items()}
    if not any(one.type is not None for one in readings.values()):
        raise SourceUnreadable(
            f"{table.path!r} has no column that can be read",
            'leave it out: skip = true in [files."PATTERN"]',
        )
    return readings


def _partition_types(table: FileTable) -> dict[str, pa.DataType]:
    """Columns that are written in the names of folders, with a type that fits all values."""
    import pyarrow as pa

    values: dict[str, set[str]] = {}
    for path in table.parquet:
        for folder in os.path.relpath(path, table.path).split(os.sep)[:-1]:
            name, equals, value = folder.partition("=")
            if equals:
                values.setdefault(unquote(name), set()).add(unquote(value))
    types = {}
    for name, found in values.items():
        known = found - {_NO_VALUE, ""}
        if known and all(map(_WHOLE.fullmatch, known)):
            types[name] = pa.int64()
        elif known and all(map(_is_date, known)):
            types[name] = pa.date32()
        else:
            types[name] = pa.string()
    return types


def _is_date(text: str) -> bool:
    try:
        return _DATE.fullmatch(text) is not None and bool(date.fromisoformat(text))
    except ValueError:
        return False


class _Range:
    """Extremes and NULLs of a column over many chunks; what one chunk lacks is unknown."""

    def __init__(self) -> None:
        self.nulls: int | None = 0
        self.rows = 0
        self.low: Any = None
        self.high: Any = None
        self.bounded = True

    def add(self, chunk: Any) -> None:
        """Take in one chunk of a file."""
        known = chunk.statistics
        self.rows += chunk.num_values
        nulls = known.null_count if known is not None and known.has_null_count else None
        self.nulls = None if self.nulls is None or nulls is None else self.nulls + nulls
        if nulls == chunk.num_values:
            return  # no value at all
        if known is None or not known.has_min_max:
            self.bounded = False
            return
        try:
            self.low = known.min if self.low is None else min(self.low, known.min)
            self.high = known.max if self.high is None else max(self.high, known.max)
        except (TypeError, ValueError, NotImplementedError):
            self.bounded = False

    def known(self, rows: int) -> ColumnStatistics:
        """What holds for the whole column, ``rows`` long."""
        complete = self.rows == rows
        share = self.nulls / rows if complete and self.nulls is not None and rows else None
        low, high = _shown(self.low), _shown(self.high)
        bounded = complete and self.bounded and low is not None and high is not None
        return ColumnStatistics(
            null_share=share,
            minimum=low if bounded else None,
            maximum=high if bounded else None,
        )


def _add_statistics(found: dict[str, _Range], footer: Any) -> None:
    schema = footer.schema
    plain = {}
    for i in range(footer.num_columns):
        column = schema.column(i)
        # Parts of lists and structs have a longer path than their name.
        if column.path == column.name and column.max_repetition_level == 0:
            plain[i] = column.name
    for group in range(footer.num_row_groups):
        rows = footer.row_group(group)
        for i, name in plain.items():
            found.setdefault(name, _Range()).add(rows.column(i))


def _is_plain(one: Reading) -> bool:
    """True when the values in the footers are those that are read."""
    import pyarrow.types as t

    return one.sql is None and not t.is_duration(one.type)


def _shown(value: Any) -> str | None:
    if isinstance(value, (bytes, bytearray)) or value != value:
        return None
    text = None if value is None else str(value)
    return None if text is None or len(text.encode(errors="replace")) > _LONG_TEXT else text


def translate_reading(error: Exception, tables: Iterable[ParquetTable]) -> SourceError | None:
    """What went wrong in reading the files, if that is what ``error`` tells; else None."""
    text = " ".join(str(error).split())
    found = re.search(r"reading the stream registered as '(.*?)' failed: (.*)", text)
    if found is None:
        return None
    name = found[1].removeprefix(_HIDDEN)
    of_name = (one.table.path for one in tables if one.table.name == name)
    path = next(of_name, name)
    missing = re.search(r"open local file '(.*?)'", found[2])
    if missing and not os.path.exists(missing[1]):
        return SourceNotFound(f"no file {missing[1]!r}", "was it moved? name its new place")
    return SourceUnreadable(f"cannot read {path!r}: {found[2][:200]}", "check the file")
