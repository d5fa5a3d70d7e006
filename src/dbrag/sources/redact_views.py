"""Which columns of views are computed from columns that nobody may read.

The engine is asked for the views' definitions. Where it does not tell one, or it cannot
be followed, all columns of the view count as computed from them.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from dbrag.errors import DbragError
from dbrag.sources.statements import all_rows

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlglot import exp

    from dbrag.sources.base import Source
    from dbrag.types import Table, TableRef

log = logging.getLogger(__name__)

_DEFINITIONS = {
    "sqlite": "SELECT NULL, name, sql FROM sqlite_master WHERE type = 'view'",
    "duckdb": "SELECT schema_name, view_name, sql FROM duckdb_views WHERE NOT internal",
    "postgres": (
        "SELECT n.nspname, c.relname, pg_catalog.pg_get_viewdef(c.oid) "
        "FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace "
        "WHERE c.relkind IN ('v', 'm')"
    ),
    "mysql": (
        "SELECT table_schema, table_name, view_definition FROM information_schema.views "
        "WHERE table_schema NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')"
    ),
}
"""dialect → a statement of (schema, view, definition)."""


def redacted_in_views(
    source: Source,
    tables: Sequence[Table],
    views: Sequence[Table],
    hidden: Mapping[TableRef, set[str]],
) -> dict[TableRef, set[str]]:
    """For each view the columns that are computed from hidden ones.

    Args:
        tables: all tables and views of the source, with all columns.
        hidden: the columns of ``tables`` that nobody may read.
    """
    definitions = _definitions(source)
    known = {ref: {name.casefold() for name in names} for ref, names in hidden.items()}
    found: dict[TableRef, set[str]] = {}
    changed = True
    while changed:  # a view may read another one: until nothing new is found
        changed = False
        for view in views:
            schema = view.ref.schema
            definition = definitions.get((schema, view.ref.name))
            if definition is None and schema is None:  # DuckDB's schema that goes unsaid
                definition = definitions.get(("main", view.ref.name))
            names = _computed(view, definition, Lineage(tables, known), source.dialect)
            if not {name.casefold() for name in names} <= known.get(view.ref, set()):
                known.setdefault(view.ref, set()).update(name.casefold() for name in names)
                found.setdefault(view.ref, set()).update(names)
                changed = True
    return found


def _definitions(source: Source) -> dict[tuple[str | None, str], str | None]:
    statement = _DEFINITIONS.get(source.dialect)
    if statement is None:
        log.warning(
            "redact: what views of source %r are computed from is not known; they are left out",
            source.name,
        )
        return {}
    found: dict[tuple[str | None, str], str | None] = {}
    try:
        with source.session() as session:
            session.execute(statement)
            found = {(schema, str(name)): sql for schema, name, sql in all_rows(session)}
    except DbragError as error:
        log.warning("redact: views of source %r are left out: %s", source.name, error.message)
    return found


def _computed(view: Table, definition: str | None, lineage: Lineage, dialect: str) -> set[str]:
    """Names of the view's columns that a hidden column reaches."""
    everything = {column.name for column in view.columns}
    if not definition:
        return everything
    if not lineage.may_reach(definition, view):
        return set()
    try:
        outputs = lineage.of_query(_query(definition, dialect))
    except Exception as error:  # whatever the parser meets: the view is left out
        log.info("redact: the definition of %s cannot be followed: %s", view.ref, error)
        return everything
    if len(outputs) != len(view.columns):
        return everything
    return {column.name for column, hit in zip(view.columns, outputs, strict=True) if hit}


def _query(definition: str, dialect: str) -> exp.Query:
    import sqlglot
    from sqlglot import exp

    tree: Any = sqlglot.parse_one(definition, dialect=dialect)
    query = tree.expression if isinstance(tree, exp.Create) else tree
    if not isinstance(query, exp.Query):
        raise TypeError(f"no query: {type(query).__name__}")
    return query


class Lineage:
    """Follows result columns of a query to the columns of tables; in doubt they are hidden.

    Tables of one name in several schemas count as one that hides what any of them hides.
    """

    def __init__(self, tables: Sequence[Table], hidden: Mapping[TableRef, set[str]]) -> None:
        self._hidden: dict[str, set[str]] = {}
        self._columns: dict[str, list[str]] = {}
        for ref, names in hidden.items():
            self._hidden.setdefault(ref.name.casefold(), set()).update(names)
        for table in tables:
            columns = [column.name.casefold() for column in table.columns]
            self._columns.setdefault(table.ref.name.casefold(), columns)

    def may_reach(self, definition: str, view: Table) -> bool:
        """False where the definition names no table with a hidden column: so do most."""
        plain = definition.casefold().replace('"', "").replace("`", "")
        own = view.ref.name.casefold()
        names = (name.replace('"', "").replace("`", "") for name in self._hidden if name != own)
        return any(name in plain for name in names)

    def of_query(self, query: exp.Query) -> list[bool]:
        """For each result column whether it reads a hidden one."""
        from sqlglot.optimizer.scope import build_scope

        scope = build_scope(query)
        if scope is None:
            raise TypeError("no scope")
        return [hit for _, hit in self._outputs(scope)]

    def _outputs(self, scope: Any) -> list[tuple[str, bool]]:
        from sqlglot import exp

        if scope.set_operation_scopes:
            left, right = (self._outputs(part) for part in scope.set_operation_scopes)
            return [(a, x or y) for (a, x), (_, y) in zip(left, right, strict=True)]
        outputs: list[tuple[str, bool]] = []
        for item in scope.expression.selects:
            if isinstance(item, exp.Star):
                for _, source in scope.selected_sources.values():
                    outputs += self._source(source)
            elif isinstance(item, exp.Column) and isinstance(item.this, exp.Star):
                outputs += self._source(scope.selected_sources[item.table][1])
            else:
                outputs.append((item.alias_or_name.casefold(), self._reads(scope, item)))
        return outputs

    def _source(self, source: Any) -> list[tuple[str, bool]]:
        """The columns of a table or subquery in FROM, each with whether it is hidden."""
        from sqlglot import exp

        if not isinstance(source, exp.Table):
            return self._outputs(source)
        name = source.name.casefold()
        hidden = self._hidden.get(name, set())
        return [(column, column in hidden) for column in self._columns[name]]

    def _reads(self, scope: Any, item: exp.Expression) -> bool:
        from sqlglot import exp

        if any(not isinstance(star.parent, exp.Count) for star in item.find_all(exp.Star)):
            return True
        if item.find(exp.Columns, exp.Command, exp.Parameter) is not None:
            return True  # DuckDB's COLUMNS('pattern'): whatever the pattern finds
        return any(self._is_hidden(scope, column) for column in item.find_all(exp.Column))

    def _is_hidden(self, scope: Any, column: exp.Column) -> bool:
        name, table = column.name.casefold(), column.table
        if column.parent_select is not scope.expression:
            scope = None  # of a subquery within the expression
        while scope is not None:
            for alias, (_, source) in scope.selected_sources.items():
                if table and alias.casefold() != table.casefold():
                    continue
                if not table and alias.casefold() == name:  # a whole row
                    return any(hit for _, hit in self._source(source))
                matches = [hit for other, hit in self._source(source) if other == name]
                if matches:
                    return any(matches)
            scope = scope.parent
        # Judged by the name alone.
        known = any(name in columns for columns in self._columns.values())
        return not known or any(name in names for names in self._hidden.values())
