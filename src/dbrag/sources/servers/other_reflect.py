"""Reading the catalog of any database through SQLAlchemy's inspector."""

from __future__ import annotations

import difflib
import logging
import warnings
from typing import TYPE_CHECKING, Any

from dbrag.errors import SourceNotFound, SourceUnreadable
from dbrag.types import Column, ForeignKey, Table, TableKind, TableRef

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from sqlalchemy import Connection, Inspector

log = logging.getLogger(__name__)

_Key = tuple[str | None, str]


def reflect(
    connection: Connection,
    source: str,
    schemas: Sequence[str],
    system: frozenset[str],
    *,
    own: bool,
) -> list[Table]:
    """Tables and views with columns, keys and comments, by schema and name.

    Args:
        schemas: to read; empty means all but ``system``.
        system: schemas of the engine itself, folded.
        own: without ``schemas`` only the one that the connection starts in.

    Raises:
        SourceNotFound: a schema asked for is not there.
        SourceUnreadable: there is nothing to read.
    """
    import sqlalchemy

    inspector = sqlalchemy.inspect(connection)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", sqlalchemy.exc.SAWarning)  # types it does not know
        names = _schemas(inspector, schemas, system, own)
        tables: dict[_Key, Table] = {}
        keys: list[tuple[_Key, Any]] = []
        for schema in names:
            found, declared = _of_schema(inspector, source, schema)
            tables |= found
            keys += declared
    if not tables:
        where = ", ".join(repr(name) for name in names if name) or "the database"
        raise SourceUnreadable(
            f"nothing to read in {where}: no table, or no right to read one",
            "choose schemas with --schema, and check the rights of the user",
        )
    return _with_keys(tables, keys, inspector)


def _schemas(
    inspector: Inspector, wanted: Sequence[str], system: frozenset[str], own: bool
) -> Sequence[str | None]:
    if inspector.dialect.name == "sqlite":
        return [None]
    try:
        seen = list(inspector.get_schema_names())
    except NotImplementedError:
        return list(wanted) or [inspector.default_schema_name]
    if not wanted:
        if own and inspector.default_schema_name:
            return [inspector.default_schema_name]
        return sorted(
            name
            for name in seen
            if name.casefold() not in system and not name.casefold().startswith("pg_")
        )
    folded = {name.casefold(): name for name in reversed(seen)}
    found = set()
    for name in wanted:
        real = name if name in seen else folded.get(name.casefold())
        if real is None:
            near = difflib.get_close_matches(name, seen, 1)
            raise SourceNotFound(
                f"no schema {name!r}, or no right to see it",
                f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(seen[:10])}",
            )
        found.add(real)
    return sorted(found)


def _of_schema(
    inspector: Inspector, source: str, schema: str | None
) -> tuple[dict[_Key, Table], list[tuple[_Key, Any]]]:
    """The tables of one schema, and the foreign keys they declare."""
    from sqlalchemy.engine.reflection import ObjectKind, ObjectScope

    kinds = _kinds(inspector, schema)
    options: dict[str, Any] = {"kind": ObjectKind.ANY, "scope": ObjectScope.DEFAULT}
    columns = _asked(inspector.get_multi_columns, schema, options)
    if columns is None:
        columns = _one_by_one(inspector.get_columns, kinds, schema)
    comments = _asked(inspector.get_multi_table_comment, schema, options) or {}
    primary = _asked(inspector.get_multi_pk_constraint, schema, {}) or {}
    foreign = _asked(inspector.get_multi_foreign_keys, schema, {}) or {}
    real = _real_name(inspector)
    tables: dict[_Key, Table] = {}
    declared = []
    for name, kind in sorted(kinds.items()):
        place: Any = (schema, name)
        own = columns.get(place)
        if own is None:
            own = _one_by_one(inspector.get_columns, [name], schema).get(place)
        ref = TableRef(source, None if schema is None else real(schema), real(name))
        if own is None:
            if kind == "table":
                log.warning("%s is left out: it cannot be read", ref)
                continue
            tables[schema, name] = Table(ref, (), kind, comment="cannot be read")
            continue
        key = (primary.get(place) or {}).get("constrained_columns") or ()
        tables[schema, name] = Table(
            ref,
            tuple(_column(inspector, column, real) for column in own),
            kind,
            primary_key=tuple(map(real, key)),
            comment=(comments.get(place) or {}).get("text") or "",
        )
        declared += [((schema, name), one) for one in foreign.get(place) or ()]
    return tables, declared


