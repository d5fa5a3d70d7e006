"""What a table holds, from one bounded read: counts, extremes, frequent values, samples."""

from __future__ import annotations

import logging
import time
from collections import Counter
from dataclasses import replace
from itertools import chain
from sys import getsizeof
from typing import TYPE_CHECKING, Any

from dbrag.errors import ExecutionError, LimitReached
from dbrag.execution.limits import within
from dbrag.sources.statements import HIDDEN, LONG_BLOB_BYTES, count_rows, select_rows
from dbrag.types import ColumnProfile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dbrag.sources import Session, Source
    from dbrag.types import Table

log = logging.getLogger(__name__)

DISPLAY_CHARACTERS = 200
"""Longest text of a cell in a profile or a sample row."""
KEPT_CHARACTERS = 10_000
"""Longest text of a cell in the rows that are read; the rest is cut, ending in "…"."""
KEPT_MB = 256
"""Memory the rows of one table may take; reading stops there."""
FREQUENT = 10
SAMPLES = 5
SAMPLE_ROWS = 5

_ROWS_FOR_SAMPLES = 20
_BATCH = 1000
# The rest of the time is for counting rows.
_READING = 0.8


def profile_table(
    source: Source, table: Table, *, profile_rows: int, profile_s: float
) -> tuple[Table, list[tuple[Any, ...]]]:
    """The table with its profile, and the rows that were read for it.

    Cells over 10,000 characters are cut and long binary cells stand as
    ``<blob 1234 bytes>``, in the profile and in the rows. A view or table whose query
    fails comes back without profile, its comment saying why.

    Args:
        profile_rows: rows to read at most.
        profile_s: seconds to spend at most; what was read by then counts.

    Raises:
        SourceError: the database is malformed, locked or gone.
    """
    if not table.columns:
        return table, []
    rows: list[tuple[Any, ...]] = []
    started = time.monotonic()
    try:
        with source.session() as session:
            whole = _read(session, table, rows, profile_rows, profile_s * _READING, source.dialect)
            left = profile_s - (time.monotonic() - started)
            count = len(rows) if whole else _count(session, table, left, source.dialect)
    except ExecutionError as error:
        log.warning("%s cannot be read: %s", table.ref, error.message)
        return replace(table, comment=f"cannot be read: {error.message}"), []
    profiled = replace(
        table,
        row_count=count,
        rows_read=len(rows),
        sampled=not whole,
        profile=tuple(
            _profile(column.name, [row[i] for row in rows])
            for i, column in enumerate(table.columns)
            if column.comment != HIDDEN
        ),
        sample_rows=_sample_rows(rows),
    )
    return profiled, rows


def _read(
    session: Session,
    table: Table,
    rows: list[tuple[Any, ...]],
    limit: int,
    seconds: float,
    dialect: str,
) -> bool:
    """Fill ``rows``; True when they are all there are."""

    def work() -> bool:
        session.execute(select_rows(table, limit + 1, dialect))
        size, batch_rows = 0, 1
        while batch := session.fetch(min(batch_rows, limit + 1 - len(rows))):
            sizes = list(map(getsizeof, chain.from_iterable(batch)))
            if max(sizes) > LONG_BLOB_BYTES:
                batch = [tuple(map(_kept, row)) for row in batch]
                sizes = list(map(getsizeof, chain.from_iterable(batch)))
            rows.extend(batch)
            size += sum(sizes)
            if len(rows) > limit:
                rows.pop()
                return False
            if size > KEPT_MB * 2**20:
                log.info("%s: stopped reading at %d MB", table.ref, KEPT_MB)
                return False
            batch_rows = min(_BATCH, 2 * batch_rows)
        return True

    try:
        return within(session, work, seconds)
    except LimitReached as error:
        log.info("%s: %s", table.ref, error.message)
        return False


def _count(session: Session, table: Table, seconds: float, dialect: str) -> int | None:
    """The exact number of rows, None if counting takes longer."""

    def work() -> int:
        session.execute(count_rows(table, dialect))
        return int(session.fetch(1)[0][0])

    try:
        return within(session, work, seconds) if seconds > 0 else None
    except LimitReached:
        return None


def _kept(value: Any) -> Any:
    if isinstance(value, str) and len(value) > KEPT_CHARACTERS:
        return value[:KEPT_CHARACTERS] + "…"
    if isinstance(value, bytes) and len(value) > LONG_BLOB_BYTES:
        return display(value)
    return value


def display(value: Any) -> str | None:
    """A cell as people and models read it: at most 200 characters, None for NULL."""
    if value is None:
        return None
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"<blob {len(value)} bytes>"
    text = value if isinstance(value, str) else str(value)
    return text if len(text) <= DISPLAY_CHARACTERS else text[: DISPLAY_CHARACTERS - 1] + "…"


def _profile(name: str, values: Sequence[Any]) -> ColumnProfile:
    try:
        counts = Counter(values)
    except TypeError:  # lists and the like of other engines
        counts = Counter(map(repr, values))
    nulls = counts.pop(None, 0)
    low, high = _extremes(counts)
    return ColumnProfile(
        column=name,
        nulls=nulls,
        distinct=len(counts),
        minimum=display(low),
        maximum=display(high),
        # Counter and dict keep the order of rows, so ties are settled by it.
        frequent=tuple((display(v) or "", n) for v, n in counts.most_common(FREQUENT)),
        samples=tuple(display(v) or "" for v, _ in zip(counts, range(SAMPLES), strict=False)),
    )


def _extremes(values: Iterable[Any]) -> tuple[Any, Any]:
    """Least and greatest as SQLite sorts: numbers, then text, then binary."""
    groups: dict[int, list[Any]] = {}
    for value in values:
        kind = type(value)
        rank = 1 if kind is str else 2 if kind is bytes else 0
        groups.setdefault(rank, []).append(value)
    if not groups:
        return None, None
    return _pick(min, groups[min(groups)]), _pick(max, groups[max(groups)])


def _pick(choose: Any, values: list[Any]) -> Any:
    try:
        return choose(values)
    except TypeError:  # kinds that have no order among each other
        return choose(values, key=str)


def _sample_rows(rows: Sequence[tuple[Any, ...]]) -> tuple[tuple[str | None, ...], ...]:
    """Of the first rows those with the fewest NULLs, in their order."""
    first = rows[:_ROWS_FOR_SAMPLES]
    best = sorted(range(len(first)), key=lambda i: sum(v is None for v in first[i]))[:SAMPLE_ROWS]
    return tuple(tuple(map(display, first[i])) for i in sorted(best))
