"""Running an admitted statement over the full tables, within limits.

Nothing is ever cut: a result over a limit is an error that says which limit.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Set
from decimal import Decimal
from itertools import chain
from sys import getsizeof
from typing import TYPE_CHECKING, Any

from dbrag.arrow import arrow_type
from dbrag.errors import ExecutionError, LimitReached
from dbrag.execution.limits import within
from dbrag.types import Execution, ResultColumn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dbrag.execution.guard import Admitted
    from dbrag.settings import Settings
    from dbrag.sources import Session, Source
    from dbrag.types import TableRef

_BATCH_ROWS = 1000
_BATCH_BYTES = 4 * 2**20
_MB = 2**20
MEND = "mend the statement, or ask in other words; its columns: dbrag search QUESTION"
_SERVER_GRACE_S = 1.0
"""The server's own limit comes second: ours has a message that names the tables."""


def run(
    source: Source,
    sql: str,
    *,
    timeout_s: float,
    max_rows: int,
    max_mb: int,
    tables: Sequence[TableRef] = (),
) -> Execution:
    """The whole result of a statement that the guard has admitted.

    Args:
        timeout_s: seconds it may take, fetching included; a server ends it then by itself.
        max_rows: rows the result may have.
        max_mb: memory the result's values may take.
        tables: what it reads, for the message when time is up.

    Raises:
        LimitReached: one of the three limits, named in the message.
        ExecutionError: the engine rejects the statement.
        SourceError: the database is locked, malformed or gone.
        KeyboardInterrupt: Ctrl-C; the statement is cancelled.
    """
    started = time.perf_counter()
    with source.session(timeout_s + _SERVER_GRACE_S) as session:
        names, rows = within(
            session,
            lambda: _collect(session, sql, max_rows, max_mb),
            timeout_s,
            "ask for less, or raise timeout_s (DBRAG_TIMEOUT_S)",
            _reading(source, tables),
        )
    columns = tuple(
        ResultColumn(name, arrow_type([row[i] for row in rows])) for i, name in enumerate(names)
    )
    return Execution(columns, tuple(rows), time.perf_counter() - started)


def run_admitted(source: Source, admitted: Admitted, settings: Settings) -> Execution:
    """:func:`run` with what the guard gave and the limits of the settings."""
    try:
        return run(
            source,
            admitted.sql,
            timeout_s=settings.timeout_s,
            max_rows=settings.max_result_rows,
            max_mb=settings.max_result_mb,
            tables=admitted.tables,
        )
    except ExecutionError as error:
        error.hint = error.hint or MEND  # few engines say how
        raise


def _collect(
    session: Session, sql: str, max_rows: int, max_mb: int
) -> tuple[Sequence[str], list[tuple[Any, ...]]]:
    names = session.execute(sql)
    rows: list[tuple[Any, ...]] = []
    size, batch_rows = 0, 1
    while batch := session.fetch(min(batch_rows, max_rows + 1 - len(rows))):
        rows += batch
        size += sum(map(getsizeof, batch)) + sum(map(_size, chain.from_iterable(batch)))
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


def _size(value: Any) -> int:
    """Bytes of a cell with what lies in it."""
    if type(value) in _FLAT:
        return getsizeof(value)
    size, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        size += getsizeof(one)
        if isinstance(one, Mapping):
            waiting += chain(one.keys(), one.values())
        elif isinstance(one, list | tuple | Set):
            waiting += one
    return size


_FLAT = frozenset({type(None), bool, int, float, str, bytes, Decimal})


def _reading(source: Source, tables: Sequence[TableRef]) -> str:
    if not tables:
        return f"reading {source.name}"
    more = f" and {len(tables) - 3} more tables" if len(tables) > 3 else ""
    return f"reading {', '.join(map(str, tables[:3]))}{more}"
