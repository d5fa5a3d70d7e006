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
from dbrag.reasoning.repair import (
    Mended,
    TableNames,
    enclosing,
    is_alias,
    may_be_outer,
    own_columns,
    parse,
    qualify,
    rename,
    tables_in,
)
from dbrag.reasoning.words import conjuncts
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
        if any(_is_taken(table.name, scope) for _, table in steps):
            return None
        _qualify(scope, known, missing, names)
        side = _side(scope.expression, alias)
        _cross_commas(scope.expression)
        for edge, table in steps:
            scope.expression.append("joins", _join(edge, left, table, side))
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
    written = list(scope.expression.args.get("joins") or ())
    for number, join in enumerate(written):
        alias, on = join.alias_or_name.casefold(), join.args.get("on")
        if on is None or alias not in known:
            continue
        kept = _kept(on, alias, known)
        if kept is None:
            continue
        # a condition may speak of the tables before its join only
        later = {other.alias_or_name.casefold() for other in written[number:]}
        others = {name: table for name, table in known.items() if name not in later}
        found = _joins_to(known[alias], others, joins)
        if found is None or known[alias].ref in {table.ref for table in others.values()}:
            continue
        start, steps = found
        read = {table.ref for table in known.values()}
        if any(table in read or _is_taken(table.name, scope) for _, table in steps[:-1]):
            continue
        left = next((name for name in scope.sources if name.casefold() == start), start)
        place = scope.expression.args["joins"].index(join)
        for edge, table in steps[:-1]:
            scope.expression.args["joins"].insert(place, _join(edge, left, table, join.side))
            left, place = table.name, place + 1
            known[left.casefold()] = names.by_ref[table]
            added.append(left)
        edge, table = steps[-1]
        join.set("on", exp.and_(_condition(edge, left, table, join.alias_or_name), *kept))
        added.append(join.alias_or_name)
    return added


def _kept(on: exp.Expr, alias: str, known: dict[str, Table]) -> list[exp.Expr] | None:
    """The parts of a join's condition that can stay; None where all can, or where it is more
    than equal columns that cannot."""
    parts = conjuncts(on)
    wrong = [part for part in parts if not all(map(_knows(known), part.find_all(exp.Column)))]
    kept = [part for part in parts if part not in wrong]
    linking = any(len({c.table for c in part.find_all(exp.Column)}) > 1 for part in kept)
    equal = all(
        isinstance(part, exp.EQ)
        and isinstance(part.this, exp.Column)
        and isinstance(part.expression, exp.Column)
        for part in wrong
    )
    return kept if wrong and equal and not linking else None


def _knows(known: dict[str, Table]) -> Callable[[exp.Column], bool]:
    return lambda column: column.table.casefold() not in known or _is_known(column, known)


def _is_taken(name: str, scope: Scope) -> bool:
    """Whether a table added under its own name would be mixed up with another: of the scope,
    or of a query around it that the scope speaks of."""
    folded = name.casefold()
    if folded in map(str.casefold, scope.sources):
        return True
    around = {source.casefold() for outer in enclosing(scope) for source in outer.sources}
    spoken = {column.table.casefold() for column in scope.expression.find_all(exp.Column)}
    return folded in around & spoken


def _cross_commas(select: exp.Expr) -> None:
    """``FROM a, b`` as ``a CROSS JOIN b``: JOIN binds closer than a comma, and the condition of
    an added one could not speak of ``a``."""
    for join in select.args.get("joins") or ():
        if not any(join.args.get(part) for part in ("on", "using", "kind", "side", "method")):
            join.set("kind", "CROSS")


def _side(select: exp.Expr, alias: str) -> str:
    """LEFT where an inner join would drop the rows that an outer one keeps."""
    written = select.args.get("joins") or ()
    wide = any(join.side in ("RIGHT", "FULL") for join in written)
    own = any(join.side == "LEFT" and join.alias_or_name.casefold() == alias for join in written)
    return "LEFT" if wide or own else ""


def _joins_to(
    missing: Table, known: dict[str, Table], joins: JoinGraph
) -> tuple[str, list[tuple[JoinEdge, TableRef]]] | None:
    """The alias where the one shortest chain of joins to the table starts, and each join with
    the table that it leads to; None where the chain is long or could be another."""
    route = joins.only_route({table.ref for table in known.values()}, missing.ref)
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
    read = {table.ref for table in known.values()}
    near = {ref for one in read for ref in joins.neighbours(one)} - read
    others = [table for table in names.tables if table.ref not in read]
    homes: list[list[Table]] = []
    for column in own_columns(scope):
        qualifier = column.table.casefold()
        if _is_known(column, known):
            continue
        if qualifier not in known and may_be_outer(column, scope, names):
            continue
        if qualifier and qualifier not in known:
            table = names.named(qualifier)
            homes.append([table] if table is not None and table.column(column.name) else [])
        elif qualifier or not is_alias(column.name, scope):
            homes.append([table for table in others if column_in(table, column.name)])
        if homes and not homes[-1]:
            return []  # not certain, and there may be thousands of tables to look through
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


def _qualify(scope: Scope, known: dict[str, Table], missing: Table, names: TableNames) -> None:
    """Name the table of every bare column, since the join may make it ambiguous, and of
    every one that the missing table has."""
    for column in own_columns(scope):
        if _is_known(column, known):
            if not column.table:
                homes = [alias for alias, table in known.items() if table.column(column.name)]
                if len(homes) == 1:
                    qualify(column, homes[0], scope)
            continue
        qualifier = column.table.casefold()
        real = column_in(missing, column.name)
        if real is None or (not qualifier and is_alias(column.name, scope)):
            continue
        if qualifier not in known and may_be_outer(column, scope, names):
            continue
        if real.casefold() != column.name.casefold():
            rename(column, real)
        column.set("table", exp.to_identifier(missing.ref.name, quoted=True))


def _join(edge: JoinEdge, left: str, table: TableRef, side: str = "") -> exp.Join:
    return exp.Join(
        side=side or None,
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
