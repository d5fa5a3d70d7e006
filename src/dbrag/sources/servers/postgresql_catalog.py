"""Reading PostgreSQL's catalog: a fixed number of queries, however many tables there are."""

from __future__ import annotations

import difflib
import logging
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from dbrag.errors import SourceNotFound, SourceUnreadable
from dbrag.types import Column, ForeignKey, Table, TableKind, TableRef

if TYPE_CHECKING:
    from collections.abc import Sequence

    from psycopg import Connection

log = logging.getLogger(__name__)

_KINDS: dict[str, TableKind] = {
    "r": "table",
    "p": "table",
    "v": "view",
    "m": "materialized view",
    "f": "foreign table",
}

_SCHEMAS = """
SELECT nspname, has_schema_privilege(oid, 'USAGE')
FROM pg_catalog.pg_namespace
WHERE nspname !~ '^pg_' AND nspname <> 'information_schema'
ORDER BY nspname
"""

# Which schemas count: those asked for, else all but the system's and those of extensions.
READ_SCHEMAS = """
    n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' AND CASE
        WHEN cardinality(%(schemas)s::text[]) > 0 THEN n.nspname = ANY (%(schemas)s::text[])
        ELSE NOT EXISTS (SELECT FROM pg_catalog.pg_depend e WHERE e.deptype = 'e'
            AND e.classid = 'pg_catalog.pg_namespace'::regclass AND e.objid = n.oid)
    END
"""

# Partitions are read through their parent. What an extension brings is not the user's data,
# and some of it shows other sessions (pg_stat_statements).
_RELATIONS = f"""
SELECT c.oid, n.nspname, c.relname, c.relkind,
    obj_description(c.oid, 'pg_class'),
    CASE WHEN c.reltuples >= 0 THEN c.reltuples::bigint
        ELSE nullif(pg_stat_get_live_tuples(c.oid), 0) END,
    has_table_privilege(c.oid, 'SELECT'),
    has_any_column_privilege(c.oid, 'SELECT') AND has_schema_privilege(n.oid, 'USAGE')
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
    AND c.relpersistence <> 't' AND {READ_SCHEMAS}
    AND NOT EXISTS (SELECT FROM pg_catalog.pg_depend e WHERE e.deptype = 'e'
        AND e.classid = 'pg_catalog.pg_class'::regclass AND e.objid = c.oid)
ORDER BY n.nspname, c.relname
"""

# A type is what its domain is based on, however deep; the element type for arrays of enums.
_COLUMNS = """
WITH RECURSIVE base (domain, type, modifier, not_null) AS (
    SELECT t.oid, t.typbasetype, t.typtypmod, t.typnotnull
    FROM pg_catalog.pg_type t WHERE t.typtype = 'd'
    UNION ALL
    SELECT base.domain, t.typbasetype,
        CASE WHEN base.modifier >= 0 THEN base.modifier ELSE t.typtypmod END,
        base.not_null OR t.typnotnull
    FROM base JOIN pg_catalog.pg_type t ON t.oid = base.type AND t.typtype = 'd'
), plain AS (
    SELECT base.* FROM base JOIN pg_catalog.pg_type t ON t.oid = base.type AND t.typtype <> 'd'
)
SELECT a.attrelid, a.attnum, a.attname,
    format_type(coalesce(d.type, a.atttypid), coalesce(d.modifier, a.atttypmod)),
    coalesce(d.type, a.atttypid), t.typelem,
    a.attnotnull OR coalesce(d.not_null, false),
    col_description(a.attrelid, a.attnum),
    CASE WHEN a.attrelid = ANY (%(partly)s::oid[])
        THEN has_column_privilege(a.attrelid, a.attnum, 'SELECT') ELSE true END
FROM pg_catalog.pg_attribute a
LEFT JOIN plain d ON d.domain = a.atttypid
JOIN pg_catalog.pg_type t ON t.oid = coalesce(d.type, a.atttypid)
WHERE a.attrelid = ANY (%(relations)s::oid[]) AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""

_ENUMS = """
SELECT enumtypid, array_agg(enumlabel::text ORDER BY enumsortorder)
FROM pg_catalog.pg_enum GROUP BY enumtypid
"""

# Clones of a partitioned table's keys have a parent.
_KEYS = """
SELECT contype, conrelid, conkey, confrelid, confkey
FROM pg_catalog.pg_constraint
WHERE contype IN ('p', 'f') AND conparentid = 0 AND conrelid = ANY (%(relations)s::oid[])
ORDER BY conrelid, conkey, confrelid, confkey
"""

# Parents hold no rows themselves, or hold theirs beside their children's.
_DESCENDANTS = """
WITH RECURSIVE below (root, child) AS (
    SELECT inhparent, inhrelid FROM pg_catalog.pg_inherits
    UNION
    SELECT below.root, i.inhrelid
    FROM below JOIN pg_catalog.pg_inherits i ON i.inhparent = below.child
)
SELECT below.root, sum(CASE WHEN c.reltuples >= 0 THEN c.reltuples::bigint
    ELSE pg_stat_get_live_tuples(c.oid) END)::bigint
