"""Spreadsheets: each sheet a table, with what stands above and around it passed over."""

from __future__ import annotations

import datetime as dt
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dbrag.options import FileOptions
from dbrag.sources.files.cells import BOOL, DATE, NUMBER, OTHER, TEXT, Cell, CellTable
from dbrag.sources.files.guess import Evidence
from dbrag.sources.files.header import first_row, is_header, kind_of
from dbrag.sources.files.names import unique_column_names
from dbrag.sources.files.office import SheetFacts, sheet_facts
from dbrag.sources.files.plan import evidence_for
from dbrag.sources.files.raw import MAX_COLUMNS, RawTable
from dbrag.sources.files.unpack import Unreadable, check_office_file

_HEAD_ROWS = 250
_MAX_AREA = 100_000_000
Range = tuple[tuple[int, int], tuple[int, int]]


def read_excel(
    path: str,
    name: str,
    work: Path,
    options: FileOptions,
    skipped: list[tuple[str, str]],
) -> list[RawTable]:
    """The sheets of a workbook that hold a table: ``name``, or ``name_sheet`` if several.

    Hidden sheets are read only where the settings name them. Formulas count as the values
    that were saved with them. What is left out is added to ``skipped``.

    Raises:
        Unreadable: it is no workbook, has a password, or no sheet with a table.
    """
    check_office_file(path)
    facts = sheet_facts(path)
    try:
        return _read(path, name, work, options, skipped, facts)
    except (Unreadable, OSError, MemoryError):
        raise
    except Exception as error:
        raise Unreadable(f"is no workbook that can be read: {error}") from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise Unreadable("is a damaged workbook") from error


def _read(
    path: str,
    name: str,
    work: Path,
    options: FileOptions,
    skipped: list[tuple[str, str]],
    facts: dict[str, SheetFacts],
) -> list[RawTable]:
    from python_calamine import SheetTypeEnum, SheetVisibleEnum, load_workbook

    def new_evidence() -> Evidence:
        return evidence_for(options)

    tables = []
    with load_workbook(path) as book:
        for sheet in options.sheets:
            if sheet not in book.sheet_names:
                skipped.append((f"{name}_{sheet}", f"has no sheet {sheet!r}"))
        for meta in book.sheets_metadata:
            if meta.typ != SheetTypeEnum.WorkSheet:
                continue
            if options.sheets and meta.name not in options.sheets:
                continue
            if not options.sheets and meta.visible != SheetVisibleEnum.Visible:
                reason = f"has a hidden sheet {meta.name!r}: name it in sheets to read it"
                skipped.append((f"{name}_{meta.name}", reason))
                continue
            fact = facts.get(meta.name)
            if fact is not None and fact.area > max(_MAX_AREA, 50 * fact.cells):
                reason = f"has {fact.cells} cells spread over an area of {fact.area}"
                skipped.append((f"{name}_{meta.name}", reason))
                continue
            raw = RawTable(work, f"{name}_{meta.name}", new_evidence, meta.name)
            try:
                filled = _read_sheet(book.get_sheet_by_name(meta.name), raw, options)
            except Unreadable as error:
                skipped.append((raw.name, str(error)))
                continue
            if filled:
                if fact is not None:
                    raw.warnings += _lost(fact)
                tables.append(raw)
    if not tables:
        reasons = "; ".join(reason for _, reason in skipped)
        raise Unreadable(reasons or "has only empty sheets")
    if len(tables) == 1:
        tables[0].name = name
    return tables


def _lost(fact: SheetFacts) -> list[str]:
    said = []
    if fact.errors:
        cells = "1 cell" if fact.errors == 1 else f"{fact.errors:,} cells"
        said.append(f"{cells} with an error like #N/A read as NULL")
    if fact.blank:
        cells = "1 formula" if fact.blank == 1 else f"{fact.blank:,} formulas"
        said.append(
            f"{cells} without a saved value read as NULL: open the workbook in a spreadsheet "
            "program and save it"
        )
    return said


def _read_sheet(sheet: Any, raw: RawTable, options: FileOptions) -> bool:
    """Read one sheet; False where it is empty."""
    if sheet.start is None or not sheet.width:
        return False
    if sheet.width > MAX_COLUMNS:
        raise Unreadable(f"has a sheet {raw.sheet!r} of {sheet.width} columns")
    rows = _rows(sheet)
    head = [row for row, _ in zip(rows, range(_HEAD_ROWS), strict=False)]
    if not head:
        return False
    merged = _merged(sheet)
    start, names, title = _header(head, merged, options, sheet.start[1])
    columns = unique_column_names([*names, *[None] * (sheet.width - len(names))])
    raw.declare(columns)
    cells = CellTable(raw)
    numbers = array("L")
    body = (row for row in head[start:])
    for part in (body, rows):
        for number, row in part:
            numbers.append(number + 1)
            cells.add(dict(zip(columns, row, strict=False)))
    cells.finish()
    unnamed = [
        column
        for place, column in enumerate(columns)
        if place >= len(names) or not (names[place] or "").strip()
    ]
    raw.drop_empty(unnamed)
    raw.line_of = lambda row: numbers[row] if row < len(numbers) else 0
    first = head[start][0] if start < len(head) else 1 << 30
    _say(raw, options, names, title, merged, first)
    return bool(raw.columns)


