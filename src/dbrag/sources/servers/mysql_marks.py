"""Marks of MySQL and MariaDB tables: equal marks mean that nothing has to be read again.

A mark holds the definition and one of these:

* small tables (1 MB, and 32 MB together): the server's checksum of all rows;
* others: the time at which the last transaction that wrote to them began. It counts whole
  seconds, so a table written in this very second is looked at again in the next; one that
  is written all the time gets a mark that never comes again.
* InnoDB forgets that time when the server restarts: the start is then part of the mark,
  so such tables are read again once.

Limits: a large InnoDB table that was written and then dropped out of the server's
dictionary cache (more open tables than ``table_definition_cache``) shows no time; then a
change is not seen. Nor is a commit after our look, if its transaction began in the same
second as the one seen last; nor a change behind a table that lies on another server, nor
one of equal length in a ``MEMORY`` table. Large ``Aria`` tables show a change of equal
length when the server writes it to disk, after up to 30 seconds. A view of which the
definition may not be seen (no ``SHOW VIEW``) changes with any table.
"""

from __future__ import annotations

import hashlib
import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dbrag.sources.servers.mysql_reflect import TABLE_TYPES, chosen, marks_for, rows
from dbrag.sources.statements import quoted
from dbrag.types import TableRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from sqlalchemy import Connection

log = logging.getLogger(__name__)

_SMALL = (2**20, 2**16)
"""Bytes of a table whose rows are summed up: the first under which all fit the budget."""
_BUDGET = 32 * 2**20
_ELSEWHERE = frozenset({"connect", "federated", "s3", "spider"})
_AT_ONCE = 100
_WAIT_S = 1.1

_Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _State:
    """What the server tells of one table."""

    kind: str
    engine: str
    created: str
    updated: str
    size: int
    count: int
    next_key: str
    comment: str
    hot: bool
    """Written or made in the second in which it was looked at."""


def marks(connection: Connection, source: str, schemas: Sequence[str]) -> Mapping[TableRef, str]:
    """A mark of schema and content of each table and view.

    Takes up to a second more when a table was written just now.

    Raises:
        SourceNotFound: a schema asked for is not there.
    """
    names = chosen(connection, schemas)
    views = _views(connection, names)
    reads = {name: _read_by(sql, name[0]) for name, sql in views.items()}
    beside = {ref[0] for refs in reads.values() for ref in refs or ()} - set(names)
    everywhere = [*names, *sorted(beside)]
    states = _settled(connection, everywhere)
    columns = _definitions(connection, everywhere)
    contents = _contents(connection, states)
    found = {
        name: _digest(columns.get(name, ""), state.comment, contents[name])
        for name, state in states.items()
        if state.kind != "VIEW"
    }
    all_tables = _digest(*(found[name] for name in sorted(found)))
    for name, state in states.items():
        if state.kind == "VIEW":
            below = _bases(name, reads, set())
            parts = [all_tables] if below is None else [found.get(b, "") for b in sorted(below)]
            found[name] = _digest(columns.get(name, ""), views.get(name, ""), *parts)
    return {
        TableRef(source, schema, name): mark
        for (schema, name), mark in found.items()
        if schema in names and ((schema, name) in columns or states[schema, name].kind == "VIEW")
    }


def _digest(*parts: str) -> str:
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()


def _settled(connection: Connection, names: Sequence[str]) -> dict[_Name, _State]:
    """The states, looked at again after a second where something was written just now."""
    states = _states(connection, names)
    small = set(_small(states))
    if any(state.hot for name, state in states.items() if name not in small):
        time.sleep(_WAIT_S)
        states = _states(connection, names)
    return states


def _states(connection: Connection, names: Sequence[str]) -> dict[_Name, _State]:
    read = rows(
        connection,
        "SELECT TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE, ENGINE, CREATE_TIME, UPDATE_TIME,"
        " DATA_LENGTH, TABLE_ROWS, AUTO_INCREMENT, TABLE_COMMENT,"
        " COALESCE(CREATE_TIME >= NOW(), 0) OR COALESCE(UPDATE_TIME >= NOW(), 0)"
        f" FROM information_schema.TABLES WHERE TABLE_SCHEMA IN ({marks_for(names)})"
        f" AND TABLE_TYPE IN ({marks_for(TABLE_TYPES)})",
        (*names, *TABLE_TYPES),
    )
    return {
        (row[0], row[1]): _State(
            row[2],
            (row[3] or "").lower(),
            str(row[4] or ""),
            str(row[5] or ""),
            int(row[6] or 0),
            int(row[7] or 0),
            str(row[8] or ""),
            row[9] or "",
            bool(row[10]),
        )
        for row in read
        if row[0] in names
    }


