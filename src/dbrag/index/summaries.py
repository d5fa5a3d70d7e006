"""What a table says of itself as text: the paper's s_i in the three forms that are indexed.

The source's name is never part of a text: users do not know which database to name.
Names, comments and cells are capped and without unseen characters: the encoder reads them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbrag.index.words import split_identifier
from dbrag.textsafe import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbrag.types import Table

_MAX_NEIGHBOURS = 12
_MAX_SAMPLE_ROWS = 3
_MAX_CELL = 60
_MAX_COMMENT = 200
_MAX_NAME = 200
_UNREADABLE = "cannot be read"


def names_text(table: Table, neighbours: Sequence[str]) -> str:
    """``student with advisor, major: student id, last name``: what can be asked of a table.

    Joined tables come before the columns, so that a table too wide for the encoder
    keeps them; what the encoder cuts is still found by ``column_texts``.

    Args:
        neighbours: names of the tables that join it.
    """
    joined = sorted({_words(name) for name in neighbours})[:_MAX_NEIGHBOURS]
    text = _words(table.ref.name)
    if joined:
        text += f" with {', '.join(joined)}"
    text += f": {', '.join(_words(column.name) for column in table.columns)}"
    comments = [table.comment, *(column.comment for column in table.columns)]
    told = (c for c in comments if c and not c.startswith(_UNREADABLE))
    said = "; ".join(one_line(c, _MAX_COMMENT) for c in told)
    return f"{text}; {said}" if said else text


def samples_text(table: Table, neighbours: Sequence[str]) -> str:
    """The same with up to three sample rows, cells cut at 60 characters."""
    rows = [
        ", ".join("" if cell is None else _cell(cell) for cell in row)
        for row in table.sample_rows[:_MAX_SAMPLE_ROWS]
    ]
    text = names_text(table, neighbours)
    return f"{text}; e.g. {'; '.join(rows)}" if rows else text


def column_texts(table: Table) -> list[str]:
    """``student last name``: one text per column, in the table's order."""
    name = _words(table.ref.name)
    return [f"{name} {_words(column.name)}" for column in table.columns]


def _words(name: str) -> str:
    return split_identifier(one_line(name, _MAX_NAME))


def _cell(text: str) -> str:
    """The start of a cell; one that is cut says nothing of it: it is to be found, not read."""
    start = text[:_MAX_CELL]
    return one_line(start, _MAX_CELL)
