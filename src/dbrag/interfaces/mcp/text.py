"""Results as plain text, beside the structured content: short, one cell on one line.

What comes from the data stands as it is, control characters escaped; nothing here tells the reader
what to do but how to get the next page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dbrag.interfaces.cli.render import count
from dbrag.interfaces.cli.tables import cell_text
from dbrag.reasoning.sureness import in_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dbrag.interfaces.mcp.shapes import (
        Answered,
        ColumnInfo,
        FoundTables,
        FoundValues,
        Notice,
        Rows,
        TableInfo,
    )

_LISTED = 10


def tables_text(found: FoundTables) -> str:
    """The tables that fit, best first."""
    lines = [_shown(found.shown, found.next_offset)]
    for one in found.tables:
        rows = "" if one.row_count is None else f", {count(one.row_count, 'row')}"
        lines.append(f"{cell_text(one.table)} (score {one.score:g}{rows}): {cell_text(one.reason)}")
        more = one.column_count - len(one.columns)
        names = [cell_text(name) for name in one.columns] + ([f"{more:,} more"] if more else [])
        lines.append(f"  columns: {', '.join(names)}")
        lines += [
            f"  {cell_text(v.column)} holds {cell_text(v.value)} ({v.how})"
            for v in one.values[:_LISTED]
        ]
    return "\n".join(lines + _notices(found.warnings))


def table_text(table: TableInfo) -> str:
    """A table, its columns and joins."""
    rows = "" if table.row_count is None else f", {count(table.row_count, 'row')}"
    lines = [f"{table.kind} {cell_text(table.table)}{rows}; in SQL ({table.dialect}): "]
    lines[0] += cell_text(table.sql_name)
    if table.comment:
        lines.append(f"comment: {cell_text(table.comment)}")
    if table.primary_key:
        lines.append(f"primary key: {', '.join(map(cell_text, table.primary_key))}")
    lines.append(_shown(table.shown, table.next_offset))
    lines += [f"  {_column(column)}" for column in table.columns]
    for join in table.joins[:_LISTED]:
        sure = "declared" if join.declared else f"inferred, {join.confidence:.0%} sure"
        lines.append(f"join ({sure}): {cell_text(join.on)}")
    if (more := table.join_count - len(table.joins[:_LISTED])) > 0:
        lines.append(f"and {count(more, 'more join')}")
    lines += [f"note: {cell_text(note)}" for note in table.notes]
    if table.redacted:
        lines.append(f"redacted, nobody may read them: {count(table.redacted, 'column')}")
    return "\n".join(lines)


def _column(column: ColumnInfo) -> str:
    parts = [f"{cell_text(column.name)} {cell_text(column.type)}".rstrip()]
    parts += [] if column.nullable else ["not null"]
    parts += [cell_text(column.comment)] if column.comment else []
    if column.distinct is not None:
        parts.append(f"{column.distinct:,} distinct")
    if column.frequent:
        parts.append("for example " + ", ".join(map(cell_text, column.frequent)))
    return "; ".join(parts)


def values_text(found: FoundValues) -> str:
    """The places where a value is stored."""
    lines = [_shown(found.shown, found.next_offset)]
    lines += [
        f"{cell_text(one.table)}.{cell_text(one.column)}: {cell_text(one.value)} ({one.how})"
        for one in found.values
    ]
    return "\n".join(lines)


def rows_text(result: Rows) -> str:
    """The rows, cells parted by bars."""
    lines = [
        _shown(result.shown, result.next_offset),
        _bars([column.name for column in result.columns]),
        *map(_bars, result.rows),
    ]
    for cut in result.cut[:_LISTED]:
        name = cell_text(result.columns[cut.column].name)
        lines.append(
            f"cut: row {result.offset + cut.row + 1:,}, {name} has {cut.characters:,} characters"
        )
    if (more := len(result.cut) - _LISTED) > 0:
        lines.append(f"cut: {count(more, 'more cell')}")
    lines += [result.paging] if result.paging else []
    return "\n".join(lines + _notices(result.warnings))


def _bars(cells: Sequence[Any]) -> str:
    return " | ".join(map(cell_text, cells))


def answer_text(answer: Answered) -> str:
    """The answer, what it rests on, and other readings."""
    lines = [cell_text(answer.text)]
    if answer.error is not None:
        lines = [f"{answer.status} ({answer.error.code}): {cell_text(answer.error.message)}"]
    if answer.result is not None:
        lines.append(rows_text(answer.result))
        lines.append(f"tables: {', '.join(map(cell_text, answer.result.tables))}")
    if answer.sql:
        lines.append(f"sql: {cell_text(answer.sql)}")
    if answer.agreement is not None:
        programs = count(answer.votes_valid, "program")
        lines.append(f"agreement: {answer.agreement:.0%} of {programs} gave this result")
    if answer.confidence is not None:
        lines.append(f"confidence: {in_words(answer.confidence)}")
    for reading in answer.readings:
        lines.append(
            f"another reading ({cell_text(reading.difference)}): {cell_text(reading.text)}; "
            f"its sql: {cell_text(reading.sql)}"
        )
    return "\n".join(lines + _notices(answer.warnings))


def _shown(shown: str, next_offset: int | None) -> str:
    return f"showing {shown}" + ("" if next_offset is None else f"; next: offset={next_offset}")


def _notices(warnings: Iterable[Notice]) -> list[str]:
    return [f"warning ({one.code}): {cell_text(one.message)}" for one in warnings]
