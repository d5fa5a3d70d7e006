"""Reading the schema of a DuckDB file from DuckDB's own catalog functions."""

from __future__ import annotations

import logging
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from dbrag.errors import Refused
from dbrag.sources.base import ColumnStatistics
from dbrag.sources.duck.errors import one_line
from dbrag.sources.duck.parser import parse_select
from dbrag.sources.statements import quoted
from dbrag.types import Column, ForeignKey, Table, TableRef

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from duckdb import DuckDBPyConnection

log = logging.getLogger(__name__)

MAIN = "main"
"""The schema that needs no naming; its tables have None for a schema."""

_OURS = "database_name = current_database() AND NOT internal"
_PREFIX_BYTES = 12
"""DuckDB keeps so many bytes of a column's least and greatest text."""
_UNSTEADY = frozenset(
    {
        "current_query",
        "current_setting",
        "current_user",
        "error",
        "getvariable",
        "in_search_path",
        "stats",
    }
)


def reflect(cursor: DuckDBPyConnection, source: str, schemas: Sequence[str]) -> list[Table]:
    """Every table and view, ordered by schema and name; temporary ones are not the user's.

    A view that cannot be read (it reads files, or a table that is gone) is kept without
    columns, its comment saying why.

    Args:
        schemas: those to read; empty means all.

    Raises:
        duckdb.Error: the database is malformed.
    """
    wanted = {schema.casefold() for schema in schemas}
    columns = _columns(cursor)
    keys = _constraints(cursor)
    tables = []
    for schema, name, comment, rows in cursor.execute(
        "SELECT schema_name, table_name, comment, estimated_size FROM duckdb_tables() "
        f"WHERE {_OURS} AND NOT temporary"
    ).fetchall():
        primary, foreign = keys.get((schema, name), ((), ()))
        tables.append(
            Table(
                _ref(source, schema, name),
                columns.get((schema, name), ()),
                primary_key=primary,
                foreign_keys=tuple(
                    ForeignKey(own, _ref(source, schema, target), theirs)
                    for own, target, theirs in foreign
                ),
                comment=comment or "",
                estimate=rows,
            )
        )
    for schema, name, comment in cursor.execute(
        "SELECT schema_name, view_name, comment FROM duckdb_views() "
        f"WHERE {_OURS} AND NOT temporary"
    ).fetchall():
        tables.append(
            _view(cursor, _ref(source, schema, name), columns.get((schema, name), ()), comment)
        )
    found = [t for t in tables if not wanted or (t.ref.schema or MAIN).casefold() in wanted]
    return sorted(found, key=lambda table: (table.ref.schema or MAIN, table.ref.name))


def _ref(source: str, schema: str, name: str) -> TableRef:
    return TableRef(source, None if schema == MAIN else schema, name)


def address(ref: TableRef) -> str:
    """The table as SQL text."""
    return f"{quoted(ref.schema or MAIN)}.{quoted(ref.name)}"


def _columns(cursor: DuckDBPyConnection) -> Mapping[tuple[str, str], tuple[Column, ...]]:
    found: dict[tuple[str, str], list[Column]] = defaultdict(list)
    for schema, table, name, kind, nullable, comment in cursor.execute(
        "SELECT schema_name, table_name, column_name, data_type, is_nullable, comment "
        f"FROM duckdb_columns() WHERE {_OURS} ORDER BY schema_name, table_name, column_index"
    ).fetchall():
        found[schema, table].append(Column(name, kind, bool(nullable), comment or ""))
    return {key: tuple(columns) for key, columns in found.items()}


def _constraints(cursor: DuckDBPyConnection) -> Mapping[tuple[str, str], tuple[Any, Any]]:
    """(primary key, foreign keys) of each table; DuckDB's keys stay within one schema."""
    primary: dict[tuple[str, str], tuple[str, ...]] = {}
    foreign: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for schema, table, kind, own, target, theirs in cursor.execute(
        "SELECT schema_name, table_name, constraint_type, constraint_column_names, "
        "referenced_table, referenced_column_names FROM duckdb_constraints() "
        "WHERE database_name = current_database() "
        "AND constraint_type IN ('PRIMARY KEY', 'FOREIGN KEY') "
        "ORDER BY schema_name, table_name, constraint_index"
    ).fetchall():
        if kind == "PRIMARY KEY":
            primary[schema, table] = tuple(own)
        else:
            foreign[schema, table].append((tuple(own), target, tuple(theirs)))
    return {
        key: (primary.get(key, ()), tuple(foreign.get(key, ()))) for key in {*primary, *foreign}
    }


