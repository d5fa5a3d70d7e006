"""Tables that a failed statement means and that its writer was not shown.

A selection that left a table out shows itself: the model names the table, or a column
that only it has. The next round then shows that table, too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp
from sqlglot.errors import SqlglotError

from dbrag.catalog.joins import JoinGraph
from dbrag.reasoning.nearness import column_in
from dbrag.reasoning.repair import TableNames, parse
from dbrag.types import Table, TableRef

MOST = 2
"""Tables added in one round: more would drown the ones that were selected."""


def tables_meant(
    sql: str,
    shown: Collection[TableRef],
    tables: Sequence[Table],
    joins: JoinGraph,
    dialect: str,
) -> tuple[TableRef, ...]:
    """The tables that a statement names, or whose columns it names, beyond the shown ones.

    Args:
        tables: all of the source. A column's home is looked for among the tables that join
            a shown one, then among all; where several have it, none is meant.
    """
    tree = parse(sql, dialect)
    if tree is None:
        return ()
    names = TableNames(tables)
    try:
        written = tree.find_all(exp.Table)
        named = [names.of(node) or names.spelled_like(node, loosely=True) for node in written]
        meant = [table.ref for table in named if table is not None]
    except SqlglotError:
        return ()
    here = [table for table in tables if table.ref in shown or table.ref in meant]
    around = {ref for table in here for ref in joins.neighbours(table.ref)}
    known = {table.ref for table in here}
    others = [table for table in tables if table.ref not in known]
    given = {one.alias.casefold() for one in tree.find_all(exp.Alias)}
    for name in dict.fromkeys(column.name for column in tree.find_all(exp.Column)):
        if name.casefold() in given or any(t.column(name) for t in here):
            continue
        homes = [table.ref for table in others if column_in(table, name)]
        homes = [ref for ref in homes if ref in around] or homes
        if len(homes) == 1:
            meant.append(homes[0])
    return tuple(dict.fromkeys(ref for ref in meant if ref not in shown))[:MOST]
