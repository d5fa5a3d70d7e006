"""Mending a statement without asking the model again: names and literals.

A small model's commonest slip is the right column with the wrong table's alias;
the second is a value in another spelling than the data's. Both are certain enough to
mend by rule, cost no tokens, and every change is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.optimizer.scope import Scope, ScopeType, traverse_scope

from dbrag.execution.schema import spelling
from dbrag.reasoning.nearness import is_called, is_of_kind, nearest, table_of_words
from dbrag.types import Table

_INNER = (ScopeType.SUBQUERY, ScopeType.SET_OPERATION)
"""Scopes that may see the columns of the one around them."""


@dataclass(frozen=True, slots=True)
class Mended:
    """The changed statement and each change in words."""

    sql: str
    changes: tuple[str, ...]


class TableNames:
    """Tables by the names that a statement may give them.

    Args:
        tables: all of one source; several schemas may have tables of one name.
    """

    def __init__(self, tables: Sequence[Table]) -> None:
        self.tables = tuple(tables)
        self.by_ref = {table.ref: table for table in tables}
        self._by_name: dict[str, list[Table]] = {}
        for table in tables:
            self._by_name.setdefault(table.ref.name.casefold(), []).append(table)

    def named(self, name: str, schema: str = "") -> Table | None:
        """The one table of that name, letter case ignored; None if there is none or several."""
        found = self._by_name.get(name.casefold(), [])
        if schema:
            folded = schema.casefold()
            found = [t for t in found if folded in (_schema(t), t.ref.source.casefold())]
        return found[0] if len(found) == 1 else None

    def of(self, node: exp.Table) -> Table | None:
        """The table that a FROM entry means."""
        return self.named(node.name, node.db)

    def spelled_like(self, node: exp.Table, *, loosely: bool = False) -> Table | None:
        """The one table whose name differs in case, blanks and punctuation only.

        Where there is none, the one that is called so otherwise (``catalog.notes``), and then
        the one whose name has all words of the written one, if that says what its rows are.

        Args:
            loosely: its rows may be of another kind.
        """
        folded = node.db.casefold()
        here = [
            table
            for table in self.tables
            if not folded or folded in (_schema(table), table.ref.source.casefold())
        ]
        found = [table for table in here if spelling(node.name, table.ref.name) == 1.0]
        found = found or [table for table in here if is_called(table, node.name)]
        if found:
            return found[0] if len(found) == 1 else None
        table = table_of_words(node.name, here)
        return table if table and (loosely or is_of_kind(node.name, table)) else None


def _schema(table: Table) -> str:
    return (table.ref.schema or "main").casefold()


Lookup = Callable[[Table, str, str], str | None]
"""(table, column, value) → the spelling the data has, None if there is none or several."""


def mend_names(sql: str, tables: Sequence[Table], dialect: str) -> Mended | None:
    """Give each unknown column the alias of the one table in scope that has it.

    A column that no table in scope has is renamed to its one near spelling there, and a
    table to the one whose name differs in blanks and punctuation only; a synonym is a
    spelling, too. None when nothing could be mended.
    """
    tree = parse(sql, dialect)
    if tree is None:
        return None
    by_name = TableNames(tables)
    changes = _mend_tables(tree, by_name)
    for scope in traverse_scope(tree):
        known = tables_in(scope, by_name)
        if not known:
            continue
        for column in own_columns(scope):
            if column.table.casefold() not in known and may_be_outer(column, scope, by_name):
                continue
            change = _mend_column(column, known, scope)
            if change:
                changes.append(change)
    return Mended(tree.sql(dialect=dialect), tuple(changes)) if changes else None


def mend_literals(sql: str, tables: Sequence[Table], dialect: str, lookup: Lookup) -> Mended | None:
    """Write each compared text as the data spells it, where ``lookup`` knows one spelling."""
    tree = parse(sql, dialect)
    if tree is None:
        return None
    by_name = TableNames(tables)
    changes: list[str] = []
    for scope in traverse_scope(tree):
        known = tables_in(scope, by_name)
        for column, value in _comparisons(scope):
            table = _owner(column, known)
            if table is None:
                continue
            real = table.column(column.name)
            spelled = lookup(table, real.name, value.this) if real else None
            if spelled is not None and spelled != value.this:
                changes.append(f"{value.this!r} read as {spelled!r}")
                value.set("this", spelled)
    return Mended(tree.sql(dialect=dialect), tuple(changes)) if changes else None


def parse(sql: str, dialect: str) -> exp.Expr | None:
    """The tree of a statement, None where it does not parse."""
    try:
        return sqlglot.parse_one(sql, dialect=dialect)
    except (SqlglotError, RecursionError):
        return None


def tables_in(scope: Scope, names: TableNames) -> dict[str, Table]:
    """Alias → table, for the real tables that the scope reads."""
    found = {}
    for alias, source in scope.sources.items():
        table = names.of(source) if isinstance(source, exp.Table) else None
        if table is not None:
            found[alias.casefold()] = table
    return found


def own_columns(scope: Scope) -> list[exp.Column]:
    """The columns written in the scope itself, not in its subqueries."""
    return [one for one in scope.columns if one.parent_select is scope.expression]


def enclosing(scope: Scope) -> list[Scope]:
    """The queries whose columns a subquery sees, the nearest first."""
    found = []
    while scope.parent is not None and scope.scope_type in _INNER:
        scope = scope.parent
        found.append(scope)
    return found


def may_be_outer(column: exp.Column, scope: Scope, names: TableNames) -> bool:
    """Whether a column that is not one of the scope's own may be that of a query around it."""
    alias = column.table.casefold()
    for outer in enclosing(scope):
        if alias:
            if alias in map(str.casefold, outer.sources):
                return True
            continue
        tables = tables_in(outer, names)
        if len(tables) < len(outer.sources):
            return True  # a CTE or derived table: its columns are not known here
        if any(table.column(column.name) for table in tables.values()):
            return True
    return False


