"""What the account of a connection may do beside reading, as the server itself tells."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dbrag.sources.base import Source

SECONDS = 20.0
_TABLES = 1_000
"""Rows of rights that are read; one is enough for a warning."""

# Superusers and owners hold every right, whatever is granted.
_POSTGRES = """
SELECT 'superuser' FROM pg_catalog.pg_roles WHERE rolname = current_user AND rolsuper
UNION ALL
SELECT DISTINCT p.right_of
FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
CROSS JOIN (VALUES ('INSERT'), ('UPDATE'), ('DELETE'), ('TRUNCATE')) AS p (right_of)
WHERE c.relkind IN ('r', 'p') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
    AND has_schema_privilege(n.oid, 'USAGE') AND has_table_privilege(c.oid, p.right_of)
"""
_MYSQL_WRITES = frozenset(
    {
        *("ALL PRIVILEGES", "ALTER", "ALTER ROUTINE", "CREATE", "CREATE ROUTINE", "CREATE USER"),
        *("CREATE VIEW", "DELETE", "DELETE HISTORY", "DROP", "EVENT", "FILE", "INDEX", "INSERT"),
        *("SUPER", "TRIGGER", "UPDATE"),
    }
)
_GRANT = re.compile(r"GRANT (.+?) ON ")
_COLUMNS = re.compile(r"\([^)]*\)")

HINTS = {
    "postgres": "create a user for dbrag: CREATE ROLE reader LOGIN PASSWORD '…' "
    "IN ROLE pg_read_all_data",
    "mysql": "create a user for dbrag: CREATE USER reader IDENTIFIED BY '…'; "
    "GRANT SELECT ON DATABASE.* TO reader",
}
"""Dialect → how an account that only reads is made."""


def write_rights(source: Source) -> tuple[str, ...]:
    """Rights beyond reading, as the server names them; () where it has none or cannot tell.

    Raises:
        SourceError, ExecutionError: the server does not answer.
    """
    if source.dialect == "postgres":
        rows = _rows(source, _POSTGRES)
        return tuple(sorted({str(row[0]) for row in rows}, key=lambda r: (r != "superuser", r)))
    if source.dialect == "mysql":
        return mysql_rights([str(row[0]) for row in _rows(source, "SHOW GRANTS")])
    return ()


def mysql_rights(grants: list[str]) -> tuple[str, ...]:
    """Rights beyond reading in lines of ``SHOW GRANTS``."""
    found: set[str] = set()
    for line in grants:
        match = _GRANT.match(line)
        if match is None:
            continue  # the grant of a role: what it holds has lines of its own
        rights = _COLUMNS.sub("", match[1]).split(",")
        found |= {right.strip().upper() for right in rights} & _MYSQL_WRITES
    return tuple(sorted(found))


def _rows(source: Source, sql: str) -> list[tuple[object, ...]]:
    with source.session(SECONDS) as session:
        session.execute(sql)
        return session.fetch(_TABLES)
