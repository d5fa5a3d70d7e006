"""Reading a schema: SQLAlchemy's inspector, with what it leaves out for SQLite."""

from __future__ import annotations

import logging
import warnings
from typing import TYPE_CHECKING, Any

from dbrag.errors import SourceUnreadable
from dbrag.sources import sqlite
from dbrag.sources.statements import HIDDEN
from dbrag.types import Column, ForeignKey, Table, TableRef

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlalchemy import Connection, Inspector

log = logging.getLogger(__name__)


def reflect(connection: Connection, source: str, location: str) -> list[Table]:
    """Every table and view of the database, ordered by name.

    A virtual table whose module is missing is left out and logged; a view that
    cannot be read is kept without columns, its comment saying why.

    Raises:
        SourceUnreadable: there is no table or view.
        sqlalchemy.exc.DBAPIError: the database is malformed or locked.
    """
    import sqlalchemy

    inspector = sqlalchemy.inspect(connection)

    def execute(sql: str) -> Sequence[Any]:
        return connection.exec_driver_sql(sql).fetchall()

    with warnings.catch_warnings():
        # Keys that its reading of the DDL cannot match, types it does not know.
        warnings.simplefilter("ignore", sqlalchemy.exc.SAWarning)
        hidden = sqlite.shadow_tables(execute)
        names = [(name, False) for name in inspector.get_table_names() if name not in hidden]
        names += [(name, True) for name in inspector.get_view_names()]
        found = [_table(inspector, execute, source, *name) for name in sorted(names)]
        tables = {table.ref.name: table for table in found if table is not None}
        keys = {name: _foreign_keys(inspector, table, tables) for name, table in tables.items()}
    if not tables:
        raise SourceUnreadable(
            f"database {location!r} is empty: it has no tables", "name a database with tables"
        )
    return [_with_keys(table, keys[name]) for name, table in sorted(tables.items())]


def _table(
    inspector: Inspector, execute: Any, source: str, name: str, is_view: bool
) -> Table | None:
    from sqlalchemy.exc import DBAPIError

    ref = TableRef(source, None, name)
    try:
        columns = tuple(
            Column(column, kind, nullable, HIDDEN if hidden else "")
            for column, kind, nullable, hidden in sqlite.columns_of(execute, name)
        )
    except DBAPIError as error:
        if not sqlite.is_statement_error(error.orig):
            raise
        reason = " ".join(str(error.orig).split())
        if is_view:
            log.info("view %s cannot be read: %s", ref, reason)
            return Table(ref, (), "view", comment=f"cannot be read: {reason}")
        log.warning("table %s is left out: %s", ref, reason)
        return None
    if is_view:
        return Table(ref, columns, "view")
    key = inspector.get_pk_constraint(name)["constrained_columns"]
    return Table(ref, columns, primary_key=tuple(key))


def _foreign_keys(
    inspector: Inspector, table: Table, tables: Mapping[str, Table]
) -> tuple[ForeignKey, ...]:
    """The declared keys to existing tables and columns, names spelled as they really are."""
    if table.kind == "view":
        return ()
    folded = {name.casefold(): other for name, other in tables.items()}
    keys = set()
    for declared in inspector.get_foreign_keys(table.ref.name):
        target = folded.get(declared["referred_table"].casefold())
        columns = _real_names(table, declared["constrained_columns"])
        if target is None or columns is None:
            log.info("%s: key to missing table %r", table.ref, declared["referred_table"])
            continue
        # Without named columns a key refers to the primary key of its target.
        wanted = declared["referred_columns"] or target.primary_key
        target_columns = _real_names(target, wanted)
        if target_columns is None or len(target_columns) != len(columns):
            log.info("%s: key to missing columns %s of %s", table.ref, wanted, target.ref)
            continue
        keys.add(ForeignKey(columns, target.ref, target_columns))
    order = {column.name: i for i, column in enumerate(table.columns)}
    return tuple(
        sorted(keys, key=lambda k: ([order[c] for c in k.columns], k.target.name, k.target_columns))
    )


def _real_names(table: Table, names: Sequence[str]) -> tuple[str, ...] | None:
    found = [table.column(name) for name in names]
    return None if None in found else tuple(column.name for column in found if column is not None)


def _with_keys(table: Table, keys: tuple[ForeignKey, ...]) -> Table:
    from dataclasses import replace

    return replace(table, foreign_keys=keys) if keys else table
