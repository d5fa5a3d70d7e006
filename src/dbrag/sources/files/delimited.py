"""CSV, TSV and other text tables."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dbrag.sources.files.dialect import (
    Dialect,
    Record,
    UnclosedQuote,
    find_dialect,
    is_strict,
    records,
)
from dbrag.sources.files.header import filled, first_row, is_header
from dbrag.sources.files.names import unique_column_names
from dbrag.sources.files.raw import MAX_COLUMNS, RawTable
from dbrag.sources.files.unpack import Unreadable

if TYPE_CHECKING:
    from dbrag.options import FileOptions
    from dbrag.sources.files.encoding import Text

_SAMPLE_CHARACTERS = 256 << 10
_BLOCK_BYTES = 1 << 20  # Arrow reads some thirty of them ahead
_BATCH_ROWS = 20_000
_NAMES = {",": "','", ";": "';'", "\t": "tab", "|": "'|'", "": "none, one column"}


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the rows of a file begin, and what its columns are called.

    Attributes:
        line: first line of the rows, from 1.
        header: cells of the header; None: there is none.
        width: columns of most rows.
    """

    dialect: Dialect
    line: int
    header: list[str | None] | None
    width: int
    header_line: int = 0


@contextmanager
def _lines(text: Text) -> Iterator[Iterator[str]]:
    """The lines of a file with their ends, ``\\n``, ``\\r\\n`` or ``\\r``."""
    with open(text.path, "rb") as file:
        file.seek(text.bom)
        yield io.TextIOWrapper(file, encoding="utf-8", newline="")


def read_delimited(text: Text, raw: RawTable, options: FileOptions, ending: str) -> str:
    """Read a file into ``raw``; its delimiter.

    Raises:
        Unreadable: it holds no table, or a cell without an end.
        OSError: it cannot be read.
    """
    if text.long_line:
        raise Unreadable("has a line of more than 64 MB")
    layout = find_layout(text, options, ending)
    if layout.width > MAX_COLUMNS:
        raise Unreadable(f"has rows of {layout.width} cells, more than {MAX_COLUMNS}")
    if not _read_fast(text, raw, layout):
        _read_carefully(text, raw, layout)
    raw.guessed += _said(text, layout, options)
    return layout.dialect.delimiter


def _said(text: Text, layout: Layout, options: FileOptions) -> list[str]:
    said = []
    delimiter = layout.dialect.delimiter
    if options.delimiter is None:
        said.append(f"delimiter {_NAMES.get(delimiter, repr(delimiter))}")
    if options.encoding is None and text.encoding != "utf-8":
        said.append(f"encoding {text.encoding}")
    if layout.dialect.escape:
        said.append("backslash before quotes")
    if layout.dialect.quote == "'":
        said.append("single quotes")
    if options.header is None:
        if layout.header is None:
            said.append("no header")
        else:
            said.append(f"header in line {layout.header_line}")
    return said


def find_layout(text: Text, options: FileOptions, ending: str) -> Layout:
    """Look at the start of a file."""
    with _lines(text) as lines:
        sample, size = [], 0
        for line in lines:
            sample.append(line)
            size += len(line)
            if size > _SAMPLE_CHARACTERS:
                break
        complete = next(lines, None) is None
    if not any(line.strip() for line in sample):
        raise Unreadable("is empty")
    delimiter, skip = options.delimiter, 0
    if match := re.fullmatch(r'"?sep=(.)"?\s*', sample[0], re.IGNORECASE):
        delimiter, skip = delimiter or match[1], 1
    dialect = find_dialect(
        sample[skip:],
        complete=complete,
        quotes=bool(text.quotes),
        escapes=text.escapes,
        delimiter=delimiter,
        likely={".tsv": "\t", ".tab": "\t", ".psv": "|"}.get(ending, ","),
    )
    if text.escapes and dialect.quote == '"' and not dialect.escape:
        dialect = _with_escapes(text, dialect)
    found: list[Record] = []
    try:
        for record in records(sample[skip:], dialect, skip + 1):
            found.append(record)
    except UnclosedQuote:
        if not complete and len(found) > 1:
            found.pop()
    if dialect.delimiter:
        found = [one for one in found if filled(one.cells) or len(one.cells) > 1] or found
    return _layout(dialect, found, options)


