"""Rows as aligned text.

On a terminal the table fits the window: the widest columns give way, a cut cell
ends in ``…`` (a long one says how many characters are missing), and a table with too
many columns is printed one record after the other. Elsewhere nothing is ever cut.
``NULL`` is no value; a text of these letters stands in quotes, an empty text is blank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbrag.values import json_value, text_value

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_PADDING = 40
"""Columns are aligned up to this width (characters); a longer cell overflows uncut."""

_GAP = "  "
_JOINERS = "\u200c\u200d\u3000"
"""Persian and Hindi words, families of emoji and Japanese addresses are written with them."""
_NARROWEST = 6
_RECORD_WIDTH = 400
_TELL_FROM = 100
"""A cut cell says how many characters are missing if it is at least so many."""


def cell_text(value: object) -> str:
    """A value on one line; control characters are shown, never sent to the terminal."""
    if value is None:
        return "NULL"
    nested = not isinstance(value, str) and isinstance(json_value(value), list | dict)
    text = text_value(value) if nested else str(json_value(value))
    if text == "NULL":
        return "'NULL'"
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or (c in _JOINERS and _is_joined(text, i)) else _escaped(c)
        for i, c in enumerate(text)
    )


def _is_joined(text: str, i: int) -> bool:
    """Whether a joiner or wide blank is part of a word or emoji, and not hidden in plain ASCII."""
    return (
        not (text[max(0, i - 1) : i] or "a").isascii() and not (text[i + 1 :][:1] or "a").isascii()
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def aligned(
    names: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    width: int | None = None,
) -> list[str]:
    """Lines of a table with a head: numbers to the right, everything else to the left.

    Args:
        width: characters of the terminal; None cuts nothing.
    """
    head = [cell_text(name) for name in names]
    cells = [[cell_text(value) for value in row] for row in rows]
    right = [_is_numeric([row[i] for row in rows]) for i in range(len(head))]
    columns = zip(head, *cells, strict=True)
    natural = [max(map(text_width, column)) for column in columns]
    if width is None:
        widths = [min(w, MAX_PADDING) for w in natural]
    else:
        room = width - len(_GAP) * (len(head) - 1)
        if room < sum(min(w, _NARROWEST) for w in natural):
            return _records(head, cells, width)
        widths = _fitted(natural, room)
        head = [cut(text, w) for text, w in zip(head, widths, strict=True)]
        cells = [[cut(c, w) for c, w in zip(row, widths, strict=True)] for row in cells]
    lines = [head, ["-" * w for w in widths], *cells]
    return [_line(line, widths, right) for line in lines]


def _is_numeric(values: list[object]) -> bool:
    present = [value for value in values if value is not None]
    return bool(present) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in present
    )


def text_width(text: str) -> int:
    """Terminal columns; a Chinese character or an emoji takes two."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def cut(text: str, width: int) -> str:
    """The text in at most so many columns; what is missing of a long one is told."""
    if text_width(text) <= width:
        return text
    shown = start(text, width - 1)
    if len(text) - len(shown) >= _TELL_FROM:
        brief = start(text, width - len(_missing(len(text))))
        if len(brief) >= _NARROWEST:
            return brief + _missing(len(text) - len(brief))
    return shown + "…"


def _missing(n: int) -> str:
    return f"… {n:,} more characters"


def start(text: str, width: int) -> str:
    """The first characters that fit; a wide one is not cut in two."""
    if text.isascii():
        return text[: max(0, width)]
    from rich.cells import cell_len

    taken = 0
    for i, character in enumerate(text):
        taken += cell_len(character)
        if taken > width:
            return text[:i]
    return text


def _fitted(natural: list[int], room: int) -> list[int]:
    """Widths whose sum is at most ``room``: one limit for all columns that exceed it."""
    if sum(natural) <= room:
        return natural
    low, high = 1, max(natural)
    while low < high:  # the largest limit that fits
        middle = (low + high + 1) // 2
        if sum(min(w, middle) for w in natural) <= room:
            low = middle
        else:
            high = middle - 1
    return [min(w, low) for w in natural]


def _line(cells: list[str], widths: list[int], right: list[bool]) -> str:
    parts = []
    for cell, width, to_right in zip(cells, widths, right, strict=True):
        fill = " " * max(0, width - text_width(cell))
        parts.append(fill + cell if to_right else cell + fill)
    return _GAP.join(parts).rstrip()


def _records(head: list[str], cells: list[list[str]], width: int) -> list[str]:
    """One line per value, for tables too wide for columns."""
    label = min(max(text_width(name) for name in head), width // 3)
    room = max(_NARROWEST, min(width, _RECORD_WIDTH) - label - len(_GAP))
    lines = []
    for number, row in enumerate(cells, 1):
        lines.append(f"-- row {number}")
        for name, cell in zip(head, row, strict=True):
            name = cut(name, label)
            lines.append(f"{name}{' ' * (label - text_width(name))}{_GAP}{cut(cell, room)}")
    return lines
