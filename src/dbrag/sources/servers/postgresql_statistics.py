"""What PostgreSQL's ``pg_stats`` says of columns. It shows only what the user may read."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from dbrag.sources.base import ColumnStatistics

if TYPE_CHECKING:
    from collections.abc import Mapping

    from psycopg import Connection

    from dbrag.types import Table

log = logging.getLogger(__name__)

OfSchema = dict[str, dict[str, tuple[Any, ...]]]
"""By table and column: n_distinct, null_frac, values, their shares, bounds of the histogram."""

_MOST = 20

# A parent's row for itself and its children ("inherited") is the one that a SELECT sees.
_QUERY = f"""
SELECT DISTINCT ON (tablename, attname)
    tablename, attname, n_distinct, null_frac,
    (most_common_vals::text::text[])[1:{_MOST}], (most_common_freqs::float8[])[1:{_MOST}],
    (histogram_bounds::text::text[])[1],
    (histogram_bounds::text::text[])[array_upper(histogram_bounds::text::text[], 1)]
FROM pg_catalog.pg_stats
WHERE schemaname = %s
ORDER BY tablename, attname, inherited DESC
"""


def of_schema(raw: Connection[Any], schema: str) -> OfSchema:
    """The statistics of all columns of a schema, in one query."""
    from psycopg import DataError

    found: OfSchema = {}
    try:
        rows = raw.execute(_QUERY, (schema,)).fetchall()
    except DataError as error:
        # Values of a type whose text does not read as a list: a profile can do without.
        # Its message may show values.
        log.info("statistics of schema %r cannot be read: %s", schema, type(error).__name__)
        return found
    for table, column, *facts in rows:
        found.setdefault(table, {})[column] = tuple(facts)
    return found


def of_table(known: OfSchema, table: Table) -> Mapping[str, ColumnStatistics]:
    """The statistics of the columns of one table.

    The extremes are those of the sample that ANALYZE took: of values that are not among
    the frequent ones, and so never more than a guess.
    """
    columns = known.get(table.ref.name, {})
    rows = table.row_count if table.row_count is not None else table.estimate
    return {
        column.name: _statistics(columns[column.name], rows)
        for column in table.columns
        if column.name in columns
    }


def _statistics(facts: tuple[Any, ...], rows: int | None) -> ColumnStatistics:
    n_distinct, null_share, values, shares, low, high = facts
    distinct = None
    if n_distinct > 0:
        distinct = round(n_distinct)
    elif n_distinct < 0 and rows is not None:
        distinct = round(-n_distinct * rows)
    pairs = zip(values or (), shares or (), strict=False)
    frequent = tuple((str(value), float(share)) for value, share in pairs if value is not None)
    return ColumnStatistics(distinct, float(null_share), low, high, frequent)
