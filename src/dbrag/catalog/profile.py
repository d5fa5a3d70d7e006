"""What a table holds, from one bounded read: counts, extremes, frequent values, samples."""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import chain
from sys import getsizeof
from typing import TYPE_CHECKING, Any

from dbrag.catalog.whole import of_whole
from dbrag.errors import ExecutionError, LimitReached, SourceBusy, UnknownName
from dbrag.execution.limits import within
from dbrag.settings import SAMPLE_ROWS
from dbrag.sources.base import PartSource
from dbrag.sources.statements import (
    HIDDEN,
    LONG_BLOB_BYTES,
    LONG_TEXT_CHARACTERS,
    MUCH_LARGER,
    count_rows,
    form_of,
    key_range,
    sample_rows,
    select_rows,
    spread_rows,
)
from dbrag.types import ColumnProfile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dbrag.sources import Session, Source
    from dbrag.types import Table

log = logging.getLogger(__name__)

DISPLAY_CHARACTERS = 200
"""Longest text of a cell in a profile or a sample row."""
KEPT_CHARACTERS = LONG_TEXT_CHARACTERS
"""Longest text of a cell in the rows that are read; the rest is cut, ending in "…"."""
KEPT_MB = 256
"""Memory the rows of one table may take; reading stops there."""
FREQUENT = 10
SAMPLES = 5

_ROWS_FOR_SAMPLES = 20
_BATCH = 1000
_MAY_BE_NAN = (float, Decimal)
# The rest of the time is for counting rows.
_READING = 0.8
# A sample with fewer of the wanted rows tells that the engine's number of rows is wrong.
_ENOUGH = 0.1
# How engines that cannot mix text and binary in a column give a long binary cell.
_CUT_BLOB = re.compile(rb"<blob \d+ bytes>")


def profile_table(
    source: Source, table: Table, *, profile_rows: int, profile_s: float
) -> tuple[Table, list[tuple[Any, ...]]]:
    """The table with its profile, and the rows that were read for it.

    Cells over 10,000 characters are cut and long binary cells stand as
    ``<blob 1234 bytes>``, in the profile and in the rows. Of a much larger table the rows
    come from all over it where the engine can do that cheaply; what it knows of the whole
    table then stands in the profile. A view or table whose query fails, or that is locked
    on a server, comes back without profile, its comment saying why.

    Args:
        profile_rows: rows to read at most.
        profile_s: seconds to spend at most; what was read by then counts.

    Raises:
        SourceError: the database is malformed, locked or gone.
    """
    if not table.columns:
        return table, []
    reading = _Reading(source, table, profile_rows)
    started = time.monotonic()
    try:
        whole = reading.read(profile_s * _READING)
        rows, count = reading.rows, table.row_count
        if whole:
            count = len(rows)
        elif count is None:
            count = _count(source, table, profile_s - (time.monotonic() - started))
    except (ExecutionError, SourceBusy) as error:
        if isinstance(error, SourceBusy) and source.dialect == "sqlite":
            raise  # there the lock is on the whole file
        log.warning("%s cannot be read: %s", table.ref, error.message)
        return replace(table, comment=f"cannot be read: {error.message}"), []
    profile = tuple(
        _profile(column.name, [row[i] for row in rows])
        for i, column in enumerate(table.columns)
        if column.comment != HIDDEN
    )
    if not whole:
        total = table.estimate if count is None else count
        known = source.statistics(table)
        profile = tuple(of_whole(one, known.get(one.column), total, len(rows)) for one in profile)
    profiled = replace(
        table,
        row_count=count,
        rows_read=len(rows),
        sampled=not whole,
        profile=profile,
        sample_rows=_sample_rows(rows),
    )
    return profiled, rows


