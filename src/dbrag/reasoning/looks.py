"""A look at a step: its columns, how many rows it has, and the first of them.

A look runs the step and all that it reads, so it is bounded (rows, bytes, seconds), and
made only where that is cheap, in local engines, or where the user asks for it. Cells are
shown as in every prompt: on one line, cut, secrets masked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp

from dbrag.errors import LimitReached
from dbrag.execution.guard import Admitted
from dbrag.execution.run import run
from dbrag.reasoning.names import MAX_CELL_CHARS
from dbrag.reasoning.step_columns import unique
from dbrag.settings import Settings
from dbrag.sources.base import Source
from dbrag.textsafe import masked_line
from dbrag.types import Execution
from dbrag.values import text_value

COUNTED_ROWS = 1_000
"""Rows up to which a look counts; of more it says only that there are more."""
SHOWN_ROWS = 3
LOOK_S = 5.0
"""Seconds that a look may take, if ``timeout_s`` is not shorter."""
LOOK_MB = 64

_LOCAL = ("sqlite", "duckdb")


@dataclass(frozen=True, slots=True)
class Look:
    """What is known of a step that was written.

    Attributes:
        columns: names as later steps write them, with Arrow types ("" if not looked at).
        row_count: None where it is not known.
        more: there are more rows than ``row_count`` says.
        rows: the first ones, [n_rows, n_columns] texts as shown.
        missing: why nothing was looked at; empty where it was.
    """

    columns: tuple[tuple[str, str], ...] = ()
    row_count: int | None = None
    more: bool = False
    rows: tuple[tuple[str, ...], ...] = ()
    missing: str = ""

    def event(self) -> dict[str, Any]:
        """Its part of the trace."""
        return {
            "columns": [{"name": name, "type": type_} for name, type_ in self.columns],
            "row_count": self.row_count,
            "more": self.more,
            "rows": [list(row) for row in self.rows],
            "not_looked_at": self.missing,
        }


def are_cheap(source: Source) -> bool:
    """Whether the engine runs in this process: SQLite, DuckDB, data files."""
    return source.dialect in _LOCAL and "://" not in source.location


def are_wanted(settings: Settings, source: Source) -> bool:
    """Whether steps are looked at: as set, or by the engine."""
    return settings.looks == "on" or (settings.looks == "auto" and are_cheap(source))


def look(
    admitted: Admitted, source: Source, settings: Settings, admit: Callable[[str], Admitted]
) -> tuple[Look, Execution | None]:
    """Look at the result of a statement; what was read, None where a limit was reached.

    Args:
        admit: the guard, which the bounded statement passes, too.

    Raises:
        ExecutionError, SourceError: the statement fails.
    """
    bounded = admit(_bounded(admitted.sql, source.dialect))
    try:
        execution = run(
            source,
            bounded.sql,
            timeout_s=min(LOOK_S, settings.timeout_s),
            max_rows=COUNTED_ROWS + 1,
            max_mb=min(LOOK_MB, settings.max_result_mb),
            tables=bounded.tables,
        )
    except LimitReached as error:
        return Look(missing=error.message), None
    counted = len(execution.rows) if len(execution.rows) <= COUNTED_ROWS else None
    return seen(execution, counted), execution


def seen(execution: Execution, row_count: int | None) -> Look:
    """A result as a look.

    Args:
        row_count: None where there are more rows than are counted.
    """
    names = unique([column.name for column in execution.columns])
    types = [column.type for column in execution.columns]
    return Look(
        columns=tuple(zip(names, types, strict=True)),
        row_count=COUNTED_ROWS if row_count is None else row_count,
        more=row_count is None,
        rows=tuple(_shown(row) for row in execution.rows[:SHOWN_ROWS]),
    )


def _shown(row: Sequence[object]) -> tuple[str, ...]:
    return tuple(
        "NULL" if cell is None else masked_line(text_value(cell), MAX_CELL_CHARS) for cell in row
    )


def _bounded(sql: str, dialect: str) -> str:
    """The statement, at most one row longer than what is counted."""
    tree = sqlglot.parse_one(sql, dialect=dialect)
    limit = tree.args.get("limit")
    most = exp.Literal.number(COUNTED_ROWS + 1)
    if limit is None:
        tree.set("limit", exp.Limit(expression=most))
    else:
        part = "count" if isinstance(limit, exp.Fetch) else "expression"
        own = limit.args.get(part)
        if isinstance(own, exp.Literal) and own.name.isdigit() and int(own.name) > COUNTED_ROWS:
            limit.set(part, most)
    return tree.sql(dialect=dialect)