FROM below JOIN pg_catalog.pg_class c ON c.oid = below.child
WHERE c.relkind = 'r' GROUP BY below.root
"""


def reflect(raw: Connection[Any], source: str, schemas: Sequence[str]) -> list[Table]:
    """Every table, view, materialized view and foreign table that the user may read.

    Raises:
        SourceNotFound: a schema asked for does not exist.
        SourceUnreadable: there is nothing to read.
    """
    _check_schemas(raw, schemas)
    found = raw.execute(_RELATIONS, {"schemas": list(schemas)}).fetchall()
    readable = {row[0]: row for row in found if row[7]}
    hidden = [f"{row[1]}.{row[2]}" for row in found if not row[7]]
    if hidden:
        log.warning("%s: no permission to read %s", source, _some(hidden))
    if not readable:
        raise _nothing(raw, schemas, hidden)
    partly = [oid for oid, row in readable.items() if not row[6]]
    columns, unreadable = _columns(raw, list(readable), partly)
    names = {oid: TableRef(source, schema, name) for oid, (_, schema, name, *_) in readable.items()}
    primary, foreign = _keys(raw, names, columns)
    below = dict(raw.execute(_DESCENDANTS).fetchall())
    return [
        Table(
            ref=names[oid],
            columns=tuple(columns[oid].values()),
            kind=_KINDS[kind],
            primary_key=primary.get(oid, ()),
            foreign_keys=tuple(foreign[oid]),
            comment=comment or "",
            estimate=_estimate(kind, tuples, below.get(oid)),
            redacted=tuple(unreadable[oid]),
        )
        for oid, (_, _, _, kind, comment, tuples, *_) in readable.items()
    ]


def _check_schemas(raw: Connection[Any], schemas: Sequence[str]) -> None:
    if not schemas:
        return
    known = dict(raw.execute(_SCHEMAS).fetchall())
    for schema in schemas:
        if schema not in known:
            folded = {name.casefold(): name for name in known}
            close = difflib.get_close_matches(schema.casefold(), folded, 3, 0.5)
            near = ", ".join(repr(folded[name]) for name in close)
            listed = ", ".join(repr(name) for name in list(known)[:10])
            hint = f"did you mean {near}?" if near else f"there are: {listed}"
            raise SourceNotFound(f"no schema {schema!r} in database {raw.info.dbname!r}", hint)
        if not known[schema]:
            raise SourceUnreadable(
                f"no permission to use schema {schema!r}",
                f'let an administrator run: GRANT USAGE ON SCHEMA "{schema}" TO "{raw.info.user}"',
            )


def _nothing(
    raw: Connection[Any], schemas: Sequence[str], hidden: Sequence[str]
) -> SourceUnreadable:
    where = f"database {raw.info.dbname!r}"
    if schemas:
        where = f"schema {', '.join(map(repr, schemas))} of {where}"
    if not hidden:
        return SourceUnreadable(f"{where} is empty: it has no tables", "name one with tables")
    schema = hidden[0].partition(".")[0]
    return SourceUnreadable(
        f"{raw.info.user!r} may read none of the {len(hidden)} tables of {where}",
        f'let an administrator run: GRANT USAGE ON SCHEMA "{schema}" TO "{raw.info.user}"; '
        f'GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO "{raw.info.user}"',
    )


def _columns(
    raw: Connection[Any], relations: list[int], partly: list[int]
) -> tuple[dict[int, dict[int, Column]], dict[int, list[str]]]:
    """By table: its columns by number, and the names of those the user may not read."""
    enums = dict(raw.execute(_ENUMS).fetchall())
    columns: dict[int, dict[int, Column]] = {oid: {} for oid in relations}
    unreadable: dict[int, list[str]] = defaultdict(list)
    rows = raw.execute(_COLUMNS, {"relations": relations, "partly": partly})
    for oid, number, name, text, kind, element, not_null, comment, allowed in rows:
        if not allowed:
            unreadable[oid].append(name)
            continue
        if kind in enums:
            text = _enum(enums[kind])
        elif element in enums:
            text = _enum(enums[element]) + "[]"
        columns[oid][number] = Column(name, text, not not_null, comment or "")
    return columns, unreadable


def _enum(labels: Sequence[str]) -> str:
    return "enum({})".format(",".join("'" + label.replace("'", "''") + "'" for label in labels))


def _keys(
    raw: Connection[Any], names: dict[int, TableRef], columns: dict[int, dict[int, Column]]
) -> tuple[dict[int, tuple[str, ...]], dict[int, list[ForeignKey]]]:
    """Primary and foreign keys of each table; those with a part nobody may read are left out."""
    primary: dict[int, tuple[str, ...]] = {}
    foreign: dict[int, list[ForeignKey]] = defaultdict(list)
    rows = raw.execute(_KEYS, {"relations": list(names)})
    for kind, oid, numbers, target, target_numbers in rows:
        own = _names(columns[oid], numbers)
        if own is None:
            continue
        if kind == "p":
            primary[oid] = own
            continue
        there = _names(columns.get(target, {}), target_numbers)
        if there is None:
            log.info("%s: key to a table or column that cannot be read", names[oid])
            continue
        key = ForeignKey(own, names[target], there)
        if key not in foreign[oid]:
            foreign[oid].append(key)
    return primary, foreign


def _names(columns: dict[int, Column], numbers: Sequence[int]) -> tuple[str, ...] | None:
    found = [columns.get(number) for number in numbers]
    return None if None in found else tuple(column.name for column in found if column is not None)


def _estimate(kind: str, tuples: int | None, below: int | None) -> int | None:
    if kind not in ("r", "p", "m"):
        return None
    if kind == "p":
        return below
    return tuples if below is None else (tuples or 0) + below


def _some(names: Sequence[str], most: int = 5) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"
