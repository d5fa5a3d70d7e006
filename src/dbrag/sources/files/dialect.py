"""How the cells of a text file are separated and quoted, found by trying."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from dbrag.sources.files.header import kind_of
from dbrag.sources.files.unpack import Unreadable

DELIMITERS = (",", ";", "\t", "|")
MAX_RECORD_CHARACTERS = 64 << 20
"""A quoted cell longer than that was never closed."""
_RECORDS = 500


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one file is written.

    Attributes:
        delimiter: between cells; "" where there is one column.
        quote: around cells; "" where quotes mean nothing.
        escape: a backslash stands before a quote within quotes.
        spaces: blanks after a delimiter are no part of the cell.
    """

    delimiter: str = ","
    quote: str = '"'
    escape: bool = False
    spaces: bool = False

    @property
    def plain(self) -> bool:
        """Whether Arrow's own reader knows this dialect."""
        return (
            not self.escape
            and not self.spaces
            and self.quote in ('"', "")
            and self.delimiter.isascii()
        )


@dataclass(frozen=True, slots=True)
class Record:
    """One record and the line it begins in, from 1. None: empty and not quoted."""

    line: int
    cells: list[str | None]
    lines: int = 1


class UnclosedQuote(Unreadable):
    """A quoted cell has no end.

    Args:
        line: where it begins.
        cut: reading was given up before the end of the file.
    """

    def __init__(self, line: int, *, cut: bool = False) -> None:
        super().__init__(f"has a quote in line {line} that is never closed")
        self.line = line
        self.cut = cut


def records(lines: Iterable[str], dialect: Dialect, first_line: int = 1) -> Iterator[Record]:
    """The records of ``lines`` (with their line ends), blank lines left out.

    Raises:
        UnclosedQuote: at the end, where a quoted cell is still open; all its text was given
            as the last record.
    """
    csv.field_size_limit(1 << 30)
    raw: list[str] = []
    line = first_line

    def feed() -> Iterator[str]:
        size = 0
        for one in lines:
            size = size + len(one) if raw else len(one)
            if size > MAX_RECORD_CHARACTERS:
                raise UnclosedQuote(line, cut=True)
            raw.append(one)
            yield one

    delimiter = dialect.delimiter or "\x1f"
    if not dialect.delimiter and not dialect.quote:
        for one in lines:
            if text := one.rstrip("\r\n"):
                yield Record(line, [text])
            line += 1
        return
    reader = csv.reader(
        feed(),
        delimiter=delimiter,
        quotechar=dialect.quote or None,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
        escapechar="\\" if dialect.escape else None,
        skipinitialspace=dialect.spaces,
    )
    text, double = "", dialect.quote * 2
    for row in reader:
        count = len(raw)
        if row:
            cells: list[str | None] = row  # type: ignore[assignment]
            text = raw[0] if count == 1 else "".join(raw)
            if (dialect.escape and "\\" in text) or (double and "" in row and double in text):
                cells = tokens(text, dialect)[0]
            elif "" in row:
                cells = [cell or None for cell in row]
            yield Record(line, cells, count)
            start = line
        line += count
        raw.clear()
    if dialect.quote and dialect.quote in text and not tokens(text, dialect)[1]:
        raise UnclosedQuote(start)


def tokens(text: str, dialect: Dialect) -> tuple[list[str | None], bool]:
    """The cells of one record, and whether its quotes are closed.

    The same as the csv module reads, but an empty cell without quotes is None, and a
    backslash is kept where it escapes nothing.
    """
    quote, delimiter = dialect.quote, dialect.delimiter
    text = text[:-2] if text.endswith("\r\n") else text.rstrip("\r\n") if _ends(text) else text
    cells: list[str | None] = []
    part: list[str] = []
    quoted = inside = False
    fresh = True
    i, n = 0, len(text)
    while i < n:
        char = text[i]
        after = text[i + 1] if i + 1 < n else ""
        if dialect.escape and char == "\\" and after and after in f"\\{quote}{delimiter}":
            part.append(after)
            fresh = False
            i += 1
        elif inside and char == quote:
            if after == quote:
                part.append(quote)
                i += 1
            else:
                inside = False
        elif fresh and char == quote and quote:
            quoted = inside = True
            fresh = False
        elif not inside and delimiter and char == delimiter:
            cells.append("".join(part) if part or quoted else None)
            part, quoted, fresh = [], False, True
        elif fresh and dialect.spaces and char == " ":
            pass
        else:
            part.append(char)
            fresh = False
        i += 1
    cells.append("".join(part) if part or quoted else None)
    return cells, not inside