def _kinds(inspector: Inspector, schema: str | None) -> dict[str, TableKind]:
    """Names and kinds of all tables and views of a schema."""
    listings: tuple[tuple[str, TableKind], ...] = (
        ("get_table_names", "table"),
        ("get_foreign_table_names", "foreign table"),
        ("get_view_names", "view"),
        ("get_materialized_view_names", "materialized view"),
    )
    found: dict[str, TableKind] = {}
    for method, kind in listings:
        ask = getattr(inspector, method, None)
        if ask is None:
            continue
        try:
            found |= dict.fromkeys(ask(schema=schema), kind)
        except NotImplementedError:
            log.debug("this dialect has no %s", method)
    return found


def _asked(
    ask: Callable[..., Any], schema: str | None, options: Mapping[str, Any]
) -> Mapping[Any, Any] | None:
    """The answer for a whole schema; None where the dialect has none."""
    from sqlalchemy.exc import NoSuchTableError

    try:
        return dict(ask(schema=schema, **options))
    except (NotImplementedError, NoSuchTableError, TypeError) as error:
        log.debug("%s: %s", getattr(ask, "__name__", ask), type(error).__name__)
        return None


def _one_by_one(
    ask: Callable[..., Any], names: Iterable[str], schema: str | None
) -> dict[_Key, Any]:
    """The answer for each table, those left out for which there is none."""
    from sqlalchemy.exc import SQLAlchemyError

    found: dict[_Key, Any] = {}
    for name in names:
        try:
            found[schema, name] = ask(name, schema=schema)
        except (SQLAlchemyError, NotImplementedError) as error:
            log.info("%s.%s: %s", schema, name, type(error).__name__)
    return found


def _column(inspector: Inspector, column: Any, real: Callable[[str], str]) -> Column:
    from sqlalchemy.types import NullType

    kind = column["type"]
    try:
        text = "" if isinstance(kind, NullType) else kind.compile(dialect=inspector.dialect)
    except Exception:
        text = str(kind)
    return Column(
        real(str(column["name"])),
        text,
        bool(column.get("nullable", True)),
        column.get("comment") or "",
    )


def _real_name(inspector: Inspector) -> Callable[[str], str]:
    """A name as it must stand between quotes.

    Where SQLAlchemy folds names that need no quotes (Oracle, Snowflake), ``orders`` stands
    for ``ORDERS``.
    """
    dialect = inspector.dialect
    if not getattr(dialect, "requires_name_normalize", False):
        return str
    return lambda name: str(dialect.denormalize_name(name))


def _with_keys(
    tables: Mapping[_Key, Table], keys: Iterable[tuple[_Key, Any]], inspector: Inspector
) -> list[Table]:
    from dataclasses import replace

    real = _real_name(inspector)
    found: dict[_Key, list[ForeignKey]] = {}
    for place, declared in keys:
        table = tables[place]
        schema = declared.get("referred_schema")
        target = tables.get(
            (schema if schema is not None else place[0], declared["referred_table"])
        )
        if target is None and schema is None:
            # Targets in the schema that the connection starts in come without its name.
            target = tables.get((inspector.default_schema_name, declared["referred_table"]))
        columns = tuple(map(real, declared["constrained_columns"]))
        wanted = tuple(map(real, declared["referred_columns"] or ()))
        if target is None:
            log.info("%s: key to what is not read", table.ref)
            continue
        wanted = wanted or target.primary_key
        known = [table.column(c) for c in columns] + [target.column(c) for c in wanted]
        if None in known or len(wanted) != len(columns):
            log.info("%s: key to missing columns", table.ref)
            continue
        found.setdefault(place, []).append(ForeignKey(columns, target.ref, wanted))
    result = [
        replace(table, foreign_keys=tuple(sorted(found.get(place, ()), key=lambda k: k.columns)))
        for place, table in tables.items()
    ]
    return sorted(result, key=lambda table: (table.ref.schema or "", table.ref.name))
