"""Marks of PostgreSQL's tables: what tells cheaply that a table has changed.

A mark holds the table as it is reflected (columns, types, keys, comments), the file
that holds its rows (another one after TRUNCATE or a rewrite), and the server's counters
of rows inserted, updated and deleted, for a parent those of all its partitions. VACUUM
and ANALYZE change none of these. A view's mark holds its definition and the marks of
all tables it reads, directly or through other views.

What marks do not tell: a session writes its counters only every second, and up to ten
seconds later while it is idle, so a change may be seen that much later. A standby does not
count, and neither does a server with ``track_counts = off``: there the size of the table's
file stands for its rows, so an update in place is not seen. Changes behind a foreign
table, or in a table that a view reads inside a function, cannot be seen.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dbrag.sources.servers import postgresql_catalog
from dbrag.types import TableRef

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from psycopg import Connection

    from dbrag.types import Table

_STATES = """
SELECT c.oid, n.nspname, c.relname, c.relkind,
    CASE WHEN c.relkind IN ('r', 'm') THEN concat_ws('/', c.relfilenode,
        CASE WHEN counted THEN concat_ws('/', pg_stat_get_tuples_inserted(c.oid),
            pg_stat_get_tuples_updated(c.oid), pg_stat_get_tuples_deleted(c.oid))
        ELSE 'size ' || pg_relation_size(c.oid) END) END,
    array_to_string(f.ftoptions, ',')
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_foreign_table f ON f.ftrelid = c.oid
CROSS JOIN (SELECT current_setting('track_counts')::bool AND NOT pg_is_in_recovery()) s (counted)
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relpersistence <> 't'
    AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
"""

_PARTS = "SELECT inhparent, inhrelid FROM pg_catalog.pg_inherits"

_RULES = """
SELECT r.ev_class, md5(string_agg(r.ev_action::text || r.ev_qual::text, '' ORDER BY r.oid))
FROM pg_catalog.pg_rewrite r JOIN pg_catalog.pg_class c ON c.oid = r.ev_class
WHERE c.relkind IN ('v', 'm') AND r.rulename = '_RETURN' AND r.oid >= 16384
GROUP BY r.ev_class
"""

_READS = """
SELECT DISTINCT r.ev_class, d.refobjid
FROM pg_catalog.pg_rewrite r
JOIN pg_catalog.pg_class c ON c.oid = r.ev_class AND c.relkind = 'v'
JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::regclass AND d.objid = r.oid
    AND d.refclassid = 'pg_catalog.pg_class'::regclass AND d.refobjid <> r.ev_class
WHERE r.rulename = '_RETURN' AND r.oid >= 16384
"""


def marks(raw: Connection[Any], source: str, schemas: Sequence[str]) -> Mapping[TableRef, str]:
    """The mark of each table that ``reflect`` gives.

    Raises:
        SourceError: as ``reflect``.
    """
    tables = postgresql_catalog.reflect(raw, source, schemas)
    states: dict[int, str] = {}
    oids: dict[TableRef, int] = {}
    for oid, schema, name, kind, rows, options in raw.execute(_STATES):
        states[oid] = f"{oid} {kind} {rows} {options}"
        oids[TableRef(source, schema, name)] = oid
    for view, definition in raw.execute(_RULES):
        if view in states:
            states[view] += f" {definition}"
    reads: dict[int, list[int]] = defaultdict(list)
    for query in (_PARTS, _READS):
        for reader, read in raw.execute(query):
            reads[reader].append(read)
    return {table.ref: _mark(table, oids.get(table.ref, 0), states, reads) for table in tables}


def _mark(table: Table, oid: int, states: Mapping[int, str], reads: Mapping[int, list[int]]) -> str:
    # The estimate moves with VACUUM and ANALYZE.
    parts = [repr(replace(table, estimate=None))]
    seen, waiting = set(), [oid]
    while waiting:
        one = waiting.pop()
        if one not in seen:
            seen.add(one)
            waiting += reads.get(one, ())
    parts += [states.get(one, "") for one in sorted(seen)]
    return hashlib.blake2b("\n".join(parts).encode("utf-8", "replace"), digest_size=12).hexdigest()
