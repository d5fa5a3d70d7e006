"""All tables of a source with keys, counts and profiles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbrag.catalog.profile import profile_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from dbrag.sources import Source
    from dbrag.types import Table


def read_tables(
    source: Source,
    *,
    profile_rows: int,
    profile_s: float,
    on_table: Callable[[Table], None] | None = None,
) -> tuple[Table, ...]:
    """Reflect a source and profile each table and view, ordered by name.

    Args:
        profile_rows: rows read of one table at most.
        profile_s: seconds spent on one table at most, counting its rows included.
        on_table: called after each table, for progress.

    Raises:
        SourceError: the source cannot be read, or has no tables.
    """
    tables = []
    for bare in source.reflect():
        table, _ = profile_table(source, bare, profile_rows=profile_rows, profile_s=profile_s)
        tables.append(table)
        if on_table is not None:
            on_table(table)
    return tuple(tables)
