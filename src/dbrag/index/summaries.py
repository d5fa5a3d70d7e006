"""What a table says of itself as text: the paper's s_i in the three forms that are indexed.

The source's name is never part of a text: users do not know which database to name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbrag.index.words import split_identifier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbrag.types import Table

_MAX_NEIGHBOURS = 12
_MAX_SAMPLE_ROWS = 3
_MAX_CELL = 60
_MAX_COMMENT = 200
_UNREADABLE = "cannot be read"


def names_text(table: Table, neighbours: Sequence[str]) -> str:
    """``student with advisor, major: student id, last name``: what can be asked of a table.

    Joined tables come before the columns, so that a table too wide for the encoder
    keeps them; what the encoder cuts is still found by ``column_texts``.

    Args:
        neighbours: names of the tables that join it.
    """
    joined = sorted({split_identifier(name) for name in neighbours})[:_MAX_NEIGHBOURS]
    text = split_identifier(table.ref.name)
    if joined:
        text += f" with {', '.join(joined)}"
    text += f": {', '.join(split_identifier(column.name) for column in table.columns)}"
    comments = [table.comment, *(column.comment for column in table.columns)]
    said = "; ".join(c[:_MAX_COMMENT] for c in comments if c and not c.startswith(_UNREADABLE))
    return f"{text}; {said}" if said else text


def samples_text(table: Table, neighbours: Sequence[str]) -> str:
    """The same with up to three sample rows, cells cut at 60 characters."""
    rows = [
        ", ".join("" if cell is None else cell[:_MAX_CELL] for cell in row)
        for row in table.sample_rows[:_MAX_SAMPLE_ROWS]
    ]
    text = names_text(table, neighbours)
    return f"{text}; e.g. {'; '.join(rows)}" if rows else text


def column_texts(table: Table) -> list[str]:
    """``student last name``: one text per column, in the table's order."""
    name = split_identifier(table.ref.name)
    return [f"{name} {split_identifier(column.name)}" for column in table.columns]
