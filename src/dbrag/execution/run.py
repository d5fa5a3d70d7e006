"""Running an admitted statement over the full tables, within limits.

Nothing is ever cut: a result over a limit is an error that says which limit.
"""

from __future__ import annotations

import time
from itertools import chain
from sys import getsizeof
from typing import TYPE_CHECKING, Any

from dbrag.errors import LimitReached
from dbrag.execution.guard import Admitted, admit
from dbrag.execution.limits import within
from dbrag.types import Execution, ResultColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbrag.sources import Session, Source
    from dbrag.types import Table

_BATCH_ROWS = 1000
_BATCH_BYTES = 4 * 2**20
_MB = 2**20


def run(source: Source, sql: str, *, timeout_s: float, max_rows: int, max_mb: int) -> Execution:
    """The whole result of a statement that the guard has admitted.

    Args:
        timeout_s: seconds it may take, fetching included.
        max_rows: rows the result may have.
        max_mb: memory the result's values may take.

    Raises:
        LimitReached: one of the three limits, named in the message.
        ExecutionError: the engine rejects the statement.
        SourceError: the database is locked, malformed or gone.
        KeyboardInterrupt: Ctrl-C; the statement is cancelled.
    """
    started = time.perf_counter()
    with source.session() as session:
        names, rows = within(
            session,
            lambda: _collect(session, sql, max_rows, max_mb),
            timeout_s,
            "ask for less, or raise timeout_s (DBRAG_TIMEOUT_S)",
        )
    columns = tuple(
        ResultColumn(name, arrow_type([row[i] for row in rows])) for i, name in enumerate(names)
    )
    return Execution(columns, tuple(rows), time.perf_counter() - started)


def run_admitted(
    source: Source,
    sql: str,
    tables: Sequence[Table],
    *,
    timeout_s: float,
    max_rows: int,
    max_mb: int,
) -> tuple[Admitted, Execution]:
    """Let the guard look at ``sql`` and run what it admits.

    Raises:
        Refused, UnknownName: the guard does not admit it.
        LimitReached, ExecutionError, SourceError: as ``run``.
    """
    admitted = admit(sql, source.dialect, tables)
    result = run(source, admitted.sql, timeout_s=timeout_s, max_rows=max_rows, max_mb=max_mb)
    return admitted, result


def _collect(
    session: Session, sql: str, max_rows: int, max_mb: int
) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
    names = session.execute(sql)
    rows: list[tuple[Any, ...]] = []
    size, batch_rows = 0, 1
    while batch := session.fetch(min(batch_rows, max_rows + 1 - len(rows))):
        rows += batch
        size += sum(map(getsizeof, batch)) + sum(map(getsizeof, chain.from_iterable(batch)))
        if len(rows) > max_rows:
            raise LimitReached(
                f"the result has more than {max_rows:,} rows",
                "aggregate or filter, or raise max_result_rows (DBRAG_MAX_RESULT_ROWS)",
            )
        if size > max_mb * _MB:
            raise LimitReached(
                f"the result takes more than {max_mb:,} MB",
                "select fewer columns, or raise max_result_mb (DBRAG_MAX_RESULT_MB)",
            )
        # Rows of megabytes each are fetched few at a time, so the limit is met early.
        batch_rows = max(1, min(_BATCH_ROWS, _BATCH_BYTES * len(rows) // size))
    return names, rows


def arrow_type(values: Sequence[Any]) -> str:
    """Text of the Arrow type that holds ``values`` exactly; "mixed" where none does.

    Whole and floating numbers together are "double" if no whole number loses a digit.
    """
    kinds = set(map(type, values)) - {type(None)}
    if not kinds:
        return "null"
    if kinds == {int, float} and all(_exact_as_double(v) for v in values if type(v) is int):
        return "double"
    return _ARROW.get(next(iter(kinds)), "mixed") if len(kinds) == 1 else "mixed"


_ARROW: dict[type, str] = {
    int: "int64",
    float: "double",
    str: "string",
    bytes: "binary",
    bool: "bool",
}


def _exact_as_double(value: int) -> bool:
    return -(2**53) <= value <= 2**53 or int(float(value)) == value