def is_alias(name: str, scope: Scope) -> bool:
    """Whether the scope gives a result that name, letter case ignored."""
    found = (e for e in scope.expression.expressions if isinstance(e, exp.Alias))
    return name.casefold() in {alias.alias.casefold() for alias in found}


def qualify(column: exp.Column, alias: str, scope: Scope) -> None:
    """Name the table of a column by its alias, given without letter case, as FROM writes it."""
    spelled = next(name for name in scope.sources if name.casefold() == alias)
    source = scope.sources[spelled]
    written = source.args.get("alias") or source if isinstance(source, exp.Table) else None
    if written is not None and isinstance(written.this, exp.Identifier):
        column.set("table", written.this.copy())
    else:
        column.set("table", exp.to_identifier(spelled))


def _mend_tables(tree: exp.Expr, names: TableNames) -> list[str]:
    """Give unknown tables the name of the one that is spelled so; columns keep their prefix."""
    changes = []
    ctes = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    for node in tree.find_all(exp.Table):
        if not isinstance(node.this, exp.Identifier) or node.name.casefold() in ctes:
            continue
        real = None if names.of(node) else names.spelled_like(node)
        if real is None or real.ref.name.casefold() == node.name.casefold():
            continue
        changes.append(f"{node.name} read as {real.ref.name}")
        if not node.alias:
            node.set("alias", exp.TableAlias(this=node.this.copy()))
        node.set("this", exp.to_identifier(real.ref.name, quoted=True))
    return changes


def _mend_column(column: exp.Column, known: dict[str, Table], scope: Scope) -> str | None:
    alias = column.table.casefold()
    if alias:
        if alias in known and known[alias].column(column.name):
            return None
        if alias not in known and alias in {name.casefold() for name in scope.sources}:
            return None  # a CTE or derived table: its columns are not known here
    elif _is_explained(column, known, scope):
        return None
    before = column.sql()
    if alias in known and (called := _called(known[alias], column.name)):
        rename(column, called)
        return f"{before} read as {column.sql()}"
    homes = [name for name, table in known.items() if table.column(column.name)]
    if len(homes) == 1:
        if _equals_itself(column, homes[0]):
            return None  # a join with itself joins everything: ``missing_join`` knows better
        qualify(column, homes[0], scope)
        return f"{before} read as {column.sql()}"
    if homes:
        return None
    candidates = {alias: known[alias]} if alias in known else known
    near = nearest(column.name, candidates.items()) or nearest(column.name, known.items())
    if near is None:
        return None
    home, real = near
    rename(column, real)
    if alias or len(known) > 1:
        qualify(column, home, scope)
    return f"{before} read as {column.sql()}"


def _equals_itself(column: exp.Column, alias: str) -> bool:
    """Whether a column of that alias would be compared with itself."""
    equal = column.parent
    if not isinstance(equal, exp.EQ):
        return False
    other = equal.right if column is equal.left else equal.left
    return (
        isinstance(other, exp.Column)
        and (other.table.casefold(), other.name.casefold()) == (alias, column.name.casefold())
    )  # fmt: skip


def _is_explained(column: exp.Column, known: dict[str, Table], scope: Scope) -> bool:
    """An unqualified name that is a column in scope, an alias, or may come from a CTE."""
    if any(table.column(column.name) for table in known.values()):
        return True
    return len(known) < len(scope.sources) or is_alias(column.name, scope)


def rename(column: exp.Column, name: str) -> None:
    """Give a column another name, quoted where it has to be."""
    column.set("this", exp.to_identifier(name, quoted=not re.fullmatch(r"[A-Za-z_]\w*", name)))


def _called(table: Table, name: str) -> str | None:
    """The one column of a table that is called so otherwise."""
    found = [column.name for column in table.columns if is_called(column, name)]
    return found[0] if len(found) == 1 else None


def _comparisons(scope: Scope) -> list[tuple[exp.Column, exp.Literal]]:
    """(column, text literal) of every ``=``, ``<>`` and ``IN`` of the scope's own level."""
    pairs = []
    for node in scope.find_all(exp.EQ, exp.NEQ, exp.In):
        if isinstance(node, exp.In):
            sides = [(node.this, value) for value in node.expressions]
        else:
            sides = [(node.this, node.expression), (node.expression, node.this)]
        pairs += [
            (column, value)
            for column, value in sides
            if isinstance(column, exp.Column) and isinstance(value, exp.Literal) and value.is_string
        ]
    return pairs


def _owner(column: exp.Column, known: dict[str, Table]) -> Table | None:
    if column.table:
        return known.get(column.table.casefold())
    homes = [table for table in known.values() if table.column(column.name)]
    return homes[0] if len(homes) == 1 else None