def _with_escapes(text: Text, dialect: Dialect) -> Dialect:
    """The dialect with escapes if the whole file is sound only with them."""
    other = replace(dialect, escape=True)
    with _lines(text) as lines:
        if is_strict(lines, dialect):
            return dialect
    with _lines(text) as lines:
        return other if is_strict(lines, other) else dialect


def _layout(dialect: Dialect, found: list[Record], options: FileOptions) -> Layout:
    rows = [record.cells for record in found]
    if options.header == 0:
        return Layout(dialect, found[0].line, None, _width(rows))
    if options.header is not None:
        after = [record for record in found if record.line > options.header]
        named = [one for one in found if one.line <= options.header < one.line + one.lines]
        if not named:
            raise Unreadable(f"has no header in line {options.header}, which the settings name")
        width = max(len(named[0].cells), _width([one.cells for one in after]))
        return Layout(dialect, named[0].line + named[0].lines, named[0].cells, width)
    start = first_row(rows)
    body = rows[start + 1 : start + 201]
    if is_header(rows[start], body):
        line = found[start].line + found[start].lines
        width = max(len(rows[start]), _width(body))
        return Layout(dialect, line, rows[start], width, found[start].line)
    return Layout(dialect, found[start].line, None, _width(rows[start:]))


def _width(rows: list[list[str | None]]) -> int:
    widths = [len(row) for row in rows]
    return max(set(widths), key=widths.count) if widths else 0


def _read_fast(text: Text, raw: RawTable, layout: Layout) -> bool:
    """Read with Arrow; False where it meets something that it does not know."""
    import pyarrow as pa

    names = _column_names(layout, layout.width)
    if layout.dialect.quote and text.quotes % 2:
        return False  # one may never be closed, which Arrow does not tell
    if not layout.dialect.plain or not layout.dialect.delimiter or len(names) != layout.width:
        return False
    try:
        reader = _arrow_reader(text, layout)
    except (pa.ArrowInvalid, UnicodeEncodeError):  # Arrow takes paths in UTF-8 only
        return False
    with reader:
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                break
            except pa.ArrowInvalid:
                raw.reset()
                return False
            raw.add(names, batch.columns)
    raw.declare(names)
    raw.drop_empty(_unnamed(layout))
    raw.line_of = lambda row: _line_of(text, layout, row)
    return True


def _arrow_reader(text: Text, layout: Layout) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    columns = [f"f{i}" for i in range(layout.width)]
    return csv.open_csv(
        text.path,
        read_options=csv.ReadOptions(
            skip_rows=layout.line - 1, column_names=columns, block_size=_BLOCK_BYTES
        ),
        parse_options=csv.ParseOptions(
            delimiter=layout.dialect.delimiter,
            quote_char=layout.dialect.quote or False,
            newlines_in_values=bool(text.quotes and layout.dialect.quote),
        ),
        convert_options=csv.ConvertOptions(
            check_utf8=False,  # every byte was checked
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
            column_types=dict.fromkeys(columns, pa.string()),
        ),
    )


def _unnamed(layout: Layout) -> list[str]:
    """Columns that exist only through a delimiter at the end of each line."""
    if layout.header is None:
        return []
    cells = [*layout.header, *[None] * (layout.width - len(layout.header))]
    names = _column_names(layout, layout.width)
    return [name for name, cell in zip(names, cells, strict=True) if not (cell or "").strip()]


def _column_names(layout: Layout, width: int) -> list[str]:
    cells = layout.header or []
    return unique_column_names([*cells, *[None] * (width - len(cells))])