def _say(
    raw: RawTable,
    options: FileOptions,
    names: list[Any],
    title: int,
    merged: list[Range],
    first: int,
) -> None:
    if options.header is None:
        if not names:
            raw.guessed.append("no header")
        elif title:
            raw.guessed.append(f"header in row {title}")
    inside = sum(low[0] >= first for low, _ in merged)
    if inside:
        raw.warnings.append(
            f"{inside} merged ranges: the value is in the first cell, the others are NULL"
        )


def _rows(sheet: Any) -> Iterator[tuple[int, list[Cell | None]]]:
    """(row of the sheet from 0, cells) of all rows that are not blank."""
    for number, row in enumerate(sheet.iter_rows()):
        cells = [_cell(value) for value in row]
        if any(cell is not None and cell[1].strip() for cell in cells):
            yield number, cells


def _merged(sheet: Any) -> list[Range]:
    try:
        ranges = sheet.merged_cell_ranges
    except Exception:  # this kind of file does not tell
        return []
    return [((a[0], a[1]), (b[0], b[1])) for a, b in ranges or []]


def _header(
    head: list[tuple[int, list[Cell | None]]],
    merged: list[Range],
    options: FileOptions,
    offset: int,
) -> tuple[int, list[str | None], int]:
    """(index in ``head`` of the first row of values, names, sheet row of the header or 0)."""
    texts = [[cell[1] if cell else None for cell in row] for _, row in head]
    if options.header == 0:
        return 0, [], 0
    if options.header is not None:
        index = next((i for i, (n, _) in enumerate(head) if n + 1 == options.header), None)
        if index is None:
            raise Unreadable(f"has no header in row {options.header}, which the settings name")
        return index + 1, _spread(texts[index], head[index][0], merged, offset), options.header
    start = first_row(texts)
    number = head[start][0]
    row = _spread(texts[start], number, merged, offset)
    below = texts[start + 1 :]
    groups = [r for r in merged if r[0][0] == number and r[1][1] > r[0][1]]
    if groups and len(below) > 1 and _only_texts(below[0]) and is_header(below[0], below[1:201]):
        lower = _spread(below[0], head[start + 1][0], merged, offset)
        return start + 2, _joined(row, lower), head[start + 1][0] + 1
    if not is_header(row, below[:200]):
        return start, [], 0
    if start and head[start - 1][0] == number - 1:
        over = [r for r in merged if r[0][0] == number - 1 and r[1][1] > r[0][1]]
        if over and not any(r[1][1] - r[0][1] + 1 >= len(row) for r in over):
            row = _joined(_spread(texts[start - 1], number - 1, merged, offset), row)
    shown = number + 1 if start or number else 0
    return start + 1, row, shown


def _spread(
    row: list[str | None], number: int, merged: list[Range], offset: int
) -> list[str | None]:
    """A row of names with the value of a merged range in all its columns."""
    row = list(row)
    for (top, left), (bottom, right) in merged:
        first = left - offset
        if top <= number <= bottom and top == number and 0 <= first < len(row):
            for place in range(first, min(right - offset + 1, len(row))):
                row[place] = row[place] or row[first]
    return row


def _only_texts(row: list[str | None]) -> bool:
    return all(kind_of(cell) in ("text", "empty") for cell in row) and any(row)


def _joined(upper: list[str | None], lower: list[str | None]) -> list[str | None]:
    """Names of two rows: "2023 sales"; a name that stands alone stays as it is."""
    return [f"{a} {b}" if a and b and a != b else a or b for a, b in zip(upper, lower, strict=True)]


def _cell(value: Any) -> Cell | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return TEXT, value
    if isinstance(value, bool):
        return BOOL, "true" if value else "false"
    if isinstance(value, (int, float)):
        whole = isinstance(value, int) or (value.is_integer() and abs(value) < 1e18)
        return NUMBER, str(int(value)) if whole else repr(value)
    if isinstance(value, dt.datetime):
        midnight = value.time() == dt.time()
        return DATE, value.date().isoformat() if midnight else value.isoformat(" ")
    if isinstance(value, (dt.date, dt.time)):
        return DATE, value.isoformat()
    if isinstance(value, dt.timedelta):
        return OTHER, _duration(value)
    return OTHER, str(value)


def _duration(value: dt.timedelta) -> str:
    """``30:15:00``, as spreadsheets show durations."""
    seconds = abs(value) // dt.timedelta(seconds=1)
    sign = "-" if value < dt.timedelta() else ""
    return f"{sign}{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
