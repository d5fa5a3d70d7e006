"""What a table says of itself as text: the paper's s_i in the forms that are indexed.

The source's name is never part of a text: users do not know which database to name.
Names, comments and cells are capped and without unseen characters: the encoder reads them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from dbrag.index.words import split_identifier
from dbrag.textsafe import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbrag.types import Column, Table

FORMAT = 3
"""Raised whenever the same table would get another text: indexes then make theirs anew."""
_MAX_NEIGHBOURS = 12
_WIDE = 40
_GROUP = 20
_MAX_COMMENT = 200
_MAX_COLUMN_COMMENT = 120
_MAX_NAME = 200
_UNREADABLE = "cannot be read"


def names_text(table: Table, neighbours: Sequence[str]) -> str:
    """``student (pupil) with advisor; who learns here: student id, last name (surname)``.

    What can be asked of a table: its name and other names, the tables that join it, what
    it holds, the same of its columns; then the comments of the columns. What tells of
    the whole table comes first, so that a table too wide for the encoder keeps it; what
    the encoder cuts is still found by ``column_texts``.

    Args:
        neighbours: names of the tables that join it.
    """
    joined = sorted({_words(name) for name in neighbours})[:_MAX_NEIGHBOURS]
    text = _named(table.ref.name, table.synonyms)
    if joined:
        text += f" with {', '.join(joined)}"
    if said := _comment(table.comment, _MAX_COMMENT):
        text += f"; {said}"
    text += f": {', '.join(_named(column.name, column.synonyms) for column in table.columns)}"
    comments = (_comment(column.comment, _MAX_COLUMN_COMMENT) for column in table.columns)
    told = "; ".join(comment for comment in comments if comment)
    return f"{text}; {told}" if told else text


def entry_texts(table: Table, neighbours: Sequence[str]) -> list[str]:
    """``names_text``, of a table of more than 40 columns one for each 20 of them.

    The encoder reads some 60 columns, and a word among 2,000 others weighs little.

    Args:
        neighbours: names of the tables that join it; in the first text only.
    """
    columns = table.columns
    if len(columns) <= _WIDE:
        return [names_text(table, neighbours)]
    starts = range(0, len(columns), _GROUP)
    groups = [replace(table, columns=columns[start : start + _GROUP]) for start in starts]
    rest = [names_text(replace(group, comment=""), ()) for group in groups[1:]]
    return [names_text(groups[0], neighbours), *rest]


def column_texts(table: Table) -> list[str]:
    """``student last name``: one text per column, in the table's order.

    Other names and the comment come before the name, which may say less:
    ``customers full name; cust nm``.
    """
    name = _words(table.ref.name)
    return [f"{name} {_column_text(column)}" for column in table.columns]


def _column_text(column: Column) -> str:
    said = [*map(_plain, column.synonyms), _comment(column.comment, _MAX_COLUMN_COMMENT)]
    return "; ".join([*(text for text in said if text), _words(column.name)])


def _named(name: str, synonyms: Sequence[str]) -> str:
    return f"{_words(name)} ({', '.join(map(_plain, synonyms))})" if synonyms else _words(name)


def _comment(text: str, limit: int) -> str:
    """A comment in one line; nothing where an error stands in its place."""
    return "" if text.startswith(_UNREADABLE) else one_line(text, limit)


def _plain(text: str) -> str:
    return one_line(text, _MAX_NAME)


def _words(name: str) -> str:
    return split_identifier(one_line(name, _MAX_NAME))