def _rows(text: Text, layout: Layout) -> Iterator[Record]:
    with _lines(text) as lines:
        body = itertools.islice(lines, layout.line - 1, None)
        for record in records(body, layout.dialect, layout.line):
            cells = record.cells
            if len(cells) == 1 and layout.width > 1 and not (cells[0] or "").strip():
                continue  # a line of blanks
            yield record


def _line_of(text: Text, layout: Layout, row: int) -> int:
    found = itertools.islice(_rows(text, layout), row, None)
    return next((record.line for record in found), 0)


@dataclass(slots=True)
class _Ragged:
    """Rows of another width."""

    widest: int = 0
    short: int = 0
    long: int = 0
    first_short: int = 0
    first_long: int = 0
    unclosed: int = 0

    def count(self, text: Text, layout: Layout) -> None:
        self.widest = layout.width
        try:
            for record in _rows(text, layout):
                width = len(record.cells)
                if width == layout.width:
                    continue
                if width < layout.width:
                    self.short += 1
                    self.first_short = self.first_short or record.line
                    continue
                while width > layout.width and record.cells[width - 1] is None:
                    width -= 1
                if width > layout.width:
                    self.long += 1
                    self.first_long = self.first_long or record.line
                    self.widest = max(self.widest, width)
        except UnclosedQuote as error:
            self.unclosed = error.line

    @property
    def odd(self) -> int:
        return self.short + self.long

    def said(self, width: int) -> list[str]:
        said = []
        if self.unclosed:
            said.append(
                f"a quote in line {self.unclosed} is never closed: all after it is one cell"
            )
        if self.short:
            said.append(
                f"{_rows_have(self.short)} fewer cells than {width} (first in line "
                f"{self.first_short}): the missing ones are NULL"
            )
        if self.long:
            more = f"column_{width + 1}"
            if self.widest > width + 1:
                more += f" to column_{self.widest}"
            said.append(
                f"{_rows_have(self.long)} more cells than {width} (first in line "
                f"{self.first_long}): the further ones are in {more}"
            )
        return said


def _rows_have(n: int) -> str:
    """``1 row has``, ``2 rows have``."""
    return f"{n:,} row has" if n == 1 else f"{n:,} rows have"


def _read_carefully(text: Text, raw: RawTable, layout: Layout) -> None:
    ragged = _Ragged()
    ragged.count(text, layout)
    if ragged.unclosed and layout.dialect.quote:
        # A quote that opens no cell: is the file written without quotes?
        other = replace(layout, dialect=replace(layout.dialect, quote="", escape=False))
        without = _Ragged()
        without.count(text, other)
        if without.odd <= ragged.odd:
            layout, ragged = other, without
    if ragged.widest > MAX_COLUMNS:
        raise Unreadable(f"has a row of {ragged.widest} cells in line {ragged.first_long}")
    names = _column_names(layout, ragged.widest)
    raw.declare(names)
    for batch in _batched(_rows(text, layout)):
        raw.add(names, _arrays(batch, len(names)))
    raw.drop_empty(_unnamed(layout))
    raw.warnings += ragged.said(layout.width)
    raw.line_of = lambda row: _line_of(text, layout, row)


def _batched(rows: Iterator[Record]) -> Iterator[list[list[str | None]]]:
    """Cells of some thousand rows, fewer where they are wide."""
    batch: list[list[str | None]] = []
    cells = 0
    try:
        for record in rows:
            batch.append(record.cells)
            cells += len(record.cells) + 1
            if len(batch) >= _BATCH_ROWS or cells >= 1 << 20:
                yield batch
                batch, cells = [], 0
    except UnclosedQuote as error:
        if error.cut:
            raise
    if batch:
        yield batch


def _arrays(rows: list[list[str | None]], width: int) -> list[Any]:
    import pyarrow as pa

    for row in rows:
        if len(row) < width:
            row += [None] * (width - len(row))
        elif len(row) > width:
            del row[width:]  # empty ones: they were counted
    return [pa.array(column, pa.string()) for column in zip(*rows, strict=True)]
