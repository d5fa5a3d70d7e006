"""Reading one source into the next generation: only what is new or changed in it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from dbrag.catalog.budget import Budget, small_first
from dbrag.index.catalogs import read_marked
from dbrag.index.manifest import SourceEntry
from dbrag.types import Table, TableRef

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dbrag.index.generation import NextGeneration
    from dbrag.index.layout import Generation
    from dbrag.settings import Settings
    from dbrag.sources.base import Source

    OnTable = Callable[[int, int, int], None]

_UNREADABLE = "cannot be read"


@dataclass(frozen=True, slots=True)
class Known:
    """What the index holds of a source: tables with the marks they had when read."""

    tables: Mapping[TableRef, tuple[Table, str]] = field(default_factory=dict)

    @classmethod
    def of(cls, source: Source, entry: SourceEntry | None, generation: Generation | None) -> Known:
        """Nothing if the source was never read, or lay elsewhere.

        Raises:
            OSError, ValueError, KeyError, TypeError: the catalog is missing or damaged.
        """
        if entry is None or generation is None or entry.location != source.location:
            return cls()
        marked = read_marked(generation.catalog(source.name))
        return cls({table.ref: (table, mark) for table, mark in marked})

    def still(self, table: Table, mark: str) -> Table | None:
        """The live table with its known profile, if its content is still the same."""
        old, old_mark = self.tables.get(table.ref, (None, ""))
        if old is None or not mark or mark != old_mark or _shape(old) != _shape(table):
            return None
        if old.comment.startswith(_UNREADABLE) or (table.columns and not old.profile):
            return None  # it could not be read, or there was no time left for it
        return replace(
            table,
            row_count=old.row_count if table.row_count is None else table.row_count,
            rows_read=old.rows_read,
            sampled=old.sampled,
            profile=old.profile,
            sample_rows=old.sample_rows,
        )


def _shape(table: Table) -> list[object]:
    """What must be equal for rows and profile to fit."""
    return [table.kind, *((column.name, column.type) for column in table.columns)]


def read_source(
    new: NextGeneration,
    source: Source,
    stamp: str,
    settings: Settings,
    known: Known,
    on_table: OnTable,
) -> tuple[SourceEntry, int]:
    """Read the tables of a source that are not known as they are now.

    Args:
        stamp: the source's mark from before.
        known: what may be taken over.
        on_table: called with (tables done, all tables, rows read) before and after each.

    Returns:
        The entry for the manifest, and how many tables were read.

    Raises:
        DbragError: the source cannot be read; what was added has to be taken back.
    """
    started = time.perf_counter()
    # Marks are of the content before reading: what changes meanwhile is read next time.
    fingerprint = source.fingerprint()
    marks = source.marks()
    live = small_first(source.reflect())
    kept = {
        table.ref: taken
        for table in live
        if (taken := known.still(table, marks.get(table.ref, ""))) is not None
    }
    to_read = len(live) - len(kept)
    budget = Budget(
        table_rows=settings.profile_rows,
        table_s=settings.profile_s,
        rows=settings.source_rows,
        seconds=settings.source_s,
        tables=len(live),
        to_read=to_read,
    )
    tables: list[Table] = []
    on_table(0, to_read, 0)
    for bare in live:
        if bare.ref in kept:
            table = kept[bare.ref]
            budget.known(table.rows_read)
        else:
            table = _read(new, source, bare, budget)
            on_table(to_read - budget.to_read, to_read, table.rows_read)
        tables.append(table)
    new.add_catalog(source.name, tables, marks)
    new.take_over(source.name, kept, known.tables.keys() - kept.keys())
    entry = _entry(source, stamp, fingerprint, tables, time.perf_counter() - started)
    return entry, to_read - len(entry.unread)


def _entry(
    source: Source, stamp: str, fingerprint: str, tables: list[Table], seconds: float
) -> SourceEntry:
    tables = sorted(tables, key=lambda table: (table.ref.schema or "", table.ref.name))
    unread = [t for t in tables if t.columns and not t.profile and t.sampled]
    return SourceEntry(
        name=source.name,
        location=source.location,
        origin=source.origin,
        stamp=stamp,
        fingerprint=fingerprint,
        tables=len(tables),
        rows=sum(t.rows_read if t.row_count is None else t.row_count for t in tables),
        rows_indexed=sum(table.rows_read for table in tables),
        sampled=tuple(_label(table.ref) for table in tables if table.sampled),
        indexed_at=now(),
        seconds=round(seconds, 3),
        unread=tuple(_label(table.ref) for table in unread),
        loose=source.loose,
        broken=tuple(_label(t.ref) for t in tables if t.comment.startswith(_UNREADABLE)),
    )


def _read(new: NextGeneration, source: Source, bare: Table, budget: Budget) -> Table:
    """Read one table; its rows are let go before the next one's are read."""
    from dbrag.catalog.profile import profile_table

    share = budget.share()
    if share is None:
        budget.spend(0, 0.0)
        return replace(bare, sampled=bool(bare.columns))
    started = time.monotonic()
    table, rows = profile_table(source, bare, profile_rows=share[0], profile_s=share[1])
    budget.spend(len(rows), time.monotonic() - started)
    new.add_table(table, rows)
    return table


def _label(ref: TableRef) -> str:
    return ref.name if ref.schema is None else f"{ref.schema}.{ref.name}"


def now() -> str:
    """The time in UTC, ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="seconds")
