"""Adding the join that a statement forgot.

``SELECT department.name, COUNT(*) FROM management GROUP BY department_id`` names a table
that it never reads. Where exactly one known join leads there from the tables it does
read, the join is added; anything less certain goes back to the model.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from dbrag.catalog.joins import JoinEdge, JoinGraph
from dbrag.execution.schema import spelling
from dbrag.reasoning.repair import Mended, TableNames, parse, rename, tables_in
from dbrag.types import Table


def add_missing_joins(
    sql: str, tables: Sequence[Table], joins: JoinGraph, dialect: str
) -> Mended | None:
    """The statement with one missing join added to each SELECT that lacks one; None when
    nothing is missing or more than one join would do."""
    tree = parse(sql, dialect)
    if tree is None:
        return None
    names = TableNames(tables)
    changes: list[str] = []
    for scope in traverse_scope(tree):
        if isinstance(scope.expression, exp.Select):
            change = _mend(scope, names, joins)
            if change:
                changes.append(change)
    return Mended(tree.sql(dialect=dialect), tuple(changes)) if changes else None


def _mend(scope: Scope, names: TableNames, joins: JoinGraph) -> str | None:
    known = tables_in(scope, names)
    if not known or len(known) < len(scope.sources):
        return None  # a CTE or derived table may hold the column: not certain
    missing = _missing_table(scope, known, names, joins)
    if missing is None:
        return None
    edges = [
        (alias, edge)
        for alias, table in known.items()
        for edge in joins.sure(table.ref, missing.ref)
    ]
    if len(edges) != 1:
        return None
    alias, edge = edges[0]
    spelled = next(name for name in scope.sources if name.casefold() == alias)
    _qualify(scope, known, missing)
    scope.expression.append("joins", _join(edge, spelled, missing))
    return f"joined {missing.ref.name}"


def _missing_table(
    scope: Scope, known: dict[str, Table], names: TableNames, joins: JoinGraph
) -> Table | None:
    """The one table that the scope's unknown columns belong to."""
    found: dict[str, Table] = {}
    outer = {name.casefold() for name in scope.parent.sources} if scope.parent else set()
    aliases = {e.alias for e in scope.expression.expressions if isinstance(e, exp.Alias)}
    near = {ref for table in known.values() for ref in joins.neighbours(table.ref)}
    near -= {table.ref for table in known.values()}
    around = [table for table in names.tables if table.ref in near]
    for column in scope.columns:
        qualifier = column.table.casefold()
        if _is_known(column, known) or (qualifier in outer and qualifier not in known):
            continue
        if qualifier and qualifier not in known:
            table = names.named(qualifier)
            if table is None or not table.column(column.name):
                return None
        elif qualifier or column.name not in aliases:
            homes = [table for table in around if column_in(table, column.name)]
            if len(homes) != 1:
                return None
            table = homes[0]
        else:
            continue
        found[str(table.ref)] = table
    return next(iter(found.values())) if len(found) == 1 else None


def _is_known(column: exp.Column, known: dict[str, Table]) -> bool:
    """Whether the table that the column names, or else any in scope, has it."""
    named = known.get(column.table.casefold())
    if column.table:
        return named is not None and named.column(column.name) is not None
    return any(table.column(column.name) for table in known.values())


def column_in(table: Table, name: str) -> str | None:
    """The column's real name: itself, or "name" of the table "team" where "team_name" is said."""
    real = table.column(name)
    if real is not None:
        return real.name
    found = [c.name for c in table.columns if spelling(name, table.ref.name + c.name) == 1.0]
    return found[0] if len(found) == 1 else None


def _qualify(scope: Scope, known: dict[str, Table], missing: Table) -> None:
    """Name the table of every bare column, since the join may make it ambiguous, and of
    every one that the missing table has."""
    outer = {name.casefold() for name in scope.parent.sources} if scope.parent else set()
    for column in scope.columns:
        if _is_known(column, known):
            if not column.table:
                homes = [alias for alias, table in known.items() if table.column(column.name)]
                if len(homes) == 1:
                    spelled = next(name for name in scope.sources if name.casefold() == homes[0])
                    column.set("table", exp.to_identifier(spelled))
            continue
        qualifier = column.table.casefold()
        real = column_in(missing, column.name)
        if real is None or (qualifier in outer and qualifier not in known):
            continue
        if real.casefold() != column.name.casefold():
            rename(column, real)
        column.set("table", exp.to_identifier(missing.ref.name))


def _join(edge: JoinEdge, alias: str, missing: Table) -> exp.Join:
    forward = edge.right == missing.ref
    own = edge.left_columns if forward else edge.right_columns
    other = edge.right_columns if forward else edge.left_columns
    conditions = [
        exp.EQ(
            this=exp.column(a, table=alias, quoted=True),
            expression=exp.column(b, table=missing.ref.name, quoted=True),
        )
        for a, b in zip(own, other, strict=True)
    ]
    return exp.Join(
        this=exp.table_(missing.ref.name, db=missing.ref.schema, quoted=True),
        on=exp.and_(*conditions),
    )