@dataclass
class _Reading:
    """The bounded read of one table."""

    source: Source
    table: Table
    limit: int
    rows: list[tuple[Any, ...]] = field(default_factory=list)

    def read(self, seconds: float) -> bool:
        """Fill ``rows``; True when they are all there are.

        What the driver cannot load is read again as text; a broken view fails twice.
        """
        started = time.monotonic()
        try:
            return self._read(seconds, as_text=False)
        except ExecutionError as error:
            left = seconds - (time.monotonic() - started)
            if self.source.dialect == "sqlite" or isinstance(error, UnknownName) or left <= 0:
                raise
            log.info("%s is read as text: %s", self.table.ref, error.message)
            self.rows.clear()
            return self._read(left, as_text=True)

    def _read(self, seconds: float, *, as_text: bool) -> bool:
        if not as_text and self._read_part(seconds):
            return False
        with self.source.session(seconds) as session:

            def work() -> bool:
                sample = self._sample(session, as_text)
                if sample is not None:
                    self._fetch(session, sample)
                    if len(self.rows) >= self.limit * _ENOUGH:
                        return False
                    self.rows.clear()
                statement = select_rows(
                    self.table, self.limit + 1, self.source.dialect, as_text=as_text
                )
                return self._fetch(session, statement)

            try:
                return within(session, work, seconds, doing=f"reading {self.table.ref}")
            except LimitReached as error:
                log.info("%s: %d rows of it count", error.message, len(self.rows))
                return False

    def _read_part(self, seconds: float) -> bool:
        """Read from all over the table where the source itself can do that; True if so."""
        source, table, limit = self.source, self.table, self.limit
        if not isinstance(source, PartSource) or (table.estimate or 0) <= MUCH_LARGER * limit:
            return False
        with source.part_session(table, limit) as session:
            if session is None:
                return False
            part = session
            statement = select_rows(table, limit, source.dialect)
            try:
                within(
                    part,
                    lambda: self._fetch(part, statement),
                    seconds,
                    doing=f"reading {table.ref}",
                )
            except LimitReached as error:
                log.info("%s: %d rows of it count", error.message, len(self.rows))
        return bool(self.rows)

    def _sample(self, session: Session, as_text: bool) -> str | None:
        """The statement that reads rows from all over the table, if there is one."""
        table, limit, dialect = self.table, self.limit, self.source.dialect
        ends = key_range(table, limit, dialect)
        if ends is None:
            return sample_rows(table, limit, dialect, as_text=as_text)
        session.execute(ends)
        low, high = session.fetch(1)[0]
        if low is None:
            return None
        return spread_rows(table, limit, dialect, int(low), int(high), as_text=as_text)

    def _fetch(self, session: Session, statement: str) -> bool:
        """Read a statement's rows up to the limit; True when there are no more."""
        rows, limit = self.rows, self.limit
        binary = self.source.dialect != "sqlite" and any(
            form_of(column.type) == "binary" for column in self.table.columns
        )
        session.execute(statement)
        size, batch_rows = 0, 1
        while batch := session.fetch(min(batch_rows, limit + 1 - len(rows))):
            sizes = list(map(getsizeof, chain.from_iterable(batch)))
            if binary or max(sizes) > LONG_BLOB_BYTES:
                batch = [tuple(map(_kept, row)) for row in batch]
                sizes = list(map(getsizeof, chain.from_iterable(batch)))
            rows.extend(batch)
            size += sum(sizes)
            if len(rows) > limit:
                rows.pop()
                return False
            if size > KEPT_MB * 2**20:
                log.info("%s: stopped reading at %d MB", self.table.ref, KEPT_MB)
                return False
            batch_rows = min(_BATCH, 2 * batch_rows)
        return True


def _count(source: Source, table: Table, seconds: float) -> int | None:
    """The exact number of rows, None if counting takes longer.

    On a session of its own: after a statement that was stopped, a server refuses
    others in the same transaction.
    """
    if seconds <= 0:
        return None
    with source.session(seconds) as session:

        def work() -> int:
            session.execute(count_rows(table, source.dialect))
            return int(session.fetch(1)[0][0])

        try:
            return within(session, work, seconds, doing=f"counting {table.ref}")
        except LimitReached as error:
            log.info("%s", error.message)
            return None


def _kept(value: Any) -> Any:
    if isinstance(value, str) and len(value) > KEPT_CHARACTERS:
        return value[:KEPT_CHARACTERS] + "…"
    if isinstance(value, (bytes, bytearray, memoryview)):
        value = bytes(value)
        if len(value) > LONG_BLOB_BYTES:
            return display(value)
        return value.decode("ascii") if _CUT_BLOB.fullmatch(value) else value
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
        counts = Counter(map(_hashable, values))
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


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        return str(value)
    return value


def _extremes(values: Iterable[Any]) -> tuple[Any, Any]:
    """Least and greatest as SQLite sorts: numbers, then text, then binary."""
    groups: dict[int, list[Any]] = {}
    for value in values:
        kind = type(value)
        if kind in _MAY_BE_NAN and not _is_number(value):
            continue
        rank = 1 if kind is str else 2 if kind is bytes else 0
        groups.setdefault(rank, []).append(value)
    if not groups:
        return None, None
    return _pick(min, groups[min(groups)]), _pick(max, groups[max(groups)])


def _pick(choose: Any, values: list[Any]) -> Any:
    try:
        return choose(values)
    except TypeError:  # kinds that have no order among each other, times with and without zone
        return choose(values, key=str)


def _is_number(value: float | Decimal) -> bool:
    """False for NaN, which has no place in an order."""
    return not (value.is_nan() if isinstance(value, Decimal) else value != value)


def _sample_rows(rows: Sequence[tuple[Any, ...]]) -> tuple[tuple[str | None, ...], ...]:
    """Of the first rows those with the fewest NULLs, in their order."""
    first = rows[:_ROWS_FOR_SAMPLES]
    best = sorted(range(len(first)), key=lambda i: sum(v is None for v in first[i]))[:SAMPLE_ROWS]
    return tuple(tuple(map(display, first[i])) for i in sorted(best))
