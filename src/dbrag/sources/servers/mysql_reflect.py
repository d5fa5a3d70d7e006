"""Reading the catalog of MySQL and MariaDB: a few queries, however many tables there are."""

from __future__ import annotations

import difflib
import logging
from typing import TYPE_CHECKING, Any

from dbrag.errors import SourceNotFound, SourceUnreadable
from dbrag.types import Column, ForeignKey, Table, TableKind, TableRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection

log = logging.getLogger(__name__)

SYSTEM = frozenset({"mysql", "information_schema", "performance_schema", "sys"})
TABLE_TYPES = ("BASE TABLE", "SYSTEM VERSIONED", "VIEW")
"""Kinds in ``information_schema.TABLES`` that hold data; sequences do not."""
_REMOTE = frozenset({"FEDERATED", "FEDERATEDX", "CONNECT", "SPIDER", "S3", "MROONGA", "COLUMNAR"})
_BROKEN = "references invalid"

_Name = tuple[str, str]


def rows(connection: Connection, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """All rows of a catalog query, binary texts decoded; ``%`` must be doubled in it."""
    found = connection.exec_driver_sql(sql, tuple(values)).fetchall()
    return [tuple(map(_readable, row)) for row in found]


def _readable(value: Any) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


def marks_for(values: Iterable[Any]) -> str:
    """As many placeholders as there are values, at least one."""
    return ", ".join("%s" for _ in values) or "NULL"


def chosen(connection: Connection, schemas: Sequence[str]) -> list[str]:
    """The schemas (databases) to read, as spelled on the server, sorted.

    Those asked for; else the one of the URL; else all that the user sees and that are
    not the server's own.

    Raises:
        SourceNotFound: one that was asked for is not there, or may not be seen.
    """
    seen = [
        name for (name,) in rows(connection, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")
    ]
    if not schemas:
        ((current,),) = rows(connection, "SELECT DATABASE()")
        if current:
            return [current]
        return sorted(name for name in seen if name.lower() not in SYSTEM)
    folded = {name.casefold(): name for name in reversed(seen)}
    found = set()
    for name in schemas:
        real = name if name in seen else folded.get(name.casefold())
        if real is None:
            near = difflib.get_close_matches(name, seen, 1)
            raise SourceNotFound(
                f"no schema {name!r} on the server, or no right to see it",
                f"did you mean {near[0]!r}?" if near else "see them: SHOW DATABASES",
            )
        found.add(real)
    return sorted(found)


def reflect(connection: Connection, source: str, schemas: Sequence[str]) -> list[Table]:
    """Tables and views with columns, keys and comments, by schema and name.

    Columns that the user may not read, and tables without any, are left out. A view
    that cannot be read is kept without columns, its comment saying why.

    Raises:
        SourceNotFound: a schema asked for is not there.
        SourceUnreadable: there is nothing to read.
    """
    names = chosen(connection, schemas)
    columns = _columns(connection, names)
    tables: dict[_Name, Table] = {}
    for schema, name, type_, engine, estimate, comment in _tables(connection, names):
        key = (schema, name)
        own = columns.get(key, [])
        view = type_ == "VIEW"
        if schema not in names:
            continue  # spelled otherwise: the catalog compares without letter case
        if not own and not view:
            log.warning("%s.%s is left out: no right to read a column of it", schema, name)
            continue
        if view:
            comment = "" if own else f"cannot be read: {_why(comment)}"
        tables[key] = Table(
            TableRef(source, schema, name),
            tuple(own),
            _kind(type_, engine),
            comment=comment,
            estimate=None if view or estimate is None else int(estimate),
        )
    if not tables:
        where = ", ".join(map(repr, names)) or "this server"
        raise SourceUnreadable(
            f"nothing to read in {where}: no table, or no right to read one",
            "GRANT SELECT, SHOW VIEW ON database.* TO the user dbrag connects with",
        )
    found = _with_keys(tables, _keys(connection, names))
    return sorted(found, key=lambda table: (table.ref.schema or "", table.ref.name))


def _why(comment: str) -> str:
    return comment if _BROKEN in comment else "no right to read a column of it"


def _kind(type_: str, engine: str | None) -> TableKind:
    if type_ == "VIEW":
        return "view"
    return "foreign table" if (engine or "").upper() in _REMOTE else "table"


def _tables(connection: Connection, names: Sequence[str]) -> list[tuple[Any, ...]]:
    return rows(
        connection,
        "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, TABLE_ROWS, TABLE_COMMENT"
        f" FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ({marks_for(names)})"
        f" AND TABLE_TYPE IN ({marks_for(TABLE_TYPES)})",
        (*names, *TABLE_TYPES),
    )


def _columns(connection: Connection, names: Sequence[str]) -> dict[_Name, list[Column]]:
    """The readable columns of each table, in order."""
    found: dict[_Name, list[Column]] = {}
    read = rows(
        connection,
        "SELECT TABLE_SCHEMA, TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, IS_NULLABLE,"
        " COLUMN_COMMENT, PRIVILEGES, ORDINAL_POSITION"
        f" FROM information_schema.COLUMNS WHERE TABLE_SCHEMA IN ({marks_for(names)})",
        names,
    )
    for schema, table, name, kind, nullable, comment, rights, _ in sorted(
        read, key=lambda row: (row[0], row[1], row[7])
    ):
        if "select" in rights.lower().split(","):
            column = Column(name, kind, nullable == "YES", comment or "")
            found.setdefault((schema, table), []).append(column)
    return found


def _keys(
    connection: Connection, names: Sequence[str]
) -> dict[tuple[str, str, str], list[tuple[Any, ...]]]:
    """Columns of primary and foreign keys: (schema, table, key) → (column, target…)."""
    found: dict[tuple[str, str, str], list[tuple[Any, ...]]] = {}
    read = rows(
        connection,
        "SELECT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME,"
        " REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, REFERENCED_COLUMN_NAME,"
        " ORDINAL_POSITION FROM information_schema.KEY_COLUMN_USAGE"
        f" WHERE TABLE_SCHEMA IN ({marks_for(names)})"
        " AND (CONSTRAINT_NAME = 'PRIMARY' OR REFERENCED_TABLE_NAME IS NOT NULL)",
        names,
    )
    for row in sorted(read, key=lambda row: (row[0], row[1], row[2], row[7])):
        found.setdefault(row[:3], []).append(row[3:7])
    return found


def _with_keys(
    tables: Mapping[_Name, Table], keys: Mapping[tuple[str, str, str], list[tuple[Any, ...]]]
) -> list[Table]:
    from dataclasses import replace

    # Where letter case does not count (lower_case_table_names), keys may spell otherwise.
    folded = {(s.casefold(), n.casefold()): table for (s, n), table in tables.items()}
    primary: dict[_Name, tuple[str, ...]] = {}
    foreign: dict[_Name, set[ForeignKey]] = {}
    for (schema, name, constraint), parts in keys.items():
        table = tables.get((schema, name))
        own = _real(table, [part[0] for part in parts])
        if table is None or own is None:
            continue
        if parts[0][2] is None:
            primary[schema, name] = own
            continue
        place = (parts[0][1], parts[0][2])
        target = tables.get(place) or folded.get((place[0].casefold(), place[1].casefold()))
        theirs = _real(target, [part[3] for part in parts])
        if target is None or theirs is None:
            log.info("%s: key %r to what is not read", table.ref, constraint)
            continue
        foreign.setdefault((schema, name), set()).add(ForeignKey(own, target.ref, theirs))
    return [
        replace(
            table,
            primary_key=primary.get(key, ()),
            foreign_keys=_ordered(table, foreign.get(key, set())),
        )
        for key, table in tables.items()
    ]


def _ordered(table: Table, keys: Iterable[ForeignKey]) -> tuple[ForeignKey, ...]:
    place = {column.name: i for i, column in enumerate(table.columns)}
    return tuple(
        sorted(keys, key=lambda k: ([place[c] for c in k.columns], str(k.target), k.target_columns))
    )


def _real(table: Table | None, names: Sequence[str]) -> tuple[str, ...] | None:
    """The columns as the table spells them; None where one is missing or may not be read."""
    found = [table.column(name) for name in names] if table is not None else [None]
    return None if None in found else tuple(column.name for column in found if column is not None)
