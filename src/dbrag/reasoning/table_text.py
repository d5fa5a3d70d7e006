"""A table as a program prompt shows it, in more or less detail.

Of a table with too many columns those stay that a program for the question is most likely
to need: with a value that the question mentions, named by it, keys and columns of joins;
then those most like the question (``retrieval.prompts.column_order``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from dbrag.catalog.formats import column_format
from dbrag.catalog.notes import description_of, spoken_names
from dbrag.index.words import plain_words, split_identifier, stemmed
from dbrag.reasoning.names import MAX_CELL_CHARS, MAX_NAME_CHARS, need_schemas, table_shown
from dbrag.reasoning.names import shown as shown_name
from dbrag.retrieval.prompts import Shown, column_order
from dbrag.textsafe import masked_line, one_line
from dbrag.types import Column, Table, TableRef, ValueMatch
from dbrag.values import text_value

MAX_COLUMNS = 60
"""Columns shown of one table, however much room there is."""
MAX_COMMENT_CHARS = 250
MAX_COLUMN_COMMENT_CHARS = 150
"""Of comments, the user's descriptions and other names together."""
MAX_FORMAT_CHARS = 120
"""Of how a column's texts are written."""
MAX_KEYS = 8
"""Columns of a primary key that stay; a longer one is rather the whole table."""


@dataclass(frozen=True, slots=True)
class Detail:
    """How much is shown of a table.

    Attributes:
        columns: at most; those that must stay may be twice as many.
        rows: sample rows; of a row context all of its rows, or none.
        comments: of the table and its columns, and how the columns' texts are written.
    """

    columns: int = MAX_COLUMNS
    rows: int = 2
    comments: bool = True


FULL = Detail()
DETAILS = (
    FULL,
    *(Detail(columns) for columns in (40, 25, 16, 12)),
    Detail(12, rows=0),
    Detail(12, rows=0, comments=False),
    Detail(6, rows=0, comments=False),
    Detail(3, rows=0, comments=False),
)
"""From the longest text to the shortest: fewer columns, no rows, no comments."""


@dataclass(frozen=True, slots=True)
class ColumnOrder:
    """The positions of a table's columns, those likeliest to be needed first.

    ``must``: how many of the first ones must stay.
    """

    positions: tuple[int, ...]
    must: int = 0

    def shown(self, limit: int) -> list[int]:
        """The positions of the columns that are shown, in the order of the table.

        Those that must stay may be twice as many as ``limit``.
        """
        return sorted(self.positions[: max(limit, min(self.must, 2 * limit))])


def column_ranking(
    table: Table,
    question: str,
    matches: Sequence[ValueMatch] = (),
    joining: Collection[str] = (),
) -> ColumnOrder:
    """See the head of this file.

    Args:
        matches: values that the question mentions.
        joining: columns of joins; those of the primary key count as such.
    """
    key = table.primary_key if len(table.primary_key) <= MAX_KEYS else ()
    joining = frozenset((*joining, *key))
    asked = set(stemmed(plain_words(question)))
    matched = {match.column for match in matches}

    def rank(position: int) -> int:
        column = table.columns[position]
        if column.name in matched or _is_named(column, asked):
            return 0
        return 1 if column.name in joining else 2

    # The order among equals is that of likeness to the question: sorting is stable.
    order = column_order(Shown(table, (), tuple(matches), (), joining), question)
    ranks = {position: rank(position) for position in order}
    positions = tuple(sorted(order, key=ranks.__getitem__))
    return ColumnOrder(positions, sum(1 for one in ranks.values() if one < 2))


def table_lines(
    table: Table,
    shown: set[TableRef],
    dialect: str,
    order: ColumnOrder | None = None,
    detail: Detail = FULL,
    *,
    rows: Sequence[Mapping[str, Any]] | None = None,
    formats: bool = True,
) -> str:
    """A table as CREATE TABLE text with keys among the shown tables and sample rows.

    Args:
        order: which columns stay where not all are shown; default: the first ones.
        rows: shown in place of sample rows (a row context).
        formats: tell how the columns' texts are written, too, which is read off the rows.
    """
    qualified = need_schemas(shown | {table.ref}, dialect)
    order = order or ColumnOrder(tuple(range(len(table.columns))))
    columns = [table.columns[position] for position in order.shown(detail.columns)]
    profiles = {profile.column: profile for profile in table.profile}
    lines = []
    for column in columns:
        type_ = f" {one_line(column.type, 30)}" if column.type else ""
        key = " PRIMARY KEY" if table.primary_key == (column.name,) else ""
        said = ""
        if detail.comments:
            said = masked_line(description_of(column), MAX_COLUMN_COMMENT_CHARS)
            if formats and column.name in profiles:
                written = column_format(column, profiles[column.name]).in_words()
                said = "; ".join(filter(None, (said, one_line(written, MAX_FORMAT_CHARS))))
        comment = f" -- {said}" if said else ""
        lines.append((f"{shown_name(column.name, dialect)}{type_}{key}", comment))
    if 1 < len(table.primary_key) <= detail.columns:
        lines.append((f"PRIMARY KEY ({_names(table.primary_key, dialect)})", ""))
    for foreign in [key for key in table.foreign_keys if key.target in shown][: detail.columns]:
        own, other = _names(foreign.columns, dialect), _names(foreign.target_columns, dialect)
        target = table_shown(foreign.target, dialect, qualified)
        lines.append((f"FOREIGN KEY ({own}) REFERENCES {target} ({other})", ""))
    body = ",\n".join(f"  {line}{comment}" for line, comment in lines)
    text = f"CREATE TABLE {table_shown(table.ref, dialect, qualified)} (\n{body}\n)"
    left_out = len(table.columns) - len(columns)
    if left_out > 0:
        text += f"\n-- and {left_out} more columns"
    if detail.comments and (said := description_of(table)):
        text += f"\n-- {masked_line(said, MAX_COMMENT_CHARS)}"
    if rows is None:
        return text + _sample_lines(table, columns, detail.rows)
    return text + _context_lines(columns, rows if detail.rows else ())


def _is_named(column: Column, asked: Set[str]) -> bool:
    """Whether the question says every word of one of the column's names."""
    names = (plain_words(split_identifier(name[:MAX_NAME_CHARS])) for name in spoken_names(column))
    return any(words and asked >= set(stemmed(words)) for words in names)


def _names(names: Sequence[str], dialect: str) -> str:
    return ", ".join(shown_name(name, dialect) for name in names)


def _sample_lines(table: Table, columns: Sequence[Column], n: int) -> str:
    if not table.sample_rows:
        return "\n-- no rows" if table.row_count == 0 else ""
    if not n:
        return ""
    at = {column.name: i for i, column in enumerate(table.columns)}
    return _row_lines(
        [[row[at[column.name]] for column in columns] for row in table.sample_rows[:n]]
    )


def _context_lines(columns: Sequence[Column], rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows of a row context; a cell that the index does not hold is an ellipsis."""
    if not rows:
        return ""
    found = [[row.get(column.name, "…") for column in columns] for row in rows]
    return _row_lines([[None if c is None else text_value(c) for c in cells] for cells in found])


def _row_lines(rows: Sequence[Sequence[str | None]]) -> str:
    lines = [
        " | ".join("NULL" if c is None else masked_line(c, MAX_CELL_CHARS) for c in cells)
        for cells in rows
    ]
    return "\n-- rows:\n" + "\n".join(f"-- {line}" for line in lines)