def _definitions(connection: Connection, names: Sequence[str]) -> dict[_Name, str]:
    """Columns and keys of each table with a readable column, as one text."""
    place = f"WHERE TABLE_SCHEMA IN ({marks_for(names)})"
    # The catalog's own comparison takes `Orders` and `orders` for one table.
    by_table = "GROUP BY BINARY TABLE_SCHEMA, BINARY TABLE_NAME"
    columns = rows(
        connection,
        "SELECT MIN(TABLE_SCHEMA), MIN(TABLE_NAME), MD5(GROUP_CONCAT(CONCAT_WS(0x00, COLUMN_NAME,"
        " COLUMN_TYPE, IS_NULLABLE, COLUMN_COMMENT, EXTRA) ORDER BY ORDINAL_POSITION"
        f" SEPARATOR 0x01)) FROM information_schema.COLUMNS {place}"
        f" AND FIND_IN_SET('select', PRIVILEGES) {by_table}",
        names,
    )
    keys = rows(
        connection,
        "SELECT MIN(TABLE_SCHEMA), MIN(TABLE_NAME), MD5(GROUP_CONCAT(CONCAT_WS(0x00,"
        " CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME,"
        " REFERENCED_COLUMN_NAME) ORDER BY CONSTRAINT_NAME, ORDINAL_POSITION SEPARATOR 0x01))"
        f" FROM information_schema.KEY_COLUMN_USAGE {place} {by_table}",
        names,
    )
    of_keys = {(schema, table): mark for schema, table, mark in keys}
    return {
        (schema, table): f"{mark}-{of_keys.get((schema, table), '')}"
        for schema, table, mark in columns
    }


def _contents(connection: Connection, states: Mapping[_Name, _State]) -> dict[_Name, str]:
    """What changes with the rows of each table."""
    tables = {name: state for name, state in states.items() if state.kind != "VIEW"}
    sums = _checksums(connection, _small(states))
    start = ""
    if any(not state.updated for name, state in tables.items() if name not in sums):
        start = _started(connection)
    found = {}
    for name, state in tables.items():
        if name in sums:
            found[name] = f"sum {sums[name]}"
        elif state.hot:
            found[name] = f"hot {time.time_ns()}"
        elif state.engine == "innodb":
            # Its number of rows is a guess, but an emptied table keeps its times.
            when = state.updated or f"since {start}"
            found[name] = f"at {when} {state.created} {state.next_key} {state.count == 0}"
        else:
            # These engines count their rows exactly; some keep no time, some write it late.
            when = state.updated or f"since {start}"
            parts = (when, state.created, state.next_key, state.count, state.size)
            found[name] = f"at {parts}"
    return found


def _small(states: Mapping[_Name, _State]) -> list[_Name]:
    """The tables whose rows are summed up."""
    local = {
        name: state
        for name, state in states.items()
        if state.kind != "VIEW" and state.engine not in _ELSEWHERE
    }
    for limit in _SMALL:
        small = [name for name, state in local.items() if state.size <= limit]
        if sum(local[name].size for name in small) <= _BUDGET:
            return sorted(small)
    return []


def _checksums(connection: Connection, names: Sequence[_Name]) -> dict[_Name, str]:
    """The server's sums over all rows; tables that it gives none for are left out."""
    found: dict[_Name, str] = {}
    for i in range(0, len(names), _AT_ONCE):
        part = names[i : i + _AT_ONCE]
        try:
            found |= _checksum(connection, part)
        except Exception as error:
            log.debug("checksums one by one: %s", type(error).__name__)
            for name in part:
                try:
                    found |= _checksum(connection, [name])
                except Exception as inner:
                    log.debug("no checksum of %s: %s", name, type(inner).__name__)
    return found


def _checksum(connection: Connection, names: Sequence[_Name]) -> dict[_Name, str]:
    listed = ", ".join(".".join(quoted(part, "mysql") for part in name) for name in names)
    # "schema.table" of the answer is ambiguous where names hold dots; its order is ours.
    read = rows(connection, f"CHECKSUM TABLE {listed}".replace("%", "%%"))
    return {
        name: str(sum_) for name, (_, sum_) in zip(names, read, strict=True) if sum_ is not None
    }


def _started(connection: Connection) -> str:
    """When the server started, in seconds of its clock; "" where it does not tell."""
    for _ in range(5):
        ((before,),) = rows(connection, "SELECT UNIX_TIMESTAMP()")
        told = rows(connection, "SHOW GLOBAL STATUS LIKE 'Uptime'")
        ((after,),) = rows(connection, "SELECT UNIX_TIMESTAMP()")
        if before == after and told:
            return str(int(before) - int(told[0][1]))
    return ""


def _views(connection: Connection, names: Sequence[str]) -> dict[_Name, str]:
    """The definition of each view; empty where it may not be seen."""
    read = rows(
        connection,
        "SELECT TABLE_SCHEMA, TABLE_NAME, VIEW_DEFINITION FROM information_schema.VIEWS"
        f" WHERE TABLE_SCHEMA IN ({marks_for(names)})",
        names,
    )
    return {(schema, name): sql or "" for schema, name, sql in read}


def _read_by(sql: str, schema: str) -> frozenset[_Name] | None:
    """The tables in a view's definition; None where it cannot be told."""
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    if not sql:
        return None
    try:
        tree = sqlglot.parse_one(sql, dialect="mysql")
    except (SqlglotError, RecursionError):
        return None
    found = {(table.db or schema, table.name) for table in tree.find_all(exp.Table)}
    return frozenset(found)


def _bases(
    name: _Name, reads: Mapping[_Name, Iterable[_Name] | None], seen: set[_Name]
) -> set[_Name] | None:
    """The tables below a view, through other views; None where it cannot be told."""
    if name in seen:
        return set()
    seen.add(name)
    if name not in reads:
        return {name}
    direct = reads[name]
    if direct is None:
        return None
    found: set[_Name] = set()
    for one in direct:
        below = _bases(one, reads, seen)
        if below is None:
            return None
        found |= below
    return found