def _ends(text: str) -> bool:
    return text.endswith(("\n", "\r"))


def find_dialect(
    sample: list[str],
    *,
    complete: bool,
    quotes: bool,
    escapes: bool,
    delimiter: str | None = None,
    likely: str = "",
) -> Dialect:
    """The dialect under which the sample looks most like a table.

    Args:
        sample: lines with their ends.
        complete: the sample is the whole file.
        quotes, escapes: the file holds ``"``, ``\\"``.
        delimiter: the user's word for it.
        likely: the delimiter that the name of the file promises.
    """
    best, best_score = Dialect(delimiter or "", '"' if quotes else ""), 0.0
    for one in _variants(sample, complete, quotes, escapes, delimiter):
        score = _score(sample, one, complete, bool(delimiter))
        score += 0.01 * (one.delimiter == likely)
        if score > best_score + 1e-9:
            best, best_score = one, score
    text = "".join(sample)
    blank = best.delimiter + " "
    if best.delimiter.strip() and text.count(best.delimiter) == text.count(blank):
        best = replace(best, spaces=True)  # a blank after each of them is no part of a cell
    return best


def is_strict(lines: Iterable[str], dialect: Dialect, *, complete: bool = True) -> bool:
    """Whether a delimiter or the end of a line follows each quote that closes a cell.

    Args:
        complete: ``lines`` are all; otherwise the last cell may be open.
    """
    csv.field_size_limit(1 << 30)
    reader = csv.reader(
        lines,
        delimiter=dialect.delimiter or "\x1f",
        quotechar=dialect.quote,
        escapechar="\\" if dialect.escape else None,
        strict=True,
    )
    try:
        for _ in reader:
            pass
    except csv.Error as error:
        return not complete and "unexpected end" in str(error)
    return True


def _variants(
    sample: list[str], complete: bool, quotes: bool, escapes: bool, delimiter: str | None
) -> Iterator[Dialect]:
    text = "".join(sample)
    for one in (delimiter,) if delimiter else DELIMITERS:
        if not delimiter and one not in text:
            continue
        if quotes:
            yield Dialect(one)
            if f'{one} "' in text and one != " ":
                yield Dialect(one, spaces=True)
            if escapes and not is_strict(sample, Dialect(one), complete=complete):
                yield Dialect(one, escape=True)
        yield Dialect(one, "")
        if not quotes and (f"'{one}'" in text):
            yield Dialect(one, "'")


def _score(sample: list[str], dialect: Dialect, complete: bool, given: bool) -> float:
    """0 to 1.1: records of equal width, whose cells look like values."""
    found = []
    closed = 1.0
    try:
        for record in records(sample, dialect):
            found.append(record.cells)
            if len(found) > _RECORDS:
                break
    except UnclosedQuote:
        if complete:
            closed = 0.8
        else:
            found.pop()
    rows = [row for row in found if any(cell and cell.strip() for cell in row)]
    if not rows:
        return 0.0
    widths = Counter(len(row) for row in rows)
    width = max(widths, key=lambda one: (widths[one] * (one > 1 or given), one))
    if width == 1 and not given:
        return 0.0
    first = next(index for index, row in enumerate(rows) if len(row) == width)
    body = rows[first:] if first < 0.5 * len(rows) else rows
    same = sum(len(row) == width for row in body) / len(body)
    if same < 0.5:
        return 0.0
    cells = [cell for row in body for cell in row if cell is not None]
    good = sum(_good(cell, dialect) for cell in cells) / max(len(cells), 1)
    lonely = 0.7 if len(body) == 1 and len(rows) > 2 else 1.0
    return closed * lonely * same * (0.2 + 0.8 * good)


def _good(cell: str, dialect: Dialect) -> float:
    """1 for a cell that looks like one value, less for one that may hold several."""
    text = cell.strip()
    if kind_of(text) != "text":
        return 1.0
    if text[:1] == '"' or (text[-1:] == '"' and text.count('"') == 1):
        return 0.3
    if "\\" in text and '"' in text:
        return 0.3
    if "\n" in text and dialect.delimiter in text:
        return 0.8
    if text[:1] == "'" and text[-1:] == "'" and len(text) > 1:
        return 0.6
    others = [one for one in DELIMITERS if one != dialect.delimiter and one in text]
    return 0.9 if others == [","] else 0.7 if others else 1.0