def _view(
    cursor: DuckDBPyConnection, ref: TableRef, columns: tuple[Column, ...], comment: str | None
) -> Table:
    """The view with its columns as they are now: a view may have outlived its tables."""
    import duckdb

    try:
        rows = cursor.execute(f"DESCRIBE SELECT * FROM {address(ref)}").fetchall()
    except duckdb.PermissionException as error:
        reason = f"it reads files: {one_line(error)}"
    except duckdb.Error as error:
        reason = one_line(error)
    else:
        comments = {column.name: column.comment for column in columns}
        return Table(
            ref,
            tuple(Column(row[0], row[1], comment=comments.get(row[0], "")) for row in rows),
            "view",
            comment=comment or "",
        )
    log.info("view %s cannot be read: %s", ref, reason)
    return Table(ref, (), "view", comment=f"cannot be read: {reason}")


def macros(cursor: DuckDBPyConnection) -> tuple[frozenset[str], frozenset[str]]:
    """The user's macros, folded: those that only compute, and those that give a table.

    A macro only computes when every function in it does and it reads no table.
    """
    steady, unsteady = set[str](), set[str](_UNSTEADY)
    for name, kind, stability in cursor.execute(
        "SELECT DISTINCT function_name, function_type, stability FROM duckdb_functions() "
        "WHERE internal"
    ).fetchall():
        computes = kind in ("scalar", "aggregate", "window") and stability != "VOLATILE"
        (steady if computes else unsteady).add(name.casefold())
    steady -= unsteady
    definitions: dict[str, list[str]] = defaultdict(list)
    tables = set()
    for name, kind, definition in cursor.execute(
        "SELECT function_name, function_type, macro_definition FROM duckdb_functions() "
        f"WHERE {_OURS}"
    ).fetchall():
        if kind == "macro":
            definitions[name.casefold()].append(definition)
        elif kind == "table_macro":
            tables.add(name.casefold())
    pure = set[str]()
    while True:
        more = {
            name
            for name, texts in definitions.items()
            if name not in pure and all(_computes(text, steady | pure) for text in texts)
        }
        if not more:
            return frozenset(pure), frozenset(tables)
        pure |= more


def _computes(definition: str, allowed: Iterable[str]) -> bool:
    try:
        parsed = parse_select(f"SELECT {definition}")
    except Refused:
        return False
    # A word like current_user is a column to the parser, and a function if there is none.
    if parsed.tables or parsed.table_functions or parsed.columns & _UNSTEADY:
        return False
    return parsed.functions <= set(allowed)


def statistics(cursor: DuckDBPyConnection, table: Table) -> Mapping[str, ColumnStatistics]:
    """What DuckDB keeps of a table's columns: about how many distinct values, extremes.

    Deleted rows may still count in them.

    Raises:
        duckdb.Error: the table cannot be read.
    """
    if not table.columns or table.kind != "table":
        return {}
    asked = ", ".join(f"stats({quoted(column.name)})" for column in table.columns)
    row = cursor.execute(f"SELECT {asked} FROM {address(table.ref)} LIMIT 1").fetchone()
    found = {}
    for column, known in zip(table.columns, row or (), strict=False):
        if not isinstance(known, dict):
            continue
        no_nulls = known.get("has_null") is False
        found[column.name] = ColumnStatistics(
            distinct=known.get("approx_unique"),
            null_share=0.0 if no_nulls else None,
            minimum=_extreme(known.get("min")),
            maximum=_extreme(known.get("max")),
        )
    return found


def _extreme(value: Any) -> str | None:
    if value is None or isinstance(value, (dict, list, tuple)):
        return None
    text = str(value)
    cut = isinstance(value, (str, bytes)) and len(text.encode()) >= _PREFIX_BYTES
    return None if cut else text
