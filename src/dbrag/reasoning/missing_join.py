"""Adding the join that a statement forgot.

``SELECT department.name, COUNT(*) FROM management GROUP BY department_id`` names a table
that it never reads. Where one shortest chain of known joins leads there from the tables it
does read, the joins are added; anything less certain goes back to the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, traverse_scope

from dbrag.catalog.joins import JoinEdge, JoinGraph
from dbrag.reasoning.nearness import column_in
from dbrag.reasoning.repair import Mended, TableNames, own_columns, parse, rename, tables_in
from dbrag.types import Table, TableRef

MOST_TABLES = 2
"""Added to one SELECT."""
MOST_JOINS = 3
"""In a chain that is added: a longer one is seldom what was meant."""


def add_missing_joins(
    sql: str, tables: Sequence[Table], joins: JoinGraph, dialect: str
) -> Mended | None:
    """The statement with the missing joins added to each SELECT that lacks some; None when
    nothing is missing or other joins would do as well."""
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
    added = _rejoin(scope, known, names, joins)
    for missing in _missing_tables(scope, known, names, joins):
        if missing.ref in {table.ref for table in known.values()}:
            continue  # a chain to the one before led through it
        joined = _joins_to(missing, known, joins)
        if joined is None:
            return None
        alias, steps = joined
        left = next((name for name in scope.sources if name.casefold() == alias), alias)
        _qualify(scope, known, missing)
        for edge, table in steps:
            scope.expression.append("joins", _join(edge, left, table))
            left = table.name
            known[left.casefold()] = names.by_ref[table]
            added.append(left)
    return f"joined {' and '.join(added)}" if added else None


def _rejoin(
    scope: Scope, known: dict[str, Table], names: TableNames, joins: JoinGraph
) -> list[str]:
    """Give joins on columns that do not exist the known condition, with the tables between
    them; the names of the tables that were joined so."""
    added = []
    for join in list(scope.expression.args.get("joins") or ()):
        alias, on = join.alias_or_name.casefold(), join.args.get("on")
        if on is None or alias not in known or all(map(_knows(known), on.find_all(exp.Column))):
            continue
        others = {name: table for name, table in known.items() if name != alias}
        found = _joins_to(known[alias], others, joins)
        if found is None or known[alias].ref in {table.ref for table in others.values()}:
            continue
        start, steps = found
        left = next((name for name in scope.sources if name.casefold() == start), start)
        place = scope.expression.args["joins"].index(join)
        for edge, table in steps[:-1]:
            scope.expression.args["joins"].insert(place, _join(edge, left, table))
            left, place = table.name, place + 1
            known[left.casefold()] = names.by_ref[table]
            added.append(left)
        edge, table = steps[-1]
        join.set("on", _condition(edge, left, table, join.alias_or_name))
        added.append(join.alias_or_name)
    return added


def _knows(known: dict[str, Table]) -> Callable[[exp.Column], bool]:
    return lambda column: column.table.casefold() not in known or _is_known(column, known)


def _joins_to(
    missing: Table, known: dict[str, Table], joins: JoinGraph
) -> tuple[str, list[tuple[JoinEdge, TableRef]]] | None:
    """The alias where a shortest chain of joins to the table starts, and each join with the
    table that it leads to; None where the chain is long or a link of it could be another."""
    route = joins.route({table.ref for table in known.values()}, missing.ref)
    starts = [alias for alias, table in known.items() if route and table.ref == route[0]]
    if len(starts) != 1 or len(route) > MOST_JOINS + 1:
        return None
    steps = []
    for one, other in pairwise(route):
        edges = joins.sure(one, other)
        if len(edges) != 1:
            return None
        steps.append((edges[0], other))
    return starts[0], steps


def _missing_tables(
    scope: Scope, known: dict[str, Table], names: TableNames, joins: JoinGraph
) -> list[Table]:
    """The one table that has all unknown columns of the scope, or the one of each column;
    none where it is not certain. Tables that join those read come before others."""
    outer = {name.casefold() for name in scope.parent.sources} if scope.parent else set()
    aliases = {e.alias for e in scope.expression.expressions if isinstance(e, exp.Alias)}
    read = {table.ref for table in known.values()}
    near = {ref for one in read for ref in joins.neighbours(one)} - read
    others = [table for table in names.tables if table.ref not in read]
    homes: list[list[Table]] = []
    for column in own_columns(scope):
        qualifier = column.table.casefold()
        if _is_known(column, known) or (qualifier in outer and qualifier not in known):
            continue
        if qualifier and qualifier not in known:
            table = names.named(qualifier)
            homes.append([table] if table is not None and table.column(column.name) else [])
        elif qualifier or column.name not in aliases:
            homes.append([table for table in others if column_in(table, column.name)])
    common = [table for table in others if homes and all(table in home for home in homes)]
    for choice in ([table for table in common if table.ref in near], common):
        if len(choice) == 1:
            return choice
    nearest = [[table for table in home if table.ref in near] or home for home in homes]
    if any(len(home) != 1 for home in nearest):
        return []
    found = {str(home[0].ref): home[0] for home in nearest}
    return list(found.values()) if len(found) <= MOST_TABLES else []


def _is_known(column: exp.Column, known: dict[str, Table]) -> bool:
    """Whether the table that the column names, or else any in scope, has it."""
    named = known.get(column.table.casefold())
    if column.table:
        return named is not None and named.column(column.name) is not None
    return any(table.column(column.name) for table in known.values())


def _qualify(scope: Scope, known: dict[str, Table], missing: Table) -> None:
    """Name the table of every bare column, since the join may make it ambiguous, and of
    every one that the missing table has."""
    outer = {name.casefold() for name in scope.parent.sources} if scope.parent else set()
    for column in own_columns(scope):
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


def _join(edge: JoinEdge, left: str, table: TableRef) -> exp.Join:
    return exp.Join(
        this=exp.table_(table.name, db=table.schema, quoted=True),
        on=_condition(edge, left, table, table.name),
    )


def _condition(edge: JoinEdge, left: str, table: TableRef, right: str) -> exp.Condition:
    """The condition of an edge to a table, whose alias is ``right``."""
    forward = edge.right == table
    own = edge.left_columns if forward else edge.right_columns
    other = edge.right_columns if forward else edge.left_columns
    return exp.and_(
        *(
            exp.EQ(
                this=exp.column(a, table=left, quoted=True),
                expression=exp.column(b, table=right, quoted=True),
            )
            for a, b in zip(own, other, strict=True)
        )
    )
