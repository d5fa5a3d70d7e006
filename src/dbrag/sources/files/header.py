"""Where a table begins in rows of texts, and whether its first row holds names."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from statistics import median_low

from dbrag.sources.files.guess import NULL_WORDS

Row = Sequence[str | None]

_NUMBER = re.compile(r"[-+]?[$€£]?\s?\d[\d.,'\u00a0\u202f ]*([eE][-+]?\d+)?\s?%?")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}( .*)?"
    r"|\d{1,2}:\d{2}(:\d{2}.*)?"
)
_BOOL = frozenset({"true", "false", "yes", "no"})
MAX_TITLES = 30
"""Rows above a table that are looked through."""


def kind_of(cell: str | None) -> str:
    """What a cell looks like: "empty", "number", "date", "bool" or "text"."""
    text = (cell or "").strip()
    if text.lower() in NULL_WORDS:
        return "empty"
    if _DATE.fullmatch(text):
        return "date"
    if _NUMBER.fullmatch(text):
        return "number"
    return "bool" if text.lower() in _BOOL else "text"


def filled(row: Row) -> int:
    """How many cells are not empty."""
    return sum(bool(cell and cell.strip()) for cell in row)


def first_row(rows: Sequence[Row]) -> int:
    """Index of the first row of the table: titles and comments above it are passed over."""
    width = median_low([filled(row) for row in rows[:200] if filled(row)] or [0])
    for index, row in enumerate(rows[:MAX_TITLES]):
        cells = filled(row)
        if not cells or index == len(rows) - 1:
            continue
        few = width == 2 and cells == 1 and len(row) < 2
        title = few or (width >= 3 and cells <= 0.4 * width)
        comment = (row[0] or "").lstrip().startswith("#") and (
            cells < max(width, 2) or _names_follow(rows[index + 1 :])
        )
        if not comment and not title:
            return index
    return next((index for index, row in enumerate(rows) if filled(row)), 0)


def _names_follow(rows: Sequence[Row]) -> bool:
    """Whether the next row that is no comment certainly holds names."""
    for index, row in enumerate(rows[:MAX_TITLES]):
        if not (row[0] or "").lstrip().startswith("#"):
            return _score(row, rows[index + 1 : index + 201]) > 0
    return False


def is_header(row: Row, body: Sequence[Row]) -> bool:
    """Whether ``row`` holds the names of the columns of ``body``.

    A text above a column of numbers or dates speaks for it; a number above numbers, or a
    text that comes again below, speaks against it. Numbers that go up one by one, as years
    do, are names, unless the next row does the same.
    """
    kinds = [kind_of(cell) for cell in row]
    if not body:
        return "number" not in kinds and "date" not in kinds
    if score := _score(row, body):
        return score > 0
    names = [(cell or "").strip().casefold() for cell in row]
    return len(set(names)) == len(names) and "number" not in kinds


def _score(row: Row, body: Sequence[Row]) -> float:
    """Above 0 where ``row`` holds names, below 0 where it holds values."""
    if not body:
        return 0.0
    kinds = [kind_of(cell) for cell in row]
    score = 0.0
    sequence = _sequence(row) and _sequence(row) != _sequence(body[0])
    for place, kind in enumerate(kinds):
        column = [other[place] for other in body if place < len(other)]
        below = [one for one in map(kind_of, column) if one != "empty"]
        if kind == "empty" or not below:
            continue
        common = max(set(below), key=below.count)
        share = below.count(common) / len(below)
        if common == "text" or share < 0.8:
            if kind == "text":
                texts = [(cell or "").strip() for cell in column]
                again = (row[place] or "").strip() in texts
                score += -0.5 if again else _odd_one(row[place] or "", texts)
            elif kind == "number" and not sequence:
                score -= 0.2
        elif kind == "text":
            score += 1
        elif sequence:
            score += 0.5
        elif kind == common:
            score -= 1
    return score or 0.1 * bool(sequence)


def _odd_one(name: str, texts: Sequence[str]) -> float:
    """A little for a text of another length than all below it, which are alike."""
    lengths = {len(text) for text in texts if text}
    return 0.3 if len(lengths) == 1 and len(texts) > 2 and len(name.strip()) not in lengths else 0.0


def _sequence(row: Row) -> str:
    """ "years" or "numbers" where the numbers of a row go up or down one by one, else ""."""
    numbers = [int(cell) for cell in row if cell and re.fullmatch(r"\s*\d{1,4}\s*", cell)]
    steps = {b - a for a, b in itertools.pairwise(numbers)}
    if len(numbers) < 2 or steps not in ({1}, {-1}):
        return ""
    return "years" if all(1800 <= number <= 2100 for number in numbers) else "numbers"
