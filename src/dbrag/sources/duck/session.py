"""One session on a sealed DuckDB: a single SELECT at a time, values exact."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from dbrag.errors import DbragError, ExecutionError, Refused
from dbrag.sources.duck.exact import exact_select, iso_interval
from dbrag.sources.duck.parser import parse_select

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duckdb import DuckDBPyConnection

    from dbrag.sources.duck.parser import ParsedSelect

_TABLE_FUNCTIONS = frozenset(
    {
        "generate_series",
        "generate_subscripts",
        "json_each",
        "json_tree",
        "range",
        "repeat",
        "repeat_row",
        "unnest",
    }
)
"""Functions in a FROM that only compute; the others read files, settings or statements."""


class DuckSession:
    """One read-only cursor, used by one thread at a time.

    Args:
        cursor: of a sealed engine; nobody else uses it.
        translate: makes an error of DuckDB one of ours.
        prepare: is told what a statement reads before it runs.
        check: raises where the data changed under the statement.
        functions: the user's own functions in a FROM.
    """

    def __init__(
        self,
        cursor: DuckDBPyConnection,
        translate: Callable[[Exception], DbragError],
        prepare: Callable[[ParsedSelect], None] = lambda parsed: None,
        check: Callable[[], None] = lambda: None,
        functions: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        self._cursor = cursor
        self._translate = translate
        self._prepare = prepare
        self._check = check
        self._functions = functions
        self._running = False
        self._intervals: list[int] = []

    def execute(self, sql: str) -> Sequence[str]:
        """Start a statement; the names of its result columns, duplicates kept.

        Raises:
            ExecutionError: it is no SELECT, or DuckDB rejects it; UnknownName for an
                unknown name.
            SourceError: the data cannot be read, or changed meanwhile.
            LimitReached: it needs too much memory.
        """
        self._running = False
        try:
            self._prepare(self._parsed(sql))
            result = self._cursor.sql(sql)
            names, types = result.columns, result.types
            self._cursor.execute(exact_select(sql, types))
        except Exception as error:
            raise self._translated(error) from error
        self._running = True
        self._intervals = [i for i, kind in enumerate(types) if kind.id == "interval"]
        return list(names)

    def fetch(self, n: int) -> list[tuple[Any, ...]]:
        """The next at most ``n`` rows of the statement, empty at the end.

        Raises:
            ExecutionError, SourceError, LimitReached: as ``execute``.
        """
        if not self._running:
            return []
        try:
            rows: list[tuple[Any, ...]] = self._cursor.fetchmany(n)
            if len(rows) < n:
                self._check()
        except Exception as error:
            self._running = False
            raise self._translated(error) from error
        return [self._with_intervals(row) for row in rows] if self._intervals else rows

    def _with_intervals(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        cells = list(row)
        for i in self._intervals:
            cells[i] = None if cells[i] is None else iso_interval(cells[i])
        return tuple(cells)

    def cancel(self) -> None:
        """Stop the running statement; may be called from another thread."""
        with suppress(Exception):  # closed meanwhile: nothing left to stop
            self._cursor.interrupt()

    def finish(self) -> None:
        """Close the cursor, and with it whatever it still holds."""
        with suppress(Exception):
            self._cursor.close()

    def _parsed(self, sql: str) -> ParsedSelect:
        """What the statement reads; the last wall before DuckDB, whoever wrote it."""
        try:
            parsed = parse_select(sql)
        except Refused as error:
            raise ExecutionError(error.message, error.hint) from error
        unknown = parsed.table_functions - _TABLE_FUNCTIONS
        if unknown and (unknown := unknown - self._functions()):
            raise ExecutionError(
                f"only reading is allowed: the function {min(unknown)!r} may not stand in a FROM",
                "write SELECT … FROM a table",
            )
        return parsed

    def _translated(self, error: Exception) -> DbragError:
        if isinstance(error, DbragError):
            return error
        try:
            self._check()
        except DbragError as changed:  # then that is why
            return changed
        return self._translate(error)
